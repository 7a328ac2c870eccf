"""Records that are already in the envelope that is asked for: gated as they stand, and written unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import UNSET, Raw

from converter import chat, gate, into_responses, responses, tools
from converter.conversion import Conversion, Passage
from converter.outcome import Account

NOTHING: Final = Raw(b"null")


def check(conversion: Conversion, body: Any, passage: Passage) -> None:
    """The gate over a body of either envelope as it stands."""
    schemas = {**tools.schemas_of(getattr(body, "tools", UNSET)), **conversion.given}
    if passage.beside is not None:
        passage.beside.schemas = schemas = {**passage.beside.schemas, **schemas}
    _CHECK[type(body)](conversion, body, schemas, passage.account)


def _check_list(conversion: Conversion, body: list[Any], schemas: tools.Schemas, account: Account) -> None:
    if body and isinstance(body[0], _MESSAGES):
        _check_messages(conversion, body, "", schemas, account)
    else:
        _check_items(conversion, body, "", schemas, account)


_MESSAGES: Final = (
    chat.SystemMessage,
    chat.DeveloperMessage,
    chat.UserMessage,
    chat.AssistantMessage,
    chat.ToolMessage,
    chat.FunctionMessage,
)


def _check_items(
    conversion: Conversion, items: Any, root: str, schemas: tools.Schemas, account: Account, **closing: bool
) -> None:
    def where(key: int, field: str) -> str:
        return f"{root}/{key}/{field}" if field else f"{root}/{key}"

    checked = conversion.gate(schemas, UNSET, account, where)
    held = items if isinstance(items, list) else []
    gate.check_items([_read_as_completed(item) for item in held], checked)
    for position, item in enumerate(held):
        if type(item) in _NOT_PORTABLE and conversion.options.target != "openai":
            account.refuse(
                "unsupported_item",
                f"{root}/{position}",
                "OpenAI's own custom tool call, which is outside the portable set (--target openai takes it)",
            )
    checked.close(**closing)


_NOT_PORTABLE: Final = frozenset({responses.CustomToolCall, responses.CustomToolCallOutput})


def _read_as_completed(item: Any) -> Any:
    """An absent status reads as completed."""
    if type(item) is responses.FunctionCall and not item.status:
        item.status = "completed"
    return item


def _check_messages(
    conversion: Conversion, messages: list[Any], root: str, schemas: tools.Schemas, account: Account, **closing: bool
) -> None:
    def where(key: tuple[int, int], field: str) -> str:
        place = f"{root}/{key[0]}" if root != "/choices" else f"/choices/{key[0]}/message"
        if key[1] >= 0:
            return f"{place}/tool_calls/{key[1]}{into_responses.CHAT_FIELDS.get(field, '')}"
        legacy = into_responses.LEGACY_FIELDS.get(field)
        return f"{place}/function_call{legacy}" if legacy else place

    checked = conversion.gate(schemas, UNSET, account, where)
    gate.check_messages(messages, checked)
    checked.close(**closing)


def _check_chat_request(conversion: Conversion, body: chat.Request, schemas: tools.Schemas, account: Account) -> None:
    _check_messages(conversion, body.messages, "/messages", schemas, account)


def _check_completion(conversion: Conversion, body: chat.Completion, schemas: tools.Schemas, account: Account) -> None:
    for at, choice in enumerate(body.choices):
        _check_messages(
            conversion, [*[chat.AssistantMessage()] * at, choice.message], "/choices", schemas, account, answer=True
        )


def _check_request(conversion: Conversion, body: responses.Request, schemas: tools.Schemas, account: Account) -> None:
    elsewhere = any(
        getattr(body, name) not in (UNSET, NOTHING) for name in ("previous_response_id", "conversation")
    ) or any(type(item) is responses.ItemReference for item in body.input or () if not isinstance(item, str))
    _check_items(conversion, body.input, "/input", schemas, account, orphans_legal=elsewhere)


def _check_response(conversion: Conversion, body: responses.Response, schemas: tools.Schemas, account: Account) -> None:
    _check_items(conversion, body.output, "/output", schemas, account, answer=True)


_CHECK: Final[dict[type, Callable[[Conversion, Any, tools.Schemas, Account], None]]] = {
    list: _check_list,
    chat.Request: _check_chat_request,
    chat.Completion: _check_completion,
    responses.Request: _check_request,
    responses.Response: _check_response,
}
