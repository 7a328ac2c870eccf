"""The command line: options in, an exit status out.

A command only fills `Options` and a `Job`; `converter.job` does the work.
What takes long to import is imported when a command runs, so that ``--help`` and ``--version`` answer at once.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from converter.files import STANDARD
from converter.options import REPAIRS, Options
from converter.outcome import ALLOWABLE
from converter.records import MAX_LINE_BYTES

if TYPE_CHECKING:
    from converter.job import Job

WRITTEN, FAILED, REFUSED, PIPE_CLOSED = 0, 1, 3, 141
"""Exit statuses; click adds 2 for a command line that it does not understand."""


# ---------------------------------------------------------------- the ends of a run


STOPS: Final[dict[int, tuple[str, int]]] = {signal.SIGINT: ("interrupted", 130), signal.SIGTERM: ("terminated", 143)}
"""For the signals that ask for an end: what is said, and the exit status."""


class Stopped(BaseException):
    """A signal of `STOPS` came."""


def _deaf() -> None:
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def ends() -> Iterator[None]:
    """Every way in which a run can break off ends here, with a sentence and an exit status."""
    came: list[int] = []

    def stop(number: int, frame: Any) -> NoReturn:
        _deaf()  # what was begun is cleared away once, undisturbed
        came.append(number)
        raise Stopped

    try:
        for number in STOPS:
            if signal.getsignal(number) != signal.SIG_IGN:  # as a shell has it for what runs in the background
                signal.signal(number, stop)
        yield
    except (Stopped, Exception) as fault:
        if came:
            # Not only for Stopped: a stream that is just being asked whether it is closed makes a ValueError of it.
            said, status = STOPS[came[0]]
            _leave(f"{said}: the files that were being written are left as they were", status)
        _broken_off(fault)
        raise


def _broken_off(fault: BaseException) -> None:
    """Leave, where there is a sentence for the fault."""
    if isinstance(fault, BrokenPipeError):
        _close_output()
        sys.exit(PIPE_CLOSED)
    if isinstance(fault, OSError):
        if fault.errno and not fault.filename:
            _close_output()  # all that has a name tells it
        _leave(f"{fault.filename or 'standard output'}: {fault.strerror}" if fault.strerror else str(fault), FAILED)
    if isinstance(fault, MemoryError):
        _leave("a record needs more memory than there is", FAILED)


def execute(job: Job, options: Options) -> NoReturn:
    """Run, and leave with the exit status."""
    from converter.job import run
    from converter.task import prepare

    try:
        job.check()
        step = prepare(job.command, options)
    except ValueError as fault:
        raise click.UsageError(str(fault)) from fault
    gc.freeze()  # what is loaded stays, and need not be looked through again and again
    sys.exit(REFUSED if run(job, options, step, ready=_deaf).refused else WRITTEN)


def _close_output() -> None:
    """What is left in the buffer of standard output must not fail once more when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
        from converter import VERSIONS

        click.echo(VERSIONS)
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
    count("--jobs", help="Use up to N processes for a large file, or many. Default: all processors."),
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
    option(
        "--from",
        "shape",
        metavar="SHAPE",
        callback=_shape,
        help="What the records are; otherwise it is found. A wrong name lists all.",
    ),
    several("--at", metavar="POINTER", callback=_pointer, help="Convert only the value at this pointer. Repeatable."),
    where("--request-at", default="/request", help="Where the request of a pair stands."),
    where("--response-at", default="/response", help="Where the response of a pair stands."),
    index("--choice", help="Take the choice of a completion with this index."),
)

output_options: Final = _together(
    option("--out-dir", metavar="DIR", help="Write one output for each input, of the same name, below DIR."),
    flag("--skip-existing", help="Leave out inputs whose output exists."),
    flag("--dry-run", help="Write no output, only rejects, notices, report and summary."),
)

convert_options: Final = _together(
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
    several(
        "--accept-loss", metavar="PATTERN", callback=_pointer, help="A loss to bear, as /messages/*/name. Repeatable."
    ),
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
      143  terminated
    """


@main.command()
@run_options
@record_options
@output_options
@convert_options
@click.pass_context
def to_responses(context: click.Context, /, **given: Any) -> None:
    """Chat Completions logs to Open Responses items.

    INPUT holds one JSON record a line, or one array of records, or one record over several lines, or SSE text;
    no INPUT or - is standard input. Compressed files (.gz, .bz2, .xz, .zst) and tables (.parquet) are read and written,
    .arrow files are read.

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
@output_options
@convert_options
@click.pass_context
def to_chat(context: click.Context, /, **given: Any) -> None:
    """Open Responses items to Chat Completions messages.

    INPUT holds one JSON record a line, or one array of records, or one record over several lines, or SSE text;
    no INPUT or - is standard input. Compressed files (.gz, .bz2, .xz, .zst) and tables (.parquet) are read and written,
    .arrow files are read.

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


@main.command()
@run_options
@several(
    "--line",
    "lines",
    metavar="N",
    type=click.IntRange(min=1),
    help="Look at the record that begins on line N. Repeatable.",
)
@record_options
@convert_options
@click.pass_context
def inspect(context: click.Context, /, **given: Any) -> None:
    """Look at records: each item beside the one that it becomes.

    Each record is led to the other envelope. For each of its items some lines are printed: where it stands, its type
    (of a call also status and verdict), name and call_id, and what it says (arguments, output or text). On the right
    stands what it becomes, with = where that is the same to the last character. Notices or reasons stand below.
    The exit status is 3 if anything is refused, 1 if no record begins on the lines that are asked for.

    \b
    Examples:
      converter inspect chat.jsonl --line 1207
      converter inspect responses.jsonl --limit 5 | less -S
    """
    _start(context, given)


def _start(context: click.Context, given: dict[str, Any]) -> NoReturn:
    with ends():
        execute(*_sorted(context, given))


def _sorted(context: click.Context, given: dict[str, Any]) -> tuple[Job, Options]:
    """What was given, in its two descriptions. Raises `click.UsageError` where it contradicts itself."""
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
    from converter.job import Job

    return Job(command=str(context.info_name), form=form, **given), options
