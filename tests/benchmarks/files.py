"""How fast whole files are converted, with one process and with two, beside ``jq -c .`` which merely copies them.

Run it as ``python tests/benchmarks/files.py [--bytes 1e9] [--source FILE.jsonl] [--rounds 3]``. The file is made of
the conversations of `samples`, no two records alike, or of the lines of FILE again and again. All contenders take
turns, and each ratio is the median over the rounds. Processor seconds are those of all processes together: they tell
more than the clock where the machine is shared. Memory is the most that any one process held, the parent or a worker.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from samples import VERBS, conversation, of_length, recorded, with_tools

SMALLER: Final = 100_000_000
"""Bytes of the file with which the memory of the whole one is compared."""

TITLES: Final = {"to-responses": "chat → items", "to-chat": "items → chat"}
TICK: Final = 0.02


class Spent(NamedTuple):
    """Seconds by the clock, seconds of all processors, and the most bytes that one process held."""

    seconds: float
    processor: float
    peak: int


# ---------------------------------------------------------------- files


def invented(verb: str) -> Iterator[bytes]:
    """Records of several lengths, each different from all others."""
    kinds = [conversation(verb), of_length(verb, 4), of_length(verb, 16), of_length(verb, 64), with_tools(verb, 16)]
    for kind in cycle(kinds):
        yield kind.records(1)[0]


def repeated(source: Path, member: str | None) -> Iterator[bytes]:
    """The records of a file again and again."""
    return cycle(recorded(source, member))


def fill(path: Path, records: Iterator[bytes], size: int) -> None:
    """Write records, one a line, until the file has so many bytes."""
    with path.open("wb") as file:
        while file.tell() < size:
            file.write(next(records) + b"\n")


# ---------------------------------------------------------------- one run


ENVIRONMENT: Final = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Who uses a command has it compiled once."""


def spent(command: list[str], output: Path) -> Spent:
    """Run a command whose standard output goes to a file. Raises `RuntimeError` where it fails."""
    os.sync()  # else the disk would still be busy with what was written before
    with output.open("wb") as file:
        began = time.perf_counter()
        with subprocess.Popen(command, stdout=file, stderr=subprocess.PIPE, env=ENVIRONMENT) as running:
            peaks: dict[str, int] = {}
            while (done := os.wait4(running.pid, os.WNOHANG))[0] == 0:
                peaks.update(_peaks(running.pid))
                time.sleep(TICK)
            seconds = time.perf_counter() - began
            running.returncode = os.waitstatus_to_exitcode(done[1])
            said = running.stderr.read().decode() if running.stderr else ""
    if running.returncode not in (0, 3):
        raise RuntimeError(f"{command[0]}: exit status {running.returncode}: {said}")
    return Spent(seconds, done[2].ru_utime + done[2].ru_stime, max(peaks.values(), default=0))


def _peaks(parent: int) -> Iterator[tuple[str, int]]:
    """The most bytes that a process and its children have held so far; nothing where there is no such file system."""
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    except OSError:
        return
    for pid in (str(parent), *children):
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                yield pid, int(line.split()[1]) * 1024


def converter(verb: str, jobs: int, path: Path, output: Path) -> list[str]:
    """The installed command."""
    return [sys.executable, "-m", "converter", verb, "--quiet", "--jobs", str(jobs), str(path), "-o", str(output)]


# ---------------------------------------------------------------- the table


def measured(verb: str, path: Path, rounds: int) -> dict[str, list[Spent]]:
    """So many rounds, in which the contenders take turns."""
    output = path.with_suffix(".out")
    commands = {f"converter, --jobs {jobs}": converter(verb, jobs, path, output) for jobs in (1, 2)}
    if jq := shutil.which("jq"):
        commands["jq -c ."] = [jq, "-c", ".", str(path)]
    found: dict[str, list[Spent]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            output.unlink(missing_ok=True)  # to give its room back would take a part of the next one's time
            found[name].append(spent(command, path.with_suffix(".copy")))
    return found


def rows(verb: str, path: Path, found: dict[str, list[Spent]]) -> Iterator[str]:
    """A row for each contender."""
    size = path.stat().st_size
    first = next(iter(found.values()))
    for name, runs in found.items():
        cells = [
            TITLES[verb],
            f"{size / 1e6:,.0f}",
            name,
            f"{size / 1e6 / median(run.seconds for run in runs):,.1f}",
            _times(runs, found.get("jq -c .")),
            _times(runs, first),
            f"{median(run.processor for run in runs):,.1f}",
            f"{max(run.peak for run in runs) / 1e6:,.0f}",
        ]
        yield f"| {' | '.join(cells)} |"


def _times(runs: list[Spent], others: list[Spent] | None) -> str:
    """How many times as fast as another contender, round by round."""
    if others is None:
        return "-"
    return f"{median(other.seconds / run.seconds for run, other in zip(runs, others, strict=True)):.2f}"


HEAD: Final = """\
| | MB | | MB/s | times jq | times --jobs 1 | processor s | peak MB a process |
|---|---:|---|---:|---:|---:|---:|---:|"""


def table(folder: Path, size: int, rounds: int, source: Path | None, member: str | None) -> None:
    """Print the table, a row when it is known."""
    print(HEAD)
    for bytes_ in sorted({min(SMALLER, size), size}):
        path = folder / "log.jsonl"
        for verb in VERBS:
            if source is None:
                fill(path, invented(verb), bytes_)
            elif verb == VERBS[0]:
                fill(path, repeated(source, member), bytes_)
            else:  # back from what the way there gives
                there = folder / "there.jsonl"
                spent(converter(VERBS[0], 2, path, there), folder / "nothing")
                there.replace(path)
            for row in rows(verb, path, measured(verb, path, rounds)):
                print(row, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the command over whole files, beside jq.")
    parser.add_argument("--bytes", type=float, default=1e9, help="of the file")
    parser.add_argument("--source", type=Path, help="take the lines of this file again and again")
    parser.add_argument("--member", help="the key under which a line of the source holds the record")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        table(Path(folder), int(asked.bytes), asked.rounds, asked.source, asked.member)


if __name__ == "__main__":
    main()
