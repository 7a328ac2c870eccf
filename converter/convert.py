"""One record's way through the house: which body, decode, map, gate, encode.

It passes each room once. What the strict decoders do not take goes through `converter.reading` first, and comes back as
text that they do take: from there on the way is the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from converter import (
    answers_into_chat,
    answers_into_responses,
    chat,
    gate,
    habits,
    into_chat,
    into_responses,
    repairs,
    responses,
    settings,
    standing,
    text,
    tools,
    turns,
)
from converter.options import Options, Verb
from converter.outcome import LOSSES, Account, Converted, Notice, Reason, Refused, Rejected
from converter.reading import Reading, encode, tidy
from converter.shapes import KINDS, Envelope, Kind, recognise

TARGET: Final[dict[str, Envelope]] = {"to-responses": "responses", "to-chat": "chat"}


class Session:
    """The options of one conversion, and what it remembers from record to record: only what saves time.

    Raises `ValueError` where the options' tools cannot be used.
    """

    def __init__(self, verb: Verb, options: Options) -> None:
        self.verb: Verb = verb
        self.options = options
        self.target = TARGET[verb]
        self.toolbox = tools.Toolbox(verb, options)
        self.given = tools.given(options.tools)
        self.guess: Kind = KINDS[options.shape or ("chat-request" if verb == "to-responses" else "responses-request")]

    def outcome(self, line: int, record: bytes) -> Converted | Rejected:
        """What becomes of one record. Never raises, whatever the bytes are."""
        try:
            written, notices = self.convert(record)
        except Refused as refused:
            return Rejected(line, refused.reasons, record)
        return Converted(line, written, notices)

    def convert(self, record: bytes) -> tuple[bytes, list[Notice]]:
        """The bytes to write for one record, and the notices. Raises `Refused`."""
        record = record.strip(text.BLANK).removeprefix(text.BOM)
        text.utf8(record)
        account = Account(self.options.allow)
        shield = None
        try:
            written = self._record(record, account)
        except (msgspec.DecodeError, RecursionError) as error:
            shield = text.shield(record)
            if shield is None:
                raise Refused([text.fault(record, error)]) from None
            account = Account(self.options.allow)
            try:
                written = shield.restored(self._record(shield.text, account))
            except (msgspec.DecodeError, RecursionError) as inner:
                raise Refused([text.fault(shield.text, inner)]) from None
            for path in shield.paths():
                account.notice("odd", path, "a lone surrogate, kept as its escape")
        if account.reasons:
            raise Refused(account.reasons)
        notices = account.notices()
        if self.options.strict:
            self._strict(record, notices)
        if self.options.verify:
            self._verify(record, written, notices)
        return written, notices

    def _record(self, record: bytes, account: Account) -> bytes:
        kind = self.guess
        try:
            body = kind.decode(record)
        except msgspec.ValidationError:
            kind = recognise(record, self.options.shape)
            self.guess = kind
            return self._body(kind, record, account)
        return self._mapped(kind, body, record, account, set())

    def _body(self, kind: Kind, record: bytes, account: Account) -> bytes:
        try:
            body = kind.decode(record)
        except msgspec.ValidationError:
            return self._read(kind, record, account)
        return self._mapped(kind, body, record, account, set())

    def _read(self, kind: Kind, record: bytes, account: Account) -> bytes:
        """The slow way in: an account of what the strict decoder did not take, and text that it takes."""
        reading = Reading(account, self.options, TABLES[kind.envelope])
        tidied = tidy(Raw(record), kind.type, "", reading)
        if account.reasons or tidied is None:
            raise Refused(account.reasons)
        if kind.envelope == self.target:
            # Written unchanged: what was read past is not left out.
            account.found = {code: entry for code, entry in account.found.items() if code == "allowed"}
        account.shifts = reading.shifts
        return self._mapped(kind, kind.decode(tidied), record, account, reading.left_out)

    def _mapped(self, kind: Kind, body: Any, record: bytes, account: Account, left_out: set[str]) -> bytes:
        if kind.envelope == self.target:
            standing.check(self, body, account)
            return msgspec.json.format(record, indent=-1) if b"\n" in record else record
        if self.options.repair:
            repairs.apply(kind.name, body, account, self.options)
        value = _CONVERT[kind.name](self, body, record, account, left_out)
        return b"" if account.reasons else encode(value)

    # -------------------------------------------------------- the gate

    def gate(self, own: tools.Schemas, tool_choice: Any, account: Account, where: gate.Where) -> gate.Gate:
        """A gate for one record."""
        allowed = settings.names_of(tool_choice) if tool_choice is not UNSET else None
        return gate.Gate(self.given, own, allowed, self.options, account, where)

    def tools(self, body: Any, account: Account) -> tools.Tools:
        """The record's tools, converted, and what is to be said of them."""
        made = self.toolbox.of(body.tools)
        legacy = getattr(body, "functions", UNSET)
        if legacy is not UNSET:
            older = self.toolbox.of(legacy, "functions")
            made = tools.joined(made, older)
        for notice in made.notices:
            for path in notice.paths:
                account.notice(notice.code, path, notice.detail)
        account.reasons += made.reasons
        return made

    # -------------------------------------------------------- what the user asked for

    def _strict(self, record: bytes, notices: list[Notice]) -> None:
        if twice := text.key_twice(record):
            raise Refused([Reason("duplicate_key", twice, "a key stands twice in one object, expected once")])
        reasons = [
            Reason("loss", path, f"{notice.code}: {notice.detail or 'no place in the target'} (--accept-loss lets it)")
            for notice in notices
            if notice.code in LOSSES
            for path in notice.paths
            if not any(fnmatchcase(path, pattern) for pattern in self.options.accept_loss)
        ]
        if reasons:
            raise Refused(reasons)

    def _verify(self, record: bytes, written: bytes, notices: list[Notice]) -> None:
        from converter import verify

        verify.hold(self.verb, self.options, record, written, notices)


TABLES: Final = {"chat": habits.CHAT, "responses": habits.RESPONSES}

NOTHING: Final = Raw(b"null")


# ---------------------------------------------------------------- Chat Completions -> Open Responses


def _chat_request(session: Session, body: chat.Request, record: bytes, account: Account, left_out: set[str]) -> Any:
    context = into_responses.Context(account, session.options, "/messages", left_out)
    made = session.tools(body, account)
    request = into_responses.request(body, made, context)
    _gate_items(session, request.input, made.schemas, body.tool_choice, context, body.messages, record)
    return request


def _message_list(session: Session, body: list[Any], record: bytes, account: Account, left_out: set[str]) -> Any:
    context = into_responses.Context(account, session.options, "", left_out)
    items = into_responses.messages(body, context)
    _gate_items(session, items, {}, UNSET, context, body, record)
    return items


def _gate_items(
    session: Session,
    items: Any,
    schemas: tools.Schemas,
    tool_choice: Any,
    context: into_responses.Context,
    messages: list[Any],
    record: bytes,
) -> None:
    def where(key: Any, field: str) -> str:
        return into_responses.place(messages, context, key, field)

    checked = session.gate(schemas, tool_choice, context.account, where)
    gate.check_items(items, checked, context.turns)
    checked.close()
    if len(record) > gate.TEXT_LIMIT:
        gate.check_texts(items, checked)


def _completion(session: Session, body: chat.Completion, record: bytes, account: Account, left_out: set[str]) -> Any:
    context = into_responses.Context(account, session.options, "", left_out)
    made = answers_into_responses.completion(body, record, context, {})
    if made is None:
        return None
    response, message = made

    def where(key: Any, field: str) -> str:
        if field == "status":
            return context.root.removesuffix("/message") + "/finish_reason"
        return answers_into_responses.answer_place(response.output, message, context, key, field)

    checked = session.gate({}, UNSET, account, where)
    gate.check_items(response.output, checked)
    checked.close(answer=True)
    return response


# ---------------------------------------------------------------- Open Responses -> Chat Completions


def _responses_request(
    session: Session, body: responses.Request, record: bytes, account: Account, left_out: set[str]
) -> Any:
    context = turns.Context(account, session.options, "/input", left_out)
    grouped = turns.Turns(context)
    made = session.tools(body, account)
    request = into_chat.request(body, made, context, grouped)
    elsewhere = any(reason.code == "incomplete_history" for reason in account.reasons)
    _gate_messages(session, grouped, made.schemas, body.tool_choice, context, orphans_legal=elsewhere)
    return request


def _item_list(session: Session, body: list[Any], record: bytes, account: Account, left_out: set[str]) -> Any:
    context = turns.Context(account, session.options, "", left_out)
    grouped = turns.Turns(context)
    messages = into_chat.items(body, context, grouped)
    if not messages and not account.reasons:
        account.refuse("limit", "", "an empty conversation; Chat wants at least one message")
    _gate_messages(session, grouped, {}, UNSET, context)
    return messages


def _gate_messages(
    session: Session,
    grouped: turns.Turns,
    schemas: tools.Schemas,
    tool_choice: Any,
    context: turns.Context,
    **closing: bool,
) -> None:
    def where(key: tuple[int, int], field: str) -> str:
        at, number = key
        own, calls = grouped.places[at]
        position = calls[number] if number >= 0 else own
        return context.path(position, f"/{field}" if field else "")

    checked = session.gate(schemas, tool_choice, context.account, where)
    gate.check_messages(grouped.messages, checked)
    checked.close(**closing)


def _response(session: Session, body: responses.Response, record: bytes, account: Account, left_out: set[str]) -> Any:
    context = turns.Context(account, session.options, "/output", left_out)
    made = answers_into_chat.response(body, record, context)
    if made is None:
        return None
    completion, places = made

    def where(key: tuple[int, int], field: str) -> str:
        return context.path(places[key[1]], f"/{field}" if field else "")

    checked = session.gate(tools.schemas_of(body.tools), body.tool_choice, account, where)
    gate.check_messages([completion.choices[0].message], checked)
    checked.close(answer=True)
    return completion


_CONVERT: Final[dict[str, Callable[[Session, Any, bytes, Account, set[str]], Any]]] = {
    "chat-request": _chat_request,
    "message-list": _message_list,
    "completion": _completion,
    "responses-request": _responses_request,
    "item-list": _item_list,
    "response": _response,
}


# ---------------------------------------------------------------- the library's functions


def prepare(verb: Verb, options: Options) -> Callable[[int, bytes], Converted | Rejected]:
    """A function from a line number and a record's text to its outcome. It never raises."""
    return Session(verb, options).outcome


def convert_lines(lines: Iterable[bytes], verb: Verb, options: Options | None = None) -> Iterator[Converted | Rejected]:
    """One outcome a record, in order, for any engine: never raises. Blank lines are skipped, but counted."""
    outcome = prepare(verb, options or Options())
    for number, line in enumerate(lines, 1):
        if record := line.strip(text.BLANK):
            yield outcome(number, record)


def _text_of(record: Any) -> bytes:
    if isinstance(record, bytes | bytearray | memoryview):
        return bytes(record)
    if isinstance(record, str):
        return record.encode("utf-8", "surrogatepass")
    try:
        return json.dumps(record, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        code = "too_deep" if isinstance(error, RecursionError) else "invalid_json"
        raise Refused([Reason(code, "", "a value that JSON cannot hold, expected what a JSON parser gives")]) from None


def to_responses(record: Any, options: Options | None = None) -> Converted:
    """Convert one record to Open Responses: parsed JSON (dict, list), or one JSON text (bytes, str).

    The record is never changed. Raises `Refused`, whose ``reasons`` say why, each with a pointer into the record.
    """
    return _one("to-responses", record, options)


def to_chat(record: Any, options: Options | None = None) -> Converted:
    """Convert one record to Chat Completions: parsed JSON (dict, list), or one JSON text (bytes, str).

    The record is never changed. Raises `Refused`, whose ``reasons`` say why, each with a pointer into the record.
    """
    return _one("to-chat", record, options)


def _one(verb: Verb, record: Any, options: Options | None) -> Converted:
    written, notices = Session(verb, options or Options()).convert(_text_of(record))
    return Converted(1, written, notices)
