"""The bodies that can be converted, and how they are told apart: by their keys, in the order of the tables.

Formats that look alike and are neither of the two envelopes are in `FOREIGN`: they are refused by name, never half
converted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct

from converter import chat, responses
from converter.habits import ANTHROPIC_PARTS, shown
from converter.outcome import Reason, Refused
from converter.reading import Members, elements_of, kind, members_of, text_of

Envelope = Literal["chat", "responses"]


class Kind(Struct, frozen=True):
    """One of the bodies that can be converted: its envelope, its struct, and where its list of content stands.

    The decoder takes only what `recognise` would call this kind, but for an empty list, and a Responses request that
    names no input.
    """

    name: str
    envelope: Envelope
    type: Any
    root: str
    decode: Callable[[bytes], Any]

    def certain(self, body: Any) -> bool:
        """Whether a decoded body can be of no other kind."""
        return bool(body) if isinstance(body, list) else getattr(body, "input", None) is not UNSET


def _kind(name: str, envelope: Envelope, type_: Any, root: str) -> Kind:
    return Kind(name, envelope, type_, root, msgspec.json.Decoder(type_).decode)


KINDS: Final[dict[str, Kind]] = {
    kind.name: kind
    for kind in (
        _kind("chat-request", "chat", chat.Request, "/messages"),
        _kind("message-list", "chat", list[chat.Message], ""),
        _kind("completion", "chat", chat.Completion, "/choices"),
        _kind("responses-request", "responses", responses.Request, "/input"),
        _kind("item-list", "responses", list[responses.Item], ""),
        _kind("response", "responses", responses.Response, "/output"),
    )
}


# ---------------------------------------------------------------- objects


def _is(members: Members, key: str, *kinds: str) -> bool:
    return key in members and kind(members[key]) in kinds


def _completion(members: Members) -> bool:
    """``choices[].message``, or the word itself."""
    return _is(members, "choices", "an array") and text_of(members.get("object")) != "chat.completion.chunk"


def _response(members: Members) -> bool:
    """``object: response``, or an ``output`` list."""
    return text_of(members.get("object")) == "response" or _is(members, "output", "an array")


def _chat_request(members: Members) -> bool:
    """``messages``."""
    return "messages" in members


def _responses_request(members: Members) -> bool:
    """``input``, or what stands in its place: a stored prompt, or an earlier response."""
    return (
        _is(members, "input", "a string", "an array", "null")
        or _is(members, "prompt", "an object")
        or ("model" in members and _is(members, "previous_response_id", "a string"))
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
    return text_of(members.get("role")) in ("tool", "function") or _is(members, "tool_calls", "an array")


def _item_only(members: Members) -> bool:
    """An item that only Open Responses knows."""
    name = text_of(members.get("type"))
    return name is not None and (name in ITEM_TYPES or ":" in name or name.endswith(("_call", "_output")))


ITEM_TYPES: Final = frozenset(
    {"message", "reasoning", "function_call", "function_call_output", "item_reference", "compaction"}
)


def _array(elements: list[Raw]) -> str | None:
    objects = [members_of(one) for one in elements if kind(one) == "an object"]
    if len(objects) < len(elements) or not objects:
        return None if elements else "message-list"
    items, messages = any(map(_item_only, objects)), any(map(_chat_only, objects))
    if items and messages:
        raise Refused(
            [
                Reason(
                    "mixed_envelopes",
                    "",
                    "messages with tool calls and typed items in one array, expected one envelope",
                )
            ]
        )
    if items:
        return "item-list"
    return "message-list" if all("role" in one for one in objects) else None


# ---------------------------------------------------------------- foreign formats


def _roles_and_parts(members: Members, key: str, parts: frozenset[str]) -> bool:
    """Whether some content part has one of these types."""
    if not _is(members, key, "an array"):
        return False
    for message in elements_of(members[key]):
        inner = members_of(message) if kind(message) == "an object" else {}
        for name in ("content", "parts"):
            if _is(inner, name, "an array"):
                for part in elements_of(inner[name]):
                    if kind(part) == "an object" and text_of(members_of(part).get("type")) in parts:
                        return True
    return False


def _anthropic_request(members: Members) -> bool:
    tell = {"anthropic_version", "stop_sequences", "anthropic_beta"} & members.keys()
    return "messages" in members and (
        bool(tell) or "system" in members or _roles_and_parts(members, "messages", ANTHROPIC_PARTS - {"thinking"})
    )


def _cohere_request(members: Members) -> bool:
    return ("messages" in members and "documents" in members) or {"message", "chat_history"} <= members.keys()


def _legacy_completions(members: Members) -> bool:
    """Together repeats an empty ``prompt`` in its chat answers."""
    chatty = {"messages", "choices", "completion", "input"} & members.keys()
    return _is(members, "prompt", "a string", "an array") and not chatty


def _embeddings(members: Members) -> bool:
    if text_of(members.get("object")) != "list" or not _is(members, "data", "an array"):
        return False
    first = next(iter(elements_of(members["data"])), Raw(b"null"))
    return kind(first) == "an object" and text_of(members_of(first).get("object")) == "embedding"


FOREIGN: Final[tuple[tuple[str, Callable[[Members], bool]], ...]] = (
    ("an API error body", lambda m: _is(m, "error", "an object", "a string") and not {"output", "choices"} & m.keys()),
    ("an HTTP answer around a body (--at /body converts it)", lambda m: {"status_code", "body"} <= m.keys()),
    ("an Anthropic Messages request", _anthropic_request),
    ("an Anthropic Messages response", lambda m: text_of(m.get("type")) == "message" and _is(m, "content", "an array")),
    ("a Gemini request", lambda m: _is(m, "contents", "an array", "an object")),
    ("a Gemini response", lambda m: _is(m, "candidates", "an array")),
    ("a Bedrock Converse request", lambda m: "messages" in m and bool({"inferenceConfig", "toolConfig"} & m.keys())),
    ("a Bedrock Converse response", lambda m: _is(m, "output", "an object") and "stopReason" in m),
    (
        "a Cohere request",
        lambda m: ("messages" in m and "chat_history" in m) or {"message", "chat_history"} <= m.keys(),
    ),
    ("a Cohere response", lambda m: "finish_reason" in m and _is(m, "message", "an object") and "choices" not in m),
    ("an Ollama request", lambda m: "messages" in m and bool({"options", "keep_alive"} & m.keys())),
    ("an Ollama response", lambda m: {"done", "message"} <= m.keys() or {"done", "response"} <= m.keys()),
    ("a ShareGPT row", lambda m: _is(m, "conversations", "an array")),
    ("a preference row", lambda m: {"chosen", "rejected"} <= m.keys() or "preferred_output" in m),
    (
        "a legacy completions request",
        lambda m: _is(m, "prompt", "a string", "an array") and not {"messages", "choices", "completion"} & m.keys(),
    ),
    ("a legacy completions answer", lambda m: text_of(m.get("object")) == "text_completion"),
    ("an embeddings request", lambda m: "input" in m and bool({"encoding_format", "dimensions"} & m.keys())),
    ("an embeddings answer", _embeddings),
    ("an OpenTelemetry span", lambda m: "resourceSpans" in m or {"attributes", "span_id"} <= m.keys()),
    ("a row of prompt and completion", lambda m: {"prompt", "completion"} <= m.keys()),
)


def recognise(text: bytes) -> Kind:
    """The kind of body that a text is.

    Raises `Refused` (``not_a_record``, ``unknown_shape``, ``mixed_envelopes``); `msgspec.DecodeError` and
    `RecursionError` where the text is no JSON.
    """
    first = kind(Raw(text[:1] or b"n"))
    if first == "an object":
        return KINDS[_object(members_of(text))]
    if first == "an array":
        elements = elements_of(text)
        if (name := _array(elements)) is not None:
            return KINDS[name]
        raise Refused([Reason("unknown_shape", "", f"an array of {_elements(elements)}; {KNOWN}")])
    msgspec.json.decode(text, type=Raw)
    raise Refused([Reason("not_a_record", "", f"{first}, expected an object or an array")])


def _object(members: Members) -> str:
    for name, fits in FOREIGN:
        if fits(members):
            raise Refused([Reason("unknown_shape", "", f"{name}; {KNOWN}")])
    if "messages" in members and "input" in members:
        raise Refused([Reason("mixed_envelopes", "", "both messages and input, expected one envelope")])
    for name, fits in OBJECTS:
        if fits(members):
            return name
    keys = ", ".join(shown(key) for key in list(members)[:8]) or "none"
    raise Refused([Reason("unknown_shape", "", f"an object with the keys {keys}; {KNOWN}")])


def _elements(elements: list[Raw]) -> str:
    return " and ".join(sorted({kind(one).split()[-1] + "s" for one in elements}))


KNOWN: Final = f"known are {', '.join(KINDS)} (--from says which one a log holds, --at where the value stands)"
