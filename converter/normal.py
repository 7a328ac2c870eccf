"""The normal form in which a record and its way there and back are one.

Two values of one envelope have the same normal form when they say the same. What does not count:

- null and empty members (but not an empty text in a tool output), and what spells out a default of both formats;
- ids of envelopes and items, which are made anew (call ids do count), ``status: completed``, and whether an assistant's
  message was cut off, which its response says;
- ``type`` where it can be only one thing, a stray ``index`` on stored tool calls;
- the older names ``max_tokens``, ``functions`` and ``function_call``, ``image_url`` as a bare string;
- whether a refusal stands beside the content or is its last part;
- a bare ``input`` string, and ``instructions`` beside it;
- ``tool_choice`` and ``parallel_tool_calls`` without tools, which have no effect;
- usage asked for or not in a stream, since the other side always reports it;
- ``12.0`` where tokens are counted;
- reasoning, unless it was kept.

Numbers keep their spelling here, so that ``0.10`` and ``0.1`` differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

EMPTY_COUNTS: Final = frozenset({"arguments", "output", "parameters", "default", "enum", "text"})
"""Members in which an empty value is a value."""

FALSE_IS_DEFAULT: Final = frozenset({"strict", "store", "stream", "logprobs", "background"})
REASONING: Final = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
DEFAULTS: Final[dict[str, Any]] = {"truncation": "disabled", "status": "completed", "n": "1"}
OPAQUE: Final = frozenset({"parameters", "schema", "metadata"})
"""Members that are passed on: nothing inside them is a default of either format."""


def parsed(text: bytes) -> Any:
    """A JSON text with its numbers as they are spelled."""
    return json.loads(text, parse_int=str, parse_float=str)


def pruned(value: Any, pointers: Iterable[str]) -> Any:
    """The value without what these pointers lead to."""
    gone: dict[str, Any] = {}
    for pointer in pointers:
        here = gone
        for part in pointer.split("/")[1:]:
            here = here.setdefault(part.replace("~1", "/").replace("~0", "~"), {})
        here[""] = True
    return _without(value, gone)


def _without(value: Any, gone: dict[str, Any]) -> Any:
    if not gone:
        return value
    if isinstance(value, dict):
        return {key: _without(item, gone.get(key, {})) for key, item in value.items() if not _ends(gone, key)}
    if isinstance(value, list):
        return [_without(item, gone.get(str(at), {})) for at, item in enumerate(value) if not _ends(gone, str(at))]
    return value


def _ends(gone: dict[str, Any], key: str) -> bool:
    return gone.get(key, {}).get("") is True


def normal(value: Any, *, keep_reasoning: bool = False) -> Any:
    """The normal form of a parsed record of either envelope."""
    if isinstance(value, list):
        return [normal(item, keep_reasoning=keep_reasoning) for item in value if not _silent(item, keep_reasoning)]
    if not isinstance(value, dict):
        return value
    members: dict[str, Any] = {}
    for key, item in _conversation(value).items():
        item = item if key in OPAQUE else normal(item, keep_reasoning=keep_reasoning)
        if key.endswith("_tokens") and isinstance(item, str):
            item = item.removesuffix(".0")  # as table formats write whole numbers
        if not _says_nothing(key, item, value, keep_reasoning):
            name, item = _RENAMED[key](item) if key in _RENAMED else (key, item)
            members[name] = item
    if "refusal" in members and members.get("type") != "refusal":
        members["content"] = [*_parts(members.get("content")), {"type": "refusal", "refusal": members.pop("refusal")}]
    if members.get("content") == []:
        members["content"] = ""  # no parts are no text, and Chat has only the latter
    if members.get("role") == "assistant" and members.get("content") == "":
        del members["content"]
    return members


def _parts(content: Any) -> list[Any]:
    """The parts of a message, of which a refusal is one more."""
    return [{"type": "text", "text": content}] if isinstance(content, str) and content else list(content or [])


def _conversation(value: dict[str, Any]) -> dict[str, Any]:
    """A request with its conversation in one list: a string is one user message, instructions lead."""
    if ("input" not in value and "instructions" not in value) or "output" in value:
        return value
    said = value.get("input")
    items = (
        [{"role": "user", "content": said}] if isinstance(said, str) else list(said) if isinstance(said, list) else []
    )
    if isinstance(value.get("instructions"), str):
        items.insert(0, {"role": "system", "content": value["instructions"]})
    return {**{key: item for key, item in value.items() if key not in ("input", "instructions")}, "input": items}


def _silent(item: Any, keep_reasoning: bool) -> bool:
    """An assistant message without a word, and reasoning that was not kept."""
    if not isinstance(item, dict):
        return False
    if item.get("type") in ("reasoning", "thinking") and not keep_reasoning:
        return True
    content = item.get("content")
    if isinstance(content, list):
        content = [part for part in content if not (isinstance(part, dict) and part.get("text") == "")]
    speaks = content or any(item.get(key) for key in ("tool_calls", "refusal", "function_call"))
    return item.get("role") == "assistant" and not speaks and not (keep_reasoning and REASONING & item.keys())


def _says_nothing(key: str, item: Any, owner: dict[str, Any], keep_reasoning: bool) -> bool:
    counts = key in EMPTY_COUNTS and not (key == "text" and item == {})  # the settings of a request bear that name too
    if item is None or (item in ("", [], {}) and not counts and not _spoken(key, owner)):
        return True
    if (item is False and key in FALSE_IS_DEFAULT) or (key in DEFAULTS and item == DEFAULTS[key]):
        return True
    if key in ("tool_choice", "parallel_tool_calls") and not owner.get("tools") and not owner.get("functions"):
        return True
    if key == "status" and owner.get("role") == "assistant" and item == "incomplete":
        return True
    if key == "id":
        return "function" not in owner and "custom" not in owner  # only a call's own id is an identity
    if key in REASONING and "role" in owner and not keep_reasoning:
        return True
    return (
        (key == "type" and item in ("message", "function"))
        or (key == "index" and ("function" in owner or "message" in owner))
        or (key == "mode" and item == "auto")
        or key in ("include_usage", "object", "completed_at")
    )


def _spoken(key: str, owner: dict[str, Any]) -> bool:
    return key == "content" and owner.get("role") not in ("assistant", None)


def _seconds(value: Any) -> Any:
    whole = isinstance(value, str) and _NUMBER.fullmatch(value) and float(value) < 1e15
    return str(int(float(value))) if whole else value


_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?")


def _image(value: Any) -> Any:
    return value.get("url", value) if isinstance(value, dict) and len(value) == 1 else value


def _legacy_choice(value: Any) -> tuple[str, Any]:
    if isinstance(value, dict) and "arguments" in value:
        return "function_call", value
    return "tool_choice", {"function": value} if isinstance(value, dict) else value


_RENAMED: Final[dict[str, Callable[[Any], tuple[str, Any]]]] = {
    "max_tokens": lambda item: ("max_completion_tokens", item),
    "functions": lambda item: ("tools", [{"function": one} for one in item] if isinstance(item, list) else item),
    "function_call": _legacy_choice,
    "image_url": lambda item: ("image_url", _image(item)),
    "created": lambda item: ("created", _seconds(item)),
    "created_at": lambda item: ("created_at", _seconds(item)),
}


def apart(wanted: Any, got: Any, path: str = "", *, answer: bool = False) -> str | None:
    """The pointer to where two normal forms differ, or None. A returned answer may spell out more than was logged."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        loose = answer and (not path or path.startswith("/usage"))
        for key in wanted if loose else {**wanted, **got}:
            found = apart(wanted.get(key), got.get(key), f"{path}/{key}", answer=answer)
            if found is not None:
                return found
        return None
    if isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        for at, (one, other) in enumerate(zip(wanted, got, strict=True)):
            found = apart(one, other, f"{path}/{at}", answer=answer)
            if found is not None:
                return found
        return None
    return None if wanted == got else path


def calls(value: Any) -> list[tuple[str, ...]]:
    """The calls and the outputs of a record, in order: what must be the same whatever else was moved or joined."""
    found: list[tuple[str, ...]] = []
    _collect(value, found)
    return sorted(found)


def _collect(value: Any, found: list[tuple[str, ...]]) -> None:
    if isinstance(value, list):
        for item in value:
            _collect(item, found)
    elif isinstance(value, dict):
        function = value.get("function")
        if isinstance(function, dict) and isinstance(function.get("arguments"), str):
            found.append(("call", str(value.get("id")), str(function.get("name")), function["arguments"]))
        elif value.get("type") == "function_call":
            found.append(("call", *(str(value.get(key)) for key in ("call_id", "name", "arguments"))))
        else:
            for key in ("messages", "input", "output", "choices", "message", "tool_calls"):
                _collect(value.get(key), found)
