"""What providers do differently: the habits of recorded traffic, a function each, and what a stranger's type means.

A habit mends the members of one struct before `converter.reading` reads them: it adds the ``type`` that Mistral leaves
out, or moves what stands in another place. It never changes what was said. Data is changed by named repairs alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Raw

from converter import chat, responses
from converter.chat import MISSING_ID
from converter.reading import (
    Members,
    Reading,
    Tables,
    elements_of,
    encode,
    has_null_members,
    kind,
    members_of,
    text_of,
    without_nulls,
)
from converter.text import shown


def _absent(members: Members, key: str) -> bool:
    raw = members.get(key)
    return raw is None or kind(raw) == "null"


def _empty(members: Members, key: str) -> bool:
    return _absent(members, key) or bytes(members[key]) == b'""'


def _set(members: Members, key: str, value: object) -> None:
    members[key] = Raw(encode(value))


def _other_word(members: Members, word: str) -> None:
    """Take out an ``object`` that is not this word; the envelope's own word is the log's and stays."""
    if "object" in members and text_of(members["object"]) != word:
        del members["object"]


# ---------------------------------------------------------------- Chat Completions


def _tool_message(members: Members, path: str, reading: Reading) -> None:
    if not _empty(members, "tool_call_id"):
        return
    if "fill-call-ids" not in reading.options.repair:
        reading.account.refuse(
            "orphan_output",
            path,
            "no tool_call_id, so the call that it answers is not known (--repair fill-call-ids pairs by order)",
        )
    _set(members, "tool_call_id", MISSING_ID)


def _assistant_message(members: Members, path: str, reading: Reading) -> None:
    _thinking(members, path, reading, reading.options.reasoning != "drop")
    if _absent(members, "function_call"):
        members.pop("function_call", None)


def _thinking(members: Members, path: str, reading: Reading, carried: bool) -> None:
    """Mistral: reasoning stands as ``{"type": "thinking", "thinking": [{"type": "text", "text"}]}`` in the content."""
    content = members.get("content")
    if content is None or kind(content) != "an array":
        return
    kept, thoughts = [], []
    elements = elements_of(content)
    for position, element in enumerate(elements):
        part = members_of(element) if kind(element) == "an object" else {}
        if text_of(part.get("type")) == "thinking" and kind(part.get("thinking", Raw(b"null"))) == "an array":
            thoughts += [text_of(members_of(one).get("text")) or "" for one in elements_of(part["thinking"])]
            if not carried:
                reading.account.notice("dropped", f"{path}/content/{position}")
        else:
            kept.append(position)
    if len(kept) == len(elements):
        return
    members["content"] = Raw(encode([elements[position] for position in kept]))
    if thoughts and carried:
        _set(members, "reasoning_content", "".join(thoughts))


OTHER_TOOL: Final = "namespace"
"""In place of the type of a call with a namespace: it is a call to another tool than the one of its name."""


def _tool_call(members: Members, path: str, reading: Reading) -> None:
    """Mistral and Gemini leave out ``type``; Gemini and OpenPipe leave out or empty the id."""
    if _empty(members, "type"):
        _set(members, "type", "custom" if "custom" in members and "function" not in members else "function")
    function = members.get("function")
    inside = members_of(function) if function is not None and kind(function) == "an object" else {}
    if not _empty(members, "namespace") or not _empty(inside, "namespace"):
        _set(members, "type", OTHER_TOOL)
    if _empty(members, "id"):
        if "fill-call-ids" not in reading.options.repair:
            reading.account.refuse(
                "missing_field",
                path,
                "no id, so its output cannot be found (--repair fill-call-ids pairs by order)",
            )
        _set(members, "id", MISSING_ID)


def _arguments(members: Members, path: str, reading: Reading) -> None:
    """Ollama and many fine-tuning rows: arguments as an object. Only the named repair writes them as a string."""
    raw = members.get("arguments")
    if raw is not None and kind(raw) == "a string":
        return
    if _absent(members, "arguments"):
        _no_arguments(members, path, reading)
        return
    assert raw is not None
    if kind(raw) == "an object" and "stringify-arguments" in reading.options.repair:
        reading.account.notice("repaired", f"{path}/arguments", "stringify-arguments: an object written as its text")
        text = bytes(raw)
        if "null-padding" in reading.options.repair and (plain := encode(without_nulls(raw))) != text:
            reading.account.notice("repaired", f"{path}/arguments", "null-padding: null members left out")
            text = plain
        _set(members, "arguments", text.decode())
        return
    hint = ""
    if kind(raw) == "an object":
        padded = ", with null-padding without the nulls of a table" if has_null_members(bytes(raw)) else ""
        hint = f" (--repair stringify-arguments writes it as one{padded})"
    reading.account.refuse("arguments_type", f"{path}/arguments", f"{kind(raw)}, not a JSON string{hint}")
    _set(members, "arguments", "")


def _no_arguments(members: Members, path: str, reading: Reading) -> None:
    """A key that was never logged is not an empty text: only the named repair writes one."""
    if "empty-arguments" in reading.options.repair:
        reading.account.notice("repaired", path, 'empty-arguments: no arguments became "{}"')
        _set(members, "arguments", "{}")
        return
    if "arguments" in members:
        reading.account.refuse("arguments_type", f"{path}/arguments", f"null, not a JSON string{_EMPTY_HINT}")
    else:
        reading.account.refuse("missing_field", path, f"no arguments, which are required here{_EMPTY_HINT}")
    _set(members, "arguments", "")


_EMPTY_HINT: Final = ' (--repair empty-arguments writes "{}")'


def _chat_message(members: Members, path: str, reading: Reading) -> None:
    if "conversations" in members or ("from" in members and "value" in members and "role" not in members):
        reading.account.refuse("unknown_shape", path, "a ShareGPT turn (from, value), expected a message with a role")
        _set(members, "role", "user")
        _set(members, "content", "")


def _image_part(members: Members, path: str, reading: Reading) -> None:
    """Some clients write the URL where its object should stand."""
    url = members.get("image_url")
    if url is not None and kind(url) == "a string":
        members["image_url"] = Raw(encode({"url": url}))


def _document_part(members: Members, path: str, reading: Reading) -> None:
    """Where an object stands, its URL is meant."""
    url = members.get("document_url")
    if url is not None and kind(url) == "an object" and list(inner := members_of(url)) == ["url"]:
        members["document_url"] = inner["url"]


def _chat_part(members: Members, path: str, reading: Reading) -> None:
    _foreign_part(members, path, reading)
    if (mend := _PART_HABITS.get(text_of(members.get("type")) or "")) is not None:
        mend(members, path, reading)


_PART_HABITS: Final[dict[str, Callable[[Members, str, Reading], None]]] = {
    "image_url": _image_part,
    "document_url": _document_part,
}


def _foreign_part(members: Members, path: str, reading: Reading) -> None:
    """A text part whose text sits elsewhere belongs to another format: reading it as empty would lose it."""
    if text_of(members.get("type")) == "text" and "text" not in members:
        for key in ("value", "content"):
            if key in members:
                reading.account.refuse(
                    "unknown_shape", path, f"a text part whose text stands in {key}, expected it in text"
                )
                _set(members, "text", "")


def _chat_tool(members: Members, path: str, reading: Reading) -> None:
    if _empty(members, "type") and "function" in members:
        _set(members, "type", "function")


def _choice(members: Members, path: str, reading: Reading) -> None:
    """Azure leaves out the role of a filtered answer, some clones the message. Reasoning always has its place here."""
    message = members.get("message")
    if message is not None and kind(message) == "an object":
        inner = members_of(message)
        _thinking(inner, f"{path}/message", reading, carried=True)
        if _empty(inner, "role"):
            _set(inner, "role", "assistant")
        if inner != members_of(message):
            members["message"] = Raw(encode(inner))
    elif message is not None and kind(message) == "null":
        del members["message"]


def _chat_answer(members: Members, path: str, reading: Reading) -> None:
    """Copilot leaves out ``object`` and ``created``; some gateways write another word there."""
    _other_word(members, "chat.completion")


def _unknown_role(name: str, members: Members, path: str, reading: Reading) -> None:
    reading.account.refuse(
        "wrong_type",
        f"{path}/role",
        f"role {shown(name)}, expected system, developer, user, assistant, tool or function",
    )


def _other_speaker(name: str, members: Members, path: str, reading: Reading) -> None:
    reading.account.refuse("wrong_type", f"{path}/role", f"role {shown(name)}, expected assistant in an answer")


def _unknown_tool_call(name: str, members: Members, path: str, reading: Reading) -> None:
    allowed = reading.account.refuse(
        "namespaced" if ":" in name else "unsupported_item",
        path,
        "a call with a namespace: it changes which tool was called"
        if name == OTHER_TOOL
        else f"a tool call of type {shown(name)}, which is outside the portable set",
    )
    if allowed and (call_id := text_of(members.get("id"))):
        reading.left_out.add(call_id)


ANTHROPIC_PARTS: Final = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"})


def _unknown_part(name: str, members: Members, path: str, reading: Reading) -> None:
    if name in ANTHROPIC_PARTS:
        reading.account.refuse(
            "unknown_shape", path, f"an Anthropic Messages part ({name}), expected Chat Completions or Open Responses"
        )
    else:
        reading.account.refuse(
            "unsupported_content",
            path,
            f"a part of type {shown(name)}, which has no counterpart (--allow unsupported_content leaves it out)",
        )


def _dropped(name: str, members: Members, path: str, reading: Reading) -> None:
    reading.account.notice("dropped", path)


def _unknown_tool(name: str, members: Members, path: str, reading: Reading) -> None:
    reading.account.refuse(
        "unsupported_tool",
        path,
        f"a tool of type {shown(name)}, which only its provider runs (--allow unsupported_tool leaves it out)",
    )


CHAT: Final = Tables(
    habits={
        chat.SystemMessage: _chat_message,
        chat.ToolMessage: _tool_message,
        chat.AssistantMessage: _assistant_message,
        chat.FunctionToolCall: _tool_call,
        chat.Function: _arguments,
        chat.TextPart: _chat_part,
        chat.FunctionTool: _chat_tool,
        chat.Choice: _choice,
        chat.Completion: _chat_answer,
    },
    strangers={
        chat.SystemMessage: _unknown_role,
        chat.FunctionToolCall: _unknown_tool_call,
        chat.TextPart: _unknown_part,
        chat.Annotation: _dropped,
        chat.AssistantMessage: _other_speaker,
        chat.FunctionTool: _unknown_tool,
    },
    settings=frozenset({chat.Usage, chat.PromptDetails, chat.CompletionDetails, chat.ChoiceLogprobs}),
)


# ---------------------------------------------------------------- Open Responses


def _typeless(members: Members) -> str:
    """An item without ``type`` is a message when it has a role, else a reference (which the schema lets go without)."""
    if "role" in members:
        return "message"
    return "function_call_output" if "output" in members else "item_reference"


def _item(members: Members, path: str, reading: Reading) -> None:
    if _absent(members, "type"):
        _set(members, "type", _typeless(members))
    name = text_of(members.get("type")) or ""
    if habit := _ITEM_HABITS.get(name):
        habit(members, path, reading)


def _message_item(members: Members, path: str, reading: Reading) -> None:
    if _absent(members, "role") and b'"output_text"' in bytes(members.get("content", Raw(b""))):
        _set(members, "role", "assistant")
    if text_of(members.get("role")) == "assistant" and _absent(members, "content"):
        _set(members, "content", "")


def _reasoning_item(members: Members, path: str, reading: Reading) -> None:
    if _absent(members, "summary"):
        _set(members, "summary", [])


def _no_call_id(members: Members, path: str, reading: Reading) -> None:
    if not _empty(members, "call_id"):
        return
    if "fill-call-ids" not in reading.options.repair:
        reading.account.refuse(
            "missing_field",
            path,
            "no call_id, so call and output cannot be paired (--repair fill-call-ids pairs by order)",
        )
    _set(members, "call_id", MISSING_ID)


def _call_item(members: Members, path: str, reading: Reading) -> None:
    _no_call_id(members, path, reading)
    _arguments(members, path, reading)


_ITEM_HABITS: Final[dict[str, Callable[[Members, str, Reading], None]]] = {
    "message": _message_item,
    "reasoning": _reasoning_item,
    "function_call": _call_item,
    "function_call_output": _no_call_id,
    "custom_tool_call": _no_call_id,
    "custom_tool_call_output": _no_call_id,
}


def _open_part(members: Members, path: str, reading: Reading) -> None:
    _foreign_part(members, path, reading)


def _open_tool(members: Members, path: str, reading: Reading) -> None:
    if _empty(members, "type") and "name" in members:
        _set(members, "type", "function")


def _response(members: Members, path: str, reading: Reading) -> None:
    _other_word(members, "response")


def _unknown_item(name: str, members: Members, path: str, reading: Reading) -> None:
    if ":" in name:
        allowed = reading.account.refuse(
            "namespaced",
            path,
            f"item type {shown(name)} belongs to one provider and is not portable (--allow namespaced leaves it out)",
        )
    else:
        allowed = reading.account.refuse(
            "unsupported_item",
            path,
            f"item type {shown(name)} is outside the portable set (--allow unsupported_item leaves it out)",
        )
    if allowed and (call_id := text_of(members.get("call_id"))):
        reading.left_out.add(call_id)


RESPONSES: Final = Tables(
    habits={
        responses.Message: _item,
        responses.InputText: _open_part,
        responses.FunctionTool: _open_tool,
        responses.Response: _response,
    },
    strangers={
        responses.Message: _unknown_item,
        responses.InputText: _unknown_part,
        responses.UrlCitation: _dropped,
        responses.FunctionTool: _unknown_tool,
    },
    settings=frozenset({responses.Usage, responses.InputDetails, responses.OutputDetails, responses.IncompleteDetails}),
)

TABLES: Final = {"chat": CHAT, "responses": RESPONSES}
