"""What a run says besides its data: rejects and notices rows, sums, the report, and standard error."""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, BinaryIO, Final, TextIO

import msgspec
from msgspec import Raw, Struct, field

from converter import place
from converter.files import Source
from converter.memo import Memo
from converter.options import LOOKS, REPAIRS
from converter.outcome import REASONS, Converted, Notice, Reason, Refused, Rejected, masking

Outcomes = Iterator[Converted | Rejected]

UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def printable(text: str) -> str:
    """The text without control characters: names and keys of a log must not steer a terminal or split a line."""
    return UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)


def _short(text: str, most: int = 200) -> str:
    """The beginning of a text that may be of any length, as a key of a log may."""
    return text if len(text) <= most else f"{text[:most]}…"


# ---------------------------------------------------------------- rows


class RejectRow(Struct, frozen=True, gc=False):
    """A line of the rejects file: a refused record, as it stood (a string where it is not JSON)."""

    source: str
    line: int
    reasons: list[Reason]
    record: Raw


class NoticeRow(Struct, frozen=True, gc=False):
    """A line of the notices file: what a reader of a written record must know."""

    source: str
    line: int
    code: str
    paths: list[str]
    detail: str


_encode: Final = msgspec.json.Encoder().encode


def reject_row(source: str, rejected: Rejected) -> bytes:
    """A line of the rejects file, with its end. What is refused again keeps the source and line of its first log."""
    record = rejected.raw()
    row = _again(bytes(record), rejected.reasons) or RejectRow(source, rejected.line, rejected.reasons, record)
    try:
        return _encode(row) + b"\n"
    except UnicodeEncodeError:  # a key that is a lone surrogate, in a pointer
        clean = [Reason(each.code, printable(each.path), printable(each.message)) for each in row.reasons]
        return _encode(RejectRow(printable(row.source), row.line, clean, row.record)) + b"\n"


class Before(Struct, forbid_unknown_fields=True):
    """A line of a rejects file, as it comes in."""

    source: str
    line: int
    reasons: list[Reason]
    record: Raw


_before: Final = msgspec.json.Decoder(Before).decode


def _again(row: bytes, reasons: list[Reason]) -> RejectRow | None:
    """The row for a row that was refused once more, or None where the record is no such row."""
    masked = masking(row)
    try:
        before = _before(masked)
        source, record = (row[slice(*place.find(masked, pointer))] for pointer in ("/source", "/record"))
    except (msgspec.DecodeError, Refused, RecursionError):
        return None
    if not before.reasons:
        return None  # a row of a log of its own: none is refused without a reason
    inner = [Reason(each.code, each.path.removeprefix("/record"), each.message) for each in reasons]
    return RejectRow(json.loads(source), before.line, inner, Raw(record))


def notice_row(source: str, line: int, notice: Notice) -> bytes:
    """A line of the notices file, with its end."""
    row = NoticeRow(source, line, notice.code, notice.paths, notice.detail)
    try:
        return _encode(row) + b"\n"
    except UnicodeEncodeError:
        clean = [printable(path) for path in notice.paths]
        return _encode(NoticeRow(source, line, notice.code, clean, printable(notice.detail))) + b"\n"


# ---------------------------------------------------------------- sums

DISTINCT: Final = 1000
"""How many names a sum tells apart: keys can be ids, and memory must not grow with the file. The rest is ``…``."""


class Sums(Struct, kw_only=True):
    """What became of the records of one input.

    ``reasons``, ``notices``, ``unchecked`` (by tool), ``repaired`` (by repair) and ``allowed`` (by reason) count
    records, so a record with two reasons counts in both; ``dropped`` counts fields, by their path with ``*`` for an
    array's index.
    """

    source: str
    read: int = 0
    written: int = 0
    refused: int = 0
    reasons: dict[str, int] = field(default_factory=Counter)
    notices: dict[str, int] = field(default_factory=Counter)
    dropped: dict[str, int] = field(default_factory=Counter)
    unchecked: dict[str, int] = field(default_factory=Counter)
    repaired: dict[str, int] = field(default_factory=Counter)
    allowed: dict[str, int] = field(default_factory=Counter)

    def notice(self, notice: Notice, distinct: int = DISTINCT) -> None:
        """Count one notice, and what it speaks of."""
        self.notices[notice.code] += 1
        if of := PARTS.get(notice.code):
            name, parts = of
            counts: dict[str, int] = getattr(self, name)
            for part in parts(notice):
                counts[part if part in counts or len(counts) < distinct else "…"] += 1

    def reject(self, reasons: list[Reason]) -> None:
        """Count one refused record."""
        self.refused += 1
        for code in dict.fromkeys(reason.code for reason in reasons):
            self.reasons[code] += 1

    def add(self, more: Sums) -> None:
        """Count what a later part of the same input came to, which was counted without a bound on names."""
        self.read += more.read
        self.written += more.written
        self.refused += more.refused
        for name in ("reasons", "notices", *SEVERAL):
            counts: dict[str, int] = getattr(self, name)
            for part, count in getattr(more, name).items():
                counts[part if part in counts or len(counts) < DISTINCT else "…"] += count


class Report(Struct, frozen=True, kw_only=True):
    """The report of a run: versions, the sums of all inputs (see `Sums`), and of each.

    ``complete`` is false where the run stopped at too many refusals; ``skipped`` names the inputs left out because
    their output existed already.
    """

    command: str
    version: str
    specification: str
    seconds: float
    complete: bool
    read: int
    written: int
    refused: int
    reasons: dict[str, int]
    notices: dict[str, int]
    dropped: dict[str, int]
    unchecked: dict[str, int]
    repaired: dict[str, int]
    allowed: dict[str, int]
    skipped: list[str]
    files: list[Sums]

    def json(self) -> bytes:
        """One JSON object, for a reader."""
        return msgspec.json.format(_encode(self), indent=2) + b"\n"


@lru_cache(maxsize=4096)
def pattern(path: str) -> str:
    """A JSON Pointer with ``*`` for its array indexes: ``/messages/3/name`` is ``/messages/*/name``."""
    return _short(printable(re.sub(r"/\d+(?=/|$)", "/*", path)))


_names: Final[Memo[str, list[str]]] = Memo(1 << 20)
"""The tools that a detail of `unchecked` names."""


def _tools(notice: Notice) -> list[str]:
    names = _names.get(notice.detail)
    if names is None:
        names = [printable(name) for name in re.split("[,;] ", notice.detail) if name]
        _names.keep(notice.detail, names, len(notice.detail) + 512)
    return names


def _among(names: Iterable[str]) -> Callable[[Notice], Iterable[str]]:
    known = re.compile("|".join(names))
    return lambda notice: dict.fromkeys(known.findall(notice.detail))


PARTS: Final[dict[str, tuple[str, Callable[[Notice], Iterable[str]]]]] = {
    "dropped": ("dropped", lambda notice: map(pattern, notice.paths)),
    "unchecked": ("unchecked", _tools),
    "repaired": ("repaired", _among(REPAIRS)),
    "allowed": ("allowed", _among(rf"\b{code}(?=: )" for family in REASONS.values() for code in family)),
}
"""For the notices that are counted in detail: the sum, and what one notice adds to it."""

SEVERAL: Final = tuple(name for name, _ in PARTS.values())


# ---------------------------------------------------------------- standard error

SHOWN: Final = 20
TICK: Final = 0.2


class Speaker:
    """Standard error: refusals (the first few), progress where it is a terminal, and the last sentence.

    ``crowded``: data goes to a terminal, where a progress line would stand between its lines. ``size``: the bytes of
    all inputs, where it is known.
    """

    def __init__(
        self,
        quiet: bool,
        refusals: bool,
        stream: TextIO | None = None,
        *,
        crowded: bool = False,
        size: int | None = None,
    ) -> None:
        self.stream = stream or sys.stderr
        self.quiet = quiet
        self.refusals = refusals and not quiet
        self.live = not quiet and not crowded and self.stream.isatty()
        self.size = size
        self.behind = 0  # the bytes of the inputs that are done
        self.shown = self.omitted = 0
        self.began = self.last = time.monotonic()

    def say(self, text: str) -> None:
        """One line, over the progress line where there is one."""
        self.stream.write(f"\r\x1b[K{printable(text)}\n" if self.live else f"{printable(text)}\n")

    def refused(self, source: str, rejected: Rejected) -> None:
        """The reasons of a refused record, without its content."""
        if not self.refusals:
            return
        room = SHOWN - self.shown
        for reason in rejected.reasons[:room]:
            said = Reason(reason.code, _short(reason.path), _short(reason.message, 1000))
            self.say(f"{source}:{rejected.line}: {said}")
        self.shown += min(room, len(rejected.reasons))
        self.omitted += len(rejected.reasons) > room

    def watch(self, outcomes: Outcomes, source: Source, ledger: Ledger) -> Outcomes:
        """The same outcomes, with a progress line now and then."""
        for count, outcome in enumerate(outcomes, 1):
            yield outcome
            if not count & 63:
                self.tick(source.name, source.counted.count, ledger)

    def tick(self, name: str, upto: int, ledger: Ledger) -> None:
        """A progress line now and then: of which input so many bytes are read, and the sums of the run."""
        if not self.live or (now := time.monotonic()) - self.last < TICK:
            return
        self.last = now
        done = self.behind + upto
        share, left = "", ""
        speed = done / (now - self.began)
        if self.size is not None and speed:
            share = f" of {self.size / 1e6:,.0f}"
            left = f", {_clock((self.size - done) / speed)} left"
        records = f"{ledger.read:,} records, {ledger.refused:,} refused"
        line = f"{name}: {done / 1e6:,.0f}{share} MB, {records}, {speed / 1e6:,.1f} MB/s{left}"
        self.stream.write(f"\r\x1b[K{printable(line)}")
        self.stream.flush()

    def finish(self, report: Report) -> None:
        """What was left unsaid, and the sums."""
        if self.omitted:
            self.say(f"… and {self.omitted:,} more refused (--rejects FILE keeps them all)")
        if not self.quiet:
            self.say(summary(report))


class Listener(Speaker):
    """Stands for standard error where a part of an input is read: keeps what may have to be said, counts the rest."""

    def __init__(self, refusals: bool) -> None:
        super().__init__(quiet=True, refusals=False)
        self.refusals = refusals
        self.kept: list[Rejected] = []

    def refused(self, source: str, rejected: Rejected) -> None:
        """Keep the first refusals: whatever was shown before, more than these are not."""
        if not self.refusals:
            return
        if self.shown < SHOWN:
            self.kept.append(Rejected(rejected.line, rejected.reasons[: SHOWN + 1], b""))
            self.shown += len(rejected.reasons)
        else:
            self.omitted += bool(rejected.reasons)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"{minutes}:{rest:02}"


def summary(report: Report) -> str:
    """The sums in one sentence."""
    done = "written" if report.command not in LOOKS else "ok"
    parts = [f"{report.read:,} read", f"{report.written:,} {done}", f"{report.refused:,} refused{_by(report.reasons)}"]
    if report.notices:
        parts.append(f"notices{_by(report.notices)}")
    if report.skipped:
        parts.append(f"{len(report.skipped):,} skipped")
    stopped = "" if report.complete else "; stopped early"
    return f"converter {report.command}: {', '.join(parts)} in {report.seconds:.1f} s{stopped}"


def _by(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return f" ({', '.join(f'{name} {count:,}' for name, count in ordered)})" if ordered else ""


# ---------------------------------------------------------------- where outcomes go


class RefusalLimitError(Exception):
    """More records were refused than the user bears: what is being written is given up."""


class Part(Struct):
    """What a part of an input gave: bytes for each output, sums, and refusals for standard error (see `Listener`).

    ``upto``: how many bytes of the input were read for it and what stands before.
    """

    data: Any
    rejects: Any
    notices: Any
    sums: Sums
    refusals: list[Rejected]
    omitted: int
    upto: int


class Ledger:
    """Takes the outcomes of each input: data to the output, rows to their files, sums to the report."""

    def __init__(
        self,
        speaker: Speaker,
        rejects: BinaryIO | None,
        notices: BinaryIO | None,
        max_rejects: int | None,
        *,
        distinct: int = DISTINCT,
    ) -> None:
        self.speaker = speaker
        self.rejects = rejects
        self.notices = notices
        self.max_rejects = max_rejects
        self.distinct = distinct
        self.files: list[Sums] = []

    @property
    def read(self) -> int:
        """How many records were read so far."""
        return sum(sums.written + sums.refused for sums in self.files)

    @property
    def refused(self) -> int:
        """How many of them were refused."""
        return sum(sums.refused for sums in self.files)

    def take(self, source: Source, outcomes: Outcomes, write: Callable[[bytes], Any]) -> None:
        """One input, to its end. Raises `RefusalLimitError`."""
        sums = self.begin(source.name)
        if self.speaker.live:
            outcomes = self.speaker.watch(outcomes, source, self)
        self.fill(sums, outcomes, write)
        self.speaker.behind += source.counted.count

    def begin(self, name: str) -> Sums:
        """The sums of one more input."""
        sums = Sums(source=name)
        self.files.append(sums)
        return sums

    def fill(self, sums: Sums, outcomes: Outcomes, write: Callable[[bytes], Any]) -> None:
        """Outcomes of the input that has these sums. Raises `RefusalLimitError`."""
        try:
            for outcome in outcomes:
                if isinstance(outcome, Converted):
                    write(outcome.json)
                    write(b"\n")
                    sums.written += 1
                    if outcome.notices:
                        self._note(outcome, sums)
                else:
                    self._refuse(outcome, sums)
        finally:
            sums.read = sums.written + sums.refused

    def merge(self, sums: Sums, part: Part, write: Callable[[bytes], Any]) -> None:
        """What the next part of the input with these sums gave; to be asked for first: `bears`."""
        write(part.data)
        if self.rejects:
            self.rejects.write(part.rejects)
        if self.notices:
            self.notices.write(part.notices)
        sums.add(part.sums)
        for rejected in part.refusals:
            self.speaker.refused(sums.source, rejected)
        self.speaker.omitted += part.omitted
        self.speaker.tick(sums.source, part.upto, self)

    def bears(self, more: int) -> bool:
        """Whether the run goes on with so many refusals more."""
        return self.max_rejects is None or self.refused + more <= self.max_rejects

    def report(self, command: str, seconds: float, complete: bool, skipped: list[str]) -> Report:
        """The sums of all inputs."""
        from converter import SPECIFICATION, __version__

        nothing = Sums(source="")
        totals: dict[str, Any] = {
            name: sum((getattr(sums, name) for sums in self.files), start=getattr(nothing, name))
            for name in Sums.__struct_fields__
            if name != "source"
        }
        return Report(
            command=command,
            version=__version__,
            specification=SPECIFICATION,
            seconds=round(seconds, 3),
            complete=complete,
            skipped=skipped,
            files=self.files,
            **totals,
        )

    def _note(self, outcome: Converted, sums: Sums) -> None:
        for notice in outcome.notices:
            sums.notice(notice, self.distinct)
            if self.notices:
                self.notices.write(notice_row(sums.source, outcome.line, notice))

    def _refuse(self, outcome: Rejected, sums: Sums) -> None:
        sums.reject(outcome.reasons)
        if self.rejects:
            self.rejects.write(reject_row(sums.source, outcome))
        self.speaker.refused(sums.source, outcome)
        if not self.bears(0):
            raise RefusalLimitError
