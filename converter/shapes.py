"""What a record is, and where the bodies to convert sit in it: one small function a shape, in one ordered table.

A shape opens a record: it finds the bodies, and knows how to put what they become back into their place. Most records
are one body and nothing else; the rest are wrappers around bodies, or streams that fold into one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from converter import place, streams
from converter.kinds import KINDS, Kind, recognise
from converter.options import Options
from converter.outcome import Account, Reason, Refused
from converter.reading import Members, elements_of, encode, kind, members_of, text_of


class Body(Struct):
    """One value to convert, and the pointer to where it stands. ``folded`` bodies were made from a stream."""

    kind: Kind
    text: bytes
    base: str = ""
    folded: bool = False
    shifts: dict[str, list[Any]] = {}


class Opened(Struct):
    """A record's bodies, and how to write the record with what they became."""

    bodies: list[Body]
    close: Callable[[list[bytes]], bytes]
    pair: bool = False


Shape = Callable[[bytes, Members, Options, Account], Opened | None]


def open_record(text: bytes, options: Options, account: Account) -> Opened:
    """The bodies of a record. Raises `Refused`; `DecodeError` and `RecursionError` where the text is no JSON."""
    if options.at:
        return _wrapped(text, options, account)
    if options.shape in KINDS:
        return _alone(Body(KINDS[options.shape], text))
    members = members_of(text) if text[:1] == b"{" else {}
    for name, shape in SHAPES.items():
        if options.shape in (None, name) and (opened := shape(text, members, options, account)) is not None:
            return opened
    if options.shape is not None:
        raise Refused([Reason("unknown_shape", "", f"not a {options.shape}, as --from says")])
    return _alone(Body(recognise(text), text))


def _alone(body: Body) -> Opened:
    return Opened([body], lambda written: written[0])


# ---------------------------------------------------------------- streams


def _stream(text: bytes, members: Members, options: Options, account: Account) -> Opened | None:
    """Chunks or events: an array, the same under ``chunks`` or ``events``, SSE text as a string or under ``sse``."""
    if not streams.is_stream(text):
        return None
    return _alone(_folded(text, "", account))


def _folded(text: bytes, base: str, account: Account) -> Body:
    folded = streams.fold(streams.frames(text), account)
    if folded is None or account.reasons:
        raise Refused(list(account.reasons))
    return Body(recognise(folded), folded, base, folded=True)


# ---------------------------------------------------------------- wrappers


def _held(raw: Raw, base: str, account: Account) -> tuple[Body, bool]:
    """The body that a value is or holds: JSON, a stream, or JSON as a string (then True: it becomes one again)."""
    text, inside = bytes(raw), False
    if kind(raw) == "a string" and not streams.is_stream(text):
        text = (text_of(raw) or "").strip().encode()
        inside = True
        try:
            msgspec.json.decode(text, type=Raw)
        except msgspec.DecodeError:
            raise Refused([Reason("unknown_shape", base, "a string that holds no JSON, expected a body")]) from None
    try:
        body = _folded(text, base, account) if streams.is_stream(text) else Body(recognise(text), text, base)
    except Refused as refused:
        raise Refused([Reason(one.code, _prefixed(base, one.path), one.message) for one in refused.reasons]) from None
    return body, inside


def _prefixed(base: str, path: str) -> str:
    return path if path.startswith(base) and base else base + path


def _as_string(written: bytes, inside: bool) -> bytes:
    return encode(written.decode()) if inside else written


def _wrapped(text: bytes, options: Options, account: Account) -> Opened:
    """``--at``: the values at these pointers are bodies; all else is kept to the byte."""
    msgspec.json.decode(text, type=Raw)
    found = [place.find(text, pointer) for pointer in options.at]
    held = [
        _held(Raw(text[start:end]), pointer, account) for pointer, (start, end) in zip(options.at, found, strict=True)
    ]

    def close(written: list[bytes]) -> bytes:
        values = [_as_string(one, inside) for one, (_, inside) in zip(written, held, strict=True)]
        return place.replaced(text, list(zip(found, values, strict=True)))

    return Opened([body for body, _ in held], close)


def _pair(text: bytes, members: Members, options: Options, account: Account) -> Opened | None:
    """A request and its response under two names: the request says of the tools, and fills the response's echo."""
    pointers = (options.request_at, options.response_at)
    if any(pointer.count("/") == 1 and pointer[1:] not in members for pointer in pointers):
        return None
    found = [place.find(text, pointer) for pointer in pointers]
    present = [
        (pointer, span)
        for pointer, span in zip(pointers, found, strict=True)
        if text[span[0] : span[1]] not in (b"null", b'""')
    ]
    if not present or not all(text[start : start + 1] in b'{["' for _, (start, _) in present):
        return None
    held = [_held(Raw(text[start:end]), pointer, account) for pointer, (start, end) in present]

    def close(written: list[bytes]) -> bytes:
        values = [_as_string(one, inside) for one, (_, inside) in zip(written, held, strict=True)]
        return place.replaced(text, [(span, value) for (_, span), value in zip(present, values, strict=True)])

    return Opened([body for body, _ in held], close, pair=True)


# ---------------------------------------------------------------- batch files

ENDPOINTS: Final = {"/v1/chat/completions": "chat", "/v1/responses": "responses"}
_OTHER: Final = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}


def _batch_input(text: bytes, members: Members, options: Options, account: Account) -> Opened | None:
    """``custom_id``, ``body``, ``url``: the body is converted, the url moves to the other endpoint."""
    if not ("custom_id" in members and "body" in members):
        return None
    url = text_of(members.get("url"))
    if url is not None and not any(url.endswith(one.removeprefix("/v1")) for one in ENDPOINTS):
        raise Refused([Reason("unknown_shape", "/url", "a batch line for another endpoint than the two envelopes'")])
    body, inside = _held(members["body"], "/body", account)

    def close(written: list[bytes]) -> bytes:
        moved: dict[str, Any] = {**members, "body": Raw(_as_string(written[0], inside))}
        if url is not None:
            target = "responses" if written[0] != body.text and body.kind.envelope == "chat" else body.kind.envelope
            target = "chat" if written[0] != body.text and body.kind.envelope == "responses" else target
            moved["url"] = _moved(url, target)
        return encode(moved)

    return Opened([body], close)


def _moved(url: str, envelope: str) -> str:
    for one in ENDPOINTS:
        tail = one.removeprefix("/v1")
        if url.endswith(tail):
            return url.removesuffix(tail) + _OTHER[envelope].removeprefix("/v1")
    return url


def _batch_output(text: bytes, members: Members, options: Options, account: Account) -> Opened | None:
    """``custom_id``, ``response.body``: the body is converted. A failed line is no answer."""
    if not ("custom_id" in members and ("response" in members or "error" in members)):
        return None
    answer = members.get("response", Raw(b"null"))
    inner = members_of(answer) if kind(answer) == "an object" else {}
    status = inner.get("status_code")
    failed = status is not None and bytes(status).isdigit() and int(bytes(status)) >= 400
    if failed or not inner:
        raise Refused([Reason("not_finished", "/response", "a batch line that failed: there is no answer to convert")])
    name = "body" if "body" in inner else None  # vLLM once put the answer directly into `response`
    base = "/response/body" if name else "/response"
    body, inside = _held(inner[name] if name else answer, base, account)

    def close(written: list[bytes]) -> bytes:
        value = Raw(_as_string(written[0], inside))
        return encode({**members, "response": {**inner, name: value} if name else value})

    return Opened([body], close)


# ---------------------------------------------------------------- session logs


def _session(text: bytes, members: Members, options: Options, account: Account) -> Opened | None:
    """Lines ``{"type": "response_item", "payload": …}`` of one file: the payloads are the items of one conversation."""
    if text[:1] != b"[" or b"response_item" not in text:
        return None
    lines = [members_of(one) if kind(one) == "an object" else {} for one in elements_of(text)]
    if not any("payload" in line for line in lines):
        return None
    chosen = [n for n, line in enumerate(lines) if text_of(line.get("type")) == "response_item" and "payload" in line]
    if not chosen:
        raise Refused([Reason("unknown_shape", "", "a session log without items (no line of type response_item)")])
    for number in range(len(lines)):
        if number not in set(chosen):
            account.notice("dropped", f"/{number}", f"{len(lines) - len(chosen)} lines are not items")
    items = encode([lines[number]["payload"] for number in chosen])
    shifts = {"": [f"{number}/payload" for number in chosen]}
    return _alone(Body(KINDS["item-list"], items, folded=True, shifts=shifts))


SHAPES: Final[dict[str, Shape]] = {
    "stream": _stream,
    "session-log": _session,
    "batch-input": _batch_input,
    "batch-output": _batch_output,
    "pair": _pair,
}
"""The shapes that are more than one body, in the order in which they are tried; then comes `converter.kinds`."""
