"""One input through the converter, in both directions and by several options, and what the judge says of it.

Sessions are kept, one for each direction and set of options, as the command line keeps them: what they remember from
record to record is under test too.
"""

import json
import re
import traceback
from collections import Counter, deque
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
from fuzzing import judge
from fuzzing.judge import Body

import converter
from converter import check, convert
from converter.conversion import TARGET
from converter.files import from_bytes
from converter.kinds import KINDS
from converter.options import REPAIRS
from converter.outcome import ALLOWABLE, Converted, Refused, Rejected
from converter.records import records
from converter.report import notice_row, reject_row

VERBS = ("to-responses", "to-chat")
ROW = {"source", "line", "reasons", "record"}
"""What a line of a rejects file has: refused again, it is kept as a line of its first log."""

GIVEN = {"f": {"type": "object", "properties": {"a": {"type": "integer"}}}, "g": True}
SETTINGS = {
    "default": {},
    "repairs": {"repair": REPAIRS},
    **{repair: {"repair": {repair}} for repair in REPAIRS},
    "repairs-openai": {"repair": REPAIRS, "target": "openai", "reasoning": "keep"},
    **{f"allow-{reason}": {"allow": {reason}} for reason in sorted(ALLOWABLE)},
    "allow": {"allow": ALLOWABLE},
    "allow-repairs": {"allow": ALLOWABLE, "repair": REPAIRS, "choice": 0},
    "allow-openai": {"allow": ALLOWABLE, "target": "openai"},
    "strict": {"strict": True},
    "accept": {"strict": True, "accept_loss": ("/*", "/*/*", "/*/*/*")},
    "verify": {"verify": True},
    "verify-repairs": {"verify": True, "repair": REPAIRS, "reasoning": "keep"},
    "verify-openai": {"verify": True, "target": "openai", "reasoning": "summary"},
    "openai": {"target": "openai"},
    "keep": {"reasoning": "keep"},
    "summary": {"reasoning": "summary"},
    "require-schema": {"require_schema": True},
    "tools": {"tools": GIVEN},
    "choice": {"choice": 1},
    "at-body": {"at": ("/body",)},
    "pair": {"shape": "pair"},
    "pair-at": {"request_at": "/body", "response_at": "/response/body"},
    "chat-request": {"shape": "chat-request"},
    "item-list": {"shape": "item-list"},
    "stream": {"shape": "stream"},
}
DEFAULTS = 0.6
"""How often the default is taken."""

SELDOM = 0.01
STAND_IN = re.compile(rb"lone-surrogate-[0-9a-f]{16}-([0-9a-fA-F]{4})")
WORD = re.compile(rb"[A-Za-z]{6,}")
OFTEN = 0.05


class Fault(NamedTuple):
    """A kind of fault, and how it came about.

    ``verb`` is the direction, ``check``, or empty where none can be blamed; ``whole`` tells that the input is a file.
    Of ``records``, the last one is the input; those before it went through the same session.
    """

    kind: str
    verb: str
    setting: str
    whole: bool
    records: tuple[bytes, ...]


def options(name):
    """The options of a setting."""
    return converter.Options(**SETTINGS[name])


class Trial:
    """The sessions of one run, and counts of what became of its inputs."""

    def __init__(self, rng):
        self.rng = rng
        self.names = list(SETTINGS)
        self.sessions = {}
        self.before = {}
        self.counts = Counter()
        self.check = check.prepare(converter.Options())
        self.closed = []
        self._tap()

    def _tap(self):
        """Note which bodies a record's shape was opened to, and what became of each."""
        opened = convert.open_record

        def noted(text, options, account):
            found = opened(text, options, account)
            close = found.close

            def closed(written):
                whole = close(written)
                self.closed.append((whole, [*zip(found.bodies, written, strict=True)]))
                return whole

            found.close = closed
            return found

        self.open, convert.open_record = opened, noted

    def untap(self):
        """Leave the converter as it was."""
        convert.open_record = self.open

    # ------------------------------------------------------------ inputs

    def record(self, data, settings=None):
        """Faults of one record, in both directions. ``settings`` names the options; without, they are drawn."""
        for verb in VERBS:
            name = settings or self.draw()
            yield from self.converted(verb, name, data)
        if settings or self.rng.random() < OFTEN:
            yield from self.checked(data)

    def draw(self):
        return "default" if self.rng.random() < DEFAULTS else self.rng.choice(self.names)

    def file(self, data, verb=None):
        """Faults of a whole file: every record of it is written or refused, and nothing of it is lost."""
        verb, seen, outcomes = verb or self.rng.choice(VERBS), [], Counter()
        session = self.session(verb, "default")
        try:
            for number, record in records(from_bytes(data)):
                seen.append(record)
                outcome = session.outcome(number, record)
                outcomes[type(outcome)] += 1
                if isinstance(outcome, Rejected):
                    yield from self.faults(judge.refusal(outcome.reasons), verb, "default", record)
            if outcomes[Converted] + outcomes[Rejected] != len(seen):
                yield Fault("a record neither written nor refused", verb, "default", True, (data,))
            if lost(data, seen):
                yield Fault("a part of a file in no record", verb, "default", True, (data,))
        except Exception as error:
            yield Fault(f"file: {where(error)}", verb, "default", True, (data,))
        self.counts["files"] += 1

    # ------------------------------------------------------------ one direction

    def session(self, verb, name):
        key = verb, name
        if key not in self.sessions:
            self.sessions[key] = convert.Session(verb, options(name))
            self.before[key] = deque(maxlen=8)
        return self.sessions[key]

    def converted(self, verb, name, data, seldom=SELDOM):
        """Faults of one record in one direction; ``seldom`` is how often the costly questions are asked."""
        session = self.session(verb, name)
        self.closed = []
        outcome = told(session, data)
        kind, what, notices = outcome
        if kind == "written":
            self.counts["written"] += 1
            faults = self.written(verb, session.options, data, what, notices)
        elif kind == "refused":
            self.counts[what[0].code if what else "no reason"] += 1
            faults = judge.refusal(what, session.options.verify)
        else:
            faults = [what]
        yield from self.faults(faults, verb, name, data)
        if self.rng.random() < seldom:
            yield from self.remembered(verb, name, data, outcome)
        self.before[verb, name].append(data)

    def faults(self, kinds, verb, name, data):
        try:
            for kind in kinds:
                yield Fault(kind, verb, name, False, (data,))
        except Exception as error:
            yield Fault(f"judge: {where(error)}", verb, name, False, (data,))

    def written(self, verb, options, data, written, notices):
        found = self.bodies(data, written)
        yield from judge.line(written, found)
        yield from judge.noticed(notices)
        yield from judge.bodies(verb, options, found)
        if options.strict and judge.repeats(data):
            yield "a key twice under --strict"
        if any(
            body.kind and KINDS[body.kind].envelope == TARGET[verb] and judge.repeats(body.written) for body in found
        ):
            yield "a key twice in a body of the target envelope"
        if self.rng.random() < OFTEN:
            for notice in notices:
                json.loads(notice_row("a", 1, notice))

    def bodies(self, data, written):
        """The bodies of a record that was written. While it is converted, stand-ins may stand for lone surrogates."""
        for whole, found in reversed(self.closed):
            if whole is written or (b"lone-surrogate-" in whole and STAND_IN.sub(rb"\\u\1", whole) == written):
                return [Body(body.kind.name, body.text, text) for body, text in found]
        return [Body(None, data.strip(b" \t\r\n").removeprefix(b"\xef\xbb\xbf"), written)]

    def again(self, fault):
        """The faults of a fault's input, and nothing else: all that is costly is asked."""
        *before, data = fault.records
        if fault.whole:
            return [one for verb in VERBS for one in self.file(data, verb)]
        if fault.verb == "check":
            return list(self.checked(data))
        for record in before:
            list(self.converted(fault.verb, fault.setting, record))
        return list(self.converted(fault.verb, fault.setting, data, seldom=1))

    def remembered(self, verb, name, data, outcome):
        """What a session remembers changes nothing."""
        if told(convert.Session(verb, options(name)), data) != outcome:
            yield Fault("another outcome in a fresh session", verb, name, False, (*self.before[verb, name], data))
        if outcome[0] == "refused":
            try:
                row = reject_row("a", Rejected(1, outcome[1], data))
                kept = loads(row.decode())["record"]
            except Exception as error:
                yield Fault(f"rejects file: {where(error)}", verb, name, False, (data,))
                return
            if b"\n" in row.rstrip(b"\n"):
                yield Fault("a row of the rejects file over several lines", verb, name, False, (data,))
            came = recorded(data)
            row = isinstance(came, dict) and came.keys() == ROW
            if kept != came and not (row and kept == came["record"]):
                yield Fault("a row of the rejects file with another record", verb, name, False, (data,))

    def checked(self, data):
        try:
            rows, outcome = self.check(1, data)
            msgspec.json.encode([msgspec.structs.astuple(row) for row in rows])
        except Exception as error:
            yield Fault(f"check: {where(error)}", "check", "default", False, (data,))
            return
        if isinstance(outcome, Rejected):
            yield from self.faults(judge.refusal(outcome.reasons), "check", "default", data)


def _constant(word):
    raise ValueError(f"{word} is no JSON")


loads = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_constant).decode


def recorded(data):
    """What the rejects file must hold of a record: its value, or its text where it is none."""
    try:
        data.decode()
        return loads(data.decode().strip(" \t\r\n"))
    except (ValueError, RecursionError):
        return data.decode("utf-8", "backslashreplace")


def told(session, data):
    """What became of a record: written with its bytes and notices, refused with reasons, or an exception."""
    try:
        written, notices = session.convert(data)
    except Refused as refused:
        return "refused", refused.reasons, None
    except Exception as error:
        return "raised", where(error), None
    return "written", written, notices


def where(error):
    """An exception as a kind of fault: its type, and where in the converter or here it was raised."""
    here = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "converter" in frame.filename or "fuzzing" in frame.filename
    ]
    last = here[-1] if here else traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).stem}.{last.name}"


def lost(data, seen):
    """Whether a word of a file stands in no record of it. Files that hold their records in a list hold more words."""
    if any(name in data for name in (b'"entries"', b'"interactions"', b'"data"')):
        return False
    found = Counter(word for record in seen if record is not None for word in words(record))
    return any(found[word] < count for word, count in Counter(words(data)).items())


def words(text):
    """Long runs of letters; of the text of a stream, as it stands and behind its escapes."""
    found = WORD.findall(text)
    if text[:1] == b'"':
        with suppress(msgspec.DecodeError, UnicodeEncodeError, AttributeError):
            found += WORD.findall(msgspec.json.decode(text).encode())
    return found
