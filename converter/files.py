"""Bytes in and out: open and decompress, a table as lines, compress, and what names say of all three."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from stat import S_ISREG
from typing import Any, BinaryIO, Final, NamedTuple

STANDARD: Final = "-"
BUFFER: Final = 1 << 17
"""Bytes that are read or written at once. More would leave the processor's cache on the way."""
STREAM_SUFFIXES: Final = (".sse", ".txt")


# ---------------------------------------------------------------- compression and tables


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


def _parquet(stream: Any, mode: Any) -> Any:
    from converter import tables

    return tables.rows_of_parquet(stream) if mode == "rb" else tables.made(stream)


def _arrow(stream: Any, mode: Any) -> Any:
    if mode != "rb":
        raise OSError("Arrow files (.arrow) are read and not written: give the output the name of a .parquet file")
    from converter import tables

    return tables.rows_of_arrow(stream)


class Codec(NamedTuple):
    """A form of file other than lines: the bytes it starts with, and the function that wraps a stream of it.

    Wrapped for reading it gives lines, wrapped for writing it takes them; either way as a context.
    """

    magic: tuple[bytes, ...]
    wrap: Callable[[Any, str], Any]


CODECS: Final = {
    ".gz": Codec((b"\x1f\x8b",), _gzip),
    ".bz2": Codec((b"BZh",), _bzip2),
    ".xz": Codec((b"\xfd7zXZ\x00",), _xz),
    ".zst": Codec((b"\x28\xb5\x2f\xfd",), _zstandard),
    ".parquet": Codec((b"PAR1",), _parquet),
    ".arrow": Codec((b"ARROW1", b"\xff\xff\xff\xff"), _arrow),
}

TABLES: Final = (".parquet", ".arrow")


def is_table(name: str) -> bool:
    """Whether a name is that of a table, which holds a JSON record a row and nothing else."""
    return suffixes(name)[2].lower() in TABLES


def suffixes(name: str) -> tuple[str, str, str]:
    """A name in three: ``a/log.sse.gz`` is ``a/log``, ``.sse``, ``.gz``; the third is a name of `CODECS`, or empty."""
    plain, compression = os.path.splitext(name)
    if compression.lower() not in CODECS:
        plain, compression = name, ""
    return *os.path.splitext(plain), compression


# ---------------------------------------------------------------- opening


@contextmanager
def named(name: str) -> Iterator[None]:
    """Faults of reading and writing inside the block tell the name of the file."""
    try:
        yield
    except OSError as fault:
        if fault.errno is None or fault.filename is not None:
            raise
        raise OSError(fault.errno, fault.strerror, name) from fault


class Counted(io.RawIOBase):
    """A byte stream that knows how much was read of it; for compressed input, before decompression."""

    def __init__(self, stream: Any) -> None:
        self.count = 0
        self.name = getattr(stream, "name", STANDARD)
        self._stream = stream
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

    def seekable(self) -> bool:
        """Whether what is counted is: a table is not read from its start to its end."""
        return bool(self._stream.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go on elsewhere."""
        return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        """Where it is read."""
        return int(self._stream.tell())


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
    """Open an input by name (``-`` is standard input), decompressed by what its first bytes say; a table as lines."""
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


def archive(name: str) -> Codec | None:
    """The compression of a file, by its first bytes. Raises `OSError`."""
    with open(name, "rb", buffering=0) as raw:
        return _codec(name, io.BufferedReader(Counted(raw), 16))


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
        compression = ".parquet" if is_table(path) else compression
        yield os.path.join(folder, base + suffix + compression)


@contextmanager
def compressed(name: str, stream: BinaryIO) -> Iterator[BinaryIO]:
    """The same stream, behind the compression, or the table, that the suffix of the name says."""
    codec = CODECS.get(suffixes(name)[2].lower())
    if codec is None:
        yield stream
        return
    with codec.wrap(stream, "wb") as inner, io.BufferedWriter(inner, BUFFER) as outer:
        yield outer
