"""Which way a record takes: put together from what its messages became before, or directly where it is plain.

A log repeats a conversation so far in every request. What a message became (`alone`) is remembered by its text, and a
record that repeats another, or goes on from it, is put together from that (`histories`). Where a record does not seem
to repeat another it does not pay, and a plain one is converted in one pass (`shortcut`). What neither way takes is
walked through room by room. That all ways lead to the same bytes and notices is a test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from converter import outline, plain
from converter.beginnings import Beginning, Beginnings
from converter.conversion import Conversion, Settings
from converter.gate import TEXT_LIMIT
from converter.histories import SHORT, Memory, Whole, items, messages, opening, plain_items, plain_messages
from converter.outcome import Account, Refused
from converter.strangers import Strangers, Vetting, tell
from converter.text import one_line, utf8
from converter.tools import Schemas

SEEN: Final = 1 << 17
"""For how many messages it is known whether they came before."""

TRIAL: Final = 4096
"""After how many records that began as others, and held something new, it is asked whether most of it was new."""

PASSING: Final = 16 * TRIAL
"""For how many records nothing is looked up where they did not."""


class Recall:
    """Converts the bodies of one kind that need no more than to be put together, or mapped in one pass."""

    def __init__(self, conversion: Conversion, kind: str) -> None:
        self.conversion = conversion
        self.kind = kind
        self.way = WAYS[kind]
        self.any = outline.Decoder(self.way.outline, Raw)
        self.plain = outline.Decoder(self.way.outline, self.way.plain)
        self.memory = Memory(conversion, kind, self.way.root)
        self.beginnings = Beginnings()
        self.seen = bytearray(SEEN)
        self.bare = conversion.bare()
        self.vetting = Vetting(kind, self.way.root[1:], self.any.names)
        self.strange = False
        self.trial = self.mostly_new = self.passing = 0

    def convert(self, text: bytes, account: Account) -> bytes | None:
        """The JSON text that a body becomes, or None, with nothing said, where there is more to look at.

        Raises `msgspec.DecodeError` where a part of it is no JSON text.
        """
        if len(text) > TEXT_LIMIT:
            return None
        if self.passing:
            self.passing -= 1
            self.memory.keeps = False
        try:
            return self._converted(text, account)
        except (msgspec.ValidationError, Refused, RecursionError):
            return None

    def _converted(self, text: bytes, account: Account) -> bytes | None:
        """What goes on from another record, first; then the way that the last record took, then the other one."""
        if not self.passing and (begun := self.beginnings.of(text)) is not None:
            known, short = begun
            going_on = self._going_on(known, short)
            if going_on is not None:
                written = self._together(*going_on, account)
                if written is not None:
                    self.beginnings.grow(text, going_on[0], known)
                return written
        memory, kept = self.memory, self.memory.keeps
        strangers = self._strangers(text) if self.strange else None
        if not kept and (written := self._directly(text, strangers, account)) is not None:
            return written
        body, strangers = self._outline(text, strangers)
        history, settings = self._parts(body)
        texts = list(map(bytes, history))
        if kept or not memory.keeps:
            memory.keeps = self._repeats(texts)
        if kept and not memory.keeps:
            written = self._directly(text, strangers, account, look=False)
            if written is not None:
                return written
        _seen_whole(text, texts, settings, body)
        written = self._together(texts, settings, strangers, account)
        if written is not None and memory.keeps and len(texts) > SHORT:
            self.beginnings.learn(text, texts, self._history)
        return written

    def _going_on(self, known: Beginning, short: bytes) -> tuple[list[bytes], Settings, Strangers | None] | None:
        """The messages (or items) of a text that begins as another one did, and what is around them.

        None where it means something else.
        """
        body, strangers = self._outline(short, self._strangers(short) if self.strange else None)
        history, settings = self._parts(body)
        rest = list(map(bytes, history))
        if len(rest) < 2 or rest[0] != self.beginnings.instead:
            return None
        _seen_whole(short, rest, settings, body)
        self.memory.keeps = True
        return [*known.texts, *rest[1:]], settings, strangers

    def _history(self, text: bytes) -> list[bytes]:
        """The messages (or items) of a text. Raises as `_outline`."""
        body, _ = self._outline(text, self._strangers(text) if self.strange else None)
        return list(map(bytes, self._parts(body)[0]))

    def _together(
        self, texts: list[bytes], settings: Settings, strangers: Strangers | None, account: Account
    ) -> bytes | None:
        """What messages or items become that are remembered, or now learned."""
        self.memory.new = 0
        whole = self.way.together(texts, self.memory, settings)
        if self.memory.keeps and self.memory.new:
            self._count(len(texts))
        return self._put(whole, settings, strangers, account)

    def _parts(self, body: Any) -> tuple[list[Any], Settings]:
        """The history of a body's outline, and what its settings become."""
        return (body.history, self.conversion.settings(body)) if self.any.names else (body, self.bare)

    def _directly(
        self, text: bytes, strangers: Strangers | None, account: Account, *, look: bool = True
    ) -> bytes | None:
        """What a plain body becomes, or None where it is not plain, or is to be put together: it came before."""
        utf8(text)
        try:
            body = self.plain.read(text) if strangers is None else self.plain.among(text, strangers.names)
        except msgspec.ValidationError:
            return None
        history, settings = self._parts(body)
        if look and not self.passing and history and self._seen(plain.text_of(history[len(history) > 1])):
            self.memory.keeps = True
            return None
        return self._put(self.way.directly(history, settings.schemas), settings, strangers, account)

    def _put(
        self, whole: Whole | None, settings: Settings, strangers: Strangers | None, account: Account
    ) -> bytes | None:
        """A history with its settings around it, and all that is to be said of both, in the order of the rooms."""
        if whole is None or not settings.usable:
            return None
        if strangers:
            tell(strangers.before, account)
        if whole.read:
            account.say(whole.read)
        if strangers:
            tell(strangers.behind, account)
        if settings.spoken:
            settings.say(account)
        if whole.mapped:
            account.say(whole.mapped)
        if whole.judged:
            account.say(whole.judged)
        return one_line(b"".join((settings.head, whole.written, settings.tail)))

    def _outline(self, text: bytes, strangers: Strangers | None) -> tuple[Any, Strangers | None]:
        """The outline of a body, and what is said of the fields that its envelope does not have.

        Raises `msgspec.ValidationError` where it is of another format, or may be.
        """
        if strangers is None:
            try:
                return self.any.read(text), None
            except msgspec.ValidationError:
                if (strangers := self._strangers(text)) is None:
                    raise
        body = self.any.among(text, strangers.names)
        if not body.history:
            raise msgspec.ValidationError
        return body, strangers

    def _strangers(self, text: bytes) -> Strangers | None:
        """The fields that an envelope does not have. Mostly the next record has the same ones."""
        self.strange = False
        if self.conversion.options.verify:
            raise msgspec.ValidationError  # what was read with care is compared with care
        found = self.vetting.vet(text) if self.vetting.names else None
        self.strange = found is not None
        return found

    # -------------------------------------------------------- which way

    def _repeats(self, texts: list[bytes]) -> bool:
        """Whether a record seems to repeat another, or to go on from it."""
        probe = opening(texts)
        return not self.passing and (probe in self.memory.known or self._seen(probe))

    def _seen(self, probe: str | bytes) -> bool:
        """Whether this came before. One byte of its hash tells, at a place that the rest of it gives."""
        place, sign = divmod(hash(probe) % (SEEN << 8), 256)
        before = self.seen[place] == sign
        self.seen[place] = sign
        return before

    def _count(self, messages: int) -> None:
        """Of the records that seemed to repeat others, how many held mostly new messages all the same?"""
        self.trial += 1
        self.mostly_new += self.memory.new * 2 > messages
        if self.trial == TRIAL:
            self.passing = PASSING if self.mostly_new * 2 > TRIAL else 0
            self.trial = self.mostly_new = 0


def _seen_whole(text: bytes, texts: list[bytes], settings: Settings, body: Any) -> None:
    """Refuse what is not UTF-8. Of a key that stands twice, a decoder shows the last value alone: lengths tell it."""
    if not text.isascii() and settings.frame_of(body) + sum(map(len, texts)) + len(texts) - 1 != len(text):
        utf8(text)


class Way(NamedTuple):
    """How one kind of body is converted: from what is remembered of each message, or directly where it is plain.

    ``root`` is where its history stands.
    """

    root: str
    outline: outline.Outline
    plain: Any
    together: Callable[[list[bytes], Memory, Settings], Whole | None]
    directly: Callable[[list[Any], Schemas], Whole | None]


WAYS: Final = {
    "chat-request": Way("/messages", outline.CHAT_REQUESTS, plain.Message, items, plain_items),
    "message-list": Way("", outline.LISTS, plain.Message, items, plain_items),
    "responses-request": Way("/input", outline.RESPONSES_REQUESTS, plain.Item, messages, plain_messages),
    "item-list": Way("", outline.LISTS, plain.Item, messages, plain_messages),
}
"""By the kind of a body."""
