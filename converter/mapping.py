"""The six bodies on their way: mapped, then gated as they are about to be written. One function a body, in a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import UNSET

from converter import (
    answers_into_chat,
    answers_into_responses,
    chat,
    gate,
    into_chat,
    into_responses,
    responses,
    settings_into_chat,
    settings_into_responses,
    tools,
)
from converter.conversion import Conversion, Passage
from converter.turns import Context, Turns

# ---------------------------------------------------------------- Chat Completions -> Open Responses


def _chat_request(conversion: Conversion, body: chat.Request, passage: Passage) -> responses.Request:
    account = passage.account
    made = conversion.tools(body, account)
    request = settings_into_responses.request(chat.settings_of(body), made, account, conversion.options)
    context = into_responses.Context(account, conversion.options, "/messages", passage.left_out)
    request.input = into_responses.messages(body.messages, context)
    request.tools = made.written
    _gate_items(conversion, request.input, made.schemas, body.tool_choice, context, body.messages, passage.text)
    if (beside := passage.beside) is not None:
        beside.schemas, beside.tool_choice, beside.request = made.schemas, body.tool_choice, request
        beside.remember(request.input)
    return request


def _message_list(conversion: Conversion, body: list[Any], passage: Passage) -> list[Any]:
    context = into_responses.Context(passage.account, conversion.options, "", passage.left_out)
    items = into_responses.messages(body, context)
    _gate_items(conversion, items, _known(conversion, passage), UNSET, context, body, passage.text)
    if passage.beside is not None:
        passage.beside.remember(items)
    return items


def _known(conversion: Conversion, passage: Passage) -> tools.Schemas:
    """The schemas for a body without tools: those of the request beside it, if any, and those that the user gave."""
    return {**passage.beside.schemas, **conversion.given} if passage.beside else conversion.given


def _gate_items(
    conversion: Conversion,
    items: Any,
    schemas: tools.Schemas,
    tool_choice: Any,
    context: into_responses.Context,
    messages: list[Any],
    text: bytes,
) -> None:
    def where(key: Any, field: str) -> str:
        return into_responses.place(messages, context, key, field)

    checked = conversion.gate(schemas, tool_choice, context.account, where)
    gate.check_items(items, checked, context.turns)
    checked.close()
    if len(text) > gate.TEXT_LIMIT:
        gate.check_texts(items, checked)


def _completion(conversion: Conversion, body: chat.Completion, passage: Passage) -> responses.Response | None:
    context = into_responses.Context(passage.account, conversion.options, "", passage.left_out)
    beside = passage.beside
    echo = answers_into_responses.echo_of(beside.request) if beside and beside.request else {}
    context.item_ids |= beside.item_ids if beside else set()
    made = answers_into_responses.completion(body, passage.text, context, echo)
    if made is None:
        return None
    response, message = made

    def where(key: Any, field: str) -> str:
        if field == "status":
            return context.root.removesuffix("/message") + "/finish_reason"
        return answers_into_responses.answer_place(response.output, message, context, key, field)

    tool_choice = beside.tool_choice if beside else UNSET
    checked = conversion.gate(_known(conversion, passage), tool_choice, passage.account, where)
    gate.check_items(response.output, checked)
    checked.close(answer=True)
    return response


# ---------------------------------------------------------------- Open Responses -> Chat Completions


def _responses_request(conversion: Conversion, body: responses.Request, passage: Passage) -> chat.Request:
    account = passage.account
    made = conversion.tools(body, account)
    request = settings_into_chat.request(responses.settings_of(body), made, account, conversion.options)
    turns = Turns(Context(account, conversion.options, "/input", passage.left_out))
    into_chat.conversation(body, turns.context, turns)
    request.messages, request.tools = turns.messages, made.written
    elsewhere = any(reason.code == "incomplete_history" for reason in account.reasons)
    _gate_messages(conversion, turns, made.schemas, body.tool_choice, orphans_legal=elsewhere)
    if (beside := passage.beside) is not None:
        beside.schemas, beside.tool_choice = made.schemas, body.tool_choice
    return request


def _item_list(conversion: Conversion, body: list[Any], passage: Passage) -> list[Any]:
    context = Context(passage.account, conversion.options, "", passage.left_out)
    turns = Turns(context)
    messages = into_chat.items(body, context, turns)
    if not messages and not passage.account.reasons:
        passage.account.refuse("limit", "", "an empty conversation; Chat wants at least one message")
    _gate_messages(conversion, turns, _known(conversion, passage), UNSET)
    return messages


def _gate_messages(
    conversion: Conversion, turns: Turns, schemas: tools.Schemas, tool_choice: Any, **closing: bool
) -> None:
    context = turns.context

    def where(key: tuple[int, int], field: str) -> str:
        own, calls = turns.places[key[0]]
        position = calls[key[1]] if key[1] >= 0 else own
        return context.path(position, f"/{field}" if field else "")

    checked = conversion.gate(schemas, tool_choice, context.account, where)
    checked.spared = turns.unfinished
    gate.check_messages(turns.messages, checked)
    checked.close(**closing)


def _response(conversion: Conversion, body: responses.Response, passage: Passage) -> chat.Completion | None:
    context = Context(passage.account, conversion.options, "/output", passage.left_out)
    made = answers_into_chat.response(body, passage.text, context)
    if made is None:
        return None
    completion, places, unfinished = made

    def where(key: tuple[int, int], field: str) -> str:
        return context.path(places[key[1]], f"/{field}" if field else "")

    asked = passage.beside.schemas if passage.beside else {}
    schemas = {**tools.every(tools.schemas_of(body.tools), asked), **conversion.given}
    checked = conversion.gate(schemas, body.tool_choice, passage.account, where)
    checked.spared = unfinished
    gate.check_messages([completion.choices[0].message], checked)
    checked.close(answer=True)
    return completion


CONVERT: Final[dict[str, Callable[[Conversion, Any, Passage], Any]]] = {
    "chat-request": _chat_request,
    "message-list": _message_list,
    "completion": _completion,
    "responses-request": _responses_request,
    "item-list": _item_list,
    "response": _response,
}
