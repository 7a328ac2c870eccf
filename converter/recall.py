"""Histories put together from messages that were seen before.

A log repeats a conversation so far in every request. What a message became (`alone`) is remembered by its text. A
record is then put together from what its messages became, and the gate looks at each call, and at each pair of call
and output.

That is all there is to do where a record is in order: calls that satisfy their schemas, one output for each call before
anything else is said. As soon as a record needs more than that, this module gives up (None), and the record is walked
through room by room instead. Where a record does not seem to repeat another it does not pay, and a plain one is
converted directly (`shortcut`). That all ways lead to the same bytes and notices is a test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct

from converter import chat, outline, plain
from converter.alone import ANSWERS, ASKS, NEVER, Apart, Call, Known
from converter.arguments import parse_verdict
from converter.conversion import Conversion, Settings
from converter.gate import TEXT_LIMIT
from converter.kinds import KINDS
from converter.memo import Memo
from converter.options import Options
from converter.outcome import Account, Refused, Verdict
from converter.reading import Members, encode, escape, members_of, says_nothing
from converter.shapes import open_record
from converter.shortcut import items_of, messages_of
from converter.text import utf8
from converter.tools import Schemas, Tools

OK: Final = Verdict.OK

ROOM: Final = 16 << 20
"""How many bytes of messages and of what they became are remembered before it is started afresh."""

OVERHEAD: Final = 512
"""About what an entry takes beside its texts."""

SEEN: Final = 1 << 17
"""For how many messages it is known whether they came before."""

TRIAL: Final = 4096
"""After how many records that began as others, and held something new, it is asked whether most of it was new."""

PASSING: Final = 16 * TRIAL
"""For how many records nothing is looked up where they did not."""


class Strangers(Struct, gc=False):
    """The fields of a request that its envelope does not have: whether it is one all the same, and what is dropped.

    Their pointers stand before and behind those of the history, as they do in the record.
    """

    known: bool
    before: list[str] = []
    behind: list[str] = []

    @staticmethod
    def tell(paths: list[str], account: Account) -> None:
        """Say that these are dropped."""
        for path in paths:
            account.notice("dropped", path)


class Recall:
    """What the messages (or items) of one kind of body became in one conversion, by their texts."""

    def __init__(self, conversion: Conversion, kind: str) -> None:
        self.conversion = conversion
        self.kind = kind
        self.way = WAYS[kind]
        self.any = outline.Decoder(self.way.outline, Raw)
        self.plain = outline.Decoder(self.way.outline, self.way.plain)
        self.apart = Apart(kind, conversion.target, conversion.options)
        self.known: Memo[bytes, Known] = Memo(ROOM)
        self.seen = bytearray(SEEN)
        self.vetted: Memo[bytes, Strangers] = Memo(ROOM // 8)
        self.strangers: Strangers | None = None
        self.repeats = False
        self.new = self.trial = self.strange = self.passing = 0

    def convert(self, text: bytes, account: Account) -> Any:
        """What a body becomes, or None, with nothing said, where there is more to look at.

        Raises `msgspec.DecodeError` and `Refused` where a part of it is no JSON text.
        """
        if len(text) > TEXT_LIMIT:
            return None
        self.strangers = None
        if self.passing:
            self.passing -= 1
            self.repeats = False
        try:
            if not text.isascii():
                utf8(text)  # of a key that stands twice, a decoder shows the last value alone
            return self._converted(text, account)
        except (msgspec.ValidationError, Refused):
            return None

    def _converted(self, text: bytes, account: Account) -> Any:
        first = not self.repeats
        if first and (value := self._directly(text, account)) is not None:
            return value
        try:
            body = self.any.decode(text)
        except msgspec.ValidationError:
            body = self._outline(text)
        history = body.history if self.any.names else body
        if not (first and self.repeats):
            # A record seems to repeat another, or to go on from it, by its second message: the first one is often the
            # same in every conversation.
            probe = bytes(history[len(history) > 1]) if history else b""
            self.repeats = not self.passing and (probe in self.known or self._seen(probe))
            if not (first or self.repeats) and (value := self._directly(text, account, seen=False)) is not None:
                return value
        self.new = 0
        value = self.way.put(body, self.way.together, self, account)
        if self.repeats and self.new:
            self._count(len(history))
        return value

    def _outline(self, text: bytes) -> Any:
        """The outline of a body, and in ``strangers`` the fields that its envelope does not have.

        Raises `msgspec.ValidationError` where it is of another format, or may be.
        """
        try:
            return self.any.again(text)
        except msgspec.ValidationError:
            if not self.any.names:
                raise
        body = self.any.among(text)
        members = members_of(text)
        beside = {name: raw for name, raw in members.items() if name not in self.any.names}
        # What a record is, its fields say, and of some of those that no envelope has also the values.
        key = encode([list(members), beside])
        strangers = self.vetted.get(key)
        if strangers is None:
            strangers = self.vetted.keep(key, self._vetted(text, members, beside, body), 2 * len(key))
        if not strangers.known:
            raise msgspec.ValidationError
        self.strangers = strangers if strangers.before or strangers.behind else None
        return body

    def _vetted(self, text: bytes, members: Members, beside: Members, body: Any) -> Strangers:
        if not beside.keys().isdisjoint(KINDS[self.kind].type.__struct_encode_fields__):
            return Strangers(False)  # a field of the envelope that outlines do without
        try:
            opened = open_record(text, Options(), Account())
        except Refused:
            return Strangers(False)
        [first, *others] = opened.bodies
        if others or first.text is not text or first.kind.name != self.kind or not body.history:
            return Strangers(False)
        told = [name for name, raw in beside.items() if not says_nothing(raw)]
        names = list(members)
        middle = names.index(self.way.root[1:])
        before = [f"/{escape(name)}" for name in told if names.index(name) < middle]
        behind = [f"/{escape(name)}" for name in told if names.index(name) > middle]
        return Strangers(True, before, behind)

    def _seen(self, probe: str | bytes) -> bool:
        """Whether this came before. One byte of its hash tells, at a place that the rest of it gives."""
        place, sign = divmod(hash(probe) % (SEEN << 8), 256)
        before = self.seen[place] == sign
        self.seen[place] = sign
        return before

    def _directly(self, text: bytes, account: Account, *, seen: bool = True) -> Any:
        """What a plain body becomes, or None where it is not plain, or is to be put together: it came before."""
        try:
            try:
                body = self.plain.decode(text)
            except msgspec.ValidationError:
                body = self.plain.again(text)
        except msgspec.ValidationError:
            return None
        history = body.history if self.plain.names else body
        if seen and not self.passing and history and self._seen(plain.text_of(history[len(history) > 1])):
            self.repeats = True
            return None
        return self.way.put(body, self.way.directly, self, account)

    def _count(self, messages: int) -> None:
        """Of the records that seemed to repeat others, how many held mostly new messages all the same?"""
        self.trial += 1
        self.strange += self.new * 2 > messages
        if self.trial == TRIAL:
            self.passing = PASSING if self.strange * 2 > TRIAL else 0
            self.trial = self.strange = 0

    def learn(self, text: bytes) -> Known:
        """What this message becomes. Raises as `convert`.

        Most of what comes once never comes again, and to remember it would only cost memory.
        """
        self.new += 1
        known = self.apart.known(text)
        return self.known.keep(text, known, len(text) + OVERHEAD) if self.repeats else known


# ---------------------------------------------------------------- histories


class Whole(Struct, gc=False):
    """A history put together: what is written, and what is to be said of it. ``stopped``: the gate has more to say."""

    written: list[Any]
    told: list[tuple[int, Known]] | None = None
    unchecked: list[tuple[str, str]] | None = None
    stopped: bool = False

    def tell(self, root: str, account: Account, phase: int) -> None:
        """Say what was said of the messages while they were read (0), or mapped (1)."""
        for at, known in self.told or ():
            for code, path, detail in known.told[phase] if known.told else ():
                account.notice(code, f"{root}/{at}{path}", detail)

    def tell_unchecked(self, root: str, account: Account) -> None:
        """Say of which calls no schema is known."""
        for path, name in self.unchecked or ():
            account.notice("unchecked", root + path, name)


def _items(messages: list[Raw], recall: Recall, schemas: Schemas) -> Whole | None:
    """The items that these messages become, or None where there is more to look at than each of them."""
    items: list[Any] = []
    whole, known = Whole(items), NEVER
    asked: set[str] = set()
    opened: dict[str, str] = {}
    find, add = recall.known.get, items.append
    for at, raw in enumerate(messages):
        before, text = known, bytes(raw)
        known = find(text) or recall.learn(text)
        part = known.part
        if part is ANSWERS:
            name = opened.pop(known.answers, None)
            if name is None or (known.bears is not None and known.bears != name):
                return None
        elif opened:
            return None
        elif part is ASKS:
            if known.wordless and before.opens:
                return None
            for call in known.calls:
                call_id, name = call.call_id, call.name
                schema = schemas.get(name)
                if schema is None or schema is not call.satisfies:
                    _judge(call, at, schema, whole, recall)
                if call.own in asked or call_id in opened:
                    return None
                asked.add(call.own)
                opened[call_id] = name
        if known.told is not None:
            whole.told = [*(whole.told or ()), (at, known)]
        add(known.written)
    return None if opened or whole.stopped or not items else whole


def _messages(items: list[Raw], recall: Recall, schemas: Schemas) -> Whole | None:
    """The messages that these items become, or None where there is more to look at than each of them."""
    messages: list[Any] = []
    whole = Whole(messages)
    asked: set[str] = set()
    opened: set[str] = set()
    find, add = recall.known.get, messages.append
    turn: Any = None
    for at, raw in enumerate(items):
        text = bytes(raw)
        known = find(text) or recall.learn(text)
        part = known.part
        if part is ANSWERS:
            if known.answers not in opened:
                return None
            opened.remove(known.answers)
            turn = None
            add(known.written)
        elif part is ASKS:
            call = known.calls[0]
            call_id, schema = call.call_id, schemas.get(call.name)
            if schema is None or schema is not call.satisfies:
                _judge(call, at, schema, whole, recall)
            if call_id in asked or (opened and turn is None):
                return None
            if not opened:
                turn = _turn(turn, messages)
            turn.tool_calls.append(call.written)
            asked.add(call_id)
            opened.add(call_id)
        elif known.written is not None:
            if opened:
                return None
            turn = known.turn
            add(known.written)
        if known.told is not None:
            whole.told = [*(whole.told or ()), (at, known)]
    return None if opened or whole.stopped or not messages else whole


def _judge(call: Call, at: int, schema: Any, whole: Whole, recall: Recall) -> None:
    """Whether the gate lets a call through with nothing to be said of it but that no schema is known."""
    if schema is not None:
        passed = schema.problem is None and schema.verdict(call.arguments) is OK
        call.satisfies = schema if passed else None
    else:
        whole.unchecked = [*(whole.unchecked or ()), (f"/{at}{call.place}", call.name)]
        passed = not recall.conversion.options.require_schema and parse_verdict(call.arguments) is OK
    whole.stopped = whole.stopped or not passed


def _turn(spoken: Any, messages: list[Any]) -> Any:
    """The message of calls that begin here: the assistant's message right before them, or one of its own."""
    if spoken is None:
        turn = chat.AssistantMessage(None, UNSET, [])
        messages.append(turn)
    else:
        turn = messages[-1] = spoken.__copy__()
        turn.tool_calls = []
        if turn.content is UNSET:
            turn.content = None
    return turn


def _plain_items(messages: list[Any], recall: Recall, schemas: Schemas) -> Whole | None:
    items = items_of(messages, schemas)
    return Whole(items) if items else None


def _plain_messages(items: list[Any], recall: Recall, schemas: Schemas) -> Whole | None:
    messages = messages_of(items, schemas)
    return Whole(messages) if messages else None


# ---------------------------------------------------------------- bodies

Together: TypeAlias = Callable[[list[Any], Recall, Schemas], Whole | None]


def _request(body: Any, together: Together, recall: Recall, account: Account) -> Any:
    """The target's request with the settings, tools and history of this one."""
    conversion = recall.conversion
    made, settings = conversion.settings(body)
    whole = together(body.history, recall, made.schemas) if settings.usable else None
    if whole is None:
        return None
    if whole.told or whole.unchecked or settings.spoken or recall.strangers:
        _tell(whole, made, settings, recall, account)
    request = settings.template.__copy__()
    if recall.way.target == "input":
        request.input = whole.written
    else:
        request.messages = [*settings.lead, *whole.written] if settings.lead else whole.written
    return request


def _tell(whole: Whole, made: Tools, settings: Settings, recall: Recall, account: Account) -> None:
    """Say all that is to be said of a request, in the order of the rooms."""
    root, strangers = recall.way.root, recall.strangers
    if strangers:
        strangers.tell(strangers.before, account)
    if whole.told:
        whole.tell(root, account, 0)
    if strangers:
        strangers.tell(strangers.behind, account)
    if made.notices:
        recall.conversion.say(made, account)
    if settings.said.found:
        account.join(settings.said)
    if whole.told:
        whole.tell(root, account, 1)
    if whole.unchecked:
        whole.tell_unchecked(root, account)


def _list(body: Any, together: Together, recall: Recall, account: Account) -> Any:
    whole = together(body, recall, recall.conversion.given)
    if whole is None:
        return None
    if whole.told or whole.unchecked:
        whole.tell("", account, 0)
        whole.tell("", account, 1)
        whole.tell_unchecked("", account)
    return whole.written


class Way(NamedTuple):
    """How one kind of body is put together: from what is remembered of each message, or directly where it is plain.

    ``root`` is where its history stands, ``target`` the field where it will stand.
    """

    put: Callable[[Any, Together, Recall, Account], Any]
    root: str
    target: str
    outline: outline.Outline
    plain: Any
    together: Together
    directly: Together


WAYS: Final = {
    "chat-request": Way(_request, "/messages", "input", outline.CHAT_REQUESTS, plain.Message, _items, _plain_items),
    "message-list": Way(_list, "", "", outline.LISTS, plain.Message, _items, _plain_items),
    "responses-request": Way(
        _request, "/input", "messages", outline.RESPONSES_REQUESTS, plain.Item, _messages, _plain_messages
    ),
    "item-list": Way(_list, "", "", outline.LISTS, plain.Item, _messages, _plain_messages),
}
"""By the kind of a body."""
