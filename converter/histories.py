"""Histories put together from what their messages (or items) became, each of which is remembered by its text.

The gate looks at each call, and at each pair of call and output. That is all there is to do where a record is in order:
calls that satisfy their schemas, one output for each call before anything else is said. As soon as a history needs more
than that, these functions give up (None), and the record is walked through room by room instead.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from converter import chat
from converter.alone import ANSWERS, ASKS, Apart, Call, Known, Told, around_calls
from converter.arguments import parse_verdict
from converter.conversion import Conversion, Settings
from converter.memo import Branches, Memo
from converter.outcome import Found, Verdict
from converter.reading import encode
from converter.shortcut import items_of, messages_of
from converter.tools import Schemas

OK: Final = Verdict.OK

ROOM: Final = 16 << 20
"""How many bytes of messages and of what they became are remembered before it is started afresh."""

SHORT: Final = 4
"""So many messages are put together as fast as they are found."""

OVERHEAD: Final = 512
"""About what an entry takes beside its texts."""

POINTER: Final = 128
"""About what a pointer takes beside its letters."""


class Memory:
    """What the messages (or items) of one kind of body became in one conversion, by their texts.

    ``root`` is where they stand. ``keeps``: whether what is learned is remembered. ``new`` counts what was learned.
    """

    def __init__(self, conversion: Conversion, kind: str, root: str) -> None:
        self.apart = Apart(kind, conversion.target, conversion.options)
        self.root = root
        self.known: Memo[bytes, Known] = Memo(ROOM)
        self.pasts: Branches[Past] = Branches(ROOM)
        self.require_schema = conversion.options.require_schema
        self.keeps = False
        self.new = 0

    def learn(self, text: bytes) -> Known:
        """What this message becomes.

        Most of what comes once never comes again, and to remember it would only cost memory. Raises
        `msgspec.DecodeError` and `Refused` where a part of it is no JSON text, or it is of another format.
        """
        self.new += 1
        known = self.apart.known(text)
        return self.known.keep(text, known, len(text) + OVERHEAD) if self.keeps else known

    def passes(self, call: Call, schema: Any) -> bool:
        """Whether the gate lets a call through with nothing to be said of it but that no schema is known (None)."""
        if schema is not None:
            passed = schema.problem is None and schema.verdict(call.arguments) is OK
        else:
            passed = not self.require_schema and parse_verdict(call.arguments) is OK
        if passed:
            call.passes = 0 if schema is None else schema.serial
        return passed

    def numbered(self, text: bytes, known: Known, asked: set[str]) -> Known | None:
        """What a message becomes whose calls bear ids that came before: its items need others.

        These derive from how many items had one before, so that much must be the same where it is found again. None
        where such an id stands in the record already.
        """
        again = {call.own for call in known.calls if call.own in asked}
        key = b"%d%b%b" % (len(asked), bytes(call.own in again for call in known.calls), text)
        found = self.known.get(key)
        if found is None:
            found = self.apart.known(text, again, len(asked) - len(again))
            self.known.keep(key, found, len(text) + OVERHEAD)
        return found if asked.isdisjoint([call.own for call in found.calls]) else None

    def past(self, texts: list[bytes], tools: int) -> Past:
        """The history that was put together before, with these tools, and from which this one goes on."""
        if self.keeps and len(texts) > SHORT:
            for past in self.pasts.of(name_of(texts)):
                if past.tools == tools and texts[: len(past.texts)] == past.texts:
                    return past
        return NO_PAST

    def keep(self, past: Past, before: Past) -> Whole | None:
        """Remember a history, which may have gone on from another one, and give back what was put together."""
        if past.whole is not None and self.keeps and len(past.texts) >= SHORT:
            past.size = past.measured()
            self.pasts.grow(name_of(past.texts), past, before)
        return past.whole


def name_of(texts: list[bytes]) -> bytes:
    """What tells a conversation from most others, in short: its second and third message. Many have one prompt."""
    return b"%d" % hash((texts[1], texts[2])) if len(texts) > 2 else texts[-1]


def opening(texts: list[bytes]) -> bytes:
    """What tells whether a record seems to begin as another: its second message, for the first is the same in many."""
    return texts[len(texts) > 1] if texts else b""


class Whole(Struct, gc=False):
    """A history put together: the JSON text to write, with commas between its entries, and what is to be said of it.

    That is what was said while messages were read, and mapped, and what the gate says of calls.
    """

    written: bytes
    read: Found = {}
    mapped: Found = {}
    judged: Found = {}


class Past(Struct, gc=False, kw_only=True):
    """A history that was put together, and all that is to be known of it to go on from its end. Nothing changes it.

    ``tools`` is the serial number of those with which its calls were judged. It does not hold them: they may be large.
    ``asked`` are the ids of its items that no other one may have (towards Chat, of its calls), ``called`` those of its
    calls. ``opens`` and ``turn`` are those of its last message (see `Known`).
    """

    texts: list[bytes] = []
    tools: int = 0
    whole: Whole | None = None
    written: list[bytes] = []
    asked: set[str] = set()
    called: set[str] = set()
    opens: bool = False
    turn: tuple[bytes, bytes] | None = None
    size: int = 0

    def measured(self) -> int:
        """About how many bytes it takes: its texts, what they became, and what is said of them."""
        bulk = OVERHEAD * len(self.texts) + sum(map(len, self.texts))
        if whole := self.whole:
            bulk += 2 * len(whole.written)
            for details in (*whole.read.values(), *whole.mapped.values(), *whole.judged.values()):
                bulk += POINTER * len(details) + sum(map(len, details))
        return bulk

    def going_on(self) -> Whole:
        """What was put together so far, to be added to."""
        if self.whole is None:
            return Whole(b"")
        return Whole(b"", *(_copied(found) for found in (self.whole.read, self.whole.mapped, self.whole.judged)))


NO_PAST: Final = Past()


def _copied(found: Found) -> Found:
    return {code: details.copy() for code, details in found.items()}


def _say(told: Told, place: str, found: Found) -> None:
    """Add what is said of a message that stands at this place."""
    for code, path, detail in told:
        details = found.get(code)
        if details is None:
            details = found[code] = {}
        if not details.get(place + path):
            details[place + path] = detail


def items(texts: list[bytes], memory: Memory, settings: Settings) -> Whole | None:
    """The items that these messages become, or None where there is more to look at than each of them."""
    past, schemas = memory.past(texts, settings.tools), settings.schemas
    start = len(past.texts)
    if start == len(texts):
        return past.whole
    written, whole, opens = past.written.copy(), past.going_on(), past.opens
    asked, called = past.asked.copy(), past.called.copy()
    opened: dict[str, str] = {}
    find, add = memory.known.get, written.append
    for at, text in enumerate(texts[start:], start):
        known = find(text) or memory.learn(text)
        part = known.part
        if part is ANSWERS:
            name = opened.pop(known.answers, None)
            if name is None or (known.bears is not None and known.bears != name):
                return None
        elif opened:
            return None
        elif part is ASKS:
            if known.wordless and opens:
                return None
            again = False
            for call in known.calls:
                again = again or call.own in asked
            if again and (known := memory.numbered(text, known, asked)) is None:  # type: ignore[assignment]
                return None
            for call in known.calls:
                call_id, name = call.call_id, call.name
                schema = schemas.get(name)
                if call_id in opened or (
                    call.passes != (0 if schema is None else schema.serial) and not memory.passes(call, schema)
                ):
                    return None
                if schema is None:
                    _say(call.unchecked, f"{memory.root}/{at}", whole.judged)
                if again and call_id in called:
                    _say(call.reused, f"{memory.root}/{at}", whole.judged)
                asked.add(call.own)
                called.add(call_id)
                opened[call_id] = name
        if known.told is not None:
            _say(known.told[0], f"{memory.root}/{at}", whole.read)
            _say(known.told[1], f"{memory.root}/{at}", whole.mapped)
        add(known.written)
        opens = known.opens
    if opened:
        return None
    whole.written = b",".join(written)
    return memory.keep(
        Past(texts=texts, tools=settings.tools, whole=whole, written=written, asked=asked, called=called, opens=opens),
        past,
    )


def messages(texts: list[bytes], memory: Memory, settings: Settings) -> Whole | None:
    """The messages that these items become, or None where there is more to look at than each of them."""
    past, schemas = memory.past(texts, settings.tools), settings.schemas
    start = len(past.texts)
    if start == len(texts):
        return past.whole
    written, whole, turn = past.written.copy(), past.going_on(), past.turn
    asked = past.asked.copy()
    opened: set[str] = set()
    find, add = memory.known.get, written.append
    calls: list[bytes] = []
    for at, text in enumerate(texts[start:], start):
        known = find(text) or memory.learn(text)
        part = known.part
        if part is ANSWERS:
            if known.answers not in opened:
                return None
            opened.remove(known.answers)
            if calls:
                head, tail = turn or WORDLESS
                written[-1] = head + b",".join(calls) + tail
                calls = []
            turn = None
            add(known.written)
        elif part is ASKS:
            call = known.calls[0]
            call_id, schema = call.call_id, schemas.get(call.name)
            if call_id in opened or (
                call.passes != (0 if schema is None else schema.serial) and not memory.passes(call, schema)
            ):
                return None
            if schema is None:
                _say(call.unchecked, f"{memory.root}/{at}", whole.judged)
            if call_id in asked:
                _say(call.reused, f"{memory.root}/{at}", whole.judged)
            if not opened:
                if turn is None:
                    add(b"")  # a message of the calls that begin here
            elif not calls:
                return None
            calls.append(call.written)
            asked.add(call_id)
            opened.add(call_id)
        elif known.written:
            if opened:
                return None
            turn = known.turn
            add(known.written)
        if known.told is not None:
            _say(known.told[0], f"{memory.root}/{at}", whole.read)
            _say(known.told[1], f"{memory.root}/{at}", whole.mapped)
    if opened or not written:
        return None
    whole.written = b",".join(written)
    return memory.keep(
        Past(texts=texts, tools=settings.tools, whole=whole, written=written, asked=asked, turn=turn), past
    )


WORDLESS: Final = around_calls(chat.AssistantMessage(None)) or (b"", b"")
"""A message of calls alone, before and behind them."""


def plain_items(messages: list[Any], schemas: Schemas) -> Whole | None:
    """The same for plain messages, of which nothing is to be said."""
    made = items_of(messages, schemas)
    return Whole(encode(made)[1:-1]) if made else None


def plain_messages(items: list[Any], schemas: Schemas) -> Whole | None:
    """The same for plain items, of which nothing is to be said."""
    made = messages_of(items, schemas)
    return Whole(encode(made)[1:-1]) if made else None
