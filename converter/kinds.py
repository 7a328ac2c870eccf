"""The bodies that can be converted, and how they are told apart: by their keys, in the order of the tables.

Formats that look alike and are neither of the two envelopes are in `converter.foreign`: they are refused by name,
never half converted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct

from converter import chat, foreign, responses
from converter.foreign import holds
from converter.outcome import Reason, Refused
from converter.reading import Members, elements_of, kind, members_of, text_of
from converter.text import shown
from converter.tools import plainly_ours

Envelope = Literal["chat", "responses"]


class Kind(Struct, frozen=True):
    """One of the bodies that can be converted: its envelope, its struct, and where its list of content stands.

    The decoder takes only what `recognise` would call this kind, but where one of ``doubts`` holds for what it gives.
    """

    name: str
    envelope: Envelope
    type: Any
    root: str
    decode: Callable[[bytes], Any]
    doubts: tuple[Callable[[Any], bool], ...]

    def certain(self, body: Any) -> bool:
        """Whether a decoded body can be of no other kind."""
        return not any(doubt(body) for doubt in self.doubts)


def _kind(name: str, envelope: Envelope, type_: Any, root: str, *doubts: Callable[[Any], bool]) -> Kind:
    return Kind(name, envelope, type_, root, msgspec.json.Decoder(type_).decode, doubts)


def _holds_nothing(body: list[Any]) -> bool:
    """No message and no item tells which list it is."""
    return not body


def _foreign_tools(body: Any) -> bool:
    """An Anthropic request may differ in its tools alone."""
    return body.tools is not UNSET and not plainly_ours(bytes(body.tools))


def _without_input(body: Any) -> bool:
    return body.input is UNSET


def _asked_too(body: Any) -> bool:
    """A conversation beside its answer, unless it says that it is an answer."""
    return body.object is UNSET and body.prompt is not UNSET


KINDS: Final[dict[str, Kind]] = {
    kind.name: kind
    for kind in (
        _kind("chat-request", "chat", chat.Request, "/messages", _foreign_tools),
        _kind("message-list", "chat", list[chat.Message], "", _holds_nothing),
        _kind("completion", "chat", chat.Completion, "/choices"),
        _kind("responses-request", "responses", responses.Request, "/input", _without_input, _foreign_tools),
        _kind("item-list", "responses", list[responses.Item], "", _holds_nothing),
        _kind("response", "responses", responses.Response, "/output", _asked_too, _foreign_tools),
    )
}


# ---------------------------------------------------------------- objects


def _completion(members: Members) -> bool:
    """``choices``. Gives a response resource; a completion."""
    return holds(members, "choices", "an array") and not foreign.is_chunk(members)


def _response(members: Members) -> bool:
    """``object: response``, or an ``output`` list. Gives a response resource; a completion."""
    return text_of(members.get("object")) == "response" or holds(members, "output", "an array")


def _chat_request(members: Members) -> bool:
    """``messages``. Gives a request with ``input``; a request with ``messages``."""
    return "messages" in members


def _responses_request(members: Members) -> bool:
    """``input``, or a stored ``prompt``, or an earlier response. Gives a request with ``input``; with ``messages``."""
    return (
        holds(members, "input", "a string", "an array", "null")
        or holds(members, "prompt", "an object")
        or ("model" in members and holds(members, "previous_response_id", "a string"))
    )


OBJECTS: Final[tuple[tuple[str, Callable[[Members], bool]], ...]] = (
    ("completion", _completion),
    ("response", _response),
    ("chat-request", _chat_request),
    ("responses-request", _responses_request),
)


# ---------------------------------------------------------------- arrays


def _chat_only(members: Members) -> bool:
    """A message that only Chat knows."""
    return text_of(members.get("role")) in ("tool", "function") or holds(members, "tool_calls", "an array")


def _item_only(members: Members) -> bool:
    """An item that only Open Responses knows."""
    name = text_of(members.get("type"))
    if name is None:
        return _holds_item_parts(members)
    return name in ITEM_TYPES or ":" in name or name.endswith(("_call", "_output"))


def _holds_item_parts(members: Members) -> bool:
    """Many a client leaves out the type of a message item; its parts are named otherwise than those of Chat."""
    content = members.get("content")
    if content is None or kind(content) != "an array" or b"put_" not in bytes(content):
        return False
    parts = [members_of(one) for one in elements_of(content) if kind(one) == "an object"]
    return any(text_of(part.get("type")) in ITEM_PARTS for part in parts)


ITEM_PARTS: Final = frozenset({"input_text", "output_text", "input_image", "input_file"})


ITEM_TYPES: Final = frozenset(
    {"message", "reasoning", "function_call", "function_call_output", "item_reference", "compaction"}
)


def _message_list(objects: list[Members]) -> bool:
    """An array of objects with a ``role``, none of them an item. Gives an item list; a message list."""
    return all("role" in one for one in objects)


def _item_list(objects: list[Members]) -> bool:
    """Objects of which one has the ``type`` of an item, or parts of one. Gives an item list; a message list."""
    return any(map(_item_only, objects))


ARRAYS: Final[tuple[tuple[str, Callable[[list[Members]], bool]], ...]] = (
    ("item-list", _item_list),
    ("message-list", _message_list),
)


def recognise(text: bytes, members: Members | None = None) -> Kind:
    """The kind of body that a text is. The members of an object may be known already.

    Raises `Refused` (``not_a_record``, ``unknown_shape``, ``mixed_envelopes``); `msgspec.DecodeError` and
    `RecursionError` where the text is no JSON.
    """
    first = kind(Raw(text[:1] or b"n"))
    if first == "an object":
        return KINDS[_object(members_of(text) if members is None else members)]
    if first == "an array":
        return KINDS[_array(elements_of(text))]
    msgspec.json.decode(text, type=Raw)
    raise Refused([Reason("not_a_record", "", f"{first}, expected an object or an array")])


def _object(members: Members) -> str:
    if (name := foreign.name_of(members)) is not None:
        raise unknown(name)
    if "messages" in members and "input" in members:
        raise Refused([Reason("mixed_envelopes", "", "both messages and input, expected one envelope")])
    for name, fits in OBJECTS:
        if fits(members):
            return name
    keys = ", ".join(shown(key) for key in list(members)[:8]) or "none"
    raise unknown(f"an object with the keys {keys}")


def _array(elements: list[Raw]) -> str:
    objects = [members_of(one) for one in elements if kind(one) == "an object"]
    if len(objects) < len(elements):
        raise unknown(f"an array of {_elements(elements)}")
    if (name := foreign.name_of_elements(objects)) is not None:
        raise unknown(name)
    if any(map(_item_only, objects)) and any(map(_chat_only, objects)):
        sentence = "messages with tool calls and typed items in one array, expected one envelope"
        raise Refused([Reason("mixed_envelopes", "", sentence)])
    for name, fits in ARRAYS:
        if fits(objects):
            return name
    raise unknown(f"an array of {_elements(elements)}")


def unknown(found: str) -> Refused:
    """The refusal of a record that is of no known shape, in words that follow what was found."""
    return Refused([Reason("unknown_shape", "", found if found.endswith(")") else f"{found}; {KNOWN}")])


def _elements(elements: list[Raw]) -> str:
    return " and ".join(sorted({kind(one).split()[-1] + "s" for one in elements}))


KNOWN: Final = f"known are {', '.join(KINDS)} (--from says which one a log holds, --at where the value stands)"
