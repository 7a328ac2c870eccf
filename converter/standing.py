"""Records that are already in the envelope that is asked for: gated as they stand, and written unchanged."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from msgspec import UNSET, Raw

from converter import chat, gate, into_responses, responses, tools
from converter.answers_into_responses import is_cut
from converter.conversion import Conversion, Passage
from converter.kinds import Kind
from converter.outcome import Account
from converter.reading import encode
from converter.repairs import HISTORY
from converter.text import key_twice, once, one_line

NOTHING: Final = Raw(b"null")


def written(conversion: Conversion, kind: Kind, body: Any, passage: Passage) -> bytes:
    """The bytes to write: those that stand in the log, unless the user asked for a change that this body needed."""
    entered, account, text = passage.entered, passage.account, passage.text
    changed = entered.changed or "repaired" in account.found
    if entered.seen is not None:
        # Written unchanged, nothing is left out, whatever was passed over on the way in.
        account.absorb(entered.seen, *(() if changed else ("allowed",)))
    if entered.left_out:
        _leave_out(kind, body, passage)
    check(conversion, body, passage)
    if not changed and entered.seen is not None:
        _no_stray_calls(entered.seen, account)
    value = encode(body) if changed else text
    if twice := key_twice(value):
        # Of two parsers, one may take the first value and one the last: what was looked at is what must be written.
        account.notice("odd", twice, "a key that stands twice in one object: the last one is kept")
        value = encode(once(Raw(value)))
    return one_line(value)


def _no_stray_calls(seen: Account, account: Account) -> None:
    for path in seen.found.get("dropped", ()):
        if _STRAY_CALLS.fullmatch(path.removeprefix(account.base)):
            account.refuse("wrong_type", path.removeprefix(account.base), "calls, which only an assistant can make")


_STRAY_CALLS: Final = re.compile(r".*/[0-9]+(?:/message|/delta)?/(?:tool_calls|function_call)")
"""Calls in a message where no gate looks for any, as in a user's."""


def _leave_out(kind: Kind, body: Any, passage: Passage) -> None:
    """The outputs of calls that were left out go with them."""
    root, history = HISTORY[kind.name](body)
    called = {call.id for entry in history for call in getattr(entry, "tool_calls", None) or ()}
    called |= {entry.call_id for entry in history if isinstance(entry, responses.FunctionCall)}
    gone = passage.left_out - called
    kept = [at for at, entry in enumerate(history) if _id_of_output(entry) not in gone]
    for at in sorted(set(range(len(history))) - set(kept)):
        passage.account.notice("allowed", f"{root}/{at}", "the output of a call that was left out")
    history[:] = [history[at] for at in kept]
    passage.account.layers = ({root: kept}, *passage.account.layers)


def _id_of_output(entry: Any) -> str | None:
    outputs = (chat.ToolMessage, responses.FunctionCallOutput, responses.CustomToolCallOutput)
    return getattr(entry, "call_id", getattr(entry, "tool_call_id", None)) if isinstance(entry, outputs) else None


def check(conversion: Conversion, body: Any, passage: Passage) -> None:
    """The gate over a body of either envelope as it stands."""
    schemas = tools.declared(getattr(body, "tools", UNSET), getattr(body, "functions", UNSET))
    if passage.beside is not None:
        passage.beside.schemas = schemas = tools.every(schemas, passage.beside.schemas)
        passage.beside.remember(body if isinstance(body, list) else getattr(body, "input", None))
    _CHECK[type(body)](conversion, body, {**schemas, **conversion.given}, passage.account)


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
        if getattr(item, "namespace", None):
            account.refuse(
                "unsupported_item",
                f"{root}/{position}",
                "a call with a namespace: it changes which tool was called (--allow unsupported_item lets it stand)",
            )
    checked.close(**closing)


_NOT_PORTABLE: Final = frozenset({responses.CustomToolCall, responses.CustomToolCallOutput})


def _read_as_completed(item: Any) -> Any:
    """An absent status reads as completed."""
    if type(item) is responses.FunctionCall and not item.status:
        item.status = "completed"
    return item


def _check_messages(
    conversion: Conversion,
    messages: list[Any],
    root: str,
    schemas: tools.Schemas,
    account: Account,
    spared: Any = None,
    **closing: bool,
) -> None:
    def where(key: tuple[int, int], field: str) -> str:
        place = f"{root}/{key[0]}" if root != "/choices" else f"/choices/{key[0]}/message"
        if key[1] >= 0:
            return f"{place}/tool_calls/{key[1]}{into_responses.CHAT_FIELDS.get(field, '')}"
        legacy = into_responses.LEGACY_FIELDS.get(field)
        return f"{place}/function_call{legacy}" if legacy else place

    checked = conversion.gate(schemas, UNSET, account, where)
    checked.spared = {id(spared)}
    gate.check_messages(messages, checked)
    checked.close(**closing)


def _check_chat_request(conversion: Conversion, body: chat.Request, schemas: tools.Schemas, account: Account) -> None:
    _check_messages(conversion, body.messages, "/messages", schemas, account)


def _check_completion(conversion: Conversion, body: chat.Completion, schemas: tools.Schemas, account: Account) -> None:
    for at, choice in enumerate(body.choices):
        calls = choice.message.tool_calls or []
        cut = calls[-1] if calls and is_cut(choice.finish_reason) else None
        if cut is not None:
            account.refuse("status", f"/choices/{at}/finish_reason", gate.NOT_COMPLETED)
        held = [*[chat.AssistantMessage()] * at, choice.message]
        _check_messages(conversion, held, "/choices", schemas, account, spared=cut, answer=True)


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
