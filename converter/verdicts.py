"""What the gate says of each entry of a body by itself: a row an item, in the words of items, of either envelope."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, structs

from converter import tools
from converter.answers_into_responses import is_cut
from converter.gate import replay_gate
from converter.kinds import Kind
from converter.outcome import Verdict
from converter.reading import elements_of, encode, kind, members_of, says_nothing, text_of
from converter.report import printable


class Row(Struct, frozen=True, kw_only=True):
    """An item, and its verdict. A Chat message is one, and each of its calls another.

    ``position`` is that of its entry in the list, ``place`` the pointer to it. ``role`` is that of a message. ``said``
    is the arguments, the output or the text; where that is not ``spoken``, it is JSON text.
    ``unchecked``: no schema is known for the call that can be used.
    """

    line: int
    position: int
    type: str
    name: str = ""
    call_id: str = ""
    status: str
    verdict: str
    place: str = ""
    role: str = ""
    said: str = ""
    spoken: bool = True
    unchecked: bool = False

    def shown(self, _: str) -> str:
        """The row as `converter check` prints it, whatever the name of its input."""
        return "\t".join(printable(str(getattr(self, name))) for name in COLUMNS)

    def respelled(self, spelled: Callable[[str], str]) -> Row:
        """The row as the record spells it, in which something stood in for what no text can hold."""
        texts = {name: spelled(getattr(self, name)) for name in ("name", "call_id", "place", "said")}
        return structs.replace(self, **texts)


COLUMNS: Final = ("line", "position", "type", "name", "call_id", "status", "verdict")


def rows(line: int, found: Kind, text: bytes, given: tools.Schemas, beside: tools.Schemas) -> Iterator[Row]:
    """A row an item of a body. ``beside`` holds the schemas of the request, where this is its answer.

    Raises `msgspec.DecodeError` where the text is no JSON.
    """
    body = members_of(text) if text[:1] == b"{" else {}
    schemas = {**tools.every(declared(body), beside), **given}
    for position, (place, entry) in enumerate(_entries(found, body, text)):
        if kind(entry) != "an object":
            continue
        for below, item in _ITEMS[found.envelope](members_of(entry)):
            yield _row(line, position, place + below, item, schemas)


def declared(body: dict[str, Raw]) -> tools.Schemas:
    """The schemas of the tools that a body brings."""
    return tools.declared(body.get("tools", UNSET), body.get("functions", UNSET))


def _entries(found: Kind, body: dict[str, Raw], text: bytes) -> Iterator[tuple[str, Raw]]:
    """The entries of a body's list, each with its pointer; a text in its place is what a user said."""
    held = body.get(found.root[1:]) if found.root else Raw(text)
    if held is not None and kind(held) == "a string" and found.root == "/input":
        yield "/input", Raw(encode({"role": "user", "content": held}))
    elements = elements_of(held) if held is not None and kind(held) == "an array" else []
    for position, entry in enumerate(elements):
        place = f"{found.root}/{position}"
        yield (f"{place}/message", _answer(members_of(entry))) if found.root == "/choices" else (place, entry)


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


# ---------------------------------------------------------------- entries as items

Item = dict[str, Any]


def _of_responses(members: dict[str, Raw]) -> Iterator[tuple[str, Item]]:
    item: Item = {key: msgspec.json.decode(members[key]) for key in _KEYS if key in members}
    said = _said(members, "arguments", "output", "input", "content", "summary")
    if "type" not in members and "role" in members:
        item = {"type": "message"}
    yield "", {**item, **said, "role": text_of(members.get("role"))}


_KEYS: Final = ("type", "name", "call_id", "status", "arguments", "namespace")


def _of_chat(members: dict[str, Raw]) -> Iterator[tuple[str, Item]]:
    """The message itself, then each of its calls."""
    said = _said(members, "content", "refusal")
    if text_of(members.get("role")) in ("tool", "function"):
        yield "", {"type": "function_call_output", "call_id": text_of(members.get("tool_call_id")), **said}
        return
    yield "", {"type": "message", **said, "role": text_of(members.get("role"))}
    calls = members.get("tool_calls")
    for number, call in enumerate(elements_of(calls) if calls is not None and kind(calls) == "an array" else []):
        if kind(call) == "an object":
            yield from _call(f"/tool_calls/{number}", members_of(call))
    legacy = members.get("function_call")
    if legacy is not None and kind(legacy) == "an object":
        yield "/function_call", _function(members_of(legacy))


def _call(place: str, call: dict[str, Raw]) -> Iterator[tuple[str, Item]]:
    of = {name: msgspec.json.decode(call[key]) for name, key in _OF_CALLS if key in call}
    for key, read in (("function", _function), ("custom", _custom)):
        if kind(call.get(key, Raw(b"null"))) == "an object":
            yield place, {**read(members_of(call[key])), **of}
            return


_OF_CALLS: Final = (("call_id", "id"), ("status", "status"), ("namespace", "namespace"))


def _function(function: dict[str, Raw]) -> Item:
    keys = ("name", "arguments", "namespace")
    read: Item = {key: msgspec.json.decode(function[key]) for key in keys if key in function}
    return {**read, "type": "function_call", **_said(function, "arguments")}


def _custom(custom: dict[str, Raw]) -> Item:
    return {"type": "custom_tool_call", "name": text_of(custom.get("name")), **_said(custom, "input")}


def _said(members: dict[str, Raw], *names: str) -> Item:
    """The first of these that says something, and whether that is a text, or texts."""
    value = next((members[name] for name in names if name in members and not says_nothing(members[name])), None)
    if value is None:
        return {"said": ""}
    try:
        words = text_of(value) or _words(value)
    except msgspec.DecodeError:  # lone surrogates: the text as it is spelled
        words = bytes(value)[1:-1].decode(errors="replace")
    return {"said": words} if words else {"said": bytes(value).decode(errors="replace"), "spoken": False}


def _words(parts: Raw) -> str | None:
    """What parts say that are words alone."""
    if kind(parts) != "an array":
        return None
    words = [_word(members_of(part)) if kind(part) == "an object" else None for part in elements_of(parts)]
    return None if None in words else "".join(filter(None, words))


def _word(part: dict[str, Raw]) -> str | None:
    return text_of(part.get("text")) or text_of(part.get("refusal"))


_ITEMS: Final = {"responses": _of_responses, "chat": _of_chat}


def _row(line: int, position: int, place: str, item: Item, schemas: tools.Schemas) -> Row:
    if item.get("status") is None:
        item["status"] = "completed"
    name = item.get("name")
    verdict = replay_gate(item, None)
    schema = schemas.get(name) if verdict is Verdict.OK and isinstance(name, str) else None
    usable = schema is not None and schema.problem is None
    if schema is not None and usable:
        verdict = schema.verdict(item["arguments"])
    names = ("type", "name", "call_id", "role", "said")
    shown = {key: value if isinstance(value := item.get(key), str) else "" for key in names}
    return Row(
        line=line,
        position=position,
        place=place,
        status=str(item["status"]),
        verdict=verdict.value,
        spoken=item.get("spoken", True),
        unchecked=verdict is Verdict.OK and not usable,
        **shown,
    )
