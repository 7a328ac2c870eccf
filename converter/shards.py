"""Large files by several processes: byte ranges that begin and end at line ends, worked on apart, written in order.

The parent finds the ranges, hands them out, and writes what comes back in the order of the file, so that nothing that
is written tells how many workers there were. A worker reads its range by itself and holds no file that is written:
it can be killed at any time. Only a plain file with one record a line can be cut; `splits` says whether it is one.
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, BinaryIO, Final

from msgspec import Struct

from converter import records
from converter.files import BUFFER, STANDARD, Counted, Source, opened
from converter.options import Options
from converter.outcome import Converted, Reason, Rejected
from converter.report import Ledger, Listener, Part, printable

SHARD: Final = 4 << 20
"""Bytes of a range; the line at its end is added whole."""

LEAST: Final = 16 << 20
"""Bytes from which a file is cut: below, starting the workers costs more than they save."""

AHEAD: Final = 2
"""Ranges a worker that may be out, done or not: what bounds memory, and keeps a worker busy while the parent writes."""

BLOCK: Final = 1 << 20


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "process_cpu_count"):
        return os.process_cpu_count() or 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ---------------------------------------------------------------- what is done with lines


MODULES: Final = {"to-responses": "converter.convert", "to-chat": "converter.convert", "check": "converter.check"}
"""The room that does a command's work."""


def prepare(command: str, options: Options) -> Any:
    """The function from a record to its outcome. Raises `ValueError` where an option makes no sense."""
    prepared = import_module(MODULES[command]).prepare
    return prepared(options) if command == "check" else prepared(command, options)


class Task(Struct, frozen=True, kw_only=True):
    """What to do with the lines of any input: the same in every process.

    ``data``, ``rejects``, ``notices`` and ``refusals`` (on standard error) say what of the outcome is wanted.
    """

    command: str
    options: Options
    max_line_bytes: int
    data: bool = True
    rejects: bool = False
    notices: bool = False
    refusals: bool = False

    def outcomes(self, step: Any, lines: records.Lines, output: BinaryIO) -> Iterator[Converted | Rejected]:
        """The outcome of each record; what `converter.check` lists goes to the output on the way."""
        if self.command == "check":
            step = _listing(step, output)
        for line, text in lines:
            if text is None:
                sentence = (
                    f"a line of more than {self.max_line_bytes} bytes, skipped without being held "
                    "(--max-line-bytes allows more)"
                )
                yield Rejected(line, [Reason("too_long", "", sentence)], b"")
            else:
                yield step(line, text)

    def write(self, output: BinaryIO) -> Any:
        """Where the bytes of an outcome go; the gate alone, and a dry run, write none."""
        return output.write if self.data and self.command != "check" else len


def _listing(check: Any, output: BinaryIO) -> Any:
    """The gate alone: a line an item goes to the output, whatever the outcome of the record."""

    def step(line: int, text: bytes) -> Converted | Rejected:
        rows, outcome = check(line, text)
        for row in rows:
            cells = (printable(str(getattr(row, name))) for name in row.__struct_fields__)
            output.write("\t".join(cells).encode() + b"\n")
        kept: Converted | Rejected = outcome
        return kept

    return step


# ---------------------------------------------------------------- ranges


class Range(io.RawIOBase):
    """The bytes of an open file from one place to another. Raises `OSError` where the file ends before."""

    def __init__(self, stream: io.FileIO, start: int, end: int) -> None:
        stream.seek(start)
        self.stream = stream
        self.left = end - start

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as the range goes."""
        count = self.stream.readinto(memoryview(buffer)[: self.left]) or 0
        if not count and self.left:
            raise OSError(None, "cut short while it was read", self.stream.name)
        self.left -= count
        return count


class Shard(Struct, frozen=True):
    """Whole lines of a file: from where, to where, and how many lines stand before. ``file``: device and inode."""

    name: str
    file: tuple[int, int]
    start: int
    end: int
    before: int

    @contextmanager
    def lines(self, limit: int) -> Iterator[records.Lines]:
        """The records of these lines, numbered as in the whole file."""
        with open(self.name, "rb", buffering=0) as stream:
            if _identity(stream) != self.file:
                raise OSError(None, "replaced by another file while it was read", self.name)
            # A range begins with the end of the line before: a blank line, behind which no byte order mark is skipped.
            first = max(self.start - 1, 0)
            raw = Counted(Range(stream, first, self.end))
            source = Source(shown(self.name), io.BufferedReader(raw, BUFFER), raw, self.end - first, time.monotonic())
            behind = self.before - (self.start > 0)
            yield ((number + behind, text) for number, text in records.records(source, "lines", limit))


def _identity(stream: io.FileIO) -> tuple[int, int]:
    status = os.fstat(stream.fileno())
    return status.st_dev, status.st_ino


def shown(name: str) -> str:
    """The name of a file as rows and the report have it."""
    return os.fsencode(name).decode(errors="replace")


def shards(name: str) -> Iterator[Shard]:
    """The whole file, cut behind the first line end after every `SHARD` bytes. Lines are counted on the way.

    A line is never cut, however long, and never held.
    """
    with open(name, "rb", buffering=0) as stream:
        file = _identity(stream)
        start = at = before = lines = 0
        while block := stream.read(BLOCK):
            seen = 0
            while cut := block.find(b"\n", max(seen, start + SHARD - at - 1)) + 1:
                lines += block.count(b"\n", seen, cut)
                yield Shard(name, file, start, at + cut, before)
                start, before, seen = at + cut, lines, cut
            lines += block.count(b"\n", seen)
            at += len(block)
        if at > start:
            yield Shard(name, file, start, at, before)


def splits(name: str, form: str, limit: int) -> str | None:
    """The form of a file that is large enough to be cut, found as for one worker; None for any other input.

    Only the form ``lines`` can be cut, for in the others a record may go over any line end.
    """
    if name == STANDARD or not os.path.isfile(name) or os.path.getsize(name) < LEAST:
        return None
    with opened(name) as source:
        if source.stream.raw is not source.counted:
            return None  # compressed
        return form if form != "auto" else records._look(source.name, records._lines(source, limit))[0]


# ---------------------------------------------------------------- the workers


def _work(pipe: Connection, task: Task, step: Any, inherited: list[Connection]) -> None:
    """A worker's life: shards in, parts out, until the parent closes the pipe or kills it."""
    for near in inherited:
        near.close()  # else no pipe would end with the parent
    # The terminal sends an interrupt to every process: the parent alone answers it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _unmask()
    step = step or prepare(task.command, task.options)
    try:
        while True:
            number, shard = pipe.recv()
            try:
                part = _part(shard, task, step)
            except OSError as fault:
                pipe.send((number, fault))
                continue
            # The bytes go by themselves: inside a pickle they would be copied once more on either side.
            pipe.send((number, part.sums, part.refusals, part.omitted))
            for data in (part.data, part.rejects, part.notices):
                pipe.send_bytes(data)
    except (EOFError, ConnectionError):
        pass  # the parent has ended


def _part(shard: Shard, task: Task, step: Any) -> Part:
    """What one shard gives, as a run of its own would write it."""
    output, rejects, notices = io.BytesIO(), io.BytesIO(), io.BytesIO()
    listener = Listener(task.refusals)
    # No bound on names: a shard has few, and the parent tells apart the first ones of the whole file.
    ledger = Ledger(
        listener, rejects if task.rejects else None, notices if task.notices else None, None, distinct=sys.maxsize
    )
    with shard.lines(task.max_line_bytes) as lines:
        sums = ledger.begin(shown(shard.name))
        ledger.fill(sums, task.outcomes(step, lines, output), task.write(output))
    data = output.getbuffer() if task.data else b""
    return Part(data, rejects.getbuffer(), notices.getbuffer(), sums, listener.kept, listener.omitted)


class Worker:
    """A process and the pipe to it."""

    def __init__(self, task: Task, step: Any, others: list[Worker]) -> None:
        # A fork is ready at once and shares what is imported and compiled. No thread runs that it could cut in half;
        # elsewhere than on Linux, system libraries may have started some.
        forks = sys.platform == "linux"
        context = get_context("fork" if forks else "spawn")
        self.pipe, far = context.Pipe()
        self.load = 0
        inherited = [self.pipe, *(other.pipe for other in others)]
        given = (far, task, step, inherited) if forks else (far, task, None, [])
        self.process = context.Process(target=_work, args=given, daemon=True)  # type: ignore[attr-defined]
        try:
            self.process.start()
        finally:
            far.close()  # so that the pipe ends when the worker does

    def give(self, number: int, shard: Shard) -> None:
        """One more shard to do. Raises `OSError`."""
        try:
            self.pipe.send((number, shard))
        except OSError:
            self._lost()
        self.load += 1

    def take(self) -> tuple[int, Part]:
        """The next part that is done, and its shard's number. Raises `OSError`."""
        try:
            number, *rest = self.pipe.recv()
            if not isinstance(rest[0], OSError):
                rest[:0] = [self.pipe.recv_bytes() for _ in range(3)]
        except (EOFError, OSError, pickle.UnpicklingError):
            self._lost()
        if isinstance(rest[0], OSError):
            raise rest[0]
        self.load -= 1
        return number, Part(*rest)

    def _lost(self) -> None:
        self.process.join(5)
        status = self.process.exitcode
        how = f"killed by signal {-status}" if status and status < 0 else f"exit status {status}"
        raise OSError(f"a worker process ended before its work was done ({how}); --jobs 1 works without any")

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self.process.kill()
        self.process.join()
        self.process.close()
        self.pipe.close()


class Crew(AbstractContextManager["Crew"]):
    """The workers of a run. They are started for the first file that is cut, and killed at the end."""

    def __init__(self, task: Task, step: Any, jobs: int) -> None:
        self.task = task
        self.step = step
        self.jobs = jobs
        self.workers: list[Worker] = []
        self.stack = ExitStack()

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def _start(self) -> None:
        with _masked():
            while len(self.workers) < self.jobs:
                worker = Worker(self.task, self.step, self.workers)
                self.stack.callback(worker.end)
                self.workers.append(worker)

    def parts(self, cut: Iterable[Shard]) -> Iterator[tuple[Shard, Part]]:
        """Each shard and what it gives, in order. Raises `OSError` where a worker fails or ends."""
        self._start()
        numbered = enumerate(cut)
        out: dict[int, Shard] = {}
        done: dict[int, Part] = {}
        turn = 0
        while True:
            self._give(numbered, out)
            if not out:
                return
            ready = wait([worker.pipe for worker in self.workers if worker.load])
            for worker in [each for each in self.workers if each.pipe in ready]:
                number, part = worker.take()
                done[number] = part
            self._give(numbered, out)
            while turn in done:
                yield out.pop(turn), done.pop(turn)
                turn += 1

    def _give(self, numbered: Iterator[tuple[int, Shard]], out: dict[int, Shard]) -> None:
        """Shards to the workers with the least to do, as far as memory allows."""
        while len(out) < AHEAD * len(self.workers):
            worker = min(self.workers, key=lambda each: each.load)
            if (following := next(numbered, None)) is None:
                return
            number, out[number] = following
            worker.give(*following)


@contextmanager
def _masked() -> Iterator[None]:
    """No signal arrives in between: a new worker would answer it as the parent does."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        _unmask()


def _unmask() -> None:
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})


# ---------------------------------------------------------------- one file


def take(crew: Crew, ledger: Ledger, name: str, output: BinaryIO) -> None:
    """One input that can be cut, by all workers, to its end. Raises `RefusalLimitError` as one worker does."""
    sums = ledger.begin(shown(name))
    began, size = time.monotonic(), os.path.getsize(name)
    for shard, part in crew.parts(shards(name)):
        if ledger.bears(part.sums.refused):
            ledger.merge(sums, part, output.write)
            ledger.speaker.tick(sums, shard.end, size, began)
        else:
            # The run stops inside this shard: done once more, record by record, it stops where one worker would.
            with shard.lines(crew.task.max_line_bytes) as lines:
                outcomes = crew.task.outcomes(crew.step, lines, output)
                ledger.fill(sums, outcomes, crew.task.write(output))
