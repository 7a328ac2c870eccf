"""Changes of recorded data, each made only when the user asks for it by name, and each named in a notice.

They work on the decoded structs of either envelope, before the mapping. (Two repairs concern what the structs cannot
hold, and stand where that is read: ``stringify-arguments`` and ``null-padding`` in `converter.habits`; ``lift-media``
concerns a target, and stands in `converter.to_chat`.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from msgspec import UNSET

from converter import chat, ids, responses
from converter.chat import MISSING_ID
from converter.gate import CALL_ID_LIMIT
from converter.options import Options
from converter.outcome import Account, Layer
from converter.reading import text_of


class Event(NamedTuple):
    """A call or an output in a history of either envelope: what bears the id, under which name, and where it stands."""

    call: bool
    bearer: Any
    field: str
    path: str
    name: str | None
    at: int
    number: int

    @property
    def id(self) -> str:
        """The call id, empty where the log has none."""
        value: str = getattr(self.bearer, self.field)
        return "" if value == MISSING_ID else value


def apply(kind: str, body: Any, account: Account, options: Options) -> None:
    """Make the repairs that were asked for, in the order in which one may make another possible."""
    root, history = HISTORY[kind](body)
    for name, repair in REPAIRS.items():
        if name in options.repair and not (kind == "completion" and name in OF_HISTORIES):
            repair(history, root, account)


OF_HISTORIES: Final = frozenset({"drop-orphans", "rename-call-ids"})
"""Repairs that look for calls and outputs of several turns: the choices of a completion are no turns."""


def _whole(body: Any) -> tuple[str, list[Any]]:
    return "", body


def _input(body: responses.Request) -> tuple[str, list[Any]]:
    return "/input", body.input if isinstance(body.input, list) else []


HISTORY: Final[dict[str, Callable[[Any], tuple[str, list[Any]]]]] = {
    "chat-request": lambda body: ("/messages", body.messages),
    "message-list": _whole,
    "completion": lambda body: ("/choices", [choice.message for choice in body.choices]),
    "responses-request": _input,
    "item-list": _whole,
    "response": lambda body: ("/output", body.output),
}
"""For each kind of body, where its history stands, and the list itself."""


def _events(history: list[Any], root: str) -> Iterator[Event]:
    for at, entry in enumerate(history):
        yield from _EVENTS[type(entry)](entry, at, root) if type(entry) in _EVENTS else ()


def _turn_events(message: chat.AssistantMessage, at: int, root: str) -> Iterator[Event]:
    inside = "/message" if root == "/choices" else ""
    for number, call in enumerate(message.tool_calls or ()):
        name = call.custom.name if isinstance(call, chat.CustomToolCall) else call.function.name
        yield Event(True, call, "id", f"{root}/{at}{inside}/tool_calls/{number}", name, at, number)


def _tool_event(message: chat.ToolMessage, at: int, root: str) -> Iterator[Event]:
    name = text_of(message.name) if message.name is not UNSET else None
    yield Event(False, message, "tool_call_id", f"{root}/{at}", name, at, -1)


def _call_event(item: Any, at: int, root: str) -> Iterator[Event]:
    yield Event(True, item, "call_id", f"{root}/{at}", item.name, at, -1)


def _output_event(item: Any, at: int, root: str) -> Iterator[Event]:
    yield Event(False, item, "call_id", f"{root}/{at}", None, at, -1)


_EVENTS: Final[dict[type, Callable[[Any, int, str], Iterator[Event]]]] = {
    chat.AssistantMessage: _turn_events,
    chat.ToolMessage: _tool_event,
    responses.FunctionCall: _call_event,
    responses.CustomToolCall: _call_event,
    responses.FunctionCallOutput: _output_event,
    responses.CustomToolCallOutput: _output_event,
}


# ---------------------------------------------------------------- ids


def _give(event: Event, call_id: str, account: Account, repair: str) -> None:
    setattr(event.bearer, event.field, call_id)
    account.notice("repaired", event.path if event.call else f"{event.path}/{event.field}", repair)


def _fill_call_ids(history: list[Any], root: str, account: Account) -> None:
    """Calls and outputs without an id are paired turn by turn: by the output's name where it has one, else by order."""
    turns: list[list[Event]] = []
    known: set[str] = set()
    ordinal, last = 0, -2
    for event in _events(history, root):
        if event.call:
            if event.at not in (last, last + 1):
                turns.append([])  # something stands between: these calls are of a later turn
            last = event.at
            if event.id:
                known.add(event.id)
            turns[-1].append(event)
        elif event.id in known:
            _answered(turns, event.id)
        elif (call := _asking(turns, event)) is not None:
            call_id = call.id or event.id or ids.filled_call_id(call.name or "", ordinal)
            ordinal += 1
            known.add(call_id)
            for one in (call, event):
                if not one.id:
                    _give(one, call_id, account, "fill-call-ids: paired by order")
    for event in (event for turn in turns for event in turn if not event.id):
        _give(event, ids.filled_call_id(event.name or "", ordinal), account, "fill-call-ids: paired by order")
        ordinal += 1


def _answered(turns: list[list[Event]], call_id: str) -> None:
    """A call with this id waits no longer."""
    for turn in reversed(turns):
        for call in turn:
            if call.id == call_id:
                turn.remove(call)
                return


def _asking(turns: list[list[Event]], output: Event) -> Event | None:
    """The call that an output answers: of the latest turn that still waits, the one of its name, else the first.

    It is taken out of its turn. A call with an id of its own is answered by the output without one that bears its name.
    """
    for turn in reversed(turns):
        named = [call for call in turn if output.name is not None and call.name == output.name]
        found: Event | None = next((call for call in named if not call.id), None)
        if found is None and not output.id:
            found = next(iter(named), None)
        if found is None and not named:
            found = next((call for call in turn if not call.id), None)
        if found is not None:
            turn.remove(found)
            return found
    return None


def _rename_call_ids(history: list[Any], root: str, account: Account) -> None:
    """A repeated or overlong id becomes a new one, on the call and on the output that answers it."""
    used: set[str] = set()
    opened: dict[str, list[tuple[str, str | None]]] = {}
    for event in _events(history, root):
        old = event.id
        if event.call:
            new = old
            if old in used or len(old) > CALL_ID_LIMIT:
                new = ids.renamed_call_id(old, len(used))
                _give(event, new, account, "rename-call-ids: made unique and short")
            used.update((old, new))
            opened.setdefault(old, []).append((new, event.name))
        elif waiting := opened.get(old):
            # Of calls that are open with one id, an output answers the one whose name it bears, else the first.
            chosen = next((call for call in waiting if event.name is not None and call[1] == event.name), waiting[0])
            waiting.remove(chosen)
            if chosen[0] != old:
                _give(event, chosen[0], account, "rename-call-ids: made unique and short")


# ---------------------------------------------------------------- histories cut by a window


def _drop_orphans(history: list[Any], root: str, account: Account) -> None:
    """Outputs without a call, and calls that are never answered although the conversation goes on, are left out."""
    gone = _orphans(list(_events(history, root)), _last_turn(history))
    if not gone:
        return
    for event in gone:
        account.notice("repaired", event.path, "drop-orphans: left out, since its counterpart is not in the record")
    gone_at: dict[int, set[int]] = {}
    for event in gone:
        gone_at.setdefault(event.at, set()).add(event.number)
    kept: list[int] = []
    layer: Layer = {root: kept}
    for at, entry in enumerate(history):
        numbers = gone_at.get(at, set())
        if numbers and type(entry) is chat.AssistantMessage:
            calls = [n for n in range(len(entry.tool_calls or ())) if n not in numbers]
            layer[f"{root}/{at}/tool_calls"] = calls
            entry.tool_calls = [entry.tool_calls[n] for n in calls] or UNSET  # type: ignore[index]
            numbers = set() if entry.tool_calls or entry.content or entry.refusal else numbers
        if not numbers:
            kept.append(at)
    account.layers = (layer, *account.layers)
    history[:] = [history[at] for at in kept]


def _orphans(events: list[Event], last_turn: int) -> list[Event]:
    opened: dict[str, Event] = {}
    gone = []
    for event in events:
        if event.call:
            opened[event.id] = event
        elif opened.pop(event.id, None) is None:
            gone.append(event)
    return gone + [event for event in opened.values() if event.at < last_turn]


def _last_turn(history: list[Any]) -> int:
    """The position of the last entry that goes on with the conversation: not an output, not a bare item of a turn."""
    speakers = (chat.UserMessage, chat.AssistantMessage, responses.Message)
    calls = (responses.FunctionCall, responses.CustomToolCall)
    outputs = (responses.FunctionCallOutput, responses.CustomToolCallOutput)
    last = -1
    for at, entry in enumerate(history):
        if isinstance(entry, speakers) or (isinstance(entry, calls) and at and isinstance(history[at - 1], outputs)):
            last = at
    return last


# ---------------------------------------------------------------- values


def _empty_arguments(history: list[Any], root: str, account: Account) -> None:
    for event in _events(history, root):
        bearer = getattr(event.bearer, "function", event.bearer)
        if event.call and getattr(bearer, "arguments", None) == "":
            bearer.arguments = "{}"
            inside = "/function" if bearer is not event.bearer else ""
            account.notice("repaired", f"{event.path}{inside}/arguments", 'empty-arguments: "" became "{}"')


def _developer_to_system(history: list[Any], root: str, account: Account) -> None:
    for at, entry in enumerate(history):
        if type(entry) is chat.DeveloperMessage:
            history[at] = chat.SystemMessage(entry.content, entry.name, entry.cache_control)
        elif type(entry) is responses.Message and entry.role == "developer":
            entry.role = "system"
        else:
            continue
        account.notice("repaired", f"{root}/{at}/role", "developer-to-system")


REPAIRS: Final[dict[str, Callable[[list[Any], str, Account], None]]] = {
    "fill-call-ids": _fill_call_ids,
    "rename-call-ids": _rename_call_ids,
    "drop-orphans": _drop_orphans,
    "empty-arguments": _empty_arguments,
    "developer-to-system": _developer_to_system,
}
