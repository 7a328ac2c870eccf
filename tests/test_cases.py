"""Small conversions that a person can read, one a file in ``cases/``: the source, and what becomes of it.

A case says ``about`` (one sentence), ``verb``, ``options``, ``source``, and then either ``result`` with ``notices``
(code: pointers), or ``reasons`` (each ``code at pointer``). Numbers are compared by their spelling. A text like
``<call A>`` in a result stands for an id that is made from the record: the same id wherever it stands again, and
another than those with other names. ``"beside": "defaults"`` adds to a response resource what it says of a request
that is not known.
"""

import json
import re
from pathlib import Path

import msgspec
import pytest
from msgspec import UNSET, Raw, Struct, UnsetType

from converter import Options, Refused, to_chat, to_responses

FOLDER = Path(__file__).parent / "cases"
VERBS = {"to-responses": to_responses, "to-chat": to_chat}


class Case(Struct, forbid_unknown_fields=True, kw_only=True):
    about: str
    verb: str
    options: dict = {}
    source: Raw
    result: Raw | UnsetType = UNSET
    beside: str = ""
    reasons: list[str] = []
    notices: dict[str, list[str]] = {}


class Number(str):
    """A number as it is spelled."""

    __slots__ = ()

    def __eq__(self, other):
        return type(other) is Number and str.__eq__(self, other)

    __hash__ = str.__hash__


def spelled(text):
    return json.loads(text, parse_int=Number, parse_float=Number)


DEFAULTS = spelled("""{
  "object": "response", "completed_at": null, "status": "completed", "incomplete_details": null,
  "previous_response_id": null, "instructions": null, "error": null, "tools": [], "tool_choice": "auto",
  "truncation": "disabled", "parallel_tool_calls": true, "text": {"format": {"type": "text"}}, "top_p": 1,
  "presence_penalty": 0, "frequency_penalty": 0, "top_logprobs": 0, "temperature": 1, "reasoning": null,
  "usage": null, "max_output_tokens": null, "max_tool_calls": null, "store": false, "background": false,
  "service_tier": "default", "metadata": {}, "safety_identifier": null, "prompt_cache_key": null
}""")

MADE = re.compile(r"<(\w+) \w+>")


def load(path):
    return msgspec.json.decode(path.read_bytes(), type=Case)


def options_of(case):
    return Options(
        **{name: tuple(value) if name in ("at", "accept_loss") else value for name, value in case.options.items()}
    )


def expected_of(case):
    expected = spelled(bytes(case.result))
    return {**DEFAULTS, **expected} if case.beside == "defaults" else expected


def with_made_ids(expected, got, made):
    """``expected`` with its stand-ins replaced by what stands in ``got``, once each."""
    if isinstance(expected, str) and (match := MADE.fullmatch(expected)) and isinstance(got, str):
        assert re.fullmatch(rf"{match[1]}_[A-Za-z0-9_-]+", got), got
        assert len(got) <= 64
        return made.setdefault(expected, got)
    if isinstance(expected, dict) and isinstance(got, dict):
        return {key: with_made_ids(value, got.get(key), made) for key, value in expected.items()}
    if isinstance(expected, list) and isinstance(got, list):
        pairs = zip(expected, got + [None] * len(expected), strict=False)
        return [with_made_ids(one, other, made) for one, other in pairs]
    return expected


PATHS = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])
def test_case(path):
    case = load(path)
    convert = VERBS[case.verb]
    if case.result is UNSET:
        with pytest.raises(Refused) as refused:
            convert(bytes(case.source), options_of(case))
        assert [f"{reason.code} at {reason.path or '/'}" for reason in refused.value.reasons] == case.reasons
        return
    result = convert(bytes(case.source), options_of(case))
    got, made = spelled(result.json), {}
    assert got == with_made_ids(expected_of(case), got, made)
    assert len(set(made.values())) == len(made)
    notices = {notice.code: sorted(notice.paths) for notice in result.notices}
    assert notices == {code: sorted(paths) for code, paths in case.notices.items()}
    assert len(result.notices) == len(case.notices)


def test_there_are_cases_of_both_directions_and_outcomes():
    cases = [load(path) for path in PATHS]
    assert len(cases) >= 60
    assert {(case.verb, case.result is UNSET) for case in cases} == {
        (verb, no) for verb in VERBS for no in (True, False)
    }


NO_WAY_BACK = {"image_details_for_openai"}
"""Chat Completions has no detail `original`, so the way back leaves out what a log may hold all the same."""


@pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])
def test_what_is_written_leads_back(path):
    case = load(path)
    if case.result is not UNSET and path.stem not in NO_WAY_BACK:
        convert, options = VERBS[case.verb], options_of(case)
        source = bytes(case.source)
        assert convert(source, msgspec.structs.replace(options, verify=True)).json == convert(source, options).json
