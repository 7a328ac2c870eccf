"""A Chat completion becomes a response resource: one choice, its message as the output, and the 31 required fields."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, Raw

from converter import chat, ids, into_responses, logprobs, reasoning, responses, settings, usage
from converter.outcome import Account
from converter.reading import elements_of, encode, kind, members_of, says_nothing

NULL: Final = Raw(b"null")


FINISHED: Final = frozenset({"stop", "tool_calls", "function_call"})
INCOMPLETE: Final = {
    "length": "max_output_tokens",
    "max_tokens": "max_output_tokens",
    "max_output_tokens": "max_output_tokens",
    "model_length": "max_output_tokens",
    "model_context_window_exceeded": "max_output_tokens",
    "content_filter": "content_filter",
    "content_filtered": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "blocklist": "content_filter",
    "prohibited_content": "content_filter",
    "spii": "content_filter",
}
"""Words for an answer that was cut off: of the format, of Mistral, and of Gemini and Anthropic behind gateways."""

FAILED: Final = frozenset(
    {
        "error",
        "abort",
        "aborted",
        "cancelled",
        "insufficient_system_resource",
        "time_limit",
        "timeout",
        "malformed_function_call",
        "unexpected_tool_call",
    }
)


def is_cut(finish_reason: Any) -> bool:
    """Whether a ``finish_reason`` says that the answer was cut off. Gateways pass on words in capitals, too."""
    return isinstance(finish_reason, str) and finish_reason.lower() in INCOMPLETE


ECHO_DEFAULTS: Final[dict[str, Any]] = {
    "previous_response_id": NULL,
    "instructions": NULL,
    "error": NULL,
    "tools": Raw(b"[]"),
    "tool_choice": Raw(b'"auto"'),
    "truncation": Raw(b'"disabled"'),
    "parallel_tool_calls": Raw(b"true"),
    "text": Raw(b'{"format":{"type":"text"}}'),
    "top_p": Raw(b"1"),
    "presence_penalty": Raw(b"0"),
    "frequency_penalty": Raw(b"0"),
    "top_logprobs": Raw(b"0"),
    "temperature": Raw(b"1"),
    "reasoning": NULL,
    "max_output_tokens": NULL,
    "max_tool_calls": NULL,
    "store": Raw(b"false"),
    "background": Raw(b"false"),
    "service_tier": Raw(b'"default"'),
    "metadata": Raw(b"{}"),
    "safety_identifier": NULL,
    "prompt_cache_key": NULL,
}
"""What a response resource says of its request where the request is not known. These are Chat's defaults."""


def echo_of(request: responses.Request) -> dict[str, Any]:
    """What a response says of its request, in the form that the resource wants."""
    echo = {name: value for name in _ECHOED if (value := getattr(request, name)) is not UNSET and value is not None}
    if request.tools is not UNSET:
        echo["tools"] = [_echoed_tool(members_of(tool)) for tool in elements_of(request.tools)]
    if request.text is not UNSET:
        echo["text"] = echoed_text(request.text)
    if request.reasoning is not UNSET:
        echo["reasoning"] = {"effort": NULL, "summary": NULL, **_members(request.reasoning)}
    return echo


_ECHOED: Final = tuple(
    name for name in ECHO_DEFAULTS if name not in ("error", "tools", "text", "reasoning", "instructions")
)


def _members(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else members_of(value)


def _echoed_tool(members: dict[str, Raw]) -> dict[str, Any]:
    return {"type": "function", **dict.fromkeys(("name", "description", "parameters", "strict"), NULL), **members}


def echoed_text(value: Any) -> dict[str, Any]:
    """The released schema wants a format, and in a JSON Schema format no schema but null."""
    text = _members(value)
    form = _members(text.get("format", {"type": "text"}))
    if form.get("type") in ("json_schema", Raw(b'"json_schema"')):
        form = {
            "type": "json_schema",
            "name": "",
            "description": NULL,
            "strict": settings.FALSE,
            **form,
            "schema": NULL,
        }
    return {**text, "format": form}


def completion(
    body: chat.Completion, seed: bytes, context: into_responses.Context, echo: dict[str, Any]
) -> tuple[responses.Response, chat.AssistantMessage] | None:
    """An answer becomes a response resource with one choice's message as its output.

    ``seed`` stands for the record where it has no id; ``echo`` holds what its request said, where that is known.
    """
    chosen = _chosen(body, context)
    if chosen is None:
        return None
    at, choice = chosen
    context.root = f"/choices/{at}/message"
    account = context.account
    status, reason = _status(choice, f"/choices/{at}/finish_reason", account)
    identity = ids.suffix(body.id, ("chatcmpl-", "resp_")) if body.id else ids.digest(seed.decode("utf-8", "replace"))
    output = _output(choice, at, identity, context)
    _finish(output, status)
    _odd_finish(choice, output, f"/choices/{at}/finish_reason", account)
    _answer_extras(body, account)
    created = ids.seconds(body.created, "/created", account)
    if not body.model:
        account.notice("filled", "/model", "model: the completion names none")
    fields = {**ECHO_DEFAULTS, **echo}
    for name in ("service_tier", "metadata"):
        value = getattr(body, name)
        if value is UNSET or kind(value) == "null":
            continue
        if kind(value) == ("a string" if name == "service_tier" else "an object"):
            fields[name] = value
        else:
            account.notice("dropped", f"/{name}")
    response = responses.Response(
        id=f"resp_{identity}",
        object="response",
        created_at=created,
        completed_at=NULL,
        status=status,
        incomplete_details=responses.IncompleteDetails(reason) if reason else None,
        model=body.model or "",
        output=output,
        usage=usage.into_responses(body.usage, account),
        **fields,
    )
    return response, choice.message


def _chosen(body: chat.Completion, context: into_responses.Context) -> tuple[int, chat.Choice] | None:
    """The choice to convert: the only one, or the one with the index that the user named."""
    choices, wanted = body.choices, context.options.choice
    if not choices:
        context.account.refuse("missing_field", "/choices", "no choice in it, expected at least one")
        return None
    if len(choices) == 1 and wanted is None:
        return 0, choices[0]
    if wanted is None:
        context.account.refuse(
            "several_choices",
            "/choices",
            f"{len(choices)} choices; a response holds one answer (--choice N picks one by its index)",
        )
        return None
    for at, choice in enumerate(choices):
        if (choice.index if isinstance(choice.index, int) else at) == wanted:
            for other in range(len(choices)):
                if other != at:
                    context.account.notice("dropped", f"/choices/{other}", "a choice that was not picked")
            return at, choice
    context.account.refuse("several_choices", "/choices", f"no choice has the index {wanted} (--choice)")
    return None


def _status(choice: chat.Choice, path: str, account: Account) -> tuple[str, str | None]:
    finish = choice.finish_reason
    if not finish:
        account.notice("filled", path, "no finish_reason: read as completed")
    elif is_cut(finish):
        return "incomplete", INCOMPLETE[finish.lower()]
    elif finish.lower() in FAILED:
        account.refuse("not_finished", path, "the answer ended in an error, so it is no whole answer")
    elif finish not in FINISHED:
        account.notice("odd", path, "an unknown finish_reason, read as completed")
    return "completed", None


def _output(choice: chat.Choice, at: int, identity: str, context: into_responses.Context) -> into_responses.Items:
    message = choice.message
    place = f"/choices/{at}/message"
    items = reasoning.in_answer(message, place, identity, context.account)
    into_responses.drop_extras(message, -1, context)
    parts = into_responses.spoken_parts(message.content or "", message.annotations or None, -1, context)
    if message.refusal:
        parts.append(responses.Refusal(message.refusal))
    _name_several(parts, place, context)
    for part in parts:
        if type(part) is responses.OutputText and not part.annotations:
            part.annotations = []
    _logprobs(choice, parts, f"/choices/{at}/logprobs", context)
    if parts:
        items.append(responses.OutputMessage(f"msg_{identity}", "completed", "assistant", parts))
    for number, call in enumerate(message.tool_calls or []):
        into_responses.TOOL_CALL_BY_TYPE[type(call)](call, number, -1, items, context)
    if message.function_call:
        into_responses.legacy_call(message.function_call, -1, items, context)
    return items


def _name_several(parts: list[Any], place: str, context: into_responses.Context) -> None:
    """A completion has one text and one refusal: on the way back, several become one."""
    for part, name in ((responses.OutputText, "texts"), (responses.Refusal, "refusals")):
        if sum(type(one) is part for one in parts) > 1:
            context.account.notice("joined", f"{place}/content", f"several {name} of one answer, on the way back")


def _finish(output: into_responses.Items, status: str) -> None:
    """Only the last item of an incomplete response is incomplete (specification, item lifecycle)."""
    if status == "incomplete" and output and not isinstance(output[-1], responses.OutputReasoning):
        output[-1].status = "incomplete"


def _odd_finish(choice: chat.Choice, output: into_responses.Items, path: str, account: Account) -> None:
    called = any(type(item) in into_responses.CALLS for item in output)
    if called and choice.finish_reason == "stop":
        account.notice("odd", path, "finish_reason stop beside tool calls")
    elif not called and choice.finish_reason in ("tool_calls", "function_call"):
        account.notice("odd", path, f"finish_reason {choice.finish_reason} without a call")


def _answer_extras(body: chat.Completion, account: Account) -> None:
    for name in ("system_fingerprint", "moderation", "provider", "prompt_filter_results"):
        value = getattr(body, name)
        if value is not UNSET and not says_nothing(value):
            account.notice("dropped", f"/{name}")


def _logprobs(choice: chat.Choice, parts: list[Any], path: str, context: into_responses.Context) -> None:
    """Chat has one list a message, Open Responses one a text part, without null ``bytes``."""
    if not choice.logprobs:
        return
    texts = [part for part in parts if type(part) is responses.OutputText]
    for name in ("content", "refusal"):
        value = getattr(choice.logprobs, name)
        if value is UNSET or says_nothing(value):
            continue
        if name != "content" or len(texts) != 1:
            context.account.notice("dropped", f"{path}/{name}", "no text part of its own")
        elif logprobs.are_whole(value):
            texts[0].logprobs = value
        elif (tokens := logprobs.filled(value)) is not None:
            texts[0].logprobs = Raw(encode(tokens))
            sentence = "bytes and top_logprobs: required there, null or absent here"
            context.account.notice("filled", f"{path}/{name}", sentence)
        else:
            context.account.notice("dropped", f"{path}/{name}", logprobs.NONE)


def answer_place(
    output: into_responses.Items, message: chat.AssistantMessage, context: into_responses.Context, key: int, field: str
) -> str:
    """The pointer to where an item of `completion` stood."""
    if context.places is None:
        context.places = into_responses.item_places(message, context.root, output)
    return into_responses.field_of(context.places[key], field)
