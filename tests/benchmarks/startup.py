"""How long the command takes to start, beside Python itself. Nothing is converted.

Run it as ``python tests/benchmarks/startup.py [--rounds 20]``. All take turns, a process each; times are medians by the
clock, and each ratio is the median over the rounds of a command's time over Python's in the same round. The last column
names the large modules that a command imports.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from statistics import median
from typing import Final

HEAVY: Final = ("jsonschema", "referencing", "msgspec", "click", "pyarrow", "multiprocessing")

FLOOR: Final = "python -c pass"
COMMANDS: Final = {
    FLOOR: ("-c", "pass"),
    "converter --version": ("-m", "converter", "--version"),
    "converter to-responses --help": ("-m", "converter", "to-responses", "--help"),
}
"""What is run, as arguments of Python."""


ENVIRONMENT: Final = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""Who uses a command has it compiled once."""


def ran(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, *arguments], env=ENVIRONMENT, capture_output=True, check=True)


def spent(arguments: tuple[str, ...]) -> float:
    """Seconds by the clock."""
    began = time.perf_counter()
    ran(*arguments)
    return time.perf_counter() - began


def heavy(arguments: tuple[str, ...]) -> list[str]:
    """The large modules that are imported. This also lets Python compile what it has not yet compiled."""
    said = ran("-X", "importtime", *arguments).stderr.decode()
    imported = {line.rpartition("|")[2].strip() for line in said.splitlines()}
    return [name for name in HEAVY if name in imported]


def table(rounds: int) -> str:
    imported = {name: heavy(arguments) for name, arguments in COMMANDS.items()}
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, arguments in COMMANDS.items():
            times[name].append(spent(arguments))
    lines = ["| | ms | ratio | imports |", "|---|---:|---:|---|"]
    for name, own in times.items():
        ratio = median(time / floor for time, floor in zip(own, times[FLOOR], strict=True))
        lines.append(f"| {name} | {median(own) * 1e3:.1f} | {ratio:.2f} | {', '.join(imported[name]) or '-'} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how long the command takes to start.")
    parser.add_argument("--rounds", type=int, default=20)
    print(table(parser.parse_args().rounds))


if __name__ == "__main__":
    main()
