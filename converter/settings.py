"""Request parameters, both ways: one table a direction, one row a parameter.

A row takes the value as it stands and writes what the target has for it. What has no row, or a value outside the
target's range, is left out and named in a notice: a setting is never a reason to refuse a record. The ranges are those
of the published schemas (Open Responses 2026-04-24, Chat Completions 2026-08-21).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Raw

from converter.options import Options
from converter.outcome import Account
from converter.reading import Members, elements_of, escape, kind, members_of, says_nothing, text_of

TRUE: Final = Raw(b"true")
FALSE: Final = Raw(b"false")

EFFORTS: Final = frozenset({"none", "low", "medium", "high", "xhigh"})
CHAT_EFFORTS: Final = EFFORTS | {"minimal", "max"}
VERBOSITIES: Final = frozenset({"low", "medium", "high"})
TIERS: Final = frozenset({"auto", "default", "flex", "priority"})
CHAT_TIERS: Final = TIERS | {"scale", "fast"}
CHOICES: Final = frozenset({"none", "auto", "required"})
TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")

INFINITIES: Final = (float("inf"), float("-inf"))

LEAST_OUTPUT_TOKENS: Final = 16
LOGPROBS: Final = "message.output_text.logprobs"


class Draft:
    """The settings of the target, being filled in."""

    __slots__ = ("account", "fields", "openai", "source", "tools")

    def __init__(self, source: dict[str, Raw], account: Account, options: Options, *, tools: bool = False) -> None:
        self.tools = tools
        self.source = source
        self.account = account
        self.openai = options.target == "openai"
        self.fields: dict[str, Any] = {}

    def drop(self, path: str, detail: str = "") -> None:
        """The target has no place for this, or not for its value."""
        self.account.notice("dropped", path, detail)

    def inner(self, name: str) -> dict[str, Any]:
        """The members of an object-valued setting of the target."""
        inner: dict[str, Any] = self.fields.setdefault(name, {})
        return inner


Row: TypeAlias = Callable[[str, Raw, Draft], None]


def convert(source: dict[str, Raw], rows: dict[str, Row], draft: Draft) -> None:
    """Put each setting of ``source`` through its row; name those that have none."""
    for name, raw in source.items():
        if (text := bytes(raw)) == b"null":
            continue
        row = rows.get(name)
        if row is not None:
            row(name, raw, draft)
        elif text not in (b'""', b"[]", b"{}"):
            draft.drop(f"/{escape(name)}")


# ---------------------------------------------------------------- rows that both directions share


def _is_integer(raw: Raw, least: int | None = None, most: int | None = None) -> bool:
    text = bytes(raw)
    if not text.lstrip(b"-").isdigit() or len(text) > 20:
        return False
    return (least is None or int(text) >= least) and (most is None or int(text) <= most)


def same(expected: str, name: str | None = None) -> Row:
    """Passed on as it stands, when it is of the expected kind: ``text``, ``number`` or ``flag``."""
    fits = _FITS[expected]

    def row(source: str, raw: Raw, draft: Draft) -> None:
        text = bytes(raw)
        if fits(text):
            draft.fields[name or source] = raw
        else:
            draft.drop(f"/{source}")

    return row


def number(name: str | None = None) -> Row:
    """A number, passed on as it is spelled. No float holds 1e999: written on, it would become an infinity."""
    passed_on = same("number", name)

    def row(source: str, raw: Raw, draft: Draft) -> None:
        passed_on(source, raw, draft)
        if len(text := bytes(raw)) > 3 and text[:1] in b"-0123456789" and float(text) in INFINITIES:
            sentence = "a number beyond any float, expected a finite one"
            draft.account.refuse("invalid_json", f"/{source}", sentence)

    return row


_FITS: Final[dict[str, Callable[[bytes], bool]]] = {
    "text": lambda text: text[:1] == b'"',
    "number": lambda text: text[0] in b"-0123456789",
    "flag": lambda text: text in (b"true", b"false"),
}


def short_text(limit: int) -> Row:
    """Passed on, when it is no longer than the target allows."""

    def row(source: str, raw: Raw, draft: Draft) -> None:
        text = text_of(raw)
        if text is not None and len(text) <= limit:
            draft.fields[source] = raw
        else:
            draft.drop(f"/{source}")

    return row


def one_of(values: Iterable[str], openai: Iterable[str] = ()) -> Row:
    """Passed on, when it is one of the target's words (or of OpenAI's own, where these are asked for)."""
    core, own = frozenset(values), frozenset(openai)

    def row(source: str, raw: Raw, draft: Draft) -> None:
        text = text_of(raw)
        if text in core or (draft.openai and text in own):
            draft.fields[source] = raw
        elif text != "":
            draft.drop(f"/{source}")

    return row


def nothing(source: str, raw: Raw, draft: Draft) -> None:
    """Says nothing, or is taken care of by another row."""


def metadata(source: str, raw: Raw, draft: Draft) -> None:
    """At most 16 entries, values texts of at most 512 characters."""
    if kind(raw) != "an object":
        return draft.drop(f"/{source}")
    entries = members_of(raw)
    kept = {key: value for key, value in entries.items() if len(text_of(value) or "x" * 513) <= 512}
    if len(kept) > 16:
        return draft.drop(f"/{source}")
    for key, value in entries.items():
        if key not in kept and not says_nothing(value):
            draft.drop(f"/{source}/{escape(key)}")
    if kept or not entries:
        draft.fields[source] = raw if len(kept) == len(entries) else kept
    return None


def with_tools(row: Row) -> Row:
    """Has no effect where there are no tools: left out, with a notice only where a tool was named."""

    def guarded(source: str, raw: Raw, draft: Draft) -> None:
        if draft.tools:
            row(source, raw, draft)
        elif kind(raw) != "a boolean" and text_of(raw) not in CHOICES:
            draft.drop(f"/{source}", "no effect without tools")

    return guarded


def _members(source: str, raw: Raw, draft: Draft) -> Members:
    """The members of an object-valued setting; one of another kind is left out whole."""
    if kind(raw) == "an object":
        return {key: value for key, value in members_of(raw).items() if kind(value) != "null"}
    draft.drop(f"/{source}")
    return {}


def _leave(members: Members, known: Iterable[str], path: str, draft: Draft) -> None:
    for key in members.keys() - set(known):
        if not says_nothing(members[key]):
            draft.drop(f"{path}/{escape(key)}")


def _obfuscation(source: str, raw: Raw, draft: Draft) -> dict[str, Any]:
    members = _members(source, raw, draft)
    _leave(members, ("include_obfuscation", "include_usage"), f"/{source}", draft)
    return {key: members[key] for key in ("include_obfuscation",) if key in members}


FORMAT_FIELDS: Final = ("name", "description", "schema", "strict")


def _format_fields(members: Members, path: str, draft: Draft) -> dict[str, Any]:
    _leave(members, FORMAT_FIELDS, path, draft)
    return {key: members[key] for key in FORMAT_FIELDS if key in members and kind(members[key]) != "null"}


# ---------------------------------------------------------------- Chat Completions -> Open Responses


def _token_limit(source: str, raw: Raw, draft: Draft) -> None:
    """`max_completion_tokens` goes before its older name; the target takes no fewer than 16."""
    newer = draft.source.get("max_completion_tokens")
    if source == "max_tokens" and newer is not None and kind(newer) != "null":
        if bytes(newer) != bytes(raw):
            draft.account.notice("odd", f"/{source}", "two token limits disagree")
            draft.drop(f"/{source}", "max_completion_tokens goes before it")
        return
    if _is_integer(raw, LEAST_OUTPUT_TOKENS):
        draft.fields["max_output_tokens"] = raw
    else:
        draft.drop(f"/{source}", f"max_output_tokens is at least {LEAST_OUTPUT_TOKENS}")


def _effort(source: str, raw: Raw, draft: Draft) -> None:
    text = text_of(raw)
    if text in EFFORTS or (draft.openai and text in CHAT_EFFORTS):
        draft.inner("reasoning")["effort"] = raw
    else:
        draft.drop(f"/{source}")


def _verbosity(source: str, raw: Raw, draft: Draft) -> None:
    if text_of(raw) in VERBOSITIES:
        draft.inner("text")["verbosity"] = raw
    else:
        draft.drop(f"/{source}")


def _logprobs(source: str, raw: Raw, draft: Draft) -> None:
    if bytes(raw) == b"true":
        draft.fields["include"] = [LOGPROBS]
    elif bytes(raw) != b"false":
        draft.drop(f"/{source}")


def _top_logprobs(source: str, raw: Raw, draft: Draft) -> None:
    asked = draft.source.get("logprobs")
    if asked is not None and bytes(asked) == b"true" and _is_integer(raw, 0, 20):
        draft.fields[source] = raw
    elif bytes(raw) != b"0":
        draft.drop(f"/{source}")


def _response_format(source: str, raw: Raw, draft: Draft) -> None:
    members = _members(source, raw, draft)
    name = text_of(members.get("type"))
    if name == "text":
        _leave(members, ("type",), f"/{source}", draft)
        draft.inner("text")["format"] = {"type": "text"}
    elif name == "json_schema" and kind(members.get("json_schema", FALSE)) == "an object":
        _leave(members, ("type", "json_schema"), f"/{source}", draft)
        fields = _format_fields(members_of(members["json_schema"]), f"/{source}/json_schema", draft)
        draft.inner("text")["format"] = {"type": "json_schema", **fields}
    elif name == "json_object" and draft.openai:
        _leave(members, ("type",), f"/{source}", draft)
        draft.inner("text")["format"] = {"type": "json_object"}
    elif members:
        draft.drop(f"/{source}")


def _choice(source: str, raw: Raw, draft: Draft) -> None:
    text = text_of(raw)
    if text in CHOICES:
        draft.fields["tool_choice"] = raw
    elif text == "any":
        draft.fields["tool_choice"] = "required"
        draft.account.notice("odd", f"/{source}", "tool_choice any, read as required")
    elif kind(raw) == "an object" and (converted := _chosen(members_of(raw), draft)) is not None:
        draft.fields["tool_choice"] = converted
    else:
        draft.drop(f"/{source}")


def _chosen(members: Members, draft: Draft) -> dict[str, Any] | None:
    name = text_of(members.get("type"))
    inner = members.get(name or "")
    if inner is None or kind(inner) != "an object":
        return None
    body = members_of(inner)
    if name == "function" or (name == "custom" and draft.openai):
        chosen = text_of(body.get("name"))
        return {"type": name, "name": chosen} if chosen and TOOL_NAME.fullmatch(chosen) else None
    if name == "allowed_tools" and kind(body.get("tools", FALSE)) == "an array":
        tools = [_chosen(members_of(tool), draft) for tool in elements_of(body["tools"]) if kind(tool) == "an object"]
        mode = text_of(body.get("mode")) or "auto"
        if tools and None not in tools and len(tools) <= 128 and mode in CHOICES:
            return {"type": "allowed_tools", "tools": tools, "mode": mode}
    return None


def _legacy_choice(source: str, raw: Raw, draft: Draft) -> None:
    if kind(raw) == "an object" and (name := text_of(members_of(raw).get("name"))) and TOOL_NAME.fullmatch(name):
        draft.fields["tool_choice"] = {"type": "function", "name": name}
    elif text_of(raw) in CHOICES:
        draft.fields["tool_choice"] = raw
    else:
        draft.drop(f"/{source}")


def _stream_options(source: str, raw: Raw, draft: Draft) -> None:
    if inner := _obfuscation(source, raw, draft):
        draft.fields[source] = inner


def _one(source: str, raw: Raw, draft: Draft) -> None:
    if bytes(raw) != b"1" and not says_nothing(raw):
        draft.drop(f"/{source}")


def _openai_only(row: Row) -> Row:
    def guarded(source: str, raw: Raw, draft: Draft) -> None:
        if draft.openai:
            row(source, raw, draft)
        elif not says_nothing(raw):
            draft.drop(f"/{source}")

    return guarded


TO_RESPONSES: Final[dict[str, Row]] = {
    "model": same("text"),
    "temperature": number(),
    "top_p": number(),
    "presence_penalty": number(),
    "frequency_penalty": number(),
    "max_completion_tokens": _token_limit,
    "max_tokens": _token_limit,
    "reasoning_effort": _effort,
    "verbosity": _verbosity,
    "logprobs": _logprobs,
    "top_logprobs": _top_logprobs,
    "response_format": _response_format,
    "tool_choice": with_tools(_choice),
    "function_call": with_tools(_legacy_choice),
    "parallel_tool_calls": with_tools(same("flag")),
    "stream": same("flag"),
    "stream_options": _stream_options,
    "store": same("flag"),
    "metadata": metadata,
    "service_tier": one_of(TIERS, openai=("scale", "fast", "ultrafast")),
    "safety_identifier": short_text(64),
    "prompt_cache_key": short_text(64),
    "n": _one,
    "user": _openai_only(same("text")),
    "prompt_cache_retention": _openai_only(same("text")),
}


# ---------------------------------------------------------------- Open Responses -> Chat Completions


def _reasoning(source: str, raw: Raw, draft: Draft) -> None:
    members = _members(source, raw, draft)
    _leave(members, ("effort",), f"/{source}", draft)
    if "effort" in members:
        if text_of(members["effort"]) in CHAT_EFFORTS:
            draft.fields["reasoning_effort"] = members["effort"]
        else:
            draft.drop(f"/{source}/effort")


def _text(source: str, raw: Raw, draft: Draft) -> None:
    members = _members(source, raw, draft)
    _leave(members, ("format", "verbosity"), f"/{source}", draft)
    if "verbosity" in members:
        if text_of(members["verbosity"]) in VERBOSITIES:
            draft.fields["verbosity"] = members["verbosity"]
        else:
            draft.drop(f"/{source}/verbosity")
    if "format" in members:
        _format(members["format"], f"/{source}/format", draft)


def _format(raw: Raw, path: str, draft: Draft) -> None:
    members = members_of(raw) if kind(raw) == "an object" else {}
    name = text_of(members.get("type"))
    if name in ("text", "json_object"):
        _leave(members, ("type",), path, draft)
        draft.fields["response_format"] = {"type": name}
        if name == "json_object":
            draft.account.notice("odd", path, "json_object is OpenAI's own; the way back needs --target openai")
    elif name == "json_schema":
        fields = _format_fields({key: value for key, value in members.items() if key != "type"}, path, draft)
        if "name" not in fields:
            draft.account.notice("filled", path, "name: a JSON Schema format needs one in Chat")
            fields = {"name": "response", **fields}
        draft.fields["response_format"] = {"type": "json_schema", "json_schema": fields}
    elif not says_nothing(raw):
        draft.drop(path)


def _include(source: str, raw: Raw, draft: Draft) -> None:
    if kind(raw) != "an array":
        return draft.drop(f"/{source}")
    for position, entry in enumerate(elements_of(raw)):
        if text_of(entry) == LOGPROBS:
            draft.fields["logprobs"] = TRUE
        else:
            draft.drop(f"/{source}/{position}")
    return None


def _asked_logprobs(source: str, raw: Raw, draft: Draft) -> None:
    """Chat wants `logprobs` beside it; a bare zero asks for nothing."""
    include = draft.source.get("include")
    asked = include is not None and kind(include) == "an array" and LOGPROBS in map(text_of, elements_of(include))
    if not asked and bytes(raw) == b"0":
        return
    if not _is_integer(raw, 0, 20):
        return draft.drop(f"/{source}")
    if not asked:
        draft.fields["logprobs"] = TRUE
        draft.account.notice("filled", f"/{source}", "logprobs: Chat wants it beside top_logprobs")
    draft.fields[source] = raw


def _chat_choice(source: str, raw: Raw, draft: Draft) -> None:
    if text_of(raw) in CHOICES:
        draft.fields[source] = raw
    elif kind(raw) == "an object" and (converted := _chat_chosen(members_of(raw))) is not None:
        draft.fields[source] = converted
    else:
        draft.drop(f"/{source}")


def _chat_chosen(members: Members) -> Any:
    name = text_of(members.get("type"))
    if name in ("function", "custom"):
        chosen = text_of(members.get("name"))
        return {"type": name, name: {"name": chosen}} if chosen else None
    if name == "allowed_tools" and kind(members.get("tools", FALSE)) == "an array":
        tools = [_chat_chosen(members_of(tool)) for tool in elements_of(members["tools"]) if kind(tool) == "an object"]
        mode = text_of(members.get("mode")) or "auto"
        if tools and None not in tools and mode in ("auto", "required"):
            return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}
        if mode == "none":
            return None
    return None


def _streaming(source: str, raw: Raw, draft: Draft) -> None:
    """A streamed response always reports its usage; a Chat stream does so when asked."""
    same("flag")(source, raw, draft)
    if bytes(raw) == b"true":
        draft.inner("stream_options")["include_usage"] = TRUE


def _chat_stream_options(source: str, raw: Raw, draft: Draft) -> None:
    if inner := _obfuscation(source, raw, draft):
        draft.inner("stream_options").update(inner)


def _default(value: bytes) -> Row:
    """The source's own default says nothing; another value has no place."""

    def row(source: str, raw: Raw, draft: Draft) -> None:
        if bytes(raw) != value:
            draft.drop(f"/{source}")

    return row


def _store(source: str, raw: Raw, draft: Draft) -> None:
    if bytes(raw) == b"true":
        draft.fields[source] = raw
    elif bytes(raw) != b"false":
        draft.drop(f"/{source}")


TO_CHAT: Final[dict[str, Row]] = {
    "model": same("text"),
    "temperature": number(),
    "top_p": number(),
    "presence_penalty": number(),
    "frequency_penalty": number(),
    "max_output_tokens": number("max_completion_tokens"),
    "reasoning": _reasoning,
    "text": _text,
    "include": _include,
    "top_logprobs": _asked_logprobs,
    "tool_choice": with_tools(_chat_choice),
    "parallel_tool_calls": with_tools(same("flag")),
    "stream": _streaming,
    "stream_options": _chat_stream_options,
    "store": _store,
    "metadata": metadata,
    "service_tier": one_of(CHAT_TIERS),
    "safety_identifier": short_text(64),
    "prompt_cache_key": short_text(64),
    "truncation": _default(b'"disabled"'),
    "background": _default(b"false"),
    "user": same("text"),
    "prompt_cache_retention": same("text"),
}


def names_of(tool_choice: Raw) -> frozenset[str] | None:
    """The tools that a `tool_choice` of either envelope allows, or None where it allows all."""
    value = msgspec.json.decode(tool_choice)
    if not isinstance(value, dict) or value.get("type") != "allowed_tools":
        return None
    tools = value.get("tools") or (value.get("allowed_tools") or {}).get("tools") or []
    names = (tool.get("name") or (tool.get("function") or {}).get("name") for tool in tools if isinstance(tool, dict))
    return frozenset(name for name in names if isinstance(name, str))
