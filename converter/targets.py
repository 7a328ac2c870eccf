"""Files that are written: each beside its target, and renamed when it is complete.

The order of the renames is decided here, in `Targets`. The files with rows (rejects, notices, report) go before the
data: a data file that stands while the rejects of its records are missing would have lost these records.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from queue import SimpleQueue
from stat import S_IMODE
from threading import Thread
from typing import Any, BinaryIO, Final

from msgspec import Struct

from converter.files import BUFFER, STANDARD, compressed, named

STREAMS: Final = {
    STANDARD: "stdout",
    "/dev/stdout": "stdout",
    "/dev/fd/1": "stdout",
    "/dev/stderr": "stderr",
    "/dev/fd/2": "stderr",
}
"""Names of what this process has open. Followed as links, they lead to the file that the shell redirected into."""

BEHIND: Final = 8 << 20
"""Bytes after which what was written is sent on its way to the disk, so that little is left to wait for at the end."""


class Aside(Struct, frozen=True):
    """A file that is being written: its name as it was given, where it is written, and where it will stand.

    ``mode``: what group and others may do with it at most.
    """

    name: str
    path: str
    target: str
    mode: int

    def place(self) -> None:
        """Rename. Raises `OSError`."""
        os.replace(self.path, self.target)
        # The new name lasts only when the folder is on disk; some file systems cannot be asked for it.
        with suppress(OSError):
            folder = os.open(os.path.dirname(self.target), os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    @contextmanager
    def filled(self) -> Iterator[BinaryIO]:
        """A stream to the new file, compressed as its name says. The file is on disk when the block ends.

        Raises `OSError` with the name that was given.
        """
        with io.BufferedWriter(_Named(self.path, "xb", self.name, self.mode), BUFFER) as file:
            with _sent_ahead(file.raw), compressed(self.name, file) as stream:
                yield stream
            file.flush()
            os.fsync(file.fileno())

    def drop(self) -> None:
        """Delete what was written."""
        with suppress(FileNotFoundError):
            os.unlink(self.path)


class _Named(io.FileIO):
    """A file to write to, whose faults tell the name that was given. ``often`` is called as it grows."""

    def __init__(self, path: str, mode: str, given: str, permissions: int = 0o666) -> None:
        self.given = given
        self.often: Callable[[], None] | None = None
        self.fresh = 0
        try:
            super().__init__(path, mode, opener=lambda path, flags: os.open(path, flags, permissions))
        except OSError as fault:
            raise OSError(fault.errno, fault.strerror, given) from fault

    def write(self, data: Any) -> Any:
        """Write, as far as there is room."""
        with named(self.given):
            count: int | None = super().write(memoryview(data)[:BUFFER])
        self.fresh += count or 0  # what cannot be written now, because nobody reads, is tried again
        if self.fresh >= BEHIND and self.often:
            self.fresh = 0
            self.often()
        return count


@contextmanager
def _sent_ahead(file: _Named) -> Iterator[None]:
    """Inside the block, a thread has the disk write what was written to the file while more of it is being made.

    Where the block is broken off, nobody waits for the disk: the file will be deleted.
    """
    asked: SimpleQueue[bool] = SimpleQueue()
    thread = Thread(target=_send, args=(file.name, asked), daemon=True)

    def often() -> None:
        if thread.ident is None:
            with suppress(RuntimeError):  # as many threads as there may be
                thread.start()
        if asked.empty():  # what waits there already will be about this too
            asked.put(True)

    if hasattr(os, "fdatasync"):
        file.often = often
    try:
        yield
        if thread.ident is not None:
            asked.put(False)
            thread.join()
    finally:
        file.often = None
        asked.put(False)


def _send(path: str, asked: SimpleQueue[bool]) -> None:
    """Send a file to the disk as often as it is asked for.

    A fault of the disk is told to each descriptor: that of the writer hears of it too, which asks once more at the end.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the main thread
    with suppress(OSError), open(path, "rb", buffering=0) as file:
        while asked.get():
            os.fdatasync(file.fileno())


class Targets(AbstractContextManager["Targets"]):
    """The files of a run. When it ends without an exception, what is complete is renamed: rows first, then data.

    Nobody may read a file who may not read all ``inputs``, and what stood in its place, from its first byte on.
    Everything else that was begun is deleted. ``ready`` is called before the first rename: from there on nothing may
    break in, for the renames belong together.
    """

    def __init__(self, ready: Callable[[], object] = lambda: None, inputs: Sequence[str] = ()) -> None:
        self.ready = ready
        self.inputs = inputs
        self.begun: dict[str, Aside] = {}
        self.rows: list[Aside] = []
        self.data: list[Aside] = []

    def __exit__(self, kind: Any, *_: object) -> None:
        try:
            if kind is None:
                self.ready()
                for aside in (*self.rows, *self.data):
                    self.place(aside)
        finally:
            for aside in self.begun.values():
                aside.drop()

    def begin(self, name: str, inputs: Sequence[str] | None = None) -> Aside:
        """A new file beside the target of this name, made of these inputs, or of all; a link stays a link."""
        target = os.path.realpath(name)
        path = f"{target}.{os.urandom(4).hex()}.part"
        aside = self.begun[path] = Aside(
            name, path, target, _mode((*(self.inputs if inputs is None else inputs), target))
        )
        return aside

    def place(self, aside: Aside) -> None:
        """Rename now. Raises `OSError`."""
        aside.place()
        del self.begun[aside.path]

    @contextmanager
    def written(
        self, name: str, held: list[Aside] | None = None, inputs: Sequence[str] | None = None
    ) -> Iterator[BinaryIO]:
        """A stream to write to. Where the block ends without an exception, the file is complete.

        It is renamed at once, or, with ``held`` (`rows` or `data`), at the end of the run. ``-`` is standard output.
        What is not a regular file (a pipe, ``/dev/null``) is written directly. The suffix of the name says the
        compression.
        """
        if name in STREAMS:
            stream: BinaryIO = getattr(sys, STREAMS[name]).buffer
            yield stream
            stream.flush()
        elif special(name):
            with io.BufferedWriter(_Named(name, "wb", name), BUFFER) as direct, compressed(name, direct) as stream:
                yield stream
        else:
            aside = self.begin(name, inputs)
            with aside.filled() as stream:
                yield stream
            self.finish(aside, held)

    def finish(self, aside: Aside, held: list[Aside] | None) -> None:
        """The file is complete: rename it, or keep it for the end of the run."""
        if held is None:
            self.place(aside)
        else:
            held.append(aside)


def _mode(names: Sequence[str]) -> int:
    """What group and others may do with all of these files; the process's umask comes on top. A pipe says nothing."""
    mode = 0o666
    for name in names:
        if os.path.isfile(name):
            mode &= S_IMODE(os.stat(name).st_mode) | 0o600
    return mode


def special(name: str) -> bool:
    """Whether something stands there that is no regular file: it is written to, and not replaced."""
    return os.path.exists(name) and not os.path.isfile(name)


@contextmanager
def written(name: str, inputs: Sequence[str] = ()) -> Iterator[BinaryIO]:
    """One file, that is renamed when the block ends without an exception."""
    with Targets(inputs=inputs) as targets, targets.written(name) as stream:
        yield stream
