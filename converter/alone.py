"""One message or item alone: what it becomes, and what is said of it, whatever stands around it.

It is mapped by the same functions as ever (`into_responses`, `into_chat`). Where what it becomes depends on its
neighbours, the answer says on what, or is `NEVER`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from msgspec import UNSET, Struct, ValidationError
from msgspec.json import Decoder

from converter import chat, into_chat, into_responses, responses, turns
from converter.conversion import split
from converter.entry import enter
from converter.gate import CALL_ID_LIMIT
from converter.into_responses import CHAT_FIELDS
from converter.kinds import KINDS, Envelope
from converter.options import Options
from converter.outcome import Account
from converter.reading import encode, members_of, text_of
from converter.settings import TOOL_NAME
from converter.shapes import open_record
from converter.text import utf8

SAYS, ASKS, ANSWERS = 0, 1, 2

Told = tuple[tuple[str, str, str], ...]
"""Notices: a code, a pointer below the message, a detail."""


class Call(Struct, gc=False):
    """A call, and in Chat the JSON text written for it.

    ``own`` is the id of its item, which no other item of a record may have. ``unchecked`` and ``reused`` are what is
    said of it where no schema is known, or its id came before. ``passes`` is the serial number of the schema with which
    the gate last let it through (0: none is known).
    """

    call_id: str
    name: str
    arguments: str
    unchecked: Told
    reused: Told
    own: str = ""
    written: bytes = b""
    passes: int = -1


class Known(Struct, gc=False, kw_only=True):
    """What one message or item became.

    ``written`` is the JSON text of the items, with commas between them, or of the message. Nothing here is looked
    through by the garbage collector, however much is remembered.
    """

    part: int = SAYS
    written: bytes = b""
    calls: tuple[Call, ...] = ()
    answers: str = ""
    bears: str | None = None
    """The name that the call must have which this output answers."""
    opens: bool = False
    """It ends with an assistant's message, with which calls behind it become one turn."""
    wordless: bool = False
    """It begins with a call: behind an assistant's message it becomes one turn with it."""
    turn: tuple[bytes, bytes] | None = None
    """The assistant's message of Chat, before and behind the calls that may follow it."""
    told: tuple[Told, Told] | None = None
    """What was said while it was read, and while it was mapped."""


NEVER: Final = Known(part=ANSWERS)
"""There is more to it than can be told alone. It reads as the output of no call, so no history takes it."""


class Apart:
    """Reads and maps messages, or items, of one kind of body, each apart from all others."""

    def __init__(self, kind: str, target: Envelope, options: Options) -> None:
        self.kind = kind
        self.target = target
        self.options = options
        self.decode = _DECODE[target]
        self.renew()

    def renew(self) -> None:
        """Begin anew, with nothing said."""
        self.account = Account(self.options.allow)
        self.context = _CONTEXT[self.target](self.account, self.options, "", set())
        self.turn = OneTurn(self.context)

    def known(self, text: bytes, asked: Collection[str] = (), before: int = 0) -> Known:
        """What the message of this text becomes, where items before it bear these ids, and so many bear others.

        Raises `msgspec.DecodeError` and `Refused` where a part of it is no JSON text, or it is of another format.
        """
        if not text.isascii():
            utf8(text)
        if self.account.found or self.account.reasons or self.account.layers or self.context.left_out:
            self.renew()
        self.asked, self.before = asked, before
        try:
            message = self.decode(text)
        except ValidationError:
            return self._with_care(text)
        known = LEARN[message.__class__](message, self)
        return self._told(known) if self.account.found or self.account.reasons else known

    def _with_care(self, text: bytes) -> Known:
        """A message that the strict decoder does not take. It might belong to another format, or be left out."""
        if self.options.verify:
            return NEVER  # what was read with care is compared with care
        least = _LEAST[self.kind] % text
        [body] = open_record(least, Options(), Account()).bodies
        if body.text is not least or body.kind.name != self.kind:
            return NEVER
        if self.kind in ("message-list", "item-list") and "payload" in members_of(text):
            return NEVER  # with another one it may be the log of a session
        entered = enter(KINDS[_LISTS[self.target]], b"[" + text + b"]", self.account, self.options)
        if entered is None or entered.faulty or entered.left_out or len(entered.body) != 1:
            return NEVER
        if entered.seen is not None:
            self.account.absorb(entered.seen)
        read, message = self._said(), entered.body[0]
        return self._told(LEARN[message.__class__](message, self), read)

    def _told(self, known: Known, read: Told = ()) -> Known:
        """What was said of this message goes with it."""
        told = self._said()
        if known is NEVER or self.account.reasons or self.context.left_out:
            return NEVER
        known.told = (read, told) if read or told else None
        return known

    def _said(self) -> Told:
        """What was said of the one message of a list, with pointers below it; from now on it is not said."""
        said = tuple(
            (code, path.removeprefix("/0"), detail)
            for code, details in self.account.found.items()
            for path, detail in details.items()
        )
        self.account.found.clear()
        return said


_LEAST: Final = {
    "chat-request": b'{"messages":[%b]}',
    "message-list": b"[%b]",
    "responses-request": b'{"input":[%b]}',
    "item-list": b"[%b]",
}
"""The least body of a kind, around one message or item."""


# ---------------------------------------------------------------- one message as items


def _says(message: Any, apart: Apart) -> Known:
    items: list[Any] = []
    into_responses.ITEM_BY_ROLE[message.__class__](message, 0, items, apart.context)
    return Known(written=_joined(items))


def _joined(items: list[Any]) -> bytes:
    return encode(items)[1:-1]


def _asks(message: chat.AssistantMessage, apart: Apart) -> Known:
    items: list[Any] = []
    apart.context.item_ids, apart.context.unlisted = set(apart.asked), apart.before
    apart.context.open = False
    into_responses.assistant(message, 0, items, apart.context)
    if not items or message.function_call:
        return NEVER
    known = Known(written=_joined(items), opens=items[-1].__class__ is responses.Message)
    if message.tool_calls:
        called = [item for item in items if item.__class__ is responses.OutputFunctionCall]
        if len(called) < len(message.tool_calls) or not all(map(_in_order, called)):
            return NEVER
        if not apart.asked and any(one.id != into_responses.item_id(one.call_id) for one in called):
            return NEVER  # two of its calls would bear one id: which one they get instead, the record tells
        known.part = ASKS
        known.wordless = items[0] is called[0]
        known.calls = tuple(_call(one, f"/tool_calls/{number}", CHAT_FIELDS) for number, one in enumerate(called))
        for call, one in zip(known.calls, called, strict=True):
            call.own = one.id
    return known


def _call(item: Any, place: str, fields: dict[str, str]) -> Call:
    """A call that stands at a place below its message or item, and its fields below that."""
    unchecked = (("unchecked", place + fields["arguments"], item.name),)
    reused = (("reused_call_id", place + fields["call_id"], ""),)
    return Call(item.call_id, item.name, item.arguments, unchecked, reused)


def _in_order(call: Any) -> bool:
    """Whether nothing is to be said of a call but what its schema says."""
    return call.arguments[:1] == "{" and _named(call.name) is not None and len(call.call_id) <= CALL_ID_LIMIT


_named: Final = TOOL_NAME.fullmatch


def _answers(message: chat.ToolMessage, apart: Apart) -> Known:
    items: list[Any] = []
    context, call_id, bears = apart.context, message.tool_call_id, None
    if message.name is not UNSET:
        # Whether the name is that of its call, only the record knows: here it is, and there it must be.
        bears = text_of(message.name) or ""
        items.append(responses.OutputFunctionCall("", bears, call_id, "completed", "{}"))
    context.batch.add(call_id)
    into_responses.tool(message, 0, items, context)
    context.calls.clear()
    context.looked = 0
    return Known(part=ANSWERS, written=_joined(items[-1:]), answers=call_id, bears=bears)


def _never(message: Any, apart: Apart) -> Known:
    return NEVER


# ---------------------------------------------------------------- one item as a message, or as a part of one


class OneTurn(turns.Turns):
    """In the place of turns: what one item is, whatever stands around it."""

    __slots__ = ("made",)
    made: Any

    def say(self, message: Any, at: int) -> None:
        """A message."""
        self.made = message

    def answer(self, message: chat.AssistantMessage, at: int) -> None:
        """An assistant's message."""
        self.made = message

    def call(self, call: Any, at: int) -> None:
        """A call."""
        self.made = call

    def output(self, message: chat.ToolMessage, at: int, lifted: Any = None) -> None:
        """An output."""
        self.made = message if lifted is None else None


def _made(item: Any, apart: Apart) -> Any:
    apart.turn.made = None
    into_chat.ITEM_BY_TYPE[item.__class__](item, 0, apart.turn, apart.context)
    return apart.turn.made


def _says_item(item: responses.Message, apart: Apart) -> Known:
    message = _made(item, apart)
    written = encode(message)
    if message.__class__ is not chat.AssistantMessage:
        return Known(written=written)
    turn = around_calls(message)
    return Known(written=written, turn=turn) if turn and (message.content or message.refusal) else NEVER


def around_calls(message: chat.AssistantMessage) -> tuple[bytes, bytes] | None:
    """The JSON text of an assistant's message with calls, before and behind them."""
    if message.content is UNSET:
        message.content = None
    return split(message, "tool_calls")


def _asks_item(item: responses.FunctionCall, apart: Apart) -> Known:
    made = _made(item, apart)
    if made is None or apart.turn.unfinished or not _in_order(item):
        apart.turn.unfinished.clear()
        return NEVER
    call = _call(item, "", _ITEM_FIELDS)
    call.written = encode(made)
    return Known(part=ASKS, calls=(call,))


_ITEM_FIELDS: Final = {"arguments": "/arguments", "call_id": "/call_id"}


def _answers_item(item: responses.FunctionCallOutput, apart: Apart) -> Known:
    message = _made(item, apart)
    if message is None:
        return NEVER
    return Known(part=ANSWERS, written=encode(message), answers=item.call_id)


def _thinks_item(item: responses.Reasoning, apart: Apart) -> Known:
    _made(item, apart)
    if not apart.turn.thoughts:
        return Known()
    apart.turn.thoughts.clear()
    return NEVER


LEARN: Final[dict[type, Callable[[Any, Apart], Known]]] = {
    chat.SystemMessage: _says,
    chat.DeveloperMessage: _says,
    chat.UserMessage: _says,
    chat.AssistantMessage: _asks,
    chat.ToolMessage: _answers,
    chat.FunctionMessage: _never,
    **dict.fromkeys(into_chat.ITEM_BY_TYPE, _never),
    responses.Message: _says_item,
    responses.FunctionCall: _asks_item,
    responses.FunctionCallOutput: _answers_item,
    responses.Reasoning: _thinks_item,
}

_DECODE: Final = {"responses": Decoder(chat.Message).decode, "chat": Decoder(responses.Item).decode}
_LISTS: Final = {"responses": "message-list", "chat": "item-list"}
_CONTEXT: Final[dict[str, Any]] = {"responses": into_responses.Context, "chat": turns.Context}
