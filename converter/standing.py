"""Records that are already in the envelope that is asked for: gated as they stand, and written unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from msgspec import UNSET, Raw

from converter import chat, gate, into_responses, responses, tools
from converter.options import Options
from converter.outcome import Account

NOTHING: Final = Raw(b"null")


class Judge(Protocol):
    """What is needed of a conversion: its options, and its way to make a gate."""

    options: Options

    def gate(self, own: tools.Schemas, tool_choice: Any, account: Account, where: gate.Where) -> gate.Gate:
        """A gate for one record."""


def check(session: Judge, body: Any, account: Account) -> None:
    """The gate over a body of either envelope as it stands."""
    _CHECK[type(body)](session, body, account)


def _check_list(session: Judge, body: list[Any], account: Account) -> None:
    if body and isinstance(body[0], _MESSAGES):
        _check_messages(session, body, "", {}, account)
    else:
        _check_items(session, body, "", {}, account)


_MESSAGES: Final = (
    chat.SystemMessage,
    chat.DeveloperMessage,
    chat.UserMessage,
    chat.AssistantMessage,
    chat.ToolMessage,
    chat.FunctionMessage,
)


def _check_items(
    session: Judge, items: Any, root: str, schemas: tools.Schemas, account: Account, **closing: bool
) -> None:
    def where(key: int, field: str) -> str:
        return f"{root}/{key}/{field}" if field else f"{root}/{key}"

    checked = session.gate(schemas, UNSET, account, where)
    held = items if isinstance(items, list) else []
    gate.check_items([_read_as_completed(item) for item in held], checked)
    for position, item in enumerate(held):
        if type(item) in _NOT_PORTABLE and session.options.target != "openai":
            account.refuse("unsupported_item", f"{root}/{position}", "an item outside the portable set")
    checked.close(**closing)


_NOT_PORTABLE: Final = frozenset({responses.CustomToolCall, responses.CustomToolCallOutput})


def _read_as_completed(item: Any) -> Any:
    """An absent status reads as completed."""
    if type(item) is responses.FunctionCall and not item.status:
        item.status = "completed"
    return item


def _check_messages(
    session: Judge, messages: list[Any], root: str, schemas: tools.Schemas, account: Account, **closing: bool
) -> None:
    def where(key: tuple[int, int], field: str) -> str:
        place = f"{root}/{key[0]}" if root != "/choices" else f"/choices/{key[0]}/message"
        if key[1] >= 0:
            return f"{place}/tool_calls/{key[1]}{into_responses.CHAT_FIELDS.get(field, '')}"
        legacy = into_responses.LEGACY_FIELDS.get(field)
        return f"{place}/function_call{legacy}" if legacy else place

    checked = session.gate(schemas, UNSET, account, where)
    gate.check_messages(messages, checked)
    checked.close(**closing)


def _check_chat_request(session: Judge, body: chat.Request, account: Account) -> None:
    _check_messages(session, body.messages, "/messages", tools.schemas_of(body.tools), account)


def _check_completion(session: Judge, body: chat.Completion, account: Account) -> None:
    for at, choice in enumerate(body.choices):
        _check_messages(
            session, [*[chat.AssistantMessage()] * at, choice.message], "/choices", {}, account, answer=True
        )


def _check_request(session: Judge, body: responses.Request, account: Account) -> None:
    elsewhere = any(
        getattr(body, name) not in (UNSET, NOTHING) for name in ("previous_response_id", "conversation")
    ) or any(type(item) is responses.ItemReference for item in body.input or () if not isinstance(item, str))
    _check_items(session, body.input, "/input", tools.schemas_of(body.tools), account, orphans_legal=elsewhere)


def _check_response(session: Judge, body: responses.Response, account: Account) -> None:
    _check_items(session, body.output, "/output", tools.schemas_of(body.tools), account, answer=True)


_CHECK: Final[dict[type, Callable[[Judge, Any, Account], None]]] = {
    list: _check_list,
    chat.Request: _check_chat_request,
    chat.Completion: _check_completion,
    responses.Request: _check_request,
    responses.Response: _check_response,
}
