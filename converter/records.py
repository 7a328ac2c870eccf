"""Records in: the lines of an input, cut into records by the form of the file.

A record is the text of one JSON value, with the number of the line on which it starts. Five forms of a file are known:

- ``lines``: one record a line. Only LF ends a line; memory does not grow with the file.
- ``values``: values over several lines (pretty-printed), one behind the other; a value that is an array of records
  counts as its elements, and so does one that is a HAR file, a VCR cassette or a page of answers. One value is held at
  a time.
- ``frames``: one chunk or event of a stream a line; the lines of one stream are one record, given as the array of them.
  One stream is held at a time, and any other line is a record of its own.
- ``sse``: server-sent events; a stream ends with its ``data: [DONE]``, and is given as one JSON string.
- ``session``: an agent's log of one session, whose lines are one conversation; given as the array of its lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from converter.files import BUFFER, STREAM_SUFFIXES, Source, suffixes
from converter.frames import FAULTS, Thread, frame_of

Lines = Iterator[tuple[int, bytes | None]]
"""Line numbers, from 1, and texts; None where the text is longer than the limit and was skipped."""

MAX_LINE_BYTES: Final = 256 << 20


def records(source: Source, form: str = "auto", limit: int = MAX_LINE_BYTES) -> Lines:
    """The records of an input, in order. ``form`` is a name of `FORMS`, or ``auto``: found by looking at the start.

    A line longer than ``limit`` bytes is skipped without being held, and given as None.
    """
    lines = _lines(source, limit)
    if form == "auto":
        form, head = _look(source.name, lines)
        lines = chain(head, lines)
    return FORMS[form](lines)


ZIP: Final = b"PK\x03\x04"
TAR_MARK: Final = slice(257, 262)
"""Where a tar file says that it is one."""


def _lines(source: Source, limit: int) -> Lines:
    """Physical lines with their ends, without a byte order mark."""
    stream, number = source.stream, 0
    try:
        start = stream.peek(TAR_MARK.stop)
        if start.startswith(ZIP) or start[TAR_MARK] == b"ustar":
            raise OSError(None, "an archive of files, expected one log: unpack it first", source.name)
        if start.startswith(b"\xef\xbb\xbf"):
            stream.read(3)
        while raw := stream.readline(limit + 2):
            number += 1
            if len(raw) > limit and len(raw.rstrip(b"\r\n")) > limit:
                while not raw.endswith(b"\n") and (raw := stream.readline(BUFFER)):
                    pass
                yield number, None
            else:
                yield number, raw
    except Exception as fault:
        # Each codec has its own exceptions for data that is damaged or cut, EOFError first of all.
        # One that names its file is a sentence already.
        if isinstance(fault, MemoryError) or (isinstance(fault, OSError) and not fault.errno and fault.filename):
            raise
        if isinstance(fault, OSError) and fault.errno:
            raise OSError(fault.errno, fault.strerror, fault.filename or source.name) from fault
        raise OSError(f"{source.name}: damaged or cut compressed data at line {number + 1} ({fault})") from fault


def _line_records(lines: Lines) -> Lines:
    for number, raw in lines:
        if raw is None:
            yield number, None
        elif not raw.isspace():
            yield number, raw.rstrip(b"\r\n")


def _value_records(lines: Lines) -> Lines:
    held: list[bytes] = []
    start = depth = 0
    for number, raw in lines:
        if not held:
            start, depth = number, 0
            if raw is not None and raw.isspace():
                continue
        if raw is None:
            held.clear()
            yield start, None
            continue
        held.append(raw)
        depth += _depth(raw)
        if depth <= 0:
            text = b"".join(held)
            held.clear()
            yield from _split(start, text)
    if held:
        yield from _split(start, b"".join(held))


def _split(start: int, text: bytes) -> Lines:
    """The elements of an array of records, each with the line on which it starts; anything else as it stands."""
    if (entries := _entries(text)) is not None:
        elements = _placed(text, entries, 0)
    elif _holds_records(text):
        elements = _elements(text)
    else:
        yield start, text.rstrip(b"\r\n")
        return
    seen = 0
    for at, element in elements:
        start += text.count(b"\n", seen, at)
        seen = at
        yield start, element


def _stream_records(lines: Lines) -> Lines:
    held: list[bytes] = []
    start = 0
    for number, raw in lines:
        if raw is None:
            held.clear()
            yield number, None
        elif held or not raw.isspace():
            start = start if held else number
            held.append(raw)
            if raw.strip() in (b"data: [DONE]", b"data:[DONE]"):
                yield start, quoted(b"".join(held))
                held.clear()
    if held:
        yield start, quoted(b"".join(held))


def quoted(text: bytes) -> bytes:
    """The record that a stream of events is: one JSON string."""
    try:
        return msgspec.json.encode(text.decode())
    except UnicodeDecodeError:
        return text  # refused for what it is


def _frame_records(lines: Lines) -> Lines:
    thread = Thread()
    for number, raw in lines:
        if raw is not None and raw.isspace():
            continue
        text = (raw or b"").strip()
        frame = frame_of(text, within=bool(thread.lines))
        if thread.lines and (frame is None or thread.ends_before(frame)):
            yield thread.start, thread.record()
            thread, frame = Thread(), frame_of(text, within=False)
        if frame is None:
            yield number, None if raw is None else raw.rstrip(b"\r\n")
        else:
            thread.take(number, text, frame)
    if thread.lines:
        yield thread.start, thread.record()


def _session_record(lines: Lines) -> Lines:
    held: list[bytes] = []
    for number, raw in lines:
        if raw is None:
            yield number, None
            return
        if not raw.isspace():
            held.append(raw.strip())
    yield 1, b"[" + b",\n".join(held) + b"]"


FORMS: Final[dict[str, Callable[[Lines], Lines]]] = {
    "lines": _line_records,
    "values": _value_records,
    "frames": _frame_records,
    "sse": _stream_records,
    "session": _session_record,
}


# ---------------------------------------------------------------- which form


def _look(name: str, lines: Lines) -> tuple[str, list[tuple[int, bytes | None]]]:
    """The form of a file by its first lines, and those lines, to be read again.

    A second line is read only where the first leaves a doubt, so that a live log is not held back.
    """
    head: list[tuple[int, bytes | None]] = []

    def following() -> bytes | None:
        for line in lines:
            head.append(line)
            if line[1] is None or not line[1].isspace():
                return (line[1] or b"").strip()
        return None

    first = following() or b""
    if _is_stream(name, first):
        return "sse", head
    if first[:1] not in (b"{", b"["):
        return "lines", head
    complete = _is_json(first)
    if complete and _is_session(first):
        return "session", head
    if complete and frame_of(first, within=False) is not None:
        return "frames", head
    if complete and _entries(first) is not None:
        return "values", head
    if not (_holds_records(first) if complete else _is_open(first)):
        return "lines", head
    second = following()
    if complete:
        return ("values" if second is None else "lines"), head
    return ("lines" if second is None or _is_cut(first, second) else "values"), head


def _is_cut(first: bytes, second: bytes) -> bool:
    """The first line is a broken record that costs itself alone: what follows it is one whole record a line."""
    if first == b"[" or (first.startswith(b"[") and first.endswith(b",")):
        return False  # an array with an element a line
    if second[:1] not in (b"{", b"[") or not _is_json(second):
        return False
    # Below an open bracket, a whole message is the one element of its list.
    return not first.endswith(b"[") or _is_record(_parsed(second))


EVENT_FIELDS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")
"""With one of these begins a line of server-sent events, and no JSON text."""


def _is_stream(name: str, text: bytes) -> bool:
    if text.startswith(EVENT_FIELDS):
        return True
    return suffixes(name)[1].lower() in STREAM_SUFFIXES and text[:1] not in (b"", b"{", b"[", b'"')


SESSION_TYPES: Final = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})


def _is_session(text: bytes) -> bool:
    line = _parsed(text)
    return isinstance(line, dict) and "payload" in line and str(line.get("type")) in SESSION_TYPES


def _parsed(text: bytes) -> Any:
    """The value of a text, for looking; None where it is none."""
    try:
        return msgspec.json.decode(text)
    except FAULTS:
        return None


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=Raw)
    except FAULTS:
        return False
    return True


STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
TOKEN: Final = re.compile(STRING.pattern + rb"|[\[\]{},]", re.DOTALL)


def _depth(line: bytes) -> int:
    """How many brackets a line opens more than it closes. No valid JSON string goes over a line's end."""
    bare = STRING.sub(b"", line)
    return bare.count(b"{") + bare.count(b"[") - bare.count(b"}") - bare.count(b"]")


def _is_open(line: bytes) -> bool:
    """The line may be the start of a value over several lines: something is open, and no string is cut."""
    return b'"' not in STRING.sub(b"", line) and _depth(line) > 0


# ---------------------------------------------------------------- arrays of records


def _elements(text: bytes) -> Iterator[tuple[int, bytes]]:
    """The elements of an array's text, and where each starts. A broken element costs itself alone."""
    try:
        raws = msgspec.json.decode(text, type=list[Raw])
    except FAULTS:
        yield from _scan(text)
        return
    yield from _placed(text, raws, text.index(b"[") + 1)


def _placed(text: bytes, raws: list[Raw], at: int) -> Iterator[tuple[int, bytes]]:
    """Each of the values, which follow one another in a text, with where it starts."""
    for raw in raws:
        element = bytes(raw)
        at = text.index(element, at)
        yield at, element
        at += len(element)


def _scan(text: bytes) -> Iterator[tuple[int, bytes]]:
    """The same by brackets and commas alone, for a text that is not JSON as a whole; every part of it is given."""
    depth = start = 0
    for token in TOKEN.finditer(text):
        mark = token[0]
        if mark in (b"[", b"{"):
            depth += 1
            if depth == 1:
                if text[start : token.start()].strip():
                    yield _trimmed(text, start, token.start())
                start = token.end()
        elif mark in (b"]", b"}"):
            depth -= 1
            if depth == 0:
                yield _trimmed(text, start, token.start())
                start = token.end()
        elif mark == b"," and depth == 1:
            yield _trimmed(text, start, token.start())
            start = token.end()
    if text[start:].strip():
        yield _trimmed(text, start, len(text))
    if depth > 0:
        yield len(text), b""  # what is missing: an array without its end must not pass for a whole one


def _trimmed(text: bytes, start: int, end: int) -> tuple[int, bytes]:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), part.strip()


def _holds_records(text: bytes) -> bool:
    """The text is an array of records, not one record that is an array (of messages, items, chunks, events)."""
    if not text.lstrip().startswith(b"["):
        return False
    for _, element in _elements(text):
        value = _parsed(element)
        if value is not None:  # else the next element may tell
            return _is_record(value)
    return False


def _entries(text: bytes) -> list[Raw] | None:
    """The records inside a HAR file, a VCR cassette, or a page of stored answers; None for anything else."""
    if not any(name in text for name in (b'"entries"', b'"interactions"', b'"data"')):
        return None
    try:
        holder = msgspec.json.decode(text, type=Holder)
    except FAULTS:
        return None
    if holder.log is not None:
        return holder.log.entries
    if holder.interactions is not None:
        return holder.interactions
    answers = holder.object == "list" and holder.data and isinstance(first := _parsed(holder.data[0]), dict)
    return holder.data if answers and {"choices", "output"} & first.keys() else None


class HarLog(Struct):
    """What a HAR file holds under ``log``."""

    entries: list[Raw]


class Holder(Struct):
    """A file that is one object, and holds its records in a list."""

    log: HarLog | None = None
    interactions: list[Raw] | None = None
    object: Any = None
    data: list[Raw] | None = None


RECORD_KEYS: Final = frozenset({"messages", "choices", "request", "body", "custom_id"})
"""Keys that no message, item or event has, so that a ``type`` beside them does not make one."""


def _is_record(element: Any) -> bool:
    if not isinstance(element, dict):
        return isinstance(element, (list, str))
    choices = element.get("choices")
    if isinstance(choices, list) and any(isinstance(choice, dict) and "delta" in choice for choice in choices):
        return False
    if element.get("object") == "chat.completion.chunk":
        return False
    return not RECORD_KEYS.isdisjoint(element) or not ("role" in element or isinstance(element.get("type"), str))
