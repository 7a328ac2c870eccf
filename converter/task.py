"""What is done with the records of a piece: the same in every process."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from importlib import import_module
from itertools import islice
from typing import Any, BinaryIO, Final

from msgspec import Struct

from converter import records
from converter.options import LOOKS, Options
from converter.outcome import Converted, Reason, Rejected
from converter.report import Ledger, Listener, Part
from converter.shards import Piece, shown
from converter.sheets import refusal

PART: Final = 6 << 20
"""Bytes of output from which a part is given; the last record is added whole."""

RECORDS: Final = 4096
"""Records from which a part is given: what bounds the sums, and how long a worker works for a parent that has ended."""


MODULES: Final = {
    "to-responses": "converter.convert",
    "to-chat": "converter.convert",
    "check": "converter.check",
    "inspect": "converter.inspection",
}
"""The room that does a command's work."""


def prepare(command: str, options: Options) -> Any:
    """The function from a record to its outcome. Raises `ValueError` where an option makes no sense."""
    prepared = import_module(MODULES[command]).prepare
    return prepared(options) if command in LOOKS else prepared(command, options)


class Task(Struct, frozen=True, kw_only=True):
    """What to do with the records of any input: the same in every process.

    ``data``, ``rejects``, ``notices`` and ``refusals`` (on standard error) say what of the outcome is wanted; ``lines``
    on which lines, where it is not all.
    """

    command: str
    options: Options
    max_line_bytes: int
    data: bool = True
    rejects: bool = False
    notices: bool = False
    refusals: bool = False
    lines: frozenset[int] = frozenset()

    def picked(self, lines: records.Lines) -> records.Lines:
        """The records that begin on the lines that are asked for, or all."""
        return ((line, text) for line, text in lines if line in self.lines) if self.lines else lines

    def outcomes(self, step: Any, lines: records.Lines, name: str, output: BinaryIO) -> Iterator[Converted | Rejected]:
        """The outcome of each record; what a command of `LOOKS` shows goes to the output on the way.

        ``name`` is that of the input.
        """
        if self.command in LOOKS:
            step = _listing(step, name, output)
        for line, text in lines:
            if text is None:
                sentence = (
                    f"a line of more than {self.max_line_bytes} bytes, skipped without being held "
                    "(--max-line-bytes allows more)"
                )
                rejected = Rejected(line, [Reason("too_long", "", sentence)], b"")
                if self.command == "inspect":
                    output.write(refusal(rejected).shown(name).encode(errors="replace") + b"\n")
                yield rejected
            else:
                yield step(line, text)

    def write(self, output: BinaryIO) -> Any:
        """Where the bytes of an outcome go; a command that looks, and a dry run, write none."""
        return output.write if self.data and self.command not in LOOKS else len


def _listing(look: Any, name: str, output: BinaryIO) -> Any:
    """What there is to see of a record goes to the output, whatever its outcome."""

    def step(line: int, text: bytes) -> Converted | Rejected:
        seen, outcome = look(line, text)
        for each in seen:
            output.write(each.shown(name).encode(errors="replace") + b"\n")
        kept: Converted | Rejected = outcome
        return kept

    return step


def parts(piece: Piece, task: Task, step: Any) -> Iterator[Part]:
    """What a piece gives, as a run of its own would write it; at least one part, whose bytes last until the next.

    Raises `OSError`.
    """
    streams = output, rejects, notices = io.BytesIO(), io.BytesIO(), io.BytesIO()
    rows = rejects if task.rejects else None, notices if task.notices else None
    direct = piece.aside.filled() if piece.aside else nullcontext(output)
    with piece.opened(task.max_line_bytes) as (source, lines), direct as target:
        outcomes = task.outcomes(step, task.picked(lines), shown(piece.name), output)
        full = True
        while full:
            listener = Listener(task.refusals)
            # No bound on names: a part has few, and the parent tells apart the first ones of the whole file.
            ledger = Ledger(listener, *rows, None, distinct=sys.maxsize)
            sums = ledger.begin(shown(piece.name))
            ledger.fill(sums, _some(outcomes, streams), task.write(target))
            full = sums.read == RECORDS or _size(streams) >= PART
            upto = piece.start + source.counted.count
            views = [stream.getbuffer()[: stream.tell()] for stream in streams]
            yield Part(views[0], views[1], views[2], sums, listener.kept, listener.omitted, upto)
            for stream, view in zip(streams, views, strict=True):
                view.release()
                stream.seek(0)  # what is allocated is filled again


def _some(outcomes: Iterator[Converted | Rejected], streams: tuple[io.BytesIO, ...]) -> Iterator[Converted | Rejected]:
    for outcome in islice(outcomes, RECORDS):
        yield outcome
        if _size(streams) >= PART:
            return


def _size(streams: tuple[io.BytesIO, ...]) -> int:
    return sum(stream.tell() for stream in streams)
