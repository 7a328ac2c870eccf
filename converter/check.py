"""The gate alone, for looking: a row an item, and whether anything in the record is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

from converter import standing, tools
from converter.conversion import Conversion, Passage
from converter.gate import replay_gate
from converter.habits import TABLES
from converter.kinds import KINDS, Kind, recognise
from converter.options import Options
from converter.outcome import Account, Converted, Refused, Rejected, Verdict
from converter.reading import Reading, elements_of, kind, members_of, text_of, tidy
from converter.text import BLANK, fault, utf8


class Row(Struct, frozen=True):
    """What the gate says of one item: where it stands (line, and position in its list), what it is, the verdict."""

    line: int
    position: int
    type: str
    name: str
    call_id: str
    status: str
    verdict: str


def prepare(options: Options) -> Callable[[int, bytes], tuple[list[Row], Converted | Rejected]]:
    """A function from a line number and a record's text to its rows and its outcome. It never raises."""
    session = Conversion("to-responses", options)

    def outcome(line: int, record: bytes) -> tuple[list[Row], Converted | Rejected]:
        rows: list[Row] = []
        text = record.strip(BLANK)
        try:
            try:
                utf8(text)
                found = KINDS[options.shape] if options.shape else recognise(text)
                rows = list(_rows(line, found, text, session))
                account = _gated(session, found, text)
            except (msgspec.DecodeError, RecursionError) as error:
                raise Refused([fault(text, error)]) from None
        except Refused as refused:
            return rows, Rejected(line, refused.reasons, record)
        return rows, Converted(line, text, account.notices())

    return outcome


def _gated(session: Conversion, found: Kind, text: bytes) -> Account:
    account = Account(session.options.allow)
    reading = Reading(account, session.options, TABLES[found.envelope])
    tidied = tidy(Raw(text), found.type, "", reading)
    if not account.reasons and tidied is not None:
        account.found.clear()
        standing.check(session, found.decode(tidied), Passage(text, account, None))
    if account.reasons:
        raise Refused(list(account.reasons))
    return account


# ---------------------------------------------------------------- rows


def _rows(line: int, found: Kind, text: bytes, session: Conversion) -> Iterator[Row]:
    body = members_of(text) if text[:1] == b"{" else {}
    schemas = {**tools.schemas_of(body.get("tools", UNSET)), **session.given}
    for position, entry in enumerate(_entries(found, body, text)):
        if kind(entry) != "an object":
            continue
        for item in _items(found, members_of(entry)):
            yield _row(line, position, item, schemas)


def _entries(found: Kind, body: dict[str, Raw], text: bytes) -> list[Raw]:
    if not found.root:
        return elements_of(text)
    entries = body.get(found.root[1:])
    held = elements_of(entries) if entries is not None and kind(entries) == "an array" else []
    if found.root == "/choices":
        return [members_of(choice)["message"] for choice in held if "message" in members_of(choice)]
    return held


def _items(found: Kind, members: dict[str, Raw]) -> Iterator[dict[str, Any]]:
    """The entry as items: a Chat message is itself, and a call for each of its tool calls."""
    if found.envelope == "responses":
        yield _parsed(members) if "type" in members or "role" not in members else {"type": "message"}
        return
    if text_of(members.get("role")) in ("tool", "function"):
        yield {"type": "function_call_output", "call_id": text_of(members.get("tool_call_id"))}
        return
    yield {"type": "message"}
    calls = members.get("tool_calls")
    for call in elements_of(calls) if calls is not None and kind(calls) == "an array" else []:
        parsed = msgspec.json.decode(call)
        function = parsed.get("function") if isinstance(parsed, dict) else None
        if isinstance(function, dict):
            yield {**function, "type": "function_call", "call_id": parsed.get("id")}


def _parsed(members: dict[str, Raw]) -> dict[str, Any]:
    keys = ("type", "name", "call_id", "status", "arguments")
    return {key: msgspec.json.decode(members[key]) for key in keys if key in members}


def _row(line: int, position: int, item: dict[str, Any], schemas: tools.Schemas) -> Row:
    if item.get("status") is None:
        item["status"] = "completed"
    name = item.get("name")
    verdict = replay_gate(item, None)
    if verdict is Verdict.OK and isinstance(name, str):
        schema = schemas.get(name)
        verdict = schema.verdict(item["arguments"]) if schema and not schema.problem else verdict
    shown = {key: value if isinstance(value := item.get(key), str) else "" for key in ("type", "name", "call_id")}
    return Row(line, position, **shown, status=str(item["status"]), verdict=verdict.value)
