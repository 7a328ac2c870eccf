"""The command line: options in, an exit status out.

A command only fills `Options` and a `Job`; `run` does the work: inputs -> records -> outcomes -> output and rows.
What takes long to import is imported when a command runs, so that ``--help`` and ``--version`` answer at once.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn

import click
from msgspec import Struct

from converter.files import STANDARD, opened, renamed_into, written
from converter.options import REPAIRS, Options
from converter.outcome import ALLOWABLE
from converter.records import MAX_LINE_BYTES, records

if TYPE_CHECKING:
    from converter.report import Ledger
    from converter.shards import Crew

WRITTEN, FAILED, REFUSED, INTERRUPTED, PIPE_CLOSED, TERMINATED = 0, 1, 3, 130, 141, 143
"""Exit statuses; click adds 2 for a command line that it does not understand."""


# ---------------------------------------------------------------- the run


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
    skip_existing: bool = False
    dry_run: bool = False
    quiet: bool = False

    def batches(self) -> list[tuple[str, tuple[str, ...]]]:
        """Each output, with the inputs that go into it in order."""
        if self.out_dir is None:
            return [(self.output, self.inputs)]
        outputs = renamed_into(self.out_dir, self.inputs)
        return [(output, (name,)) for name, output in zip(self.inputs, outputs, strict=True)]

    def check(self) -> None:
        """Raises `ValueError` where two outputs would be one file, or an output would replace an input."""
        data = [] if self.dry_run else [output for output, _ in self.batches()]
        inputs = {os.path.realpath(name) for name in self.inputs if name != STANDARD}
        seen = set()
        for name in (*data, *filter(None, (self.rejects, self.notices, self.report))):
            place = name if name == STANDARD else os.path.realpath(name)
            if place in inputs:
                raise ValueError(f"{name} is an input, and what is refused would be lost: give the output another name")
            if place in seen:
                raise ValueError(f"{name} would be written twice: give each output a name of its own")
            if name == STANDARD or os.path.isfile(place) or not os.path.exists(place):
                seen.add(place)


def run(job: Job, options: Options, step: Any) -> int:
    """Do the job; the exit status. Raises `OSError` where it cannot be done."""
    from converter.report import Ledger, RefusalLimitError, Speaker
    from converter.shards import Crew, Task, cores

    for name in job.inputs:
        if name != STANDARD and not os.access(name, os.R_OK):
            open(name, "rb").close()  # raises, before anything is written
    began = time.monotonic()
    skipped: list[str] = []
    with ExitStack() as stack:
        rejects, notices, report_file = (
            stack.enter_context(written(name, job.inputs)) if name else None
            for name in (job.rejects, job.notices, job.report)
        )
        speaker = Speaker(job.quiet, refusals=rejects is None)
        ledger = Ledger(speaker, rejects, notices, job.max_rejects)
        task = Task(
            command=job.command,
            options=options,
            max_line_bytes=job.max_line_bytes,
            data=not job.dry_run,
            rejects=rejects is not None,
            notices=notices is not None,
            refusals=speaker.refusals,
        )
        # A limit counts records over the whole run, which no worker sees.
        jobs = 1 if job.limit is not None else job.jobs or cores()
        crew = stack.enter_context(Crew(task, step, jobs))
        complete = True
        try:
            for output, names in job.batches():
                if job.skip_existing and os.path.exists(output):
                    skipped += names
                elif _left(job, ledger) != 0:
                    _batch(job, crew, ledger, output, names)
        except RefusalLimitError:
            complete = False
        report = ledger.report(job.command, time.monotonic() - began, complete, skipped)
        if report_file:
            report_file.write(report.json())
    speaker.finish(report)
    return REFUSED if report.refused else WRITTEN


def _batch(job: Job, crew: Crew, ledger: Ledger, output: str, names: tuple[str, ...]) -> None:
    if job.out_dir and not job.dry_run:
        os.makedirs(os.path.dirname(output), exist_ok=True)
    with written(os.devnull if job.dry_run else output, names) as stream:
        for name in names:
            left = _left(job, ledger)
            if left == 0:
                break
            _input(job, crew, ledger, name, stream, left)


def _input(job: Job, crew: Crew, ledger: Ledger, name: str, stream: BinaryIO, left: int | None) -> None:
    """One input, by all workers where it can be cut, else here."""
    from converter.shards import splits, take

    form = splits(name, job.form, job.max_line_bytes) if crew.jobs > 1 else None
    if form == "lines":
        take(crew, ledger, name, stream)
        return
    with opened(name) as source:
        lines = islice(records(source, form or job.form, job.max_line_bytes), left)
        ledger.take(source, crew.task.outcomes(crew.step, lines, stream), crew.task.write(stream))


def _left(job: Job, ledger: Ledger) -> int | None:
    return None if job.limit is None else job.limit - ledger.read


# ---------------------------------------------------------------- the ends of a run


def execute(job: Job, options: Options) -> NoReturn:
    """Run, and leave with the exit status: every way in which a run can break off ends here."""
    from converter.shards import prepare

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # so that files written aside are deleted
    try:
        try:
            job.check()
            step = prepare(job.command, options)
        except ValueError as fault:
            raise click.UsageError(str(fault)) from fault
        sys.exit(run(job, options, step))
    except BrokenPipeError:
        # The reader has enough. What is left in the buffer must not fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(PIPE_CLOSED)
    except KeyboardInterrupt:
        _leave("interrupted: the files that were being written are left as they were", INTERRUPTED)
    except OSError as fault:
        _leave(f"{fault.filename}: {fault.strerror}" if fault.filename else str(fault), FAILED)


def _leave(sentence: str, status: int) -> NoReturn:
    over_progress = "\r\x1b[K" if sys.stderr.isatty() else ""
    click.echo(f"{over_progress}converter: {sentence}", err=True)
    sys.exit(status)


# ---------------------------------------------------------------- values of options


def _tools(context: click.Context, parameter: click.Parameter, path: str | None) -> Any:
    """The tool definitions of a file, or a folder's schemas by tool name."""
    if path is None:
        return None
    if os.path.isdir(path):
        schemas = {
            name.removesuffix(".json"): _json(os.path.join(path, name))
            for name in sorted(os.listdir(path))
            if name.endswith(".json")
        }
        if not schemas:
            raise click.BadParameter(f"{path} holds no NAME.json, expected a parameter schema for each tool")
        return schemas
    tools = _json(path)
    if isinstance(tools, dict):
        tools = tools.get("tools")
    if not isinstance(tools, list):
        raise click.BadParameter(f"{path} is neither an array of tool definitions nor an object with one as 'tools'")
    return tools


def _json(path: str) -> Any:
    try:
        with open(path, encoding="utf-8-sig") as file:
            return json.load(file)
    except OSError as fault:
        raise click.BadParameter(f"{path}: {fault.strerror}") from fault
    except (ValueError, RecursionError) as fault:
        raise click.BadParameter(f"{path} is not JSON: {fault}") from fault


def _shape(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    """The name of a shape or a source, looked up only when asked for."""
    if name is None:
        return None
    shapes = import_module("converter.shapes")
    if name in shapes.UNREADABLE:
        raise click.BadParameter(f"{shapes.UNREADABLE[name].label}: {shapes.UNREADABLE[name].why}")
    if name not in shapes.KNOWN:
        raise click.BadParameter(f"{name!r} is not one of {', '.join(shapes.KNOWN)}")
    return name


def _pointer(context: click.Context, parameter: click.Parameter, given: Any) -> Any:
    """JSON Pointers (RFC 6901), as they were given."""
    for pointer in given if isinstance(given, tuple) else (given,):
        if pointer and not pointer.startswith("/"):
            raise click.BadParameter(f"{pointer!r} is no JSON Pointer, expected one like /{pointer}")
    return given


def _version(context: click.Context, parameter: click.Parameter, asked: bool) -> None:
    if asked:
        from converter import SPECIFICATION, __version__

        click.echo(f"converter {__version__} (Open Responses specification {SPECIFICATION})")
        context.exit()


# ---------------------------------------------------------------- options

Command = Callable[..., Any]


def _together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, in this order in the help."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


option = click.option
flag = partial(click.option, is_flag=True)
file = partial(click.option, metavar="FILE")
count = partial(click.option, metavar="N", type=click.IntRange(min=1))
index = partial(click.option, metavar="N", type=click.IntRange(min=0))
several = partial(click.option, multiple=True)
where = partial(click.option, metavar="POINTER", callback=_pointer, show_default=True)


def choices(name: str, known: Iterable[str], metavar: str, text: str) -> Callable[[Command], Command]:
    """A repeatable option for one of many names: listed in the help, where a metavar of that length has no room."""
    names = sorted(known)
    return several(name, type=click.Choice(names), metavar=metavar, help=f"{text}: {', '.join(names)}.")


run_options: Final = _together(
    click.argument("inputs", nargs=-1, metavar="[INPUT]..."),
    file("-o", "--output", default=STANDARD, help="Write to FILE; - is standard output, and the default."),
    file("--rejects", help="Keep refused records in FILE, with their reasons."),
    file("--notices", help="Write to FILE what a reader of the written records must know."),
    file("--report", help="Write the sums of the run to FILE, as JSON."),
    count("--jobs", help="Use up to N processes for a large plain file of one record a line. Default: all processors."),
    count("--limit", help="Stop after N records."),
    flag("--fail-fast", help="Stop at the first refusal, and write no output."),
    index("--max-rejects", help="Stop when more than N records are refused, and write no output."),
    count("--max-line-bytes", default=MAX_LINE_BYTES, show_default=True, help="Refuse longer lines."),
    flag("-q", "--quiet", help="No refusals, progress or summary on standard error."),
)

record_options: Final = _together(
    option("--tools", metavar="PATH", callback=_tools, help="Tools: a JSON file, or a folder of NAME.json schemas."),
    flag("--require-schema", help="Refuse calls of tools whose schema is not known."),
    choices("--allow", ALLOWABLE, metavar="REASON", text="Write in spite of this reason, with a notice. Repeatable"),
    option("--from", "shape", metavar="SHAPE", callback=_shape, help="What the records are; otherwise it is found."),
    several("--at", metavar="POINTER", callback=_pointer, help="Convert only the value at this pointer. Repeatable."),
    where("--request-at", default="/request", help="Where the request of a pair stands."),
    where("--response-at", default="/response", help="Where the response of a pair stands."),
    index("--choice", help="Take the choice of a completion with this index."),
)

convert_options: Final = _together(
    option("--out-dir", metavar="DIR", help="Write one output for each input, of the same name, below DIR."),
    flag("--skip-existing", help="Leave out inputs whose output exists."),
    flag("--dry-run", help="Write no output, only rejects, notices, report and summary."),
    choices("--repair", REPAIRS, metavar="NAME", text="Change recorded data in this way, with a notice. Repeatable"),
    option(
        "--reasoning",
        type=click.Choice(["drop", "keep", "summary"]),
        default="drop",
        show_default=True,
        help="What to do with reasoning that the released schema has no place for.",
    ),
    option(
        "--target",
        type=click.Choice(["core", "openai"]),
        default="core",
        show_default=True,
        help="Write by the released schema, or with OpenAI's additions.",
    ),
    flag("--strict", help="Refuse records that lose anything."),
    several("--accept-loss", metavar="PATTERN", help="A loss to bear, as /messages/*/name. Repeatable."),
    flag("--verify", help="Read back and compare before writing."),
)


# ---------------------------------------------------------------- commands


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@flag("--version", is_eager=True, expose_value=False, callback=_version, help="Show tool and specification version.")
def main() -> None:
    """Convert logs between Chat Completions and Open Responses, offline.

    \b
    Exit status:
      0    all records written
      1    could not run: a file cannot be read or written, or is damaged
      2    the command line is wrong
      3    finished, and some records were refused
      130  interrupted
      141  the reader of standard output closed it
    """


@main.command()
@run_options
@record_options
@convert_options
@click.pass_context
def to_responses(context: click.Context, /, **given: Any) -> None:
    """Chat Completions logs to Open Responses items.

    INPUT holds one JSON record a line, or one array of records, or one record over several lines, or SSE text;
    no INPUT or - is standard input. Compressed files (.gz, .bz2, .xz, .zst) are read and written.

    \b
    Examples:
      converter to-responses chat.jsonl -o items.jsonl --rejects refused.jsonl
      converter to-responses logs/*.jsonl.gz --out-dir items --report report.json
      cat chat.jsonl | converter to-responses --tools tools.json | head
    """
    _start(context, given)


@main.command()
@run_options
@record_options
@convert_options
@click.pass_context
def to_chat(context: click.Context, /, **given: Any) -> None:
    """Open Responses items to Chat Completions messages.

    INPUT holds one JSON record a line, or one array of records, or one record over several lines, or SSE text;
    no INPUT or - is standard input. Compressed files (.gz, .bz2, .xz, .zst) are read and written.

    \b
    Examples:
      converter to-chat items.jsonl -o chat.jsonl --rejects refused.jsonl
      converter to-chat responses.jsonl --reasoning keep --strict > chat.jsonl
    """
    _start(context, given)


@main.command()
@run_options
@record_options
@click.pass_context
def check(context: click.Context, /, **given: Any) -> None:
    """The replay gate alone, over records of either envelope.

    Prints a line for each item, its fields separated by tabs, without a header: line, position, type, name,
    call_id, status, verdict. The exit status is 3 if anything is refused.

    \b
    Examples:
      converter check items.jsonl --tools tools.json
      converter check chat.jsonl | cut -f 7 | sort | uniq -c
    """
    _start(context, given)


def _start(context: click.Context, given: dict[str, Any]) -> NoReturn:
    """Sort what was given into its two descriptions, refuse what contradicts itself, and run."""
    given["inputs"] = given["inputs"] or (STANDARD,)
    if given.pop("fail_fast"):
        given["max_rejects"] = 0
    if given.get("out_dir") and given["output"] != STANDARD:
        raise click.UsageError("--output and --out-dir exclude each other")
    if given.get("out_dir") and STANDARD in given["inputs"]:
        raise click.UsageError("--out-dir needs named inputs: standard input has no name for its output")
    if given.get("skip_existing") and not given["out_dir"] and given["output"] == STANDARD:
        raise click.UsageError("--skip-existing needs --out-dir or --output: standard output has no name")
    try:
        options = Options(**{name: given.pop(name) for name in Options.__struct_fields__ if name in given})
    except ValueError as fault:
        raise click.UsageError(str(fault)) from fault
    form = import_module("converter.shapes").FILES.get(options.shape, "auto") if options.shape else "auto"
    execute(Job(command=str(context.info_name), form=form, **given), options)
