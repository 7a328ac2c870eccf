"""Find a value in a JSON text by its pointer, and put another in its place without touching a byte beside it."""

from __future__ import annotations

import re
from json import JSONDecoder
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Final

from converter.outcome import Reason, Refused

_BLANK: Final = re.compile(r"[ \t\r\n]*")
_NUMBER: Final = re.compile(r"0|[1-9][0-9]*")
_scan: Final = JSONDecoder(parse_int=str, parse_float=str).raw_decode

Span = tuple[int, int]


class _SeveralError(Exception):
    """A key stands twice in one object."""


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
    characters = text.decode()
    start = _blank(characters, 0)
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        try:
            found = _step(characters, start, name)
        except _SeveralError:
            sentence = "a key on the way to what is converted stands twice in one object, expected once"
            raise Refused([Reason("duplicate_key", pointer, sentence)]) from None
        if found is None:
            return None
        start = found
    end = _scan(characters, start)[1]
    if len(characters) == len(text):
        return start, end
    return len(characters[:start].encode()), len(characters[:end].encode())


def _step(characters: str, start: int, name: str) -> int | None:
    if characters[start] == "{":
        return _member(characters, start, name)
    if characters[start] == "[" and _NUMBER.fullmatch(name):
        return _element(characters, start, int(name))
    return None


def _blank(characters: str, at: int) -> int:
    match = _BLANK.match(characters, at)
    return match.end() if match else at


def _member(characters: str, start: int, name: str) -> int | None:
    at, found = _blank(characters, start + 1), None
    while characters[at] != "}":
        key, at = scanstring(characters, at + 1, True)
        value = _blank(characters, _blank(characters, at) + 1)
        if key == name:
            if found is not None:  # one of them would stay as it is, and some reader takes that one
                raise _SeveralError
            found = value
        at = _next(characters, _scan(characters, value)[1])
    return found


def _element(characters: str, start: int, number: int) -> int | None:
    at = _blank(characters, start + 1)
    while characters[at] != "]":
        if number == 0:
            return at
        number -= 1
        at = _next(characters, _scan(characters, at)[1])
    return None


def _next(characters: str, at: int) -> int:
    at = _blank(characters, at)
    return _blank(characters, at + 1) if characters[at] == "," else at


def replaced(text: bytes, values: list[tuple[Span, Any]]) -> bytes:
    """The text with other values at these places."""
    result, done = [], 0
    for (start, end), value in sorted(values):
        result += [text[done:start], value]
        done = end
    return b"".join([*result, text[done:]])
