"""A record to look at: what stands in it beside what it becomes, item by item, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from converter import tools, verdicts
from converter.convert import Session
from converter.kinds import Envelope
from converter.options import Options, Verb
from converter.outcome import Account, Converted, Notice, Refused, Rejected
from converter.reading import members_of
from converter.report import printable
from converter.shapes import Opened, open_record
from converter.text import BLANK, BOM
from converter.verdicts import Row

WIDTH: Final = 60
"""Characters of a cell from which it is cut."""

PLACES: Final = 5
"""So many places of a notice are shown."""

NEAR: Final = 8
"""So many items of the result, either way, are looked through for the one that an item became: some are moved."""

AWAY: Final[dict[Envelope, Verb]] = {"chat": "to-responses", "responses": "to-chat"}
"""The conversion out of an envelope."""


class Sheet(Struct, frozen=True):
    """One record: a line about it, and a row for each of its items beside the item that it became."""

    head: str
    cells: list[tuple[str, ...]]
    said: list[str]

    def shown(self) -> str:
        """The sheet as `converter inspect` prints it: columns, each as wide as it needs to be."""
        widths = [max(map(len, column)) for column in zip(*self.cells, strict=True)]
        rows = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in self.cells]
        return "\n".join([self.head, *(f"  {row}" for row in (*rows, *self.said)), ""])


def prepare(options: Options) -> Callable[[int, bytes], tuple[list[Sheet], Converted | Rejected]]:
    """A function from a line number and a record's text to its sheet and its outcome. It never raises.

    Raises `ValueError` where an option makes no sense.
    """
    sessions = {envelope: Session(verb, options) for envelope, verb in AWAY.items()}

    def outcome(line: int, record: bytes) -> tuple[list[Sheet], Converted | Rejected]:
        opened = _opened(record, options)
        kind = opened.bodies[0].kind if opened else None
        session = sessions[kind.envelope if kind else "chat"]
        became = session.outcome(line, record)
        given = session.conversion.given
        source = _rows(line, opened, given)
        made = _opened(became.json, options) if isinstance(became, Converted) else None
        name = kind.name if kind else "of no known shape"
        return [_sheet(name, source, _rows(line, made, given), became)], became

    return outcome


def _opened(record: bytes, options: Options) -> Opened | None:
    text = record.strip(BLANK).removeprefix(BOM)
    try:
        return open_record(text, options, Account(options.allow))
    except (Refused, msgspec.DecodeError, RecursionError):
        return None


def _rows(line: int, opened: Opened | None, given: tools.Schemas) -> list[Row]:
    rows: list[Row] = []
    beside: tools.Schemas = {}
    try:
        for body in opened.bodies if opened else ():
            for row in verdicts.rows(line, body.kind, body.text, given, beside):
                made = structs.replace(row, place=body.base + row.place)
                if rows and not rows[-1].said and made.place.startswith(f"{rows[-1].place}/"):
                    rows.pop()  # a message of calls alone, which stand behind it
                rows.append(made)
            beside = verdicts.declared(members_of(body.text)) if body.text[:1] == b"{" else {}
    except (msgspec.DecodeError, RecursionError):
        pass  # the outcome says so
    return rows


# ---------------------------------------------------------------- source and result, side by side


def _sheet(name: str, source: list[Row], result: list[Row], became: Converted | Rejected) -> Sheet:
    if isinstance(became, Rejected):
        said = [f"refused: {reason}" for reason in became.reasons]
        return Sheet(f"line {became.line}: {name}, refused", [_cells(row, None) for row in source], said)
    said = [_sentence(one) for one in became.notices]
    cells = [_cells(*pair) for pair in _beside(source, result)]
    return Sheet(f"line {became.line}: {name}, written", cells, list(map(printable, said)))


def _sentence(notice: Notice) -> str:
    """A notice with the first of its places."""
    places = ", ".join(notice.paths[:PLACES])
    more = f" and {len(notice.paths) - PLACES:,} more" if len(notice.paths) > PLACES else ""
    return f"{notice.code} at {places}{more}{notice.detail and f': {notice.detail}'}"


def _beside(source: list[Row], result: list[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    """Each item of the source with the one that it became, as far as that can be told, in the order of the source."""
    became = _matched([_key(row) for row in source], [_key(row) for row in result])
    taken, shown = set(became), 0
    for row, place in zip(source, became, strict=True):
        for between in range(shown, place or 0):
            if between not in taken:
                yield None, result[between]
        shown = max(shown, place or 0)
        yield row, None if place is None else result[place]
    for behind in range(shown, len(result)):
        if behind not in taken:
            yield None, result[behind]


def _matched(source: list[Any], result: list[Any]) -> list[int | None]:
    """For each item, the place of the one that it became."""
    free = set(range(len(result)))
    found: list[int | None] = []
    at = 0
    for key in source:
        near = (place for place in range(max(at - NEAR, 0), min(at + NEAR, len(result))) if place in free)
        place = next((place for place in near if result[place] == key), None)
        found.append(place)
        if place is not None:
            free.discard(place)
            at = max(at, place + 1)
    return found


def _key(row: Row) -> tuple[str, str]:
    return row.type, row.call_id or row.said


def _cells(source: Row | None, result: Row | None) -> tuple[str, ...]:
    """Place, type, name, call id and words of the source; place, type, status, verdict of the result, and its words.

    Words are shown once where they are the same to the last character.
    """
    left = right = ("",) * 5
    if source is not None:
        left = (source.place, _what(source), source.name, source.call_id, source.said)
        right = ("", "", source.status, source.verdict, "")
    if result is not None:
        right = (result.place, _what(result), result.status, result.verdict, result.said)
        if source is not None and left[2:] == (result.name, result.call_id, result.said):
            right = (*right[:4], "=")
    return tuple(_short(printable(cell)) for cell in (*left, *right))


def _what(row: Row) -> str:
    return f"{row.type} {row.role}".rstrip()


def _short(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
