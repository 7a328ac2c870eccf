"""Find a value in a JSON text by its pointer, and put another in its place without touching a byte beside it."""

from __future__ import annotations

import re
from json import JSONDecoder
from typing import Any, Final

from msgspec import Raw
from msgspec.json import Decoder

from converter.outcome import Reason, Refused

_BLANK: Final = re.compile(rb"[ \t\r\n]*")
_NUMBER: Final = re.compile(r"0|[1-9][0-9]*")
_KEY: Final = re.compile(rb'[ \t\r\n,{]*("[^"\\]*(?:\\.[^"\\]*)*")[ \t\r\n]*:[ \t\r\n]*')

_members: Final = Decoder(dict[str, Raw]).decode
_elements: Final = Decoder(list[Raw]).decode
_key: Final = Decoder(str).decode
_any: Final = Decoder(Raw).decode

_END: Final = re.compile(rb"[ \t\r\n]*[,}]")

_scan: Final = JSONDecoder(parse_int=str, parse_float=str, strict=False).raw_decode

Span = tuple[int, int]


def find(text: bytes, pointer: str) -> Span:
    """The bytes of the value that a JSON Pointer (RFC 6901) leads to. ``text`` is valid JSON.

    Raises `Refused` (``missing_field``) where it leads nowhere.
    """
    found = look(text, pointer)
    if found is None:
        raise Refused([Reason("missing_field", pointer, "no value stands here, as --at or --from says")])
    return found


def look(text: bytes, pointer: str) -> Span | None:
    """The same, or None where it leads nowhere. Raises `Refused` (``duplicate_key``) where it leads to several."""
    if pointer and pointer[0] != "/":
        return None
    start = _blank(text, 0)
    end = start + len(memoryview(_any(text)))
    for part in pointer.split("/")[1:]:
        inside = _member if text[start] == ord("{") else _element if text[start] == ord("[") else None
        found = inside(text[start:end], part.replace("~1", "/").replace("~0", "~"), pointer) if inside else None
        if found is None:
            return None
        start, end = start + found[0], start + found[1]
    return start, end


def _blank(text: bytes, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _member(text: bytes, name: str, pointer: str) -> Span | None:
    """Where a member's value stands in the text of an object."""
    found = None
    members = _members(text)
    if name not in members:
        return None
    at = 0
    letters = ""
    while (key := _KEY.match(text, at)) is not None:
        start, spelled = key.end(), _key(key[1])
        # The lengths of the values are known, unless a key stands twice: then that of the last alone.
        value = members[spelled]
        at = start + len(memoryview(value))
        if not text.startswith(memoryview(value), start) or _END.match(text, at) is None:
            letters = letters or text.decode("latin-1")  # a letter a byte: no byte of a longer one looks like a quote
            at = _scan(letters, start)[1]
        if spelled == name:
            if found is not None:  # one of them would stay as it is, and some reader takes that one
                sentence = "a key on the way to what is converted stands twice in one object, expected once"
                raise Refused([Reason("duplicate_key", pointer, sentence)])
            found = start, at
    return found


def _element(text: bytes, name: str, pointer: str) -> Span | None:
    """Where an element stands in the text of an array."""
    elements = _elements(text)
    if not _NUMBER.fullmatch(name) or int(name) >= len(elements):
        return None
    at = _blank(text, 1)
    for number, element in enumerate(elements):
        end = at + len(memoryview(element))
        if number == int(name):
            return at, end
        at = _blank(text, _blank(text, end) + 1)
    return None


def replaced(text: bytes, values: list[tuple[Span, Any]]) -> bytes:
    """The text with other values at these places."""
    result, done = [], 0
    for (start, end), value in sorted(values):
        result += [text[done:start], value]
        done = end
    return b"".join([*result, text[done:]])
