"""Request parameters of Open Responses as those of Chat Completions: one row a parameter, in the table at the end."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, Raw

from converter import chat, responses
from converter.options import Options
from converter.outcome import Account
from converter.reading import Members, elements_of, kind, members_of, says_nothing, text_of
from converter.settings import (
    CHAT_EFFORTS,
    CHAT_TIERS,
    CHOICES,
    FALSE,
    LOGPROBS,
    TOOL_NAME,
    TRUE,
    VERBOSITIES,
    Draft,
    Row,
    convert,
    format_fields,
    is_integer,
    leave,
    metadata,
    number,
    obfuscation,
    object_members,
    one_of,
    same,
    short_text,
    with_tools,
)
from converter.tools import Tools


def _reasoning(source: str, raw: Raw, draft: Draft) -> None:
    members = object_members(source, raw, draft)
    leave(members, ("effort",), f"/{source}", draft)
    if "effort" in members:
        if text_of(members["effort"]) in CHAT_EFFORTS:
            draft.fields["reasoning_effort"] = members["effort"]
        else:
            draft.drop(f"/{source}/effort")


def _text(source: str, raw: Raw, draft: Draft) -> None:
    members = object_members(source, raw, draft)
    leave(members, ("format", "verbosity"), f"/{source}", draft)
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
        leave(members, ("type",), path, draft)
        draft.fields["response_format"] = {"type": name}
        if name == "json_object" and not draft.openai:
            draft.account.notice("odd", path, "json_object is OpenAI's own; the way back needs --target openai")
    elif name == "json_schema":
        fields = format_fields({key: value for key, value in members.items() if key != "type"}, path, draft)
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
    if not is_integer(raw, 0, 20):
        return draft.drop(f"/{source}")
    if not asked:
        draft.fields["logprobs"] = TRUE
        draft.account.notice("filled", f"/{source}", "logprobs: Chat wants it beside top_logprobs")
    draft.fields[source] = raw


def _chat_choice(source: str, raw: Raw, draft: Draft) -> None:
    if text_of(raw) in CHOICES:
        draft.fields[source] = raw
    elif text_of(raw) == "any":
        draft.fields[source] = "required"
        draft.account.notice("odd", f"/{source}", "tool_choice any, read as required")
    elif kind(raw) == "an object" and (converted := _chosen(members_of(raw), f"/{source}", draft)) is not None:
        draft.fields[source] = converted
    else:
        draft.drop(f"/{source}")


def _chosen(members: Members, path: str, draft: Draft) -> Any:
    name = text_of(members.get("type"))
    if name in ("function", "custom"):
        leave(members, ("type", "name"), path, draft)
        chosen = text_of(members.get("name"))
        return {"type": name, name: {"name": chosen}} if chosen and TOOL_NAME.fullmatch(chosen) else None
    return _allowed(members, path, draft) if name == "allowed_tools" else None


def _allowed(members: Members, path: str, draft: Draft) -> Any:
    leave(members, ("type", "tools", "mode"), path, draft)
    if kind(members.get("tools", FALSE)) != "an array":
        return None
    tools = [
        _chosen(members_of(tool), f"{path}/tools/{number}", draft) if kind(tool) == "an object" else None
        for number, tool in enumerate(elements_of(members["tools"]))
    ]
    mode = text_of(members.get("mode")) or "auto"
    if mode == "none":  # Chat has no such mode beside a list; whatever stands in it, none may be called
        draft.account.notice("odd", path, "allowed_tools of which none may be called, read as none")
        return "none"
    if not tools or None in tools or mode not in ("auto", "required"):
        return None
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


def _streaming(source: str, raw: Raw, draft: Draft) -> None:
    """A streamed response always reports its usage; a Chat stream does so when asked."""
    same("flag")(source, raw, draft)
    if bytes(raw) == b"true":
        draft.inner("stream_options")["include_usage"] = TRUE


def _chat_stream_options(source: str, raw: Raw, draft: Draft) -> None:
    if inner := obfuscation(source, raw, draft):
        draft.inner("stream_options").update(inner)


def _token_limit(source: str, raw: Raw, draft: Draft) -> None:
    if is_integer(raw):
        draft.fields["max_completion_tokens"] = raw
    else:
        draft.drop(f"/{source}", "max_completion_tokens is a whole number")


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


ROWS: Final[dict[str, Row]] = {
    "model": same("text"),
    "temperature": number(least=0, most=2),
    "top_p": number(least=0, most=1),
    "presence_penalty": number(least=-2, most=2),
    "frequency_penalty": number(least=-2, most=2),
    "max_output_tokens": _token_limit,
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
    "prompt_cache_key": same("text"),
    "truncation": _default(b'"disabled"'),
    "background": _default(b"false"),
    "user": same("text"),
    "prompt_cache_retention": one_of(("in_memory", "24h")),
}


def leans(source: dict[str, Raw], account: Account) -> None:
    """Refuse a request that leans on a server's memory: what that holds is not in the record."""
    for name, sentence in responses.ELSEWHERE.items():
        if name in source and not says_nothing(source.pop(name)):
            account.refuse(
                "incomplete_history", f"/{name}", f"{sentence} (--allow incomplete_history converts the rest)"
            )


def request(source: dict[str, Raw], tools: Tools, account: Account, options: Options) -> chat.Request:
    """A request with these settings, and no messages yet."""
    leans(source, account)
    draft = Draft(source, account, options, tools=tools.written is not UNSET)
    convert(source, ROWS, draft)
    return chat.Request(messages=[], **draft.fields)
