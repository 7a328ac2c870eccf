"""One record to look at, as text: an item in a few lines, and beside it what it becomes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple
from unicodedata import combining, east_asian_width

from msgspec import Struct

from converter.outcome import Rejected, Verdict
from converter.report import printable
from converter.verdicts import Row

LINES: Final = 3
"""So many lines of words are shown of an item."""

BAR: Final = "  |   ", "  | = ", "  | ≠ "
"""Between source and result: nothing to compare, the same to the last character, not the same."""


class Sheet(Struct, frozen=True):
    """A record: what it is and what became of it, its items in pairs of source and result, and what is said of it.

    ``beside``: whether there is a result, of which an item may be missing.
    """

    line: int
    head: str
    pairs: list[tuple[Row | None, Row | None]]
    said: list[str]
    beside: bool

    def shown(self, name: str) -> str:
        """The sheet as `converter inspect` prints it, for a record of the input of this name."""
        width = min(max(shutil.get_terminal_size((100, 0)).columns, 60), 200) - 2
        lines = [f"{printable(name)}:{self.line}: {self.head}"]
        for source, result in self.pairs:
            lines += [f"  {line}".rstrip() for line in self._pair(source, result, width)]
        return "\n".join([*lines, *(f"  {printable(sentence)}" for sentence in self.said), ""])

    def _pair(self, source: Row | None, result: Row | None, width: int) -> Iterator[str]:
        if not self.beside:
            for field in _fields(source) if source else ():
                yield from _wrapped(field, width)
            return
        half = (width - len(BAR[0])) // 2
        missing = Field("(left out)" if source else "(made)"), *[Field("")] * 3
        before, behind = (_fields(row) if row else missing for row in (source, result))
        for left, right in zip(before, behind, strict=True):
            bar = BAR[0] if left.same is None or right.same is None else BAR[1 if left.same == right.same else 2]
            for one, other in zip_longest(_wrapped(left, half), _wrapped(right, half), fillvalue=""):
                yield f"{one}{' ' * (half - _wide(one))}{bar}{other}"
                bar = BAR[0]


def refusal(rejected: Rejected, head: str = "", rows: Sequence[Row] = ()) -> Sheet:
    """The sheet of a record that is refused, with its items as far as they can be read."""
    pairs: list[tuple[Row | None, Row | None]] = [(row, None) for row in rows]
    return Sheet(rejected.line, f"{head}refused", pairs, [f"refused: {reason}" for reason in rejected.reasons], False)


class Field(NamedTuple):
    """A line of an item, and what must be the same on both sides, if anything must."""

    text: str
    same: tuple[str, ...] | None = None
    indent: str = "  "


def _fields(row: Row) -> tuple[Field, ...]:
    """Where an item stands, what it is, which call it is or answers, and its words."""
    plain = row.verdict == Verdict.NOT_FUNCTION_CALL and row.status == "completed"
    what = (row.type, row.role, *(() if plain else (row.status, row.verdict)), "unchecked" * row.unchecked)
    calls = (row.name, row.call_id)
    return (
        Field(row.place, indent=""),
        Field("  ".join(filter(None, what))),
        Field("  ".join(filter(None, calls)), calls),
        Field(row.said, (row.said, str(row.spoken))),
    )


def _wrapped(field: Field, width: int) -> Iterator[str]:
    """A text in lines of this width, as many as may be."""
    width -= len(field.indent)
    text = printable(field.text[: LINES * width + 1])
    for number in range(LINES):
        if not text:
            return
        end = _end(text, width)
        if number == LINES - 1 and end < len(text):
            yield f"{field.indent}{text[: _end(text, width - 1)]}…"
            return
        yield field.indent + text[:end]
        text = text[end:]


def _end(text: str, width: int) -> int:
    """How many characters have room."""
    for end, character in enumerate(text):
        width -= _wide(character)
        if width < 0:
            return end
    return len(text)


def _wide(text: str) -> int:
    """How many columns a terminal takes for a text."""
    return sum(2 if east_asian_width(one) in "FW" else 0 if combining(one) else 1 for one in text)
