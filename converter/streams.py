"""Streams: find the frames of a recorded stream, and fold them into the one value that they spell.

A recorded stream is a JSON array of chunks or events, the same under ``chunks`` or ``events``, or server-sent events
(SSE) as a JSON string, under ``sse``, or as plain text. Folding says nothing about what the answer holds: a field that
has no counterpart on the other side stays in the folded value, for the reading rooms to name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

import msgspec
from msgspec import Raw, Struct

from converter.chat_stream import fold_chunks
from converter.outcome import Account, Reason, Refused
from converter.responses_stream import fold_events
from converter.text import shown

LISTS: Final = ("chunks", "events")
"""The keys under which a record holds its frames as an array; ``sse`` holds them as text."""

FIELD: Final = re.compile(r"\s*(?:data|event|id|retry)?:")
BREAK: Final = re.compile(r"\r\n|\n|\r")
SURROGATE: Final = re.compile("[\ud800-\udfff]")
BLANK: Final = b" \t\r\n"
MARK: Final = b"\xef\xbb\xbf"


class Frames(Struct):
    """The frames of one stream, in order.

    ``done`` is the number of frames before ``[DONE]``, or None where the recording holds none. ``path`` points at the
    stream inside its record, ``listed`` tells whether the frames can be pointed at one by one, and ``beside`` names
    the keys that stand beside the stream.
    """

    items: list[Raw]
    done: int | None = None
    path: str = ""
    listed: bool = True
    beside: list[str] = []

    def where(self, number: int) -> str:
        """The JSON Pointer of a frame, as near as the record allows."""
        return f"{self.path}/{number}" if self.listed else self.path


class Head(Struct):
    """What tells a chunk or an event from any other object."""

    id: Any = None
    object: Any = None
    type: Any = None
    choices: Any = None

    def is_frame(self) -> bool:
        """Whether this is a Chat chunk or a Responses event."""
        if isinstance(self.type, str) and self.type.startswith("response."):
            return True
        streamed = isinstance(self.choices, list) and any(isinstance(c, dict) and "delta" in c for c in self.choices)
        return self.object == "chat.completion.chunk" or streamed


# ---------------------------------------------------------------- JSON, to the letter


def _number(text: str) -> Raw:
    return Raw(text.encode())


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


DECODE: Final = msgspec.json.Decoder(float_hook=_number).decode


def parse(text: bytes | Raw) -> Any:
    """Decode JSON; a number with a fraction or an exponent becomes a `Raw`, so that its spelling is kept."""
    try:
        return DECODE(text)
    except msgspec.DecodeError:
        if b"\\u" not in bytes(text):
            raise
    # msgspec reads no lone surrogate, yet a tokenizer may cut an emoji so that two chunks hold half of it each
    try:
        return json.loads(bytes(text), parse_float=_number, parse_constant=_no_constant)
    except ValueError as error:
        raise msgspec.DecodeError(str(error)) from error


def dump(value: Any) -> bytes:
    """Encode what `parse` gives; surrogates that found their other half are one character, others stay escapes."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_escaped(value))


def _escaped(value: Any) -> Any:
    if isinstance(value, str) and SURROGATE.search(value):
        paired = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return Raw(json.dumps(paired).encode()) if SURROGATE.search(paired) else paired
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    if isinstance(value, dict):
        # a key cannot be raw; no format has one with half a character
        return {SURROGATE.sub("\ufffd", key): _escaped(item) for key, item in value.items()}
    return value


def _raws(text: bytes | Raw) -> list[Raw]:
    try:
        return msgspec.json.decode(text, type=list[Raw])
    except msgspec.DecodeError:
        return [Raw(dump(item)) for item in parse(text)]


def _fields(text: bytes | Raw) -> dict[str, Raw]:
    try:
        return msgspec.json.decode(text, type=dict[str, Raw])
    except msgspec.DecodeError:
        return {key: Raw(dump(item)) for key, item in parse(text).items()}


# ---------------------------------------------------------------- what is a stream


def is_stream(text: bytes) -> bool:
    """Whether one record, as JSON or SSE text, is a stream of either envelope."""
    text = text.removeprefix(MARK).lstrip(BLANK)
    try:
        if text[:1] == b"{":
            fields = _fields(text)
            return "sse" in fields or any(bytes(fields[key])[:1] == b"[" for key in LISTS if key in fields)
        if text[:1] == b"[":
            return any(_is_frame(item) for item in _raws(text)[:8])
        spoken = parse(text) if text[:1] == b'"' else text.decode("utf-8", "replace")
    except (msgspec.DecodeError, AttributeError, RecursionError):
        return False
    return FIELD.match(spoken.removeprefix("\ufeff")) is not None and "data:" in spoken


def _is_frame(item: Raw) -> bool:
    try:
        return msgspec.json.decode(item, type=Head).is_frame()
    except (msgspec.DecodeError, RecursionError):
        return False


def chunk_id(item: bytes | Raw) -> str | None:
    """The id of a Chat chunk, by which the lines of one stream belong together; None for anything else."""
    try:
        head = msgspec.json.decode(item, type=Head)
    except (msgspec.DecodeError, RecursionError):
        return None
    return head.id if head.object == "chat.completion.chunk" and isinstance(head.id, str) and head.id else None


# ---------------------------------------------------------------- frames


def frames(text: bytes) -> Frames:
    """The frames of a stream record; raises `Refused` where the text holds none, or one that is not JSON."""
    text = text.removeprefix(MARK).strip(BLANK)
    try:
        text.decode()
        if text[:1] == b"[":
            return _listed(_raws(text), "")
        if text[:1] == b"{":
            return _boxed(_fields(text))
        return _sse(parse(text) if text[:1] == b'"' else text.decode(), "")
    except UnicodeDecodeError as error:
        raise _refused("invalid_utf8", "", f"byte {error.start} of the stream is not UTF-8") from error
    except RecursionError:
        raise _refused("too_deep", "", "the stream is nested too deeply to be read") from None
    except (msgspec.DecodeError, AttributeError) as error:
        raise _refused("invalid_json", "", f"the stream is not JSON: {error}") from error


def _boxed(fields: dict[str, Raw]) -> Frames:
    key = next((key for key in (*LISTS, "sse") if key in fields), None)
    if key is None:
        raise _refused("unknown_shape", "", "an object without chunks, events or sse is no stream")
    value = parse(fields[key])
    if not isinstance(value, str if key == "sse" else list):
        expected = "a string" if key == "sse" else "an array"
        raise _refused("wrong_type", f"/{key}", f"the frames of a stream must be {expected} here")
    found = _sse(value, "/sse") if isinstance(value, str) else _listed(_raws(fields[key]), f"/{key}")
    found.beside = [name for name in fields if name != key]
    return found


def _listed(items: list[Raw], path: str) -> Frames:
    done = next((number for number, item in enumerate(items) if bytes(item) == b'"[DONE]"'), None)
    return Frames([item for item in items if bytes(item) != b'"[DONE]"'], done, path)


def _sse(text: str, path: str) -> Frames:
    found = Frames([], None, path, listed=False)
    bad: int | None = None
    for event, data in _payloads(text):
        number = len(found.items)
        if bad is not None:
            raise _refused("invalid_json", path, f"frame {bad + 1} of the stream is not JSON, and others follow it")
        if data == "[DONE]":
            found.done = number if found.done is None else found.done
        elif not _is_json(data):
            bad = number
        else:
            found.items.append(Raw(_named_error(event, data).encode("utf-8", "surrogatepass")))
    if bad is not None:
        raise _refused("not_finished", path, f"the stream breaks off inside frame {bad + 1}, which is not whole JSON")
    return found


def _payloads(text: str) -> Iterator[tuple[str, str]]:
    """The event name and data of each SSE event; a comment and a field that does not matter says nothing."""
    event, data = "", list[str]()
    for line in [*BREAK.split(text.removeprefix("\ufeff").lstrip()), ""]:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            event = value
        elif not line:
            for payload in _events(data):
                yield event, payload
            event, data = "", []


def _events(data: list[str]) -> list[str]:
    """The payloads of the data lines between two blank lines: one by the standard, yet loggers lose blank lines."""
    whole = "\n".join(data).strip()
    if len(data) > 1 and not _is_json(whole):
        return [line.strip() for line in data if line.strip()]
    return [whole] if whole else []


def _is_json(text: str) -> bool:
    data = text.encode("utf-8", "surrogatepass")
    try:
        msgspec.json.decode(data, type=Raw)  # looks at the syntax alone
    except msgspec.DecodeError:
        try:
            parse(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
    return True


def _named_error(event: str, data: str) -> str:
    """Some gateways say that a frame is an error in the event line alone."""
    return f'{{"error":{data}}}' if event == "error" and '"error"' not in data else data


def _refused(code: str, path: str, message: str) -> Refused:
    return Refused([Reason(code, path, message)])


# ---------------------------------------------------------------- folding


def fold(frames: Frames, account: Account) -> bytes | None:
    """The JSON text of the value that the frames spell, in their own envelope; None where it is refused.

    Refusals point into the record, or into the folded value where that is where the fault shows; notices likewise.
    """
    before = len(account.reasons)
    _beside(frames, account)
    try:
        folded = _fold([parse(item) for item in frames.items], frames, account)
        return dump(folded) if folded is not None and len(account.reasons) == before else None
    except RecursionError:
        account.refuse("too_deep", frames.path, "a frame is nested too deeply to be read")
    except msgspec.DecodeError as error:
        account.refuse("invalid_json", frames.path, f"a frame is not JSON: {error}")
    return None


def _beside(frames: Frames, account: Account) -> None:
    """Account for what stands beside the stream, and behind its end."""
    for key in frames.beside:
        account.notice("dropped", "/" + key.replace("~", "~0").replace("/", "~1"), "beside the stream")
    if frames.done is not None and frames.done < len(frames.items):
        message = f"frame {frames.done + 1} follows [DONE]: the record holds several streams (give each its own record)"
        account.refuse("stream_conflict", frames.where(frames.done), message)


def _fold(values: list[Any], frames: Frames, account: Account) -> dict[str, Any] | None:
    for number, value in enumerate(values):
        if not isinstance(value, dict):
            account.refuse("wrong_type", frames.where(number), f"frame {number + 1} is no JSON object")
            return None
    chunks = any("choices" in value for value in values)
    events = any(str(value.get("type")).startswith("response.") for value in values)
    if chunks and events:
        account.refuse("mixed_envelopes", frames.path, "the stream holds Chat chunks and Responses events")
        return None
    if chunks:
        return fold_chunks(values, frames.done is not None, frames.where, account)
    if events or any(_error(value) for value in values):
        return fold_events(values, frames.where, account)
    seen = ", ".join(map(shown, sorted({key for value in values for key in value})[:8])) or "no frame at all"
    account.refuse("unknown_shape", frames.path, f"neither Chat chunks nor Responses events; the frames hold {seen}")
    return None


def _error(value: dict[str, Any]) -> bool:
    return bool(value.get("error")) or value.get("type") == "error" or value.get("object") == "error"
