"""The processes that work on pieces of the inputs (see `converter.shards`), and how what they give is put in order.

The parent hands out pieces and writes what comes back in the order of the inputs, so that nothing that is written tells
how many workers there were. A worker gives a piece in parts of bounded size. A part whose turn has not come waits in
memory where it is the only one of its piece, else in a file without a name. A worker holds no file that stands under
the name of a target: it can be killed at any time.
"""

from __future__ import annotations

import mmap
import os
import pickle
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, BinaryIO, Final, NoReturn

import msgspec
from msgspec import Struct

from converter.files import named
from converter.report import Ledger, Part
from converter.shards import Piece, Shard, shown
from converter.targets import Aside
from converter.task import Task, parts, prepare

AHEAD: Final = 2
"""Shards a worker that may be out, done or not: what bounds memory, and keeps a worker busy while the parent writes."""

FILES_AHEAD: Final = 64
"""Whole files that may be out: how far the others go on while one takes long."""

ROOM: Final = 8 << 20
"""Bytes of a slot, memory that parent and workers share for the data of a part; more goes through the pipe."""

SMALL: Final = 1 << 16
"""Bytes of parts of one piece that wait in memory."""


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "process_cpu_count"):
        return os.process_cpu_count() or 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ---------------------------------------------------------------- the workers


def _work(pipe: Connection, task: Task, step: Any, slots: list[mmap.mmap], inherited: list[Connection]) -> None:
    """A worker's life: pieces in, parts out, until the parent closes the pipe or kills it."""
    for near in inherited:
        near.close()  # else no pipe would end with the parent
    # The terminal sends an interrupt to every process: the parent alone answers it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _unmask()
    step = step or prepare(task.command, task.options)
    try:
        while True:
            number, piece, slot = pipe.recv()
            fault: Exception | None = None
            try:
                for part in parts(piece, task, step):
                    _send(pipe, number, part, slots, slot)
                    slot = None
            except ConnectionError:
                raise
            except OSError as found:
                fault = found
            except MemoryError:
                fault = OSError(None, "a record needs more memory than there is", piece.name)
            pipe.send((number, fault))
    except (EOFError, ConnectionError):
        pass  # the parent has ended


def _send(pipe: Connection, number: int, part: Part, slots: list[mmap.mmap], slot: int | None) -> None:
    """One part: its data in memory that both processes see, where it has room there, else through the pipe."""
    size = len(part.data)
    if slot is not None and size <= ROOM:
        slots[slot][:size] = part.data
        part.data = memoryview(b"")
    else:
        slot = None
    # Bytes go by themselves: inside a pickle they would be copied once more on either side.
    pipe.send((number, slot, size, part.sums, part.refusals, part.omitted, part.upto))
    for data in (part.data, part.rejects, part.notices):
        pipe.send_bytes(data)


class Worker:
    """A process and the pipe to it. ``load``: pieces that it was given and has not ended."""

    def __init__(self, task: Task, step: Any, slots: list[mmap.mmap], others: list[Worker]) -> None:
        context = get_context("fork" if FORKS else "spawn")
        self.pipe, far = context.Pipe()
        self.load = 0
        inherited = [self.pipe, *(other.pipe for other in others)]
        given = (far, task, step, slots, inherited) if FORKS else (far, task, None, [], [])
        self.process = context.Process(target=_work, args=given, daemon=True)  # type: ignore[attr-defined]
        try:
            self.process.start()
        finally:
            far.close()  # so that the pipe ends when the worker does

    def give(self, number: int, piece: Piece, slot: int | None) -> None:
        """One more piece to do. Raises `OSError`."""
        try:
            self.pipe.send((number, piece, slot))
        except OSError:
            self._lost()
        self.load += 1

    def take(self, slots: list[mmap.mmap]) -> tuple[int, Part | OSError | None]:
        """What came next of which piece: a part, a fault, or None at the end of the piece. Raises `OSError`."""
        try:
            number, *rest = self.pipe.recv()
            if len(rest) == 1:
                self.load -= 1
                return number, rest[0]
            slot, size, *sums = rest
            data, rejects, notices = (self.pipe.recv_bytes() for _ in range(3))
        except (EOFError, OSError, pickle.UnpicklingError):
            self._lost()
        return number, Part(data if slot is None else memoryview(slots[slot])[:size], rejects, notices, *sums)

    def _lost(self) -> NoReturn:
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


FORKS: Final = sys.platform == "linux"
"""A fork is ready at once and shares what is imported and compiled. No thread runs that it could cut in half; elsewhere
than on Linux, system libraries may have started some."""


# ---------------------------------------------------------------- order


class Out(Struct):
    """A piece that was given out (or what kept it from being found), and what came of it so far.

    ``near`` holds parts that are to be written next, or stand in a slot; ``spool`` holds what came too early.
    """

    position: int
    piece: Piece | None
    slot: int | None = None
    near: deque[Part] = msgspec.field(default_factory=deque)
    spool: Any = None
    ended: bool = False
    fault: OSError | None = None

    def add(self, part: Part, in_turn: bool, folder: str | None) -> None:
        """One more part. Raises `OSError` where the disk is full."""
        if in_turn or isinstance(part.data, memoryview):
            self.near.append(part)
            return
        if self.spool is None:
            self.spool = tempfile.SpooledTemporaryFile(SMALL, dir=folder)  # noqa: SIM115
        with named(folder or tempfile.gettempdir()):
            pickle.dump(part, self.spool)

    def parts(self) -> Iterator[Part]:
        """What came, in order; it is not kept."""
        while self.near:
            yield self.near.popleft()
        if self.spool is not None:
            self.spool.seek(0)
            with self.spool as spool, suppress(EOFError):
                while True:
                    yield pickle.load(spool)
            self.spool = None


class Crew(AbstractContextManager["Crew"]):
    """The workers of a run, started with it where there is work for them, and killed at its end.

    ``work`` names the inputs that they read. ``folder``: where there is room for what comes too early.
    """

    def __init__(
        self, task: Task, step: Any, jobs: int, work: frozenset[str] = frozenset(), folder: str | None = None
    ) -> None:
        self.task = task
        self.step = step
        self.jobs = jobs
        self.work = work
        self.folder = folder
        self.workers: list[Worker] = []
        self.slots: list[mmap.mmap] = []
        self.stack = ExitStack()
        self.out: dict[int, Out] = {}
        self.given = self.turn = 0
        self.coming: Out | None = None

    def __enter__(self) -> Crew:
        if self.work:
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        for out in self.out.values():
            if out.spool is not None:
                out.spool.close()
        self.stack.close()

    def follow(self, plan: Iterable[tuple[int, Iterable[Piece]]]) -> None:
        """From now on, work on the pieces of these inputs, which are told by their positions."""
        self.planned = _planned(plan)

    def _start(self) -> None:
        with _masked():
            if FORKS:
                self.slots = [mmap.mmap(-1, ROOM) for _ in range(AHEAD * self.jobs)]
            self.free = list(range(len(self.slots)))
            while len(self.workers) < self.jobs:
                worker = Worker(self.task, self.step, self.slots, self.workers)
                self.stack.callback(worker.end)
                self.workers.append(worker)

    def aside(self, position: int) -> Aside | None:
        """The output that a worker writes for the next input, which has this position; None where the parent does."""
        self._give()
        out = self.out.get(self.turn)
        return out.piece.aside if out and out.piece and out.position == position else None

    def parts(self, position: int) -> Iterator[tuple[Piece, Part]]:
        """What the next input gives, which has this position, in order, and of which piece.

        Raises `OSError` where the input cannot be read, or a worker ends.
        """
        while True:
            self._give()
            out = self.out.get(self.turn)
            if out is None or out.position != position:
                return
            if out.piece is not None:
                for part in out.parts():
                    yield out.piece, part
            if not out.ended:
                self._take()
                continue
            if out.fault is not None:
                raise out.fault
            del self.out[self.turn]
            self.turn += 1
            if out.slot is not None:
                self.free.append(out.slot)

    def _give(self) -> None:
        """Pieces to the workers with the least to do, as far as memory allows."""
        while True:
            self.coming = out = self.coming or next(self.planned, None)
            if out is None:
                return
            if out.piece is not None:
                worker = min(self.workers, key=lambda each: each.load)
                if not self._has_room(out.piece, worker):
                    return
                if isinstance(out.piece, Shard) and self.free:
                    out.slot = self.free.pop()
                worker.give(self.given, out.piece, out.slot)
            self.out[self.given] = out
            self.given += 1
            self.coming = None

    def _has_room(self, piece: Piece, worker: Worker) -> bool:
        if not isinstance(piece, Shard):
            # Nothing waits behind a whole file, which may take long.
            return worker.load == 0 and len(self.out) < FILES_AHEAD
        cut = sum(isinstance(out.piece, Shard) for out in self.out.values())
        return worker.load < AHEAD and cut < AHEAD * len(self.workers)

    def _take(self) -> None:
        """What the workers have ready, at least one part or end."""
        ready = wait([worker.pipe for worker in self.workers if worker.load])
        for worker in [each for each in self.workers if each.pipe in ready]:
            number, came = worker.take(self.slots)
            out = self.out[number]
            if isinstance(came, Part):
                out.add(came, number == self.turn, self.folder)
            else:
                out.ended, out.fault = True, came


def _planned(plan: Iterable[tuple[int, Iterable[Piece]]]) -> Iterator[Out]:
    """Each piece; a fault on the way stands in its place, to be raised when its turn has come."""
    for position, pieces in plan:
        try:
            for piece in pieces:
                yield Out(position, piece)
        except OSError as fault:
            yield Out(position, None, ended=True, fault=fault)


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


# ---------------------------------------------------------------- one input


def take(crew: Crew, ledger: Ledger, position: int, name: str, output: BinaryIO) -> None:
    """One input of the plan, to its end. Raises `RefusalLimitError` as one worker does."""
    sums = ledger.begin(shown(name))
    last: Piece | None = None
    done = upto = 0
    for piece, part in crew.parts(position):
        done = done if piece is last else 0
        last, upto = piece, part.upto
        if ledger.bears(part.sums.refused):
            ledger.merge(sums, part, output.write)
            done += part.sums.read
        else:
            # The run stops inside this part: done once more, record by record, it stops where one worker would.
            with piece.opened(crew.task.max_line_bytes) as (_, lines):
                outcomes = crew.task.outcomes(
                    crew.step, islice(crew.task.picked(lines), done, None), sums.source, output
                )
                ledger.fill(sums, outcomes, crew.task.write(output))
    ledger.speaker.behind += upto
