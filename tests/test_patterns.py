"""Patterns for the pure engine: which are taken, how much work they are reckoned at, and that the count is no less."""

from __future__ import annotations

import json

import pytest

from converter.patterns import TRIES_A_STEP, UnusableError, compiled, effort

LINEAR = [
    "^a+$",
    r"^[a-z0-9]+(?:-[a-z0-9]+)*$",
    r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})$",
    r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$",
    "^[A-Z][a-z]*( [A-Z][a-z]*)*$",
    "^(?:a|b|c)*$",
    "[0-9]{3}x",
]


@pytest.mark.parametrize("pattern", LINEAR)
def test_repeats_that_cannot_trade_characters_are_linear(pattern: str) -> None:
    assert effort(compiled(pattern), "x" * 10_000) < 10_000 * len(pattern) / TRIES_A_STEP * 3


@pytest.mark.parametrize(
    ("pattern", "piece"),
    [
        ("a+$", "a"),
        ("^a+a+$", "a"),
        ("^a*a*a*$", "a"),
        ("^" + "a*" * 8 + "$", "a"),
        (r"^\S+@\S+\.\S+ $", "@."),
        ("^(.*),(.*),(.*);$", ","),
        ("^" + "a?" * 14 + "a*b$", "a"),
        ("^" + "(ab?|a)" * 10 + "$", "ab"),
        ("^(?=.*a.*b.*c)(?=.*d).*$", "ab"),
        ("^(?:a{1,9}a{1,9}){2}$", "a"),
        (r"^(\w+\s?){1,5}$", "ab "),
        (r"(.*)\1\1$", "a"),
        (r"^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.|$)){4}$", "1"),
        ("(?:ab)*c", "ab"),
    ],
)
@pytest.mark.usefixtures("may_not_hang")
def test_no_pattern_takes_longer_than_reckoned(pattern: str, piece: str) -> None:
    regex, size = compiled(pattern), 1
    while size < 1_000_000 and effort(regex, "x" * size * 2) < 200_000:
        size *= 2
    text = (piece * size)[: size - 1] + "!"
    found = regex.search(text)
    assert found is None or found[0] == ""


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+",
        "(a*)*",
        "(a|a)+",
        "(?:-a*a*)*$",
        "(?:(?:a?){9})*",
        "(a|ab|b)*",
        "(?=(a+)+)b",
        r"(?:a\b|a)*",
        "(?:a+){65}",
    ],
)
def test_a_choice_inside_a_repeat_is_refused(pattern: str) -> None:
    with pytest.raises(UnusableError, match="repeats inside a repeat"):
        compiled(pattern)


@pytest.mark.parametrize("pattern", ["(", "[", "a**", "(?i:a+)+", "(?>a)", "(?#a)", "a" * 5000, "(?P<a>b)(?(a)c|d)"])
def test_what_ecma_does_not_know_is_refused(pattern: str) -> None:
    with pytest.raises(UnusableError, match="no regular expression"):
        compiled(pattern)


def test_a_pattern_with_four_overlapping_repeats_is_dear() -> None:
    assert effort(compiled("^a+a+a+a+$"), json.dumps("a" * 2000)) > 1e9
    assert effort(compiled("^a+a+a+a+$"), json.dumps("a" * 20)) < 1e3
