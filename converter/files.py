"""Lines in, lines out: open and decompress, write aside and rename."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from stat import S_IMODE, S_ISREG
from typing import Any, BinaryIO, Final, NamedTuple

STANDARD: Final = "-"
BUFFER: Final = 1 << 18
STREAM_SUFFIXES: Final = (".sse", ".txt")


# ---------------------------------------------------------------- compression


def _gzip(stream: Any, mode: Any) -> Any:
    import gzip

    # No name and no time in the header: the same input gives the same bytes.
    return gzip.GzipFile("", mode, 6, stream, 0)


def _bzip2(stream: Any, mode: Any) -> Any:
    import bz2

    return bz2.BZ2File(stream, mode)


def _xz(stream: Any, mode: Any) -> Any:
    import lzma

    return lzma.LZMAFile(stream, mode)


def _zstandard(stream: Any, mode: Any) -> Any:
    try:
        # Not python-zstandard itself: it reads a file that was cut short without an error.
        from xopen import xopen  # type: ignore[import-not-found,unused-ignore]

        return xopen(stream, mode, format="zst", threads=0)
    except ImportError as missing:
        raise OSError(
            "Zstandard files (.zst) need an extra package: pip install 'open-responses-converter[compression]'"
        ) from missing


class Codec(NamedTuple):
    """A compression: the bytes it starts with, and the function that wraps a stream for reading or writing."""

    magic: bytes
    wrap: Callable[[Any, str], Any]


CODECS: Final = {
    ".gz": Codec(b"\x1f\x8b", _gzip),
    ".bz2": Codec(b"BZh", _bzip2),
    ".xz": Codec(b"\xfd7zXZ\x00", _xz),
    ".zst": Codec(b"\x28\xb5\x2f\xfd", _zstandard),
}


def suffixes(name: str) -> tuple[str, str, str]:
    """A name in three: ``a/log.sse.gz`` is ``a/log``, ``.sse``, ``.gz``."""
    plain, compression = os.path.splitext(name)
    if compression.lower() not in CODECS:
        plain, compression = name, ""
    return *os.path.splitext(plain), compression


# ---------------------------------------------------------------- opening


class Counted(io.RawIOBase):
    """A byte stream that knows how much was read of it; for compressed input, before decompression."""

    def __init__(self, stream: Any) -> None:
        self.count = 0
        # A pipe gives what is there: waiting until the buffer is full would hold back a live log.
        self._read: Callable[[Any], int | None] = getattr(stream, "readinto1", None) or stream.readinto

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Fill the buffer, and count."""
        count = self._read(buffer)
        self.count += count or 0
        return count


class Source(NamedTuple):
    """An open input: name, decompressed bytes, how far it is read, size where it has one, when it was opened."""

    name: str
    stream: io.BufferedReader[Any]
    counted: Counted
    size: int | None
    began: float


def from_bytes(data: bytes, name: str = STANDARD) -> Source:
    """Bytes in memory as an input."""
    counted = Counted(io.BytesIO(data))
    return Source(name, io.BufferedReader(counted), counted, len(data), time.monotonic())


@contextmanager
def opened(name: str) -> Iterator[Source]:
    """Open an input by name (``-`` is standard input), decompressed by what its first bytes say."""
    with ExitStack() as stack:
        if name == STANDARD:
            raw, size = sys.stdin.buffer, None
        else:
            raw = stack.enter_context(open(name, "rb", buffering=0))
            status = os.fstat(raw.fileno())
            size = status.st_size if S_ISREG(status.st_mode) else None
        counted = Counted(raw)
        stream: io.BufferedReader[Any] = io.BufferedReader(counted, BUFFER)
        codec = _codec(name, stream)
        if codec:
            stream = io.BufferedReader(stack.enter_context(codec.wrap(stream, "rb")), BUFFER)
        yield Source(os.fsencode(name).decode(errors="replace"), stream, counted, size, time.monotonic())


def _codec(name: str, stream: io.BufferedReader[Any]) -> Codec | None:
    start = stream.peek(8)
    for codec in CODECS.values():
        if start.startswith(codec.magic):
            return codec
    suffix = suffixes(name)[2]
    if suffix:
        # An empty or overwritten archive read as text would be a short result without a word.
        raise OSError(f"{name}: the name says {suffix}, but the file does not start as one; rename it if it is text")
    return None


# ---------------------------------------------------------------- writing


def renamed_into(folder: str, names: Sequence[str]) -> Iterator[str]:
    """Names below another folder, with their tree from the deepest folder common to all."""
    paths = [os.path.abspath(name) for name in names]
    root = os.path.commonpath([os.path.dirname(path) for path in paths])
    for path in paths:
        base, suffix, compression = suffixes(os.path.relpath(path, root))
        # What is written holds a record a line, and under the name of a stream it would be read as one.
        suffix = ".jsonl" if suffix.lower() in STREAM_SUFFIXES else suffix
        yield os.path.join(folder, base + suffix + compression)


@contextmanager
def written(name: str, inputs: Sequence[str] = ()) -> Iterator[BinaryIO]:
    """A stream to write to. A file stands under its name only when the block ends without an exception.

    ``-`` is standard output. What is not a regular file (a pipe, ``/dev/null``) is written directly. The suffix
    of the name says the compression. Nobody may read the file who may not read all ``inputs``, and what stood there.
    """
    if name == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = os.path.realpath(name)  # a link stays a link
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as direct, _compressed(name, direct) as stream:
            yield stream
        return
    aside = f"{target}.{os.urandom(4).hex()}.part"
    try:
        mode = _mode((*inputs, target))
        with open(aside, "xb", BUFFER, opener=lambda path, flags: os.open(path, flags, mode)) as file:
            with _compressed(name, file) as stream:
                yield stream
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, target)
    except BaseException as fault:
        if os.path.exists(aside):
            os.unlink(aside)
        if isinstance(fault, OSError) and fault.filename == aside:
            raise OSError(fault.errno, fault.strerror, name) from fault
        raise


def _mode(names: Sequence[str]) -> int:
    """What group and others may do with all of these files; the process's umask comes on top. A pipe says nothing."""
    mode = 0o666
    for name in names:
        if os.path.isfile(name):
            mode &= S_IMODE(os.stat(name).st_mode) | 0o600
    return mode


@contextmanager
def _compressed(name: str, stream: BinaryIO) -> Iterator[BinaryIO]:
    codec = CODECS.get(suffixes(name)[2].lower())
    if codec is None:
        yield stream
        return
    with codec.wrap(stream, "wb") as inner, io.BufferedWriter(inner, BUFFER) as outer:
        yield outer
