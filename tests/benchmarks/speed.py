"""How fast the converter is: against decoding and encoding alone, against its peers, and as records grow.

Run it as ``python tests/benchmarks/speed.py``. All contenders take turns in many short rounds of one process, and each
ratio is the median over the rounds of a contender's time over the floor's in the same round: a busy machine slows both.
What counts is the processor time of this thread. ``--profile`` shows where the converter's own time goes.

``--log FILE.jsonl [--member KEY]`` measures a log of one's own instead: its records one after another, as the command
takes them, for the first time and again.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import platform
import pstats
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any, Final, NamedTuple

import msgspec
from peers import PEERS
from samples import (
    CALLS,
    GROWTHS,
    LENGTHS,
    TOOLS,
    VERBS,
    Agent,
    Sample,
    agent,
    conversation,
    of_length,
    recorded,
    with_tools,
)

from converter import chat, responses
from converter.convert import Session
from converter.options import Options
from converter.outcome import Account, Converted, Refused, Rejected
from converter.shapes import open_record

FLOOR: Final = "untyped msgspec decode + encode"
PROJECT: Final = "this project"
FRESH: Final = ", every record different"

_STRUCTS: Final = {"to-responses": chat.Request, "to-chat": responses.Request}
_TITLES: Final = {"to-responses": "chat → items", "to-chat": "items → chat"}


class Effort(NamedTuple):
    """How long to measure: rounds, seconds a contender has in each, and the sizes of the three small tables.

    ``sessions`` and ``passes`` are those over a log: fresh processes, and how often each goes on after its first pass.
    """

    rounds: int = 40
    seconds: float = 0.01
    lengths: tuple[int, ...] = LENGTHS
    growths: tuple[int, ...] = GROWTHS
    tools: tuple[int, ...] = TOOLS
    sessions: int = 3
    passes: int = 5


QUICK: Final = Effort(3, 0.001, LENGTHS[:2], GROWTHS[:1], TOOLS[:2], 1, 1)
MOST_RECORDS: Final = 1000


class Contender(NamedTuple):
    """A way to convert a record. ``fresh``: over records that differ, and against the floor over the same records."""

    name: str
    convert: Callable[[bytes], Any]
    fresh: bool = False

    @property
    def floor(self) -> str:
        return FLOOR + FRESH * self.fresh


class Result(NamedTuple):
    """Seconds for one conversation, and how often the floor fits into them."""

    seconds: float
    ratio: float


# ---------------------------------------------------------------- contenders


def floor() -> Callable[[bytes], bytes]:
    decode, encode = msgspec.json.decode, msgspec.json.encode
    return lambda record: encode(decode(record))


def typed(verb: str) -> Callable[[bytes], bytes]:
    """The project's own structs, in and out, without a conversion."""
    decode, encode = msgspec.json.Decoder(_STRUCTS[verb]).decode, msgspec.json.Encoder().encode
    return lambda record: encode(decode(record))


def orjson() -> Callable[[bytes], bytes]:
    from orjson import dumps, loads

    return lambda record: dumps(loads(record))


def project(verb: Any, **options: Any) -> Callable[[bytes], bytes]:
    """What the command line does with a record."""
    convert = Session(verb, Options(**options)).convert
    return lambda record: convert(record)[0]


def contenders(verb: str, notes: set[str]) -> list[Contender]:
    """All that can be had here; the notes say what cannot."""
    found = [Contender(FLOOR, floor()), Contender("typed msgspec decode + encode, own structs", typed(verb))]
    try:
        found.append(Contender("orjson loads + dumps", orjson()))
    except ImportError:
        notes.add("orjson is not installed: `pip install orjson`")
    found += [
        Contender(PROJECT, project(verb)),
        Contender(f"{PROJECT}, --strict", project(verb, strict=True)),
        Contender(f"{PROJECT}, --verify", project(verb, verify=True)),
        *compared(verb),
        *loaded(verb, notes),
    ]
    return [one for one in found if works(one, verb, notes)]


def compared(verb: str) -> list[Contender]:
    """The floor and the project over records that differ: no verdict is found again."""
    return [Contender(FLOOR + FRESH, floor(), True), Contender(PROJECT + FRESH, project(verb), True)]


def loaded(verb: str, notes: set[str]) -> Iterable[Contender]:
    for peer in PEERS:
        try:
            directions = peer.load()
        except ModuleNotFoundError:
            notes.add(f"{peer.name} is not installed: `{peer.install}`")
            continue
        except Exception as error:
            notes.add(f"{peer.name} left out: {type(error).__name__}: {error}")
            continue
        notes.add(f"{peer.name} {installed(peer.name, peer.name + '-slim')}: {peer.called}")
        if verb in directions:
            yield Contender(peer.name, directions[verb])


def works(contender: Contender, verb: str, notes: set[str]) -> bool:
    """Whether a first conversion comes through with all its calls. Peers change, and options may not be built yet."""
    try:
        written = contender.convert(conversation(verb).records(1)[0])
    except Exception as error:
        notes.add(f"{contender.name} ({verb}) left out: {type(error).__name__}: {error}")
        return False
    if (calls := written.count(b'"arguments"')) != CALLS:
        notes.add(f"{contender.name} ({verb}) left out: it keeps {calls} of {CALLS} calls")
        return False
    return True


# ---------------------------------------------------------------- measuring


def spent(convert: Callable[[bytes], Any], records: list[bytes]) -> float:
    """Processor seconds of this thread for one record."""
    started = thread_time()
    for record in records:
        convert(record)
    return (thread_time() - started) / len(records)


def measure(runners: list[Contender], sample: Sample | Agent, effort: Effort) -> dict[str, Result]:
    """Let all take turns, round by round."""
    same = sample.records(1)
    counts = {one.name: _count(one, sample, effort) for one in runners}
    fresh = min([counts[one.name] for one in runners if one.fresh], default=0)
    gc.collect()
    gc.freeze()  # what the peers imported is not to be looked through again and again while others are measured
    times: dict[str, list[float]] = {one.name: [] for one in runners}
    for _ in range(effort.rounds):
        different = sample.records(fresh)
        for one in runners:
            times[one.name].append(spent(one.convert, different if one.fresh else same * counts[one.name]))
    gc.unfreeze()
    return {one.name: _result(times[one.name], times[one.floor]) for one in runners}


def _count(contender: Contender, sample: Sample | Agent, effort: Effort) -> int:
    """How many records fill a contender's time in one round. This also warms it up."""
    took = min(spent(contender.convert, sample.records(1)) for _ in range(3))
    return max(1, min(MOST_RECORDS, int(effort.seconds / max(took, 1e-7))))


def _result(times: list[float], floors: list[float]) -> Result:
    return Result(median(times), median(time / floor for time, floor in zip(times, floors, strict=True)))


# ---------------------------------------------------------------- tables


def against_peers(effort: Effort) -> str:
    notes: set[str] = set()
    results = {verb: measure(contenders(verb, notes), conversation(verb), effort) for verb in VERBS}
    names = list(dict.fromkeys(name for verb in VERBS for name in results[verb]))
    rows = [[name, *(cell for verb in VERBS for cell in _speed(results[verb].get(name)))] for name in names]
    heads = ["", *(f"{_TITLES[verb]}{of}" for verb in VERBS for of in (", a second", ", ratio"))]
    return "\n".join([_table(heads, rows), "", *(f"- {note}" for note in sorted(notes))])


def _speed(result: Result | None) -> tuple[str, str]:
    return ("-", "-") if result is None else (f"{1 / result.seconds:,.0f}", f"{result.ratio:.2f}")


def against_length(effort: Effort) -> str:
    rows = []
    for length in effort.lengths:
        results = [_project(verb, of_length(verb, length), effort) for verb in VERBS]
        rows.append([f"{length:,}", *_cells(results, 1e6 / length)])
    return _table(["messages", *_heads("µs a message")], rows)


def against_growth(effort: Effort) -> str:
    rows = []
    for length in effort.growths:
        results = [_project(verb, agent(verb, length), effort) for verb in VERBS]
        rows.append([f"{length:,}", *_cells(results, 1e6)])
    return _table(["messages at the end", *_heads("µs a request")], rows)


def _cells(results: list[Result], scale: float) -> Iterable[str]:
    for one in results:
        yield from (f"{one.seconds * scale:,.2f}", f"{one.ratio:.2f}")


def _heads(time: str) -> list[str]:
    return [f"{_TITLES[verb]}, {of}" for verb in VERBS for of in (time, "ratio")]


def against_tools(effort: Effort) -> str:
    rows = []
    for count in effort.tools:
        row = [f"{count:,}"]
        for verb in VERBS:
            for new in (False, True):
                result = _project(verb, with_tools(verb, count, new=new), effort)
                row.append(f"{result.seconds * 1e6:,.1f} µs, {result.ratio:.2f}")
        rows.append(row)
    heads = [f"{_TITLES[verb]}, {of}" for verb in VERBS for of in ("tools seen before", "tools new in each")]
    return _table(["tools", *heads], rows)


def _project(verb: str, sample: Sample | Agent, effort: Effort) -> Result:
    """The project over records of this sample that differ."""
    return measure(compared(verb), sample, effort)[PROJECT + FRESH]


def _table(heads: list[str], rows: list[list[str]]) -> str:
    """A Markdown table, its columns aligned."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]

    def line(cells: list[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        return " | ".join([f"| {first[0]:<{first[1]}}", *(f"{cell:>{width}}" for cell, width in others)]) + " |"

    rule = "|".join(["", "-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:]), ""])
    return "\n".join([line(heads), rule, *map(line, rows)])


# ---------------------------------------------------------------- a log of one's own

SETTINGS: Final[dict[str, dict[str, Any]]] = {PROJECT: {}, f"{PROJECT}, --verify": {"verify": True}}
OUTCOMES: Final = ("written without a notice", "written with notices", "refused")

FAULTY: Final = (
    b'{"messages":[{"role":"assistant","content":null,"tool_calls":[{"type":"function","id":"c","function":'
    b'{"name":"f","arguments":"{}"}}]}],"tools":[{"type":"function","function":'
    b'{"name":"f","parameters":{"type":"object","required":["a"]}}}]}'
)
"""A record that is refused in either direction, for its arguments."""


class Pass(NamedTuple):
    """Processor seconds for each record of a log."""

    floors: list[float]
    times: list[float]

    def ratio(self, chosen: list[int]) -> float:
        return sum(self.times[at] for at in chosen) / sum(self.floors[at] for at in chosen)

    def share(self, chosen: list[int]) -> float:
        return sum(self.times[at] for at in chosen) / sum(self.times)


class Run(NamedTuple):
    """What became of each record, and the passes over all of them: in the first everything was new."""

    outcomes: list[str]
    passes: list[Pass]


def run(verb: Any, records: list[bytes], options: dict[str, Any], later: int) -> Run:
    """One session over a log, again and again. It is the first one only in a process that has converted nothing."""
    session, untyped = Session(verb, Options(**options)), floor()
    for record in (*conversation(verb).records(10), FAULTY):  # imports what takes long, and shares nothing with the log
        untyped(record)
        session.outcome(1, record)
    gc.collect()
    gc.freeze()
    found: list[Converted | Rejected] = []
    passes = []
    for _ in range(1 + later):
        floors = [spent(untyped, [record]) for record in records]
        found.clear()
        times = [spent(lambda record: found.append(session.outcome(1, record)), [record]) for record in records]
        passes.append(Pass(floors, times))
    return Run([_outcome(one) for one in found], passes)


def _outcome(found: Converted | Rejected) -> str:
    if isinstance(found, Rejected):
        return OUTCOMES[2]
    return OUTCOMES[1 if found.notices else 0]


def over_log(verb: str, records: list[bytes], effort: Effort) -> str:
    """A row for all records of each setting, and one for each outcome."""
    rows = []
    for name, options in SETTINGS.items():
        with get_context("spawn").Pool(1, maxtasksperchild=1) as fresh:
            asked = [(verb, records, options, effort.passes)] * effort.sessions
            runs = fresh.starmap(run, asked, chunksize=1)
        outcomes = runs[0].outcomes
        rows.append(_row(name, list(range(len(records))), runs))
        rows += [_row(f"- {one}", [at for at, each in enumerate(outcomes) if each == one], runs) for one in OUTCOMES]
    heads = ["", "records", "first pass, ratio", "share of time", "later passes, ratio", "share of time"]
    return _table(heads, rows)


def _row(name: str, chosen: list[int], runs: list[Run]) -> list[str]:
    cells = [name, f"{len(chosen):,}"]
    firsts = [run.passes[0] for run in runs]
    laters = [each for run in runs for each in run.passes[1:]]
    for passes in (firsts, laters):
        if chosen:
            ratio, share = (median(of(each, chosen) for each in passes) for of in (Pass.ratio, Pass.share))
            cells += [f"{ratio:.2f}", f"{share:.0%}"]
        else:
            cells += ["-", "-"]
    return cells


def called_for(records: list[bytes]) -> str:
    """The command that leads out of the envelope of the first record that has one."""
    for record in records:
        try:
            [body, *_] = open_record(record, Options(), Account(frozenset())).bodies
        except (Refused, msgspec.DecodeError, RecursionError):
            continue
        return "to-responses" if body.kind.envelope == "chat" else "to-chat"
    raise SystemExit("no record of the log is of a known shape")


def report_log(log: Path, member: str | None, verb: str | None, effort: Effort) -> None:
    """Print the table of a log."""
    every = recorded(log, member)
    records = [record for record in every if _decodes(record)]
    verb = verb or called_for(records)
    print(f"## {_TITLES[verb]}: {len(records):,} records of {log.name}, {sum(map(len, records)) / 1e6:,.1f} MB\n")
    print(f"Time over that of the floor for the same records, in {effort.sessions} sessions ", end="")
    print(f"with a first pass and {effort.passes} later ones each.", end="")
    print(f" Left out, as the floor cannot decode them: {len(every) - len(records)}.\n")
    print(over_log(verb, records, effort))


def _decodes(record: bytes) -> bool:
    try:
        msgspec.json.decode(record)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


# ---------------------------------------------------------------- the program


def profile(verb: str, records: int = 5000) -> None:
    """Where the time goes, over records that differ."""
    convert = project(verb)
    spent(convert, conversation(verb).records(10))
    different = conversation(verb).records(records)
    profiler = cProfile.Profile()
    profiler.runcall(spent, convert, different)
    print(f"## {_TITLES[verb]}, {records:,} records\n")
    pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(25)


def installed(*names: str) -> str:
    """The version of the first of these packages that is there."""
    for name in names:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "(not installed)"


def report(effort: Effort) -> None:
    """Print the four tables."""
    sizes = [f"{len(conversation(verb).records(1)[0]):,}" for verb in VERBS]
    print(f"Python {platform.python_version()}, msgspec {installed('msgspec')}, ", end="")
    print(f"jsonschema-rs {installed('jsonschema-rs')}, jsonschema {installed('jsonschema')}.\n")
    print(f"## 12 messages, {CALLS} calls, 3 tools ({sizes[0]} and {sizes[1]} bytes)\n")
    print("Conversations a second of one core, and time over that of the floor.\n")
    print(against_peers(effort))
    print(f"\n## By length ({PROJECT}{FRESH}; ratio to the floor over the same records)\n")
    print(against_length(effort))
    print("\n## Requests of agents, each with the conversation so far (ratio to the floor over the same requests)\n")
    print(against_growth(effort))
    print(f"\n## By number of tools, for a conversation with two calls ({PROJECT}{FRESH})\n")
    print(against_tools(effort))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the converter against the floor and against its peers.")
    parser.add_argument("--quick", action="store_true", help="few rounds, small sizes: does it run?")
    parser.add_argument("--profile", action="store_true", help="print where the converter's time goes, and no tables")
    parser.add_argument("--log", type=Path, help="measure the records of this file, one a line, and no tables")
    parser.add_argument("--member", help="the key under which a line of the log holds the record")
    parser.add_argument("--verb", choices=VERBS, help="for the log; without it, what its first record calls for")
    asked = parser.parse_args()
    effort = QUICK if asked.quick else Effort()
    if asked.profile:
        for verb in VERBS:
            profile(verb)
    elif asked.log:
        report_log(asked.log, asked.member, asked.verb, effort)
    else:
        report(effort)


if __name__ == "__main__":
    main()
