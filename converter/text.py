"""A record's text: what makes it no JSON, and the one thing that JSON has and most decoders do not, lone surrogates.

RFC 8259 allows ``"\\ud800"``; no Unicode text can hold it. A record with one is converted with a stand-in and written
with the escape in its place again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Raw

from converter.outcome import Account, Reason, Refused

BOM: Final = b"\xef\xbb\xbf"
BLANK: Final = b" \t\r\n"

_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_ESCAPE: Final = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_NO_NUMBER: Final = re.compile(rb"-?(?:NaN|Infinity|nan|inf)\b")


_WORD: Final = re.compile(r"[A-Za-z0-9_.:/-]{1,64}")


def shown(name: str) -> str:
    """A name for a message: a type, a role, a key. They are the formats' own words, but a log may hold anything."""
    return name if _WORD.fullmatch(name) else "an unreadable name"


def utf8(text: bytes) -> None:
    """Refuse what is not UTF-8: decoders pass over it in values that are only passed on."""
    if text.isascii():
        return
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise Refused([Reason("invalid_utf8", "", _not_utf8(text, error.start))]) from None


def one_line(text: bytes) -> bytes:
    """A JSON text on one line: what is written is a record a line. No string of a valid text goes over a line's end."""
    return msgspec.json.format(text, indent=-1) if b"\n" in text else text


def _not_utf8(text: bytes, start: int) -> str:
    if text.startswith(_UTF16) or b"\0" in text[:4]:
        return "UTF-16 text, expected UTF-8 (convert the file to UTF-8 first)"
    return f"byte {start} is not UTF-8 (convert the file to UTF-8 first)"


def fault(text: bytes, error: Exception) -> Reason:
    """The reason why a text is no JSON record, in a sentence that helps.

    Which decoder found the fault says something of the records before this one; the sentence shall not.
    """
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as same:
        error = same
    if isinstance(error, RecursionError):
        return Reason("too_deep", "", "nested deeper than any real record; expected a few dozen levels")
    if not text:
        return Reason("invalid_json", "", "an empty text, expected one JSON value")
    if not text.strip(b"\0"):
        return Reason("invalid_json", "", "NUL bytes, expected one JSON value (the log was cut by a crash?)")
    if text.startswith(_UTF16) or b"\0" in text[:4]:
        return Reason("invalid_json", "", "UTF-16 text, expected UTF-8 (convert the file to UTF-8 first)")
    return Reason("invalid_json", "", _sentence(text, str(error)))


def _sentence(text: bytes, message: str) -> str:
    place = re.search(r"\(byte (\d+)\)", message)
    # The decoder stops in the word: behind its sign, or where it is no `null`.
    for start in range(max(0, int(place[1]) - 4), int(place[1]) + 1) if place else ():
        found = _NO_NUMBER.match(text, start)
        if found and text[max(0, start - 64) : start].rstrip(BLANK)[-1:] in (b"", b"[", b",", b":"):
            return f"{found[0].decode()} is not JSON, expected a number or null (it was written by a lenient encoder)"
    if re.match(rb"\s*[\[{]\s*'", text):
        return "single quotes: a Python value, expected JSON (json.dumps writes it)"
    if "truncated" in message:
        return "the text ends in the middle of a value (a cut line?)"
    if "trailing characters" in message:
        return f"more text behind the first value{_at(message)} (two records on one line?)"
    return f"not JSON{_at(message)}, expected one JSON value a line"


def _at(message: str) -> str:
    found = re.search(r"\(byte (\d+)\)", message)
    return f", at byte {found[1]}" if found else ""


class _TwiceError(Exception):
    """A key stands twice in one object."""


class _Pairs(list[tuple[str, Any]]):
    """The members of an object, in order, each as often as it stands there."""


def _unique(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise _TwiceError


_KEY: Final = re.compile(rb'(?<!\\)"[ \t\n\r]*:')
_APART: Final = (b" :", b"\t:", b"\n:", b"\r:")
_NO_KEY: Final = (b'\\":', b'{":', b'[":', b',":', b':":')


def key_twice(text: bytes) -> str | None:
    """The pointer to a key that stands twice in one object, or None. ``text`` is valid JSON."""
    try:
        shown = msgspec.json.encode(msgspec.json.decode(text))  # of a key that stands twice, the last value alone
        if shown == text or (rb'\\"' not in text and _most_keys(text) == _least_keys(shown)):
            return None
    except msgspec.DecodeError:
        pass  # lone surrogates
    try:
        _scan(text, object_pairs_hook=_unique)
    except _TwiceError:
        found = next(_twice(_scan(text, object_pairs_hook=_Pairs), ""))
        return found.encode("utf-8", "backslashreplace").decode()
    return None


def _most_keys(text: bytes) -> int:
    """How many keys a JSON text has at most, in which no key ends with a backslash.

    A quote and a colon end each, and stand elsewhere only where a string holds them, or begins with a colon.
    """
    if any(apart in text for apart in _APART):
        return len(_KEY.findall(text))
    return text.count(b'":') - text.count(b'\\":')


def _least_keys(shown: bytes) -> int:
    """How many keys a JSON text without blanks has at least: what may be no end of a key is not counted."""
    return shown.count(b'":') - sum(map(shown.count, _NO_KEY))


_scan: Final = partial(json.loads, parse_int=str, parse_float=str)


def once(raw: Raw) -> Any:
    """A value in which each key stands once, with the last of its values; all else is spelled as it was."""
    if memoryview(raw)[0] == ord("{"):
        return {key: once(value) for key, value in msgspec.json.decode(raw, type=dict[str, Raw]).items()}
    if memoryview(raw)[0] == ord("["):
        return [once(value) for value in msgspec.json.decode(raw, type=list[Raw])]
    return raw


def _twice(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen = set()
        for key, item in value:
            place = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
            if key in seen:
                yield place
            seen.add(key)
            yield from _twice(item, place)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _twice(item, f"{path}/{number}")


# ---------------------------------------------------------------- lone surrogates


class Shield:
    """Stand-ins for the lone surrogates of one text. They derive from the text, so no text can hold its own."""

    def __init__(self, text: bytes) -> None:
        self.mark = f"lone-surrogate-{sha256(text).hexdigest()[:16]}-".encode()
        self.text = self._shielded(text)

    def _shielded(self, text: bytes) -> bytes:
        result, done = [], 0
        escapes = list(_ESCAPE.finditer(text))
        number = 0
        while number < len(escapes):
            escape = escapes[number]
            code = int(escape[1], 16) if escape[1] else 0
            following = escapes[number + 1] if number + 1 < len(escapes) else None
            low = int(following[1], 16) if following and following[1] and following.start() == escape.end() else 0
            if 0xD800 <= code < 0xDC00 and 0xDC00 <= low < 0xE000:
                number += 2
                continue
            if 0xD800 <= code < 0xE000:
                result += [text[done : escape.start()], self.mark, escape[1]]
                done = escape.end()
            number += 1
        return b"".join([*result, text[done:]])

    def restored(self, text: bytes) -> bytes:
        """The written text with the escapes in their place again."""
        return re.sub(re.escape(self.mark) + rb"([0-9a-fA-F]{4})", rb"\\u\1", text)

    def spelled(self, words: str) -> str:
        """A pointer or a sentence with the escapes in the place of the stand-ins."""
        return re.sub(re.escape(self.mark.decode()) + "([0-9a-fA-F]{4})", r"\\u\1", words)

    def tell(self, account: Account) -> None:
        """Say that these stand in the record, and spell all that was said as the record does."""
        account.base, account.layers = "", ()  # these pointers lead into the record as it was logged
        for path in self.paths():
            account.notice("odd", path, "a lone surrogate, kept as its escape")
        account.respell(self.spelled)

    def paths(self) -> list[str]:
        """Where the surrogates stand; nowhere in a text that is no JSON, and was refused for something else."""
        try:
            return list(_holding(_scan(self.text), self.mark.decode()))
        except json.JSONDecodeError:
            return []


def _holding(whole: Any, mark: str) -> Iterator[str]:
    left = [(whole, "")]  # no recursion: a record may nest as deep as Python goes
    while left:
        value, path = left.pop()
        if isinstance(value, str):
            if mark in value:
                yield path
        elif isinstance(value, dict):
            inner = [(item, f"{path}/{key.replace('~', '~0').replace('/', '~1')}") for key, item in value.items()]
            left += reversed(inner)
        elif isinstance(value, list):
            left += reversed([(item, f"{path}/{number}") for number, item in enumerate(value)])


def spells_surrogates(text: bytes) -> bool:
    """Whether a text holds what may be half of a pair, or a lone surrogate."""
    return b"\\ud" in text or b"\\uD" in text


def shield(text: bytes) -> Shield | None:
    """Stand-ins for the lone surrogates of a text, or None where there are none."""
    if not spells_surrogates(text):
        return None
    shielded = Shield(text)
    return shielded if shielded.text != text else None
