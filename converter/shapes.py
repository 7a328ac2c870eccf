"""What a record is, and where the bodies to convert sit in it: one small function a shape, in one ordered table.

A shape opens a record: it finds the bodies, and knows how to put what they become back into their place. Most records
are one body and nothing else; the rest are wrappers around bodies, or streams that fold into one. Sources that keep
their bodies at fixed places are rows of `converter.sources`, and need no function of their own.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from converter import foreign, place, streams
from converter.kinds import ARRAYS, KINDS, OBJECTS, Kind, recognise, unknown
from converter.options import Options
from converter.outcome import Account, Reason, Refused
from converter.reading import Members, elements_of, encode, escape, kind, members_of, says_nothing, text_of
from converter.sources import SOURCES, UNREADABLE, Source, Unreadable, object_of
from converter.text import one_line, utf8


class Body(Struct):
    """One value to convert, and the pointer to where it stands. ``folded`` bodies were made from a stream."""

    kind: Kind
    text: bytes
    base: str = ""
    folded: bool = False
    shifts: dict[str, Any] = {}


class Opened(Struct):
    """A record's bodies, and how to write the record with what they became."""

    bodies: list[Body]
    close: Callable[[list[bytes]], bytes]
    pair: bool = False


Shape = Callable[[bytes, Members, Options, Account], Opened | None]


def open_record(text: bytes, options: Options, account: Account, members: Members | None = None) -> Opened:
    """The bodies of a record, whose members may be known already.

    Raises `Refused`; `DecodeError` and `RecursionError` where the text is no JSON.
    """
    if members is None:
        members = members_of(text) if text[:1] == b"{" else {}
    unwrapped = None if any(at.startswith("/record") for at in options.at) else _reject(text, members, options, account)
    if unwrapped is not None:
        return unwrapped
    if options.at:
        return _wrapped(text, options, account)
    if options.shape in KINDS:
        return _alone(Body(KINDS[options.shape], text))
    if options.shape is not None:
        return _said(options.shape, text, members, options, account)
    for shape in FOUND.values():
        if (opened := shape(text, members, options, account)) is not None:
            return opened
    return _alone(Body(recognise(text, members), text))


def _said(name: str, text: bytes, members: Members, options: Options, account: Account) -> Opened:
    """What ``--from`` names."""
    shape = SHAPES.get(name)
    opened = shape(text, members, options, account) if shape else None
    if opened is None:
        raise _refused("unknown_shape", "", f"not a {name}, as --from says")
    return opened


def _alone(body: Body) -> Opened:
    return Opened([body], lambda written: written[0])


def _refused(code: str, path: str, message: str) -> Refused:
    return Refused([Reason(code, path, message)])


# ---------------------------------------------------------------- streams


def _stream(text: bytes, members: Members, options: Options, account: Account) -> Opened | None:
    """Chunks or events: an array, or under ``chunks``, ``events``, ``sse``, or SSE text. Gives the answer in them."""
    if not streams.is_stream(text):
        return None
    if members and not _spelled(members) and foreign.name_of(members) is not None:
        return None
    return _alone(_folded(text, "", account))


def _spelled(members: Members) -> bool:
    """An object is a stream and nothing else: it has frames, and not the conversation that they answer."""
    if any(foreign.speaks(members, key) for key in foreign.CONVERSATIONS):
        return False
    frames = next((elements_of(members[key]) for key in streams.LISTS if foreign.holds(members, key, "an array")), [])
    return any(_is_frame(frame) for frame in frames)


def _is_frame(raw: Raw) -> bool:
    return kind(raw) == "an object" and msgspec.json.decode(raw, type=streams.Head).is_frame()


def _folded(text: bytes, base: str, account: Account) -> Body:
    found = streams.frames(text)
    if (name := foreign.name_of_frames(found.items)) is not None:
        raise _prefixed(unknown(name), found.path)
    folded = streams.fold(found, account)
    if folded is None or account.reasons:
        raise Refused(list(account.reasons))
    return Body(recognise(folded), folded, base, folded=True)


# ---------------------------------------------------------------- values that are bodies


def _held(raw: Raw, base: str, account: Account, lone: bool = False) -> tuple[Body, bool]:
    """The body that a value is or holds: JSON, a stream, or JSON as a string (then True: it becomes one again)."""
    text, inside = bytes(raw), False
    if kind(raw) == "a string" and not streams.is_stream(text):
        text = (text_of(raw) or "").strip().encode()
        inside = True
    return _body(text, base, account, lone), inside


def _body(text: bytes, base: str, account: Account, lone: bool = False) -> Body:
    """The body that a text is. A ``lone`` message stands for a list of one."""
    try:
        if not text.isascii():
            utf8(text)
        if streams.is_stream(text):
            return _folded(text, base, account)
        if not _is_json(text):
            raise _refused("unknown_shape", "", "a string that holds no JSON, expected a body")
        if lone and text[:1] == b"{" and _is_message(members_of(text)):
            return Body(KINDS["message-list"], b"[" + text + b"]", base, shifts={"": {"0": ""}})
        return Body(recognise(text), text, base)
    except Refused as refused:
        raise _prefixed(refused, base) from None


def _is_message(members: Members) -> bool:
    return "role" in members and not members.keys().isdisjoint(("content", "tool_calls", "function_call"))


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=Raw)
    except msgspec.DecodeError:
        return False
    return True


def _prefixed(refused: Refused, base: str) -> Refused:
    """The refusal of a value, as one of the record in which it stands."""
    return Refused(
        [
            Reason(one.code, one.path if one.path.startswith(base) and base else base + one.path, one.message)
            for one in refused.reasons
        ]
    )


def _put(text: bytes, spans: Iterable[place.Span], written: Iterable[bytes], strings: Iterable[bool]) -> bytes:
    """The record with other values at these places; what was a string becomes one again. It stays one line."""
    values = [encode(one.decode()) if inside else one for one, inside in zip(written, strings, strict=True)]
    return one_line(place.replaced(text, list(zip(spans, values, strict=True))))


def _in_place(
    text: bytes, found: dict[str, place.Span], account: Account, pair: bool = False, lone: bool = False
) -> Opened:
    """The values at these pointers are bodies; all else is kept to the byte."""
    held = [_held(Raw(text[start:end]), pointer, account, lone) for pointer, (start, end) in found.items()]
    strings = [inside for _, inside in held]
    return Opened([body for body, _ in held], lambda written: _put(text, found.values(), written, strings), pair)


def _present(text: bytes, pointers: Iterable[str | None]) -> dict[str, place.Span]:
    """Those of the pointers at which something stands, and where."""
    found = {}
    for pointer in pointers:
        span = place.look(text, pointer) if pointer is not None else None
        if pointer is not None and span is not None and text[span[0] : span[1]] not in (b"null", b'""', b"{}"):
            found[pointer] = span
    return found


# ---------------------------------------------------------------- wrappers


def _wrapped(text: bytes, options: Options, account: Account) -> Opened:
    """``--at``: the values at these pointers are bodies. Gives the record with each converted where it stands."""
    msgspec.json.decode(text, type=Raw)
    found = {pointer: place.find(text, pointer) for pointer in options.at}
    ordered = sorted(found.items(), key=lambda one: one[1])
    for (_, (_, end)), (pointer, (start, _)) in pairwise(ordered):
        if start < end:
            raise _refused("wrong_type", pointer, "a part of another value that --at names, expected values apart")
    return _in_place(text, found, account)


def _pair(text: bytes, members: Members, options: Options, account: Account) -> Opened | None:
    """``request`` and ``response``, or what --request-at and --response-at say. Gives the record, both converted."""
    pointers = (options.request_at, options.response_at)
    said = options.shape == "pair" or pointers != ("/request", "/response")
    there = [pointer for pointer in pointers if _leads(members, pointer) and place.look(text, pointer) is not None]
    if not there or (len(there) < len(pointers) and not said):
        return None
    found = _present(text, pointers)
    if not found or not all(text[start : start + 1] in b'{["' for start, _ in found.values()):
        return None
    _answered(text, options.response_at, found.get(options.response_at), options.request_at)
    return _in_place(text, found, account, pair=True)


def _leads(members: Members, pointer: str) -> bool:
    """Whether a pointer may lead anywhere, by its first part."""
    return pointer.split("/", 2)[1].replace("~1", "/").replace("~0", "~") in members if pointer else bool(members)


def _answered(text: bytes, pointer: str, span: place.Span | None, request: str) -> None:
    """A server's error in the place of an answer is no answer, and no unknown format either."""
    if span is None or text[span[0] : span[0] + 1] != b"{":
        return
    members = members_of(text[span[0] : span[1]])
    if foreign.holds(members, "error", "an object", "a string") and not {"choices", "output"} & members.keys():
        raise _refused(
            "not_finished", pointer, f"an error in the place of an answer (--at {request} converts the request alone)"
        )


def named_pair(options: Options) -> bool:
    """Whether the user said where the halves of a pair stand, so that a record must not be taken for one body."""
    return (options.request_at, options.response_at) != ("/request", "/response")


def _failed(text: bytes, pointer: str | None) -> None:
    """An exchange with an HTTP status that says so has no answer."""
    span = place.look(text, pointer) if pointer is not None else None
    status = text[span[0] : span[1]].strip(b'"') if span is not None else b""
    if pointer is not None and status.isdigit() and int(status[:9]) >= 400:
        raise _refused("not_finished", pointer, "a call that failed: there is no answer to convert")


# ---------------------------------------------------------------- rejects files

REJECT: Final = frozenset({"source", "line", "reasons", "record"})


def _reject(text: bytes, members: Members, options: Options, account: Account) -> Opened | None:
    """A line of a rejects file: ``source``, ``line``, ``reasons``, ``record``. Gives the record alone, converted."""
    if members.keys() != REJECT:
        return None
    held = members["record"]
    if kind(held) == "a string" and not streams.is_stream(bytes(held)):
        raise _refused("invalid_json", "/record", "a text that was no JSON when it was refused (mend it in its log)")
    try:
        named = None if options.shape == "rejects" else options.shape
        opened = open_record(bytes(held), replace(options, shape=named), account)
    except Refused as refused:
        raise _prefixed(refused, "/record") from None
    for body in opened.bodies:
        body.base = f"/record{body.base}"
    return opened


# ---------------------------------------------------------------- batch files

ENDPOINTS: Final = {"chat": "/chat/completions", "responses": "/responses"}


def _batch_input(text: bytes, members: Members, options: Options, account: Account) -> Opened | None:
    """``custom_id`` and ``body``. Gives the line with the body converted, and ``url`` moved to the other endpoint."""
    if not ("custom_id" in members and "body" in members):
        return None
    url = text_of(members.get("url"))
    tail = next((one for one in ENDPOINTS.values() if url is not None and url.partition("?")[0].endswith(one)), None)
    if url is not None and tail is None:
        raise _refused("unknown_shape", "/url", "a batch line for another endpoint than the two envelopes'")
    body, inside = _held(members["body"], "/body", account)
    found = {pointer: place.find(text, pointer) for pointer in ("/body", *(["/url"] if tail else []))}

    def close(written: list[bytes]) -> bytes:
        values, strings = [written[0]], [inside]
        if url is not None and tail is not None:
            path, mark, query = url.partition("?")
            moved = path.removesuffix(tail) + ENDPOINTS[recognise(written[0]).envelope]
            values.append(f"{moved}{mark}{query}".encode())
            strings.append(True)
        return _put(text, found.values(), values, strings)

    return Opened([body], close)


def _batch_output(text: bytes, members: Members, options: Options, account: Account) -> Opened | None:
    """``custom_id`` and ``response``. Gives the line with ``response.body`` (vLLM once: ``response``) converted."""
    if not ("custom_id" in members and ("response" in members or "error" in members)):
        return None
    _failed(text, "/response/status_code")
    answer = members.get("response", Raw(b"null"))
    if says_nothing(answer):
        raise _refused("not_finished", "/response", "a batch line that failed: there is no answer to convert")
    pointer = "/response/body" if kind(answer) == "an object" and "body" in members_of(answer) else "/response"
    return _in_place(text, {pointer: place.find(text, pointer)}, account)


def _batch(text: bytes, members: Members, options: Options, account: Account) -> Opened | None:
    """A line of a batch file, or the ``response`` of one alone. Gives the line with its body converted."""
    for shape in (_batch_input, _batch_output):
        if (opened := shape(text, members, options, account)) is not None:
            return opened
    if not {"status_code", "body"} <= members.keys():
        return None
    _failed(text, "/status_code")
    return _in_place(text, {"/body": place.find(text, "/body")}, account)


# ---------------------------------------------------------------- session logs


def _session(text: bytes, members: Members, options: Options, account: Account) -> Opened | None:
    """Lines ``{"type": "response_item", "payload": …}``, which are one conversation. Gives its items; its messages."""
    if text[:1] != b"[" or b"response_item" not in text:
        return None
    lines = [members_of(one) if kind(one) == "an object" else {} for one in elements_of(text)]
    if not any("payload" in line for line in lines):
        return None
    chosen = [n for n, line in enumerate(lines) if text_of(line.get("type")) == "response_item" and "payload" in line]
    if not chosen:
        raise _refused("unknown_shape", "", "a session log without items (no line of type response_item)")
    for number in sorted(set(range(len(lines))) - set(chosen)):
        account.notice("dropped", f"/{number}", f"{len(lines) - len(chosen)} lines are not items")
    items = encode([lines[number]["payload"] for number in chosen])
    shifts = {"": [f"{number}/payload" for number in chosen]}
    return _alone(Body(KINDS["item-list"], items, folded=True, shifts=shifts))


# ---------------------------------------------------------------- recorded HTTP


def _har(text: bytes, members: Members, options: Options, account: Account) -> Opened | None:
    """An entry of a HAR file: ``request.postData``, ``response.content``. Gives ``request`` and ``response`` alone."""
    request, response = object_of(members.get("request")), object_of(members.get("response"))
    if "content" not in response or not {"method", "url"} <= request.keys():
        return None
    _failed(text, "/response/status")
    bodies = []
    for pointer, holder in (("/request/postData", request.get("postData")), ("/response/content", response["content"])):
        spoken = _spoken(object_of(holder), f"{pointer}/text")
        bodies.append(_body(spoken, f"{pointer}/text", account))
    for base, around in (("", members), ("/request", request), ("/response", response)):
        for key, value in around.items():
            if key not in ("request", "response", "postData", "content") and not says_nothing(value):
                account.notice("dropped", f"{base}/{escape(key)}", "HTTP around the bodies")

    def close(written: list[bytes]) -> bytes:
        return encode(dict(zip(("request", "response"), map(Raw, written), strict=True)))

    return Opened(bodies, close, pair=True)


def _spoken(members: Members, path: str) -> bytes:
    """The text of a body in a HAR file, which may stand in base64."""
    said = text_of(members.get("text"))
    if not said:
        raise _refused("unknown_shape", path, "an HTTP exchange without this body, expected a request and its answer")
    if text_of(members.get("encoding")) != "base64":
        return said.strip().encode()
    try:
        return binascii.a2b_base64(said.encode()).strip()
    except binascii.Error:
        raise _refused("wrong_type", path, "a text that is not base64, as its encoding says") from None


# ---------------------------------------------------------------- traces


def _mlflow(text: bytes, members: Members, options: Options, account: Account) -> Opened | None:
    """An MLflow trace with one model call. Gives the trace with ``mlflow.spanInputs`` and ``…Outputs`` converted."""
    spans = object_of(members.get("data")).get("spans") or members.get("spans")
    if spans is None or kind(spans) != "an array":
        return None
    root = "/data/spans" if "data" in members else "/spans"
    calls = [number for number, span in enumerate(elements_of(spans)) if _calls_a_model(object_of(span))]
    if len(calls) != 1:
        found = "several model calls" if calls else "no model call"
        raise _refused("unknown_shape", root, f"a trace with {found}, expected one (--at converts them one by one)")
    attributes = f"{root}/{calls[0]}/attributes"
    found_at = _present(text, [f"{attributes}/mlflow.spanInputs", f"{attributes}/mlflow.spanOutputs"])
    return _in_place(text, found_at, account, pair=True) if found_at else None


def _calls_a_model(span: Members) -> bool:
    return (text_of(object_of(span.get("attributes")).get("mlflow.spanType")) or "").strip('"') in ("CHAT_MODEL", "LLM")


# ---------------------------------------------------------------- sources: rows of a table


def _from_source(source: Source, text: bytes, members: Members, options: Options, account: Account) -> Opened | None:
    """A record of a source that keeps its bodies at fixed places."""
    if text[:1] != b"{":
        return None
    if source.unfit is not None and (why := source.unfit(members)) is not None:
        raise _refused("unknown_shape", "", f"{source.label}: {why}")
    _failed(text, source.status)
    found = _present(text, [source.request, *source.parts.values(), source.response])
    _uncut(source, text, found)
    if source.parts:
        return _assembled(source, text, members, found, account)
    if not found:
        expected = " or ".join(filter(None, (source.request, source.response)))
        raise _refused("missing_field", "", f"{source.label} without a body, expected one at {expected}")
    return _in_place(text, found, account, pair=True, lone=source.lone)


def _unreadable(source: Unreadable, text: bytes, members: Members, options: Options, account: Account) -> Opened | None:
    """A record of a source that is known only to be refused."""
    raise _refused("unknown_shape", "", f"{source.label}: {source.why}")


def _uncut(source: Source, text: bytes, found: dict[str, place.Span]) -> None:
    for pointer, (start, end) in found.items():
        for mark, why in source.cuts.items():
            if mark in text[start:end]:
                raise _refused("unknown_shape", pointer, f"{source.label}: {why}")


def _assembled(source: Source, text: bytes, members: Members, found: dict[str, place.Span], account: Account) -> Opened:
    """The request is put together from several fields; the answer beside it, and all else as it stood."""
    values = {pointer: _decoded(Raw(text[start:end])) for pointer, (start, end) in found.items()}
    parts = {name: values[pointer] for name, pointer in source.parts.items() if pointer in values}
    logged = object_of(parts.pop("*", None))
    request = {**{name: _decoded(value) if name in COLUMNS else value for name, value in logged.items()}, **parts}
    if source.response is None:
        respelled = any(request[name] is not logged[name] for name in request)
        return _alone(Body(KINDS["chat-request"], encode(request) if respelled else text))
    bodies: dict[str, Body] = {}
    if source.response in values:
        bodies["response"] = _answer(source, values[source.response], request, account)
    where = dict(source.parts)
    if "messages" in request and _speaks_items(request["messages"], bodies.get("response")):
        request = {"input" if name == "messages" else name: value for name, value in request.items()}
        where["input"] = where.pop("messages")
    if not request.keys().isdisjoint(("messages", "input")):
        made = encode(request)
        bodies = {"request": Body(recognise(made), made, shifts={"": where}), **bodies}
    if not bodies:
        raise _refused("missing_field", "", f"{source.label} without a body, expected one at {source.response}")
    taken = {pointer.split("/")[1] for pointer in (*source.parts.values(), *found)}
    rest = {name: value for name, value in members.items() if name not in taken and name not in bodies}
    for name in [each for each in bodies if each in members and each not in taken]:
        account.notice("dropped", f"/{name}", "its name is given to a body")

    def close(written: list[bytes]) -> bytes:
        return one_line(encode({**dict(zip(bodies, map(Raw, written), strict=True)), **rest}))

    return Opened(list(bodies.values()), close, pair=True)


COLUMNS: Final = ("messages", "tools", "functions")
"""What table formats keep as a string where there is no column type for it."""


def _decoded(raw: Raw) -> Raw:
    """The JSON array or object that a string holds, or the value as it is."""
    inner = (text_of(raw) or "").strip().encode()
    return Raw(inner) if inner[:1] in (b"[", b"{") and _is_json(inner) else raw


def _answer(source: Source, raw: Raw, request: Members, account: Account) -> Body:
    pointer = source.response or ""
    first = object_of(next(iter(elements_of(raw)), None)) if kind(raw) == "an array" else {}
    if source.wrap is None or "message" not in first:
        return _held(raw, pointer, account)[0]
    model = {"model": request["model"]} if "model" in request else {}
    shifts = {"": {source.wrap: pointer, "model": f"{source.parts['*']}/model"}}
    return Body(KINDS["completion"], encode({source.wrap: raw, **model}), shifts=shifts)


def _speaks_items(conversation: Raw, answer: Body | None) -> bool:
    """Whether a conversation whose name does not tell is the input of a Responses request."""
    if answer is not None:
        return answer.kind.envelope == "responses"
    return kind(conversation) == "an array" and recognise(bytes(conversation)).envelope == "responses"


# ---------------------------------------------------------------- the tables


FOUND: Final[dict[str, Shape]] = {
    "stream": _stream,
    "session-log": _session,
    "batch-input": _batch_input,
    "batch-output": _batch_output,
    "har": _har,
    "rejects": _reject,
    "pair": _pair,
}
"""The shapes that are more than one body, in the order in which they are tried; then comes `converter.kinds`."""

NAMED: Final[dict[str, Shape]] = {"codex": _session, "mlflow": _mlflow, "openai-batch": _batch}
"""Shapes that are only read where ``--from`` names them."""

SHAPES: Final[dict[str, Shape]] = {
    **FOUND,
    **NAMED,
    **{name: partial(_from_source, source) for name, source in SOURCES.items()},
    **{name: partial(_unreadable, source) for name, source in UNREADABLE.items()},
}
"""All that ``--from`` may name beside the bodies themselves, those that it names in vain included."""

KNOWN: Final = (*KINDS, *FOUND, *sorted({*NAMED, *SOURCES}))
"""The names that ``--from`` takes."""

FILES: Final = {"codex": "session", "session-log": "session", "har": "values", "vcr": "values"}
"""The form of file in which some shapes come (`converter.records`); that of the others is found."""


def _told(function: Callable[..., Any]) -> tuple[str, str]:
    found, _, gives = (function.__doc__ or "").strip().rstrip(".").partition(". Gives ")
    return found, gives


SHAPE_TABLE: Final[dict[str, tuple[str, str]]] = {
    **{name: _told(fits) for name, fits in OBJECTS},
    **{name: _told(fits) for name, fits in ARRAYS},
    "wrapped (--at)": _told(_wrapped),
    **{name: _told(shape) for name, shape in {**FOUND, **NAMED}.items()},
}
"""For each shape: how it is recognised, and what comes out (by to-responses; by to-chat, where they differ)."""

SOURCE_TABLE: Final[dict[str, tuple[str, str, str]]] = {
    name: (source.reads, source.gives, source.quirks) for name, source in sorted(SOURCES.items())
}
"""For each source: what is read, what comes out, what to know."""
