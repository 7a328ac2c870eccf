"""Request parameters of Chat Completions as those of Open Responses: one row a parameter, in the table at the end."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, Raw

from converter import responses
from converter.options import Options
from converter.outcome import Account
from converter.reading import Members, elements_of, kind, members_of, says_nothing, text_of
from converter.settings import (
    CHAT_EFFORTS,
    CHOICES,
    EFFORTS,
    FALSE,
    LEAST_OUTPUT_TOKENS,
    LOGPROBS,
    TIERS,
    TOOL_NAME,
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


def _token_limit(source: str, raw: Raw, draft: Draft) -> None:
    """`max_completion_tokens` goes before its older name; the target takes no fewer than 16."""
    newer = draft.source.get("max_completion_tokens")
    if source == "max_tokens" and newer is not None and kind(newer) != "null":
        if bytes(newer) != bytes(raw):
            draft.account.notice("odd", f"/{source}", "two token limits disagree")
            draft.drop(f"/{source}", "max_completion_tokens goes before it")
        return
    if is_integer(raw, LEAST_OUTPUT_TOKENS):
        draft.fields["max_output_tokens"] = raw
    else:
        draft.drop(f"/{source}", f"max_output_tokens is a whole number of at least {LEAST_OUTPUT_TOKENS}")


def _effort(source: str, raw: Raw, draft: Draft) -> None:
    text = text_of(raw)
    if text in EFFORTS or (draft.openai and text in CHAT_EFFORTS):
        draft.inner("reasoning")["effort"] = raw
    else:
        draft.drop(f"/{source}", OPENAI_KEEPS if text in CHAT_EFFORTS else "")


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
    if asked is not None and bytes(asked) == b"true" and is_integer(raw, 0, 20):
        draft.fields[source] = raw
    elif bytes(raw) != b"0":
        draft.drop(f"/{source}")


def _response_format(source: str, raw: Raw, draft: Draft) -> None:
    members = object_members(source, raw, draft)
    name = text_of(members.get("type"))
    if name == "text":
        leave(members, ("type",), f"/{source}", draft)
        draft.inner("text")["format"] = {"type": "text"}
    elif name == "json_schema" and kind(members.get("json_schema", FALSE)) == "an object":
        leave(members, ("type", "json_schema"), f"/{source}", draft)
        fields = format_fields(members_of(members["json_schema"]), f"/{source}/json_schema", draft)
        draft.inner("text")["format"] = {"type": "json_schema", **fields}
    elif name == "json_object" and draft.openai:
        leave(members, ("type",), f"/{source}", draft)
        draft.inner("text")["format"] = {"type": "json_object"}
    elif members:
        draft.drop(f"/{source}", OPENAI_KEEPS if name == "json_object" else "")


def _choice(source: str, raw: Raw, draft: Draft) -> None:
    text = text_of(raw)
    if text in CHOICES:
        draft.fields["tool_choice"] = raw
    elif text == "any":
        draft.fields["tool_choice"] = "required"
        draft.account.notice("odd", f"/{source}", "tool_choice any, read as required")
    elif kind(raw) == "an object" and (converted := _chosen(members_of(raw), f"/{source}", draft)) is not None:
        draft.fields["tool_choice"] = converted
    else:
        draft.drop(f"/{source}")


def _chosen(members: Members, path: str, draft: Draft) -> dict[str, Any] | None:
    name = text_of(members.get("type"))
    inner = members.get(name or "")
    if name is None or inner is None or kind(inner) != "an object":
        return None
    body = members_of(inner)
    leave(members, ("type", name), path, draft)
    if name == "function" or (name == "custom" and draft.openai):
        leave(body, ("name",), f"{path}/{name}", draft)
        chosen = text_of(body.get("name"))
        return {"type": name, "name": chosen} if chosen and TOOL_NAME.fullmatch(chosen) else None
    return _allowed(body, f"{path}/{name}", draft) if name == "allowed_tools" else None


def _allowed(body: Members, path: str, draft: Draft) -> dict[str, Any] | None:
    leave(body, ("tools", "mode"), path, draft)
    if kind(body.get("tools", FALSE)) != "an array":
        return None
    tools = [
        _chosen(members_of(tool), f"{path}/tools/{number}", draft) if kind(tool) == "an object" else None
        for number, tool in enumerate(elements_of(body["tools"]))
    ]
    mode = text_of(body.get("mode")) or "auto"
    if not tools or None in tools or len(tools) > 128 or mode not in CHOICES:
        return None
    return {"type": "allowed_tools", "tools": tools, "mode": mode}


def _legacy_choice(source: str, raw: Raw, draft: Draft) -> None:
    newer = draft.source.get("tool_choice")
    if newer is not None and kind(newer) != "null":
        draft.drop(f"/{source}", "tool_choice goes before it")
    elif kind(raw) == "an object" and (name := text_of(members_of(raw).get("name"))) and TOOL_NAME.fullmatch(name):
        leave(members_of(raw), ("name",), f"/{source}", draft)
        draft.fields["tool_choice"] = {"type": "function", "name": name}
    elif text_of(raw) in CHOICES:
        draft.fields["tool_choice"] = raw
    else:
        draft.drop(f"/{source}")


def _stream_options(source: str, raw: Raw, draft: Draft) -> None:
    if inner := obfuscation(source, raw, draft):
        draft.fields[source] = inner


def _one(source: str, raw: Raw, draft: Draft) -> None:
    if bytes(raw) != b"1" and not says_nothing(raw):
        draft.drop(f"/{source}")


def _modalities(source: str, raw: Raw, draft: Draft) -> None:
    """Text alone is the default."""
    if kind(raw) != "an array" or [text_of(one) for one in elements_of(raw)] != ["text"]:
        draft.drop(f"/{source}")


def _search(source: str, raw: Raw, draft: Draft) -> None:
    """An empty object switches the search on."""
    draft.drop(f"/{source}", "the model's own search")


def _openai_only(row: Row) -> Row:
    def guarded(source: str, raw: Raw, draft: Draft) -> None:
        if draft.openai:
            row(source, raw, draft)
        elif not says_nothing(raw):
            draft.drop(f"/{source}", OPENAI_KEEPS)

    return guarded


OPENAI_KEEPS: Final = "--target openai keeps it"


ROWS: Final[dict[str, Row]] = {
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
    "modalities": _modalities,
    "web_search_options": _search,
    "user": _openai_only(same("text")),
    "prompt_cache_retention": _openai_only(same("text")),
}


def request(source: dict[str, Raw], tools: Tools, account: Account, options: Options) -> responses.Request:
    """A request with these settings. An absent ``store`` means false here and true there, so it is written."""
    draft = Draft(source, account, options, tools=tools.written is not UNSET)
    convert(source, ROWS, draft)
    return responses.Request(**{"store": FALSE, **draft.fields})
