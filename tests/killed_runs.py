"""Runs that are killed at random moments: what stands afterwards is whole, or as it was before.

Run it as ``python tests/killed_runs.py [--runs 200] [--seed N]``. Half of the runs have one process, half two workers.
They are ended by SIGKILL (all processes, or the parent alone), SIGINT (all, as a terminal does) or SIGTERM (the
parent). After each:

- every target is byte for byte what an undisturbed run writes, or what stood there before, or absent;
- an output is new only where its rejects, notices and report are;
- after SIGINT and SIGTERM nothing is left beside the targets, and one sentence is said;
- after SIGKILL only files named ``.part`` are left, and the next run succeeds in the same folder;
- no process is left.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

import converter

ROWS: Final = ("rejects.jsonl", "notices.jsonl", "report.json")
ASKED: Final = tuple(part for name in ROWS for part in (f"--{name.split('.')[0]}", name))
RECORDS: Final = (
    {"messages": [{"role": "user", "content": "How did we sell? \u2028" * 20}]},
    {"messages": [{"role": "user", "content": "hi", "weight": 1}], "seed": 1},
    {"messages": [{"role": "tool", "tool_call_id": "call_1", "content": "x" * 300}]},
)
MANY: Final = ("--out-dir", "new", "a.jsonl", "b.jsonl.gz", "c/d.jsonl.gz")


class Case(NamedTuple):
    """A command's arguments, and what it writes beside the rows."""

    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    rows: tuple[str, ...] = ROWS


CASES: Final = {
    "plain": Case(("-o", "out.jsonl", "a.jsonl", *ASKED), ("out.jsonl",)),
    "compressed": Case(("-o", "out.jsonl.gz", "b.jsonl.gz", "a.jsonl", *ASKED), ("out.jsonl.gz",)),
    "folder": Case((*MANY, *ASKED), ("new/a.jsonl", "new/b.jsonl.gz", "new/c/d.jsonl.gz")),
    "folder without rows": Case((*MANY, "-q"), ("new/a.jsonl", "new/b.jsonl.gz", "new/c/d.jsonl.gz"), ()),
}


class Kill(NamedTuple):
    """A signal, whether all processes get it, the exit status of a run that answers it, and what it says."""

    number: int
    all: bool
    status: int
    said: str = ""


SUMMED: Final = "converter to-responses: "
SAID: Final = "the files that were being written are left as they were\n"
KILLS: Final = {
    "SIGKILL": Kill(signal.SIGKILL, True, -signal.SIGKILL),
    "SIGKILL of the parent": Kill(signal.SIGKILL, False, -signal.SIGKILL),
    "SIGINT": Kill(signal.SIGINT, True, 130, f"converter: interrupted: {SAID}"),
    "SIGTERM": Kill(signal.SIGTERM, False, 143, f"converter: terminated: {SAID}"),
}

# As the command itself does before it imports anything: an interrupt that breaks into an import may crash msgspec.
QUIET: Final = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); "
SMALL: Final = QUIET + "from converter import shards, task; shards.LEAST, shards.SHARD, task.RECORDS = 1, 50_000, 100; "
START: Final = "from converter.__main__ import main; main()"


class Ground:
    """A folder with inputs of so many bytes, and what an undisturbed run of each case writes."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder = folder
        self.code = START if size >= 16 << 20 else SMALL + START
        lines = b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in RECORDS)
        self.text = lines * (size // len(lines) + 1)
        self.packed = gzip.compress(self.text, 1)
        self.whole: dict[str, dict[str, bytes]] = {}
        self.seconds: dict[tuple[str, int], float] = {}

    def lay(self, before: bytes | None, case: Case) -> None:
        """The inputs alone, and what stood at the places of the targets."""
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "c").mkdir(parents=True)
        (self.folder / "a.jsonl").write_bytes(self.text)
        for name in ("b.jsonl.gz", "c/d.jsonl.gz"):
            (self.folder / name).write_bytes(self.packed)
        if before is not None:
            for name in (*case.outputs, *case.rows):
                path = self.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(before)

    def start(self, case: Case, jobs: int) -> subprocess.Popen[bytes]:
        """A run in a session of its own, so that its processes can be told."""
        return subprocess.Popen(
            [sys.executable, "-c", self.code, "to-responses", *case.arguments, "--jobs", str(jobs)],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(Path(converter.__file__).parents[1])},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def undisturbed(self, name: str, jobs: int) -> None:
        """Keep what a run writes and how long it takes. Raises `AssertionError` where jobs make a difference."""
        case = CASES[name]
        self.lay(None, case)
        began = time.monotonic()
        with self.start(case, jobs) as running:
            said = running.communicate()[1]
        assert running.returncode == 3, said
        self.seconds[name, jobs] = time.monotonic() - began
        standing = self.standing(case)
        assert self.whole.setdefault(name, standing) == standing, f"{name}: other bytes with {jobs} jobs"

    def standing(self, case: Case) -> dict[str, bytes]:
        """The targets that stand, without the seconds of the report."""
        paths = {name: self.folder / name for name in (*case.outputs, *case.rows)}
        found = {name: path.read_bytes() for name, path in paths.items() if path.exists()}
        if "report.json" in found:
            found["report.json"] = re.sub(rb'"seconds": [\d.e-]+', b"", found["report.json"])
        return found

    def parts(self) -> list[str]:
        """What is left beside the targets."""
        return [path.name for path in self.folder.rglob("*.part")]


# ---------------------------------------------------------------- one run


def killed(ground: Ground, name: str, jobs: int, kill: Kill, moment: float, before: bytes | None) -> str:
    """One run, killed after so many seconds: how it ended. Raises `AssertionError`."""
    case = CASES[name]
    ground.lay(before, case)
    with ground.start(case, jobs) as running:
        try:
            running.wait(moment)
        except subprocess.TimeoutExpired:
            (os.killpg if kill.all else os.kill)(running.pid, kill.number)
        said = running.communicate(timeout=60)[1].decode()
    _nobody(running.pid)
    standing = ground.standing(case)
    _whole(ground, name, standing, before)
    if running.returncode == 3:
        assert not ground.parts()
        assert standing == ground.whole[name], "a run that ends well has written all"
        return "ended before"
    if kill.number != signal.SIGKILL and (running.returncode == -kill.number or _starting(said)):
        assert not ground.parts(), "a run that does not yet answer signals has begun nothing"
        return "not yet begun"
    assert running.returncode == kill.status, (running.returncode, said)
    assert said == kill.said or (not kill.said and said.startswith(SUMMED)), said
    if kill.number != signal.SIGKILL:
        assert not ground.parts(), ground.parts()
        return "answered"
    with ground.start(case, jobs) as running:
        running.communicate()
    assert ground.standing(case) == ground.whole[name], "the next run writes all"
    return "killed"


def _starting(said: str) -> bool:
    """Python itself was interrupted, before a run began."""
    return said.endswith("KeyboardInterrupt\n") and "job.py" not in said


def _whole(ground: Ground, name: str, standing: dict[str, bytes], before: bytes | None) -> None:
    case, whole = CASES[name], ground.whole[name]
    for target in (*case.outputs, *case.rows):
        assert standing.get(target) in (whole[target], before), f"{name}: {target} is not whole"
    new = {target for target in whole if standing.get(target) == whole[target]}
    if new & set(case.outputs):
        assert set(case.rows) <= new, f"{name}: {sorted(new)} stand without the rows of their records"


def _nobody(session: int) -> None:
    """Waits until no process of a session runs, which may take a worker that lost its parent a moment."""
    deadline = time.monotonic() + 20
    while left := [pid for pid in os.listdir("/proc") if pid.isdigit() and _session(pid) == session]:
        assert time.monotonic() < deadline, f"processes are left: {left}"
        time.sleep(0.02)


def _session(pid: str) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[3])


# ---------------------------------------------------------------- many runs


def rounds(ground: Ground, runs: int, seed: int) -> Counter[tuple[int, str, str]]:
    """So many runs, over all cases and signals; how many ended how, by jobs and signal. Raises `AssertionError`."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background
    chance = random.Random(seed)
    for name in CASES:
        for jobs in (1, 2):
            ground.undisturbed(name, jobs)
    ends: Counter[tuple[int, str, str]] = Counter()
    for number in range(runs):
        jobs = 1 + number % 2
        signalled = list(KILLS)[number // 2 % len(KILLS)]
        name = list(CASES)[(number // 2 + number // 8) % len(CASES)]
        length = ground.seconds[name, jobs]
        # A third of them near the end, where files are renamed.
        moment = length * (chance.uniform(0.8, 1.05) if chance.random() < 1 / 3 else chance.uniform(0, 1))
        before = chance.choice([None, b"before\n"])
        end = killed(ground, name, jobs, KILLS[signalled], moment, before)
        ends[jobs, signalled, end] += 1
    return ends


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill runs at random moments, and look at what stands.")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--megabytes", type=float, default=1, help="of each input; below 16, what is cut is cut smaller"
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ends = rounds(Ground(Path(folder) / "ground", int(asked.megabytes * 1e6)), asked.runs, asked.seed)
    print("| processes | signal | ended | runs |\n|---:|---|---|---:|")
    for (jobs, signalled, end), count in sorted(ends.items()):
        print(f"| {jobs} | {signalled} | {end} | {count} |")
    print(f"\n{asked.runs} runs: every target whole, as it was before, or absent.")


if __name__ == "__main__":
    main()
