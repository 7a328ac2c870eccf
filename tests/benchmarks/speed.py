"""How fast the converter is: against decoding and encoding alone, against its peers, and as records grow.

Run it as ``python tests/benchmarks/speed.py``. All contenders take turns in many short rounds of one process, and each
ratio is the median over the rounds of a contender's time over the floor's in the same round: a busy machine slows both.
What counts is the processor time of this thread. ``--profile`` shows where the converter's own time goes.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import platform
import pstats
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from time import thread_time
from typing import Any, Final, NamedTuple

import msgspec
from peers import PEERS
from samples import CALLS, LENGTHS, TOOLS, VERBS, Sample, conversation, of_length, with_tools

from converter import chat, responses
from converter.convert import Session
from converter.options import Options

FLOOR: Final = "untyped msgspec decode + encode"
PROJECT: Final = "this project"
FRESH: Final = ", every record different"

_STRUCTS: Final = {"to-responses": chat.Request, "to-chat": responses.Request}
_TITLES: Final = {"to-responses": "chat → items", "to-chat": "items → chat"}


class Effort(NamedTuple):
    """How long to measure: rounds, seconds a contender has in each, and the sizes of the two small tables."""

    rounds: int = 40
    seconds: float = 0.01
    lengths: tuple[int, ...] = LENGTHS
    tools: tuple[int, ...] = TOOLS


QUICK: Final = Effort(3, 0.001, LENGTHS[:2], TOOLS[:2])
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


def measure(runners: list[Contender], sample: Sample, effort: Effort) -> dict[str, Result]:
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


def _count(contender: Contender, sample: Sample, effort: Effort) -> int:
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
        row = [f"{length:,}"]
        for verb in VERBS:
            result = _project(verb, of_length(verb, length), effort)
            row += [f"{result.seconds * 1e6 / length:.2f}", f"{result.ratio:.2f}"]
        rows.append(row)
    heads = [f"{_TITLES[verb]}, {of}" for verb in VERBS for of in ("µs a message", "ratio")]
    return _table(["messages", *heads], rows)


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


def _project(verb: str, sample: Sample, effort: Effort) -> Result:
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
    """Print the three tables."""
    sizes = [f"{len(conversation(verb).records(1)[0]):,}" for verb in VERBS]
    print(f"Python {platform.python_version()}, msgspec {installed('msgspec')}, ", end="")
    print(f"jsonschema-rs {installed('jsonschema-rs')}, jsonschema {installed('jsonschema')}.\n")
    print(f"## 12 messages, {CALLS} calls, 3 tools ({sizes[0]} and {sizes[1]} bytes)\n")
    print("Conversations a second of one core, and time over that of the floor.\n")
    print(against_peers(effort))
    print(f"\n## By length ({PROJECT}{FRESH}; ratio to the floor over the same records)\n")
    print(against_length(effort))
    print(f"\n## By number of tools, for a conversation with two calls ({PROJECT}{FRESH})\n")
    print(against_tools(effort))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the converter against the floor and against its peers.")
    parser.add_argument("--quick", action="store_true", help="few rounds, small sizes: does it run?")
    parser.add_argument("--profile", action="store_true", help="print where the converter's time goes, and no tables")
    asked = parser.parse_args()
    if asked.profile:
        for verb in VERBS:
            profile(verb)
    else:
        report(QUICK if asked.quick else Effort())


if __name__ == "__main__":
    main()
