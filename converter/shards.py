"""What several processes work on: pieces of the inputs, in their order.

A large plain file with one record a line is cut at line ends (`Shard`). Whatever else an input is, it is one piece
(`Whole`): compressed, pretty-printed, a stream, or small. A piece says all that a worker needs to read it by itself.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from msgspec import Struct

from converter import records
from converter.files import BUFFER, STANDARD, Counted, Source, archive, named, opened, suffixes
from converter.targets import Aside

SHARD: Final = 4 << 20
"""Bytes of a range; the line at its end is added whole."""

LEAST: Final = 16 << 20
"""Bytes from which a file is cut, and several inputs are shared out: below, workers cost more than they save."""

EXPANDS: Final = 5
"""How many bytes of text a byte of a compressed log may hold, roughly."""

BLOCK: Final = 1 << 18
"""Bytes that are looked through at once: they fit into the processor's cache."""

SHORT_LINE: Final = 256
"""Bytes up to which it costs less to count line ends than to find each."""

PROBED: Final = 32
"""Lines at the start of a block that tell how long its lines are."""


class Range(io.RawIOBase):
    """The bytes of an open file from one place to another. Raises `OSError` where the file ends before."""

    def __init__(self, stream: io.FileIO, start: int, end: int) -> None:
        stream.seek(start)
        self.stream = stream
        self.left = end - start

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as the range goes."""
        count = self.stream.readinto(memoryview(buffer)[: self.left]) or 0
        if not count and self.left:
            raise OSError(None, "cut short while it was read", self.stream.name)
        self.left -= count
        return count


class Shard(Struct, frozen=True):
    """Whole lines of a file: from where, to where, and how many lines stand before.

    ``file``: device and inode.
    """

    name: str
    file: tuple[int, int]
    start: int
    end: int
    before: int
    aside: None = None

    @contextmanager
    def opened(self, limit: int) -> Iterator[tuple[Source, records.Lines]]:
        """The records of these lines, numbered as in the whole file, and what they are read from."""
        with open(self.name, "rb", buffering=0) as stream:
            if _identity(stream) != self.file:
                raise OSError(None, "replaced by another file while it was read", self.name)
            # A range begins with the end of the line before: a blank line, behind which no byte order mark is skipped.
            first = max(self.start - 1, 0)
            raw = Counted(Range(stream, first, self.end))
            source = Source(shown(self.name), io.BufferedReader(raw, BUFFER), raw, self.end - first, time.monotonic())
            behind = self.before - (self.start > 0)
            yield source, ((number + behind, text) for number, text in records.records(source, "lines", limit))


class Whole(Struct, frozen=True):
    """A file from its start to its end, read in this form.

    ``aside``: where the file has an output of its own, which the worker writes.
    """

    name: str
    form: str
    aside: Aside | None = None
    start: int = 0

    @contextmanager
    def opened(self, limit: int) -> Iterator[tuple[Source, records.Lines]]:
        """The records of the file, and what they are read from."""
        with opened(self.name) as source:
            yield source, records.records(source, self.form, limit)


Piece = Shard | Whole


def _identity(stream: io.FileIO) -> tuple[int, int]:
    status = os.fstat(stream.fileno())
    return status.st_dev, status.st_ino


def shown(name: str) -> str:
    """The name of a file as rows and the report have it."""
    return os.fsencode(name).decode(errors="replace")


# ---------------------------------------------------------------- what is cut, and where


def shards(name: str) -> Iterator[Shard]:
    """The whole file, cut behind the first line end after every `SHARD` bytes. Lines are counted on the way.

    A line is never cut, however long, and never held.
    """
    with named(name), open(name, "rb", buffering=0) as stream:
        file = _identity(stream)
        start = at = before = lines = 0
        block = memoryview(buffer := bytearray(BLOCK))
        while count := stream.readinto(block):
            seen = 0
            while cut := buffer.find(b"\n", max(seen, start + SHARD - at - 1), count) + 1:
                lines += _ends(buffer, seen, cut)
                yield Shard(name, file, start, at + cut, before)
                start, before, seen = at + cut, lines, cut
            lines += _ends(buffer, seen, count)
            at += count
        if at > start:
            yield Shard(name, file, start, at, before)


def _ends(buffer: bytearray, start: int, end: int) -> int:
    """How many lines end there. To count looks at byte after byte; to find, at many at once, which long lines repay."""
    at = min(end, start + SHORT_LINE * PROBED)
    ends = buffer.count(b"\n", start, at)
    if ends > PROBED:
        return ends + buffer.count(b"\n", at, end)
    while at := buffer.find(b"\n", at, end) + 1:
        ends += 1
    return ends


def _cuts(name: str, form: str, limit: int) -> bool:
    """Whether the file is large enough to be cut, and has one record a line."""
    try:
        if os.path.getsize(name) < LEAST or archive(name) is not None:
            return False
        if form != "auto":
            return form == "lines"
        with opened(name) as source:
            return records._look(source.name, records._lines(source, limit))[0] == "lines"
    except OSError:
        return False  # whoever reads the file will meet the fault again, when its turn has come


def pieces(name: str, form: str, limit: int, begin: Callable[[], Aside | None]) -> Iterable[Piece]:
    """One input, cut where it can be; where it cannot, ``begin`` begins its output if it has one of its own."""
    if _cuts(name, form, limit):
        return shards(name)
    return (Whole(name, form, begin()),)


def shared(names: tuple[str, ...], form: str, limit: int) -> frozenset[str]:
    """The inputs that are worth several processes; the others are read by the parent."""
    regular = {name for name in names if name != STANDARD and os.path.isfile(name)}
    text = sum(os.path.getsize(name) * (EXPANDS if suffixes(name)[2] else 1) for name in regular)
    if text < LEAST or (len(regular) == 1 and not all(_cuts(name, form, limit) for name in regular)):
        return frozenset()
    return frozenset(regular)


def size(names: tuple[str, ...]) -> int | None:
    """The bytes of these inputs; None where one is a pipe, which has no size."""
    if all(name != STANDARD and os.path.isfile(name) for name in names):
        return sum(map(os.path.getsize, names))
    return None
