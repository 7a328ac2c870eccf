"""The gate alone, for looking: a row an item, and whether anything in the record is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

from converter import standing, tools
from converter.answers_into_responses import is_cut
from converter.conversion import Beside, Conversion, Passage
from converter.entry import enter
from converter.gate import replay_gate
from converter.kinds import Kind
from converter.options import Options
from converter.outcome import Account, Converted, Refused, Rejected, Verdict
from converter.reading import elements_of, encode, kind, members_of, text_of
from converter.shapes import Body, open_record
from converter.text import BLANK, BOM, fault, utf8


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
    """A function from a line number and a record's text to its rows and its outcome. It never raises.

    Raises `ValueError` where an option makes no sense.
    """
    conversion = Conversion("to-responses", options)

    def outcome(line: int, record: bytes) -> tuple[list[Row], Converted | Rejected]:
        rows: list[Row] = []
        text = record.strip(BLANK).removeprefix(BOM)
        account = Account(options.allow)
        try:
            utf8(text)
            beside = Beside()
            for body in open_record(text, options, account).bodies:
                rows += _rows(line, body.kind, body.text, conversion, beside)
                _gated(conversion, body, account, beside)
        except Refused as refused:
            return rows, Rejected(line, [*account.reasons, *refused.reasons], record)
        except (msgspec.DecodeError, RecursionError) as error:
            return rows, Rejected(line, [fault(text, error)], record)
        if account.reasons:
            return rows, Rejected(line, list(account.reasons), record)
        return rows, Converted(line, text, account.notices())

    return outcome


def _gated(conversion: Conversion, body: Body, account: Account, beside: Beside) -> None:
    account.base, account.layers = body.base, (body.shifts,) if body.shifts else ()
    entered = enter(body.kind, body.text, account, conversion.options)
    if entered is None:
        return
    rest = account.aside() if entered.faulty else account
    standing.check(conversion, entered.body, Passage(body.text, rest, beside, entered))
    if entered.seen is not None and entered.faulty:
        account.absorb(entered.seen)
        account.confess(rest)


# ---------------------------------------------------------------- rows


def _rows(line: int, found: Kind, text: bytes, conversion: Conversion, beside: Beside) -> Iterator[Row]:
    """``beside`` has the tools of the request, where this is its answer."""
    body = members_of(text) if text[:1] == b"{" else {}
    declared = [tools.schemas_of(body.get(name, UNSET), name) for name in ("tools", "functions")]
    schemas = {**tools.every(tools.every(*declared), beside.schemas), **conversion.given}
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
    return [_answer(members_of(choice)) for choice in held] if found.root == "/choices" else held


def _answer(choice: dict[str, Raw]) -> Raw:
    """The message of a choice; where the answer was cut, its last call says so."""
    message = choice.get("message", Raw(b"{}"))
    if not is_cut(text_of(choice.get("finish_reason"))) or kind(message) != "an object":
        return message
    members = members_of(message)
    calls = elements_of(members["tool_calls"]) if kind(members.get("tool_calls", Raw(b"0"))) == "an array" else []
    if not calls:
        return message
    cut = Raw(encode({**members_of(calls[-1]), "status": "incomplete"}))
    return Raw(encode({**members, "tool_calls": [*calls[:-1], cut]}))


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
            item = {"type": "function_call", "call_id": parsed.get("id"), "status": parsed.get("status")}
            yield {**function, **item}
    legacy = members.get("function_call")
    if legacy is not None and kind(legacy) == "an object":
        yield {**msgspec.json.decode(legacy), "type": "function_call"}


def _parsed(members: dict[str, Raw]) -> dict[str, Any]:
    keys = ("type", "name", "call_id", "status", "arguments", "namespace")
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
