"""A run: what to read and where to write, and the doing of it: inputs -> records -> outcomes -> output and rows."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import islice
from typing import Any, BinaryIO

from msgspec import Struct

from converter.crew import Crew, cores, take
from converter.files import STANDARD, is_table, opened, renamed_into
from converter.options import LOOKS, Options
from converter.records import MAX_LINE_BYTES, records
from converter.report import Ledger, RefusalLimitError, Report, Speaker
from converter.shards import Piece, pieces, shared, size
from converter.targets import STREAMS, Aside, Targets, special
from converter.task import Task

Inputs = tuple[tuple[int, str], ...]
Batch = tuple[str, Inputs]


class Job(Struct, frozen=True, kw_only=True):
    """What to read and where to write, apart from how to convert."""

    command: str
    inputs: tuple[str, ...]
    form: str = "auto"
    output: str = STANDARD
    out_dir: str | None = None
    rejects: str | None = None
    notices: str | None = None
    report: str | None = None
    jobs: int | None = None
    limit: int | None = None
    max_rejects: int | None = None
    max_line_bytes: int = MAX_LINE_BYTES
    lines: tuple[int, ...] = ()
    skip_existing: bool = False
    dry_run: bool = False
    quiet: bool = False

    def batches(self) -> list[Batch]:
        """Each output, with the inputs that go into it in order, each behind its position among all."""
        numbered = tuple(enumerate(self.inputs))
        if self.out_dir is None:
            return [(self.output, numbered)]
        outputs = renamed_into(self.out_dir, self.inputs)
        return [(output, (one,)) for one, output in zip(numbered, outputs, strict=True)]

    def check(self) -> None:
        """Raises `ValueError` where two outputs would be one file, an output would replace an input, or is no table."""
        data = [] if self.dry_run else [output for output, _ in self.batches()]
        inputs = {os.path.realpath(name) for name in self.inputs if name != STANDARD}
        seen = set()
        standing = self.skip_existing and any(os.path.exists(output) for output, _ in self.batches())
        for name in filter(None, (self.rejects, self.notices)):
            if standing and os.path.isfile(name):
                raise ValueError(
                    f"{name} may hold rows of inputs that --skip-existing leaves out, and they would be lost: "
                    "give this run's rows another name"
                )
        if self.report and is_table(self.report):
            raise ValueError(f"{self.report} is a table, and the report is one JSON object: give it another name")
        if self.command in LOOKS and is_table(self.output):
            raise ValueError(f"{self.output} is a table, and {self.command} writes lines of text: give it another name")
        for name in (*data, *filter(None, (self.rejects, self.notices, self.report))):
            place = STREAMS.get(name) or os.path.realpath(name)
            if place in inputs:
                raise ValueError(f"{name} is an input, and what is refused would be lost: give the output another name")
            if place in seen:
                raise ValueError(f"{name} would be written twice: give each output a name of its own")
            if place == "stdout" or os.path.isfile(place) or not os.path.exists(place):
                seen.add(place)


class Run(Struct, frozen=True, kw_only=True):
    """A job that is being done. ``held``: where complete outputs wait for the end of the run, if they do."""

    job: Job
    ledger: Ledger
    crew: Crew
    targets: Targets
    held: list[Aside] | None


def run(job: Job, options: Options, step: Any, ready: Callable[[], object] = lambda: None) -> Report:
    """Do the job. ``ready`` is called when all is written, before it is put in its place.

    Raises `OSError` where it cannot be done.
    """
    for name in job.inputs:
        if os.path.isdir(name):
            raise OSError(None, f"a folder, expected files ({os.path.join(name, '*.jsonl')} names those in it)", name)
        if name != STANDARD and not os.access(name, os.R_OK):
            open(name, "rb").close()  # raises, before anything is written
    began = time.monotonic()
    batches, skipped = _ahead(job)
    names = tuple(name for _, inputs in batches for _, name in inputs)
    with Targets(ready, job.inputs) as targets, _crew(job, options, step, names) as crew, ExitStack() as stack:
        rejects, notices, report_file = (
            stack.enter_context(targets.written(name, targets.rows)) if name else None
            for name in (job.rejects, job.notices, job.report)
        )
        ledger = Ledger(_speaker(job, names), rejects, notices, job.max_rejects)
        # With an output for each input, those that are complete stand at once, so that a later run can go on behind
        # them. Where rows are kept, the outputs wait for them: rows of an output that stands must not be lost.
        held = None if job.out_dir and not (rejects or notices) else targets.data
        this = Run(job=job, ledger=ledger, crew=crew, targets=targets, held=held)
        crew.follow(_plan(this, batches))
        complete = True
        try:
            for output, inputs in batches:
                if _left(this) != 0:
                    _batch(this, output, inputs)
        except RefusalLimitError:
            complete = False
        if job.lines and not ledger.read:
            asked = " or ".join(map(str, job.lines))
            raise OSError(f"no record begins on line {asked} of {' or '.join(job.inputs)}")
        report = ledger.report(job.command, time.monotonic() - began, complete, skipped)
        if report_file:
            report_file.write(report.json())
    ledger.speaker.finish(report)
    return report


def _crew(job: Job, options: Options, step: Any, names: tuple[str, ...]) -> Crew:
    """The workers, to be started where they pay, before a library that opens files starts threads."""
    task = Task(
        command=job.command,
        options=options,
        max_line_bytes=job.max_line_bytes,
        data=not job.dry_run,
        rejects=job.rejects is not None,
        notices=job.notices is not None,
        refusals=_tells(job) and not job.quiet,
        lines=frozenset(job.lines),
    )
    # A limit counts records over the whole run, which no worker sees.
    jobs = 1 if job.limit is not None else job.jobs or cores()
    work = shared(names, job.form, job.max_line_bytes) if jobs > 1 else frozenset()
    return Crew(task, step, jobs, work, _folder(job))


def _tells(job: Job) -> bool:
    """Whether refusals are told on standard error: no file has them, and no sheet shows them."""
    return job.rejects is None and job.command != "inspect"


def _speaker(job: Job, names: tuple[str, ...]) -> Speaker:
    crowded = job.output == STANDARD and job.out_dir is None and not job.dry_run and sys.stdout.isatty()
    return Speaker(job.quiet, refusals=_tells(job), crowded=crowded, size=size(names))


def _ahead(job: Job) -> tuple[list[Batch], list[str]]:
    """The batches to be done, and the inputs that are left out."""
    batches, skipped = [], []
    for output, inputs in job.batches():
        if job.skip_existing and os.path.exists(output):
            skipped += [name for _, name in inputs]
        else:
            batches.append((output, inputs))
    return batches, skipped


def _folder(job: Job) -> str | None:
    """Where there is room for what is to be written: beside the output."""
    return None if job.output == STANDARD or job.dry_run else os.path.dirname(os.path.realpath(job.output))


def _plan(this: Run, batches: list[Batch]) -> Iterator[tuple[int, Iterable[Piece]]]:
    """The work of the crew, by the positions of its inputs."""
    job = this.job
    for output, inputs in batches:
        own = bool(job.out_dir) and not job.dry_run and not special(output)
        for position, name in inputs:
            if name in this.crew.work:
                begin = partial(_begun, this, output, name) if own else lambda: None
                yield position, pieces(name, job.form, job.max_line_bytes, begin)


def _begun(this: Run, output: str, name: str) -> Aside:
    os.makedirs(os.path.dirname(output), exist_ok=True)
    return this.targets.begin(output, (name,))


def _batch(this: Run, output: str, inputs: Inputs) -> None:
    job = this.job
    if job.out_dir and not job.dry_run:
        os.makedirs(os.path.dirname(output), exist_ok=True)
    aside = this.crew.aside(inputs[0][0]) if this.crew.work else None
    if aside:
        with open(os.devnull, "wb") as stream:
            _input(this, *inputs[0], stream)
        this.targets.finish(aside, this.held)
        return
    names = [name for _, name in inputs]
    with this.targets.written(os.devnull if job.dry_run else output, this.held, names) as stream:
        for position, name in inputs:
            if _left(this) == 0:
                break
            _input(this, position, name, stream)


def _input(this: Run, position: int, name: str, stream: BinaryIO) -> None:
    """One input, by the workers or here."""
    job, crew, ledger = this.job, this.crew, this.ledger
    if name in crew.work:
        take(crew, ledger, position, name, stream)
        return
    with opened(name) as source:
        lines = islice(crew.task.picked(records(source, job.form, job.max_line_bytes)), _left(this))
        ledger.take(source, crew.task.outcomes(crew.step, lines, source.name, stream), crew.task.write(stream))


def _left(this: Run) -> int | None:
    return None if this.job.limit is None else this.job.limit - this.ledger.read
