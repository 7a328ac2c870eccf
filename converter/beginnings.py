"""Histories that begin as others did: what is known of them is cut out of the text before it is decoded.

An agent's request is the one before and some messages more. Where its text begins with the very bytes of the other one,
up to the last message there, a decoder would find the same messages in it again. So these are known without decoding,
and only what follows is to be read. In the place of what was cut out stands one element that no log can hold: where the
decoder does not give it as the first one, the text means something else (a second history, which goes before).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Raw, Struct

from converter.memo import LARGEST, Branches, Memo
from converter.outcome import Refused

ROOM: Final = 16 << 20
"""How many bytes of beginnings are remembered before it is started afresh."""

OVERHEAD: Final = 1024
"""About what an entry takes beside its bytes."""

MESSAGE: Final = 64
"""About what a message takes beside its bytes."""

PROBE: Final = 192
"""So many bytes at the start of a text, and of its second message, tell which conversation may go on in it."""

LEAST: Final = 1 << 12
"""Bytes of a text below which it is decoded as fast as its beginning is found."""

GROWS: Final = 4
"""What follows is decoded each time until it is this part of what is known: to remember it costs a copy."""

COMMAS: Final = b",", b", "
"""What encoders put between two messages."""

DEEPER: Final = 800
"""So much deeper a caller may stand the next time. What is no longer decoded could not be found too deep there."""

_look: Final = msgspec.json.Decoder(Raw).decode


class Beginning(Struct, gc=False, frozen=True):
    """The start of a request's text up to one of its messages, and the messages (or items) that stand before that one.

    ``start`` and ``second`` are where the first and the second of them stand, ``size`` about how many bytes this takes.
    """

    head: bytes
    start: int
    second: int
    texts: list[bytes]

    @property
    def size(self) -> int:
        """The texts are copies of what stands in the head."""
        return 2 * len(self.head) + MESSAGE * len(self.texts) + OVERHEAD


class Beginnings:
    """The beginnings of one kind of body."""

    def __init__(self) -> None:
        self.seconds: Memo[bytes, int] = Memo(ROOM // 8)
        self.known: Branches[Beginning] = Branches(ROOM)
        self.instead = b'"%b"' % os.urandom(16).hex().encode()

    def of(self, text: bytes) -> tuple[Beginning, bytes] | None:
        """A beginning of a text that is known, and the text with `instead` in the place of the messages in it."""
        second = self.seconds.get(text[:PROBE]) if len(text) >= LEAST else None
        if second is None:
            return None
        for found in self.known.of(text[second : second + PROBE]):
            if text.startswith(found.head):
                return found, self._short(text, found.start, len(found.head))
        return None

    def _short(self, text: bytes, start: int, end: int) -> bytes:
        return b"%b%b,%b" % (text[:start], self.instead, text[end:])

    def learn(self, text: bytes, texts: list[bytes], history_of: Callable[[bytes], list[bytes]]) -> None:
        """Remember how a text begins whose messages are these. ``history_of`` decodes those of another text."""
        if len(text) < LEAST or 2 * len(text) > ROOM // LARGEST:
            return
        start = text.find(texts[0])
        for comma in COMMAS:
            more = comma.join([*texts[:-1], b""])
            if text.startswith(more, start):
                end = start + len(more)
                try:
                    if history_of(self._short(text, start, end)) == [self.instead, texts[-1]]:
                        second = start + len(texts[0]) + len(comma)
                        self._keep(Beginning(text[:end], start, second, texts[:-1]), more, None)
                except (msgspec.DecodeError, Refused, RecursionError):
                    return

    def grow(self, text: bytes, texts: list[bytes], known: Beginning) -> None:
        """Remember how a text begins that begins with what is known."""
        at, done = len(known.head), len(known.texts)
        if sum(map(len, texts[done:-1])) * GROWS < at or 2 * len(text) > ROOM // LARGEST:
            return
        for comma in COMMAS:
            more = comma.join([*texts[done:-1], b""])
            if text.startswith(more, at):
                made = Beginning(text[: at + len(more)], known.start, known.second, texts[:-1])
                self._keep(made, more, known)

    def _keep(self, made: Beginning, more: bytes, before: Beginning | None) -> None:
        probe = made.head[made.second : made.second + PROBE]
        if len(probe) < PROBE or not _is_shallow(more):
            return  # too short a conversation may have another probe when it goes on; it is fast without
        name = made.head[:PROBE]
        if self.seconds.get(name) != made.second:
            if name in self.seconds:
                self.seconds.free(name)
            self.seconds.keep(name, made.second)
        self.known.grow(probe, made, before)


def _is_shallow(messages: bytes) -> bool:
    """Whether messages, each with a comma behind it, could be decoded as well much deeper down the stack."""
    try:
        _look(b"[" * DEEPER + messages + b"0" + b"]" * DEEPER)
    except RecursionError:
        return False
    return True
