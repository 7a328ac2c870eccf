"""Histories put together from what their messages (or items) became, each of which is remembered by its text.

The gate looks at each call, and at each pair of call and output. That is all there is to do where a record is in order:
calls that satisfy their schemas, one output for each call before anything else is said. As soon as a history needs more
than that, these functions give up (None), and the record is walked through room by room instead.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from converter import chat
from converter.alone import ANSWERS, ASKS, NEVER, Apart, Call, Known, Told, around_calls
from converter.arguments import parse_verdict
from converter.conversion import Conversion
from converter.memo import Memo
from converter.outcome import Account, Verdict
from converter.reading import encode
from converter.shortcut import items_of, messages_of
from converter.tools import Schemas

OK: Final = Verdict.OK

ROOM: Final = 16 << 20
"""How many bytes of messages and of what they became are remembered before it is started afresh."""

OVERHEAD: Final = 512
"""About what an entry takes beside its texts."""


class Memory:
    """What the messages (or items) of one kind of body became in one conversion, by their texts.

    ``keeps``: whether what is learned is remembered. ``new`` counts what was learned.
    """

    def __init__(self, conversion: Conversion, kind: str) -> None:
        self.apart = Apart(kind, conversion.target, conversion.options)
        self.known: Memo[bytes, Known] = Memo(ROOM)
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


class Whole(Struct, gc=False):
    """A history put together: the JSON text to write, with commas between its entries, and what is to be said of it.

    ``told`` is what was said of single messages, ``judged`` what the gate says of calls, both with their positions.
    """

    written: bytes
    told: list[tuple[int, Known]] = []
    judged: list[tuple[int, Told]] = []

    def tell(self, root: str, account: Account, phase: int) -> None:
        """Say what was said of the messages while they were read (0), or mapped (1)."""
        account.entries(root, [(at, known.told[phase]) for at, known in self.told if known.told])

    def tell_judged(self, root: str, account: Account) -> None:
        """Say what the gate says of the calls."""
        account.entries(root, self.judged)


def items(texts: list[bytes], memory: Memory, schemas: Schemas) -> Whole | None:
    """The items that these messages become, or None where there is more to look at than each of them."""
    written: list[bytes] = []
    whole, known = Whole(b"", [], []), NEVER
    asked: set[str] = set()
    called: set[str] = set()
    opened: dict[str, str] = {}
    find, add = memory.known.get, written.append
    for at, text in enumerate(texts):
        before = known
        known = find(text) or memory.learn(text)
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
                    whole.judged.append((at, call.unchecked))
                if again and call_id in called:
                    whole.judged.append((at, call.reused))
                asked.add(call.own)
                called.add(call_id)
                opened[call_id] = name
        if known.told is not None:
            whole.told.append((at, known))
        add(known.written)
    whole.written = b",".join(written)
    return None if opened or not written else whole


def messages(texts: list[bytes], memory: Memory, schemas: Schemas) -> Whole | None:
    """The messages that these items become, or None where there is more to look at than each of them."""
    written: list[bytes] = []
    whole = Whole(b"", [], [])
    asked: set[str] = set()
    opened: set[str] = set()
    find, add = memory.known.get, written.append
    turn: tuple[bytes, bytes] | None = None
    calls: list[bytes] = []
    for at, text in enumerate(texts):
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
                whole.judged.append((at, call.unchecked))
            if call_id in asked:
                whole.judged.append((at, call.reused))
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
            whole.told.append((at, known))
    whole.written = b",".join(written)
    return None if opened or not written else whole


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
