"""A record to look at: what stands in it beside what it becomes, item by item, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import structs

from converter import tools, verdicts
from converter.convert import Session
from converter.kinds import Envelope
from converter.options import Options, Verb
from converter.outcome import Account, Converted, Notice, Refused, Rejected
from converter.reading import members_of
from converter.shapes import Body, open_record
from converter.sheets import Sheet, refusal
from converter.text import BLANK, BOM, shield
from converter.verdicts import Row

PLACES: Final = 5
"""So many places of a notice are shown."""

NEAR: Final = 64
"""So many items of the result, either way, are looked through for the one that an item became: some are moved."""

AWAY: Final[dict[Envelope, Verb]] = {"chat": "to-responses", "responses": "to-chat"}
"""The conversion out of an envelope."""


def prepare(options: Options) -> Callable[[int, bytes], tuple[list[Sheet], Converted | Rejected]]:
    """A function from a line number and a record's text to its sheet and its outcome. It never raises.

    Raises `ValueError` where an option makes no sense.
    """
    sessions = {envelope: Session(verb, options) for envelope, verb in AWAY.items()}

    def outcome(line: int, record: bytes) -> tuple[list[Sheet], Converted | Rejected]:
        source = _opened(record, options)
        session = sessions[source.envelope]
        became, given = session.outcome(line, record), session.conversion.given
        rows = _rows(line, source, given)
        if isinstance(became, Rejected):
            return [refusal(became, _what(source.bodies), rows)], became
        result = _rows(line, _result(became.json, options, source.envelope), given)
        said = [_sentence(notice) for notice in became.notices]
        return [Sheet(line, f"{_what(source.bodies)}written", list(_beside(rows, result)), said, True)], became

    return outcome


class Read(NamedTuple):
    """The bodies of a record, and how its texts are spelled in it."""

    bodies: list[Body]
    spelled: Callable[[str], str]

    @property
    def envelope(self) -> Envelope:
        """That of its first body."""
        return self.bodies[0].kind.envelope if self.bodies else "chat"


def _opened(record: bytes, options: Options) -> Read:
    text = record.strip(BLANK).removeprefix(BOM)
    shielded = shield(text)
    try:
        opened = open_record(shielded.text if shielded else text, options, Account(options.allow))
    except (Refused, msgspec.DecodeError, RecursionError):
        return Read([], str)
    return Read(opened.bodies, shielded.spelled if shielded else str)


def _result(written: bytes, options: Options, source: Envelope) -> Read:
    """What was written, which is of the other envelope, though in the same wrapper."""
    read = _opened(written, options)
    if not read.bodies or read.envelope == source:
        read = _opened(written, structs.replace(options, shape=None))
    return read


def _what(bodies: list[Body]) -> str:
    named = [f"{body.kind.name}{' folded from a stream' * body.folded}" for body in bodies]
    if len(named) > 2:
        return f"{len(named)} bodies, "
    return f"{' and '.join(named)}, " if named else ""


def _sentence(notice: Notice) -> str:
    """A notice with the first of its places."""
    places = ", ".join(notice.paths[:PLACES])
    more = f" and {len(notice.paths) - PLACES:,} more" if len(notice.paths) > PLACES else ""
    return f"{notice.code} at {places}{more}{notice.detail and f': {notice.detail}'}"


def _rows(line: int, read: Read, given: tools.Schemas) -> list[Row]:
    rows: list[Row] = []
    beside: tools.Schemas = {}
    try:
        for body in read.bodies:
            rows += _worded(verdicts.rows(line, body.kind, body.text, given, beside), body, read.spelled)
            beside = verdicts.declared(members_of(body.text)) if body.text[:1] == b"{" else {}
    except (msgspec.DecodeError, RecursionError):
        pass  # the outcome says so
    return rows


def _worded(rows: Iterator[Row], body: Body, spelled: Callable[[str], str]) -> list[Row]:
    """The rows of a body, their places as the record has them, without messages of calls alone."""
    account = Account(base=body.base)
    account.layers = (body.shifts,) if body.shifts else ()
    kept: list[Row] = []
    for row in rows:
        if kept and not kept[-1].said and row.place.startswith(f"{kept[-1].place}/"):
            kept.pop()
        kept.append(row)
    return [structs.replace(row, place=account.logged(row.place)).respelled(spelled) for row in kept]


# ---------------------------------------------------------------- source and result, side by side


def _beside(source: list[Row], result: list[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    """Each item of the source with the one that it became, as far as that can be told, in the order of the source."""
    became = _matched(source, result)
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


def _matched(source: list[Row], result: list[Row]) -> list[int | None]:
    """For each item, the place of the one that it became: one that says the same, else the next one of its type."""
    free = set(range(len(result)))
    found = _near([_said(row) for row in source], [_said(row) for row in result], free, [None] * len(source))
    return _near([row.type for row in source], [row.type for row in result], free, found)


def _said(row: Row) -> tuple[str, ...]:
    return row.type, row.role, row.call_id or row.said


def _near(source: list[Any], result: list[Any], free: set[int], found: list[int | None]) -> list[int | None]:
    at = 0
    for number, key in enumerate(source):
        place = found[number]
        if place is None:
            near = range(max(at - NEAR, 0), min(at + NEAR, len(result)))
            place = found[number] = next((one for one in near if one in free and result[one] == key), None)
        if place is not None:
            free.discard(place)
            at = max(at, place + 1)
    return found
