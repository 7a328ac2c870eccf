"""One record's way through the house: which body, decode, map, gate, encode.

It passes each room once. What the strict decoders do not take goes through `converter.reading` first, and comes back as
text that they do take: from there on the way is the same.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import structs

from converter import folded, repairs, standing, text, verify
from converter.conversion import Beside, Conversion, Passage
from converter.entry import Entered, enter
from converter.kinds import KINDS, Kind
from converter.mapping import CONVERT
from converter.options import Options, Verb
from converter.outcome import LOSSES, Account, Converted, Notice, Reason, Refused, Rejected
from converter.reading import encode
from converter.recall import WAYS, Recall
from converter.records import EVENT_FIELDS, quoted
from converter.shapes import SHAPES, named_pair, open_record
from converter.text import BLANK, BOM, one_line

WHOLE: Final = msgspec.json.Decoder(msgspec.Raw).decode
"""Looks at every string, and lets numbers be: some are beyond any float, and only passed on."""

OUR_FAULT: Final = "the converter failed on this record; please report what shape it has"


class Session:
    """The options of one conversion, and what it remembers from record to record: only what saves time.

    Raises `ValueError` where the options' tools cannot be used.
    """

    def __init__(self, verb: Verb, options: Options) -> None:
        if verb not in verify.BACK:
            raise ValueError(f"the verb is not one of {', '.join(verify.BACK)}")
        self.verb: Verb = verb
        self.options = options
        self.conversion = Conversion(verb, options)
        self.target = self.conversion.target
        # Where some of a record was left out for its faults, what seems to be an orphan may be none.
        self.faulty = structs.replace(options, repair=frozenset(options.repair) - {"drop-orphans"})
        self.blank: Account | None = None  # an account on which nothing was said, for the next record
        self.returning: Session | None = None
        # In a pattern a star stands for one part of a pointer; no other character is special.
        self.accepted = re.compile(
            "|".join(re.escape(pattern).replace(r"\*", "[^/]*") for pattern in options.accept_loss) or r"(?!)"
        )
        halves = (options.request_at, options.response_at)
        if any(one == other or one.startswith(f"{other}/") for one, other in (halves, halves[::-1])):
            raise ValueError("request_at and response_at overlap: each half of a pair needs a place of its own")
        if options.shape is not None and options.shape not in (known := {*KINDS, *SHAPES}):
            raise ValueError(f"shape does not know {options.shape}; it knows {', '.join(sorted(known))}")
        self.guessing = options.shape is None and not options.at and not named_pair(options)
        self.recalls = {
            name: Recall(self.conversion, name)
            for name in WAYS
            if KINDS[name].envelope != self.target and not options.repair
        }
        self._expect(KINDS["chat-request" if verb == "to-responses" else "responses-request"])

    def outcome(self, line: int, record: bytes) -> Converted | Rejected:
        """What becomes of one record. Never raises, whatever the bytes are."""
        try:
            written, notices = self.convert(record)
        except Refused as refused:
            return Rejected(line, refused.reasons, record)
        except Exception as error:
            # A fault of ours must not cost the rest of a log: the record is kept aside, and its shape can be reported.
            return Rejected(line, [Reason("verify", "", f"{OUR_FAULT} ({type(error).__name__})")], record)
        return Converted(line, written, notices)

    def convert(self, record: bytes) -> tuple[bytes, list[Notice]]:
        """The bytes to write for one record, and the notices. Raises `Refused`."""
        record = record.strip(BLANK)
        if record.startswith(BOM):
            record = record.removeprefix(BOM).strip(BLANK)
        account, self.blank = self.blank or Account(self.options.allow), None
        try:
            written = self._record(record, account)
        except (msgspec.DecodeError, RecursionError) as error:
            account.clear()
            written = self._shielded(record, account, error)
        if account.reasons:
            raise Refused(list(account.reasons))
        if self.options.strict:
            self._strict(record, account)
        notices = account.notices() if account.found else []
        if notices:
            account.clear()
        self.blank = account  # as good as new
        return written, notices

    def _shielded(self, record: bytes, account: Account, error: Exception) -> bytes:
        """A record that msgspec does not decode: it holds lone surrogates, or it is no JSON."""
        text.utf8(record)
        shield = text.shield(record)
        if shield is None:
            raise Refused([text.fault(record, error)]) from None
        recalls, self.recalls, self.recall = self.recalls, {}, None  # a stand-in is another one in each record
        self.conversion.mark = shield.mark.decode()
        try:
            written = shield.restored(self._record(shield.text, account))
        except (msgspec.DecodeError, RecursionError) as inner:
            raise Refused([text.fault(shield.text, inner)]) from None
        finally:
            self.recalls, self.conversion.mark = recalls, None
            self._expect(self.guess)
        shield.tell(account)
        return written

    def _record(self, record: bytes, account: Account) -> bytes:
        if self.recall is not None and (written := self.recall.convert(record, account)) is not None:
            return self._held(self.guess, written, record, account)
        # Decoders look at texts alone; what is only passed on they let through as it is.
        text.utf8(record)
        if self.guessing and (entered := self._guessed(record)) is not None:
            return self._mapped(self.guess, entered, Passage(record, account, None, entered))
        if text.spells_surrogates(record):
            WHOLE(record)  # what is only skipped may hold a lone one: it is told whatever came before
        opened = open_record(record, self.options, account)
        beside = Beside() if opened.pair else None
        parts = []
        for body in opened.bodies:
            if body.folded and body.kind.envelope == self.target:
                body.text = folded.completed(body.kind.name, body.text, account)
            account.base, account.layers = body.base, (body.shifts,) if body.shifts else ()
            recall = self.recalls.get(body.kind.name) if beside is None else None
            if recall is not None and (written := recall.convert(body.text, account)) is not None:
                parts.append(self._held(body.kind, written, body.text, account))
                continue
            entered = enter(body.kind, body.text, account, self.options)
            if entered is not None:
                parts.append(self._mapped(body.kind, entered, Passage(body.text, account, beside, entered)))
        account.base, account.layers = "", ()
        whole = opened.bodies[0]
        if whole.text is record and whole.kind is not self.guess:
            self._expect(whole.kind)
        return b"" if account.reasons else opened.close(parts)

    def _guessed(self, record: bytes) -> Entered | None:
        """The record as the kind of body that the last one was, or None."""
        try:
            body = self.guess.decode(record)
        except msgspec.ValidationError:
            return None
        return Entered(body) if self.guess.certain(body) else None

    def _expect(self, kind: Kind) -> None:
        """Guess that the next record will be of this kind."""
        self.guess = kind
        self.recall = self.recalls.get(kind.name) if self.guessing else None

    def _mapped(self, kind: Kind, entered: Entered, passage: Passage) -> bytes:
        if not entered.faulty:
            return self._made(kind, entered, passage)
        # Nothing will be written, but all that is wrong with the record is told at once.
        account, passage.account = passage.account, passage.account.aside()
        self._made(kind, entered, passage)
        entered.confess(account, passage.account)
        return b""

    def _made(self, kind: Kind, entered: Entered, passage: Passage) -> bytes:
        body, account = entered.body, passage.account
        if self.options.repair:
            repairs.apply(kind.name, body, account, self.faulty if entered.faulty else self.options)
        if kind.envelope == self.target:
            return standing.written(self.conversion, kind, body, passage)
        if entered.seen is not None:
            account.absorb(entered.seen)
        return self._written(kind, CONVERT[kind.name](self.conversion, body, passage), passage.text, account)

    def _written(self, kind: Kind, value: Any, text: bytes, account: Account) -> bytes:
        if account.reasons:
            return b""
        return self._held(kind, one_line(encode(value)), text, account)

    def _held(self, kind: Kind, written: bytes, text: bytes, account: Account) -> bytes:
        """What is written, after it was converted back and held against what was logged, where that is asked for."""
        if self.options.verify:
            verify.hold(kind, text, written, account, self.options, self._back)
        return written

    # -------------------------------------------------------- what the user asked for

    def _strict(self, record: bytes, account: Account) -> None:
        try:
            twice = text.key_twice(record)
        except RecursionError as error:
            raise Refused([text.fault(record, error)]) from None
        if twice:
            raise Refused([Reason("duplicate_key", twice, "a key stands twice in one object, expected once")])
        reasons = [
            Reason("loss", path, f"{code}: {detail or 'no place in the target'} (--accept-loss lets it)")
            for code, details in account.found.items()
            if code in LOSSES
            for path, detail in details.items()
            if self.accepted.fullmatch(path) is None
        ]
        if reasons:
            raise Refused(reasons)

    def _back(self, written: bytes) -> bytes:
        if self.returning is None:
            self.returning = Session(verify.BACK[self.verb], verify.options_back(self.options))
        return self.returning.convert(written)[0]


# ---------------------------------------------------------------- the library's functions


def prepare(verb: Verb, options: Options) -> Callable[[int, bytes], Converted | Rejected]:
    """A function from a line number and a record's text to its outcome. It never raises.

    Raises `ValueError` where the verb or an option makes no sense.
    """
    return Session(verb, options).outcome


def convert_lines(lines: Iterable[Any], verb: Verb, options: Options | None = None) -> Iterator[Converted | Rejected]:
    """One outcome a record (see `to_responses`), in order, for any engine. No record raises.

    Blank lines are skipped, but counted. Raises `ValueError` where the verb or an option makes no sense, or where
    ``lines`` is one record and not several.
    """
    if isinstance(lines, str | bytes | bytearray | memoryview | dict):
        raise ValueError("lines is one value, expected the lines of a log (to_responses and to_chat take one record)")
    return _outcomes(lines, prepare(verb, options or Options()))


def _outcomes(
    lines: Iterable[Any], step: Callable[[int, bytes], Converted | Rejected]
) -> Iterator[Converted | Rejected]:
    for number, line in enumerate(lines, 1):
        try:
            record = _text_of(line).strip(BLANK)
        except Refused as refused:
            yield Rejected(number, refused.reasons, b"")
            continue
        if record:
            yield step(number, record)


def _text_of(record: Any) -> bytes:
    if isinstance(record, bytes | bytearray | memoryview | str):
        text = record.encode("utf-8", "surrogatepass") if isinstance(record, str) else bytes(record)
        return quoted(text) if text.lstrip().startswith(EVENT_FIELDS) else text
    try:
        return json.dumps(record, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        code = "too_deep" if isinstance(error, RecursionError) else "invalid_json"
        raise Refused([Reason(code, "", "a value that JSON cannot hold, expected what a JSON parser gives")]) from None


def to_responses(record: Any, options: Options | None = None) -> Converted:
    """Convert one record to Open Responses: parsed JSON (dict, list), one JSON text (bytes, str), or SSE text.

    The record is never changed. Raises `Refused`, whose ``reasons`` say why, each with a pointer into the record.
    """
    return _one("to-responses", record, options)


def to_chat(record: Any, options: Options | None = None) -> Converted:
    """Convert one record to Chat Completions: parsed JSON (dict, list), one JSON text (bytes, str), or SSE text.

    The record is never changed. Raises `Refused`, whose ``reasons`` say why, each with a pointer into the record.
    """
    return _one("to-chat", record, options)


def _one(verb: Verb, record: Any, options: Options | None) -> Converted:
    written, notices = _session(verb, options or DEFAULT).convert(_text_of(record))
    return Converted(1, written, notices)


DEFAULT: Final = Options()
_thread: Final = threading.local()


def _session(verb: Verb, options: Options) -> Session:
    """A session with these options: that of the call before, where it had the same, so that a loop is as fast as a log.

    No other thread uses it. Tools are compared by their text, since they can be changed from outside.
    """
    tools = _snapshot(options.tools)
    kept: tuple[Session, bytes | None] | None = getattr(_thread, verb, None)
    if kept is not None and tools is not None and kept[1] == tools:
        session = kept[0]
        if session.options is options or session.options == options:
            return session
    session = Session(verb, options)
    setattr(_thread, verb, (session, tools))
    return session


def _snapshot(tools: Any) -> bytes | None:
    """The text of some tools, or None where there is none: then they cannot be compared later."""
    try:
        return encode(tools)
    except (TypeError, ValueError, RecursionError):
        return None
