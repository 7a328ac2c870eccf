"""Histories that begin as others did: what is known of them is cut out of the text before it is decoded.

An agent's request is the one before and some messages more. Where its text begins with the very bytes of the other one,
up to the last message there, a decoder would find the same messages in it again. So these are known without decoding,
and only what follows is to be read.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from converter.memo import Branches, Memo
from converter.outcome import Refused
from converter.place import look
from converter.text import utf8

ROOM: Final = 16 << 20
"""How many bytes of beginnings are remembered before it is started afresh."""

OVERHEAD: Final = 1024
"""About what an entry takes beside its bytes."""

PROBE: Final = 192
"""So many bytes at the start of a text, and of its second message, tell which conversation may go on in it."""

LEAST: Final = 1 << 12
"""Bytes of a text below which it is decoded as fast as its beginning is found."""

GROWS: Final = 4
"""What follows is decoded each time until it is this part of what is known: to remember it costs a copy."""

COMMAS: Final = b",", b", "
"""What encoders put between two messages."""

LETTERS: Final = b"\\u006", b"\\u007"
"""How escapes of small letters begin, with which a name can be spelled otherwise."""


class Beginning(Struct, gc=False, frozen=True):
    """The start of a request's text up to one of its messages, and the messages (or items) that stand before that one.

    ``start`` is where the first of them stands, ``size`` about how many bytes all this takes.
    """

    head: bytes
    start: int
    texts: list[bytes]
    size: int


class Beginnings:
    """The beginnings of one kind of body. ``root`` points to the history."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.name = f'"{root[1:]}"'.encode() if root else None
        self.seconds: Memo[bytes, int] = Memo(ROOM // 8)
        self.known: Branches[Beginning] = Branches(ROOM)

    def of(self, text: bytes) -> tuple[Beginning, bytes] | None:
        """A beginning of a text that is known, and the text without the messages in it."""
        second = self.seconds.get(text[:PROBE]) if len(text) >= LEAST else None
        if second is None:
            return None
        for found in self.known.of(text[second : second + PROBE]):
            if text.startswith(found.head):
                rest = text[len(found.head) :]
                short = text[: found.start] + rest
                return (found, short) if self._once(rest, short) else None
        return None

    def learn(self, text: bytes, texts: list[bytes], known: Beginning | None = None) -> None:
        """Remember how a text begins whose messages are these, and which may begin with what is known."""
        if known is None:
            start = at = self._start(text) if len(text) >= LEAST else -1
            done = 0
        else:
            start, at, done = known.start, len(known.head), len(known.texts)
        if start < 0 or sum(map(len, texts[done:-1])) * GROWS < at:
            return
        for comma in COMMAS:
            more = comma.join([*texts[done:-1], b""])
            if text.startswith(more, at):
                head = text[: at + len(more)]
                made = Beginning(head, start, texts[:-1], len(head) + OVERHEAD)
                self._keep(made, start + len(texts[0]) + len(comma), known)

    def _keep(self, made: Beginning, second: int, before: Beginning | None) -> None:
        probe = made.head[second : second + PROBE]
        if len(probe) == PROBE:  # else the conversation may have another one when it goes on; it is fast without
            self.seconds.keep(made.head[:PROBE], second)
            self.known.grow(probe, made, before)

    def _start(self, text: bytes) -> int:
        """Where the first message stands; -1 where it is not to be told."""
        try:
            span = look(text, f"{self.root}/0")
        except Refused:
            return -1
        return span[0] if span else -1

    def _once(self, rest: bytes, short: bytes) -> bool:
        """Whether no second history stands behind what is cut out: a decoder would take that one."""
        if self.name is None or not (self.name in rest or any(letter in rest for letter in LETTERS)):
            return True
        try:
            utf8(short)
            return look(short, self.root) is not None
        except Refused:
            return False
