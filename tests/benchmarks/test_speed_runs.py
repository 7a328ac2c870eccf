"""The benchmark runs, and its table has the project's rows. Nothing here depends on how fast the machine is."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from samples import agent

SPEED = Path(__file__).with_name("speed.py")


@pytest.fixture(scope="module")
def tables() -> list[list[list[str]]]:
    return quick()


def quick(*options) -> list[list[list[str]]]:
    """The tables of a quick run: rows of cells."""
    run = [sys.executable, "-X", "utf8", str(SPEED), "--quick", *map(str, options)]
    done = subprocess.run(run, capture_output=True, timeout=120, check=True)
    found: list[list[list[str]]] = [[]]
    for line in done.stdout.decode().splitlines():
        if line.startswith("| "):
            found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
        elif found[-1] and not line.startswith("|--"):
            found.append([])
    return [table for table in found if table]


def number(cell: str) -> float:
    return float(cell.split("µs, ")[-1].replace(",", ""))


def test_the_floor_and_the_project_are_measured_in_both_directions(tables):
    rows = {row[0]: row[1:] for row in tables[0]}
    for name in ("untyped msgspec decode + encode", "this project", "this project, every record different"):
        assert len(rows[name]) == 4
        assert all(number(cell) > 0 for cell in rows[name])
    assert rows["untyped msgspec decode + encode"][1::2] == ["1.00", "1.00"]


def test_the_small_tables_hold_a_row_for_each_size(tables):
    _, lengths, growths, tools = tables
    assert [row[0] for row in lengths] == ["messages", "4", "16"]
    assert [row[0] for row in growths] == ["messages at the end", "10"]
    assert [row[0] for row in tools] == ["tools", "1", "16"]
    for row in lengths[1:] + growths[1:] + tools[1:]:
        assert all(number(cell) > 0 for cell in row[1:])


USER = {"role": "user", "content": "hi"}
ORPHAN = {"role": "tool", "tool_call_id": "c", "content": "x"}
CHAT = [{"messages": [USER]}, {"messages": [USER], "seed": 1}, {"messages": [ORPHAN]}, {"messages": [USER, USER]}]
ITEMS = [{"input": "hi"}, {"input": "hi", "truncation": "auto"}]


@pytest.mark.parametrize(
    ("lines", "options", "counts"),
    [
        ([{"body": record} for record in CHAT], ["--member", "body"], [4, 2, 1, 1]),
        ([*ITEMS, {"input": "\ud800"}], [], [2, 1, 1, 0]),  # the floor does not decode the last one
        (ITEMS, ["--verb", "to-responses"], [2, 2, 0, 0]),
    ],
    ids=["a member", "a lone surrogate", "a verb"],
)
def test_a_log_is_measured_by_what_becomes_of_its_records(tmp_path, lines, options, counts):
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    [[_, *rows]] = quick("--log", log, *options)
    assert [row[0] for row in rows if not row[0].startswith("- ")] == ["this project", "this project, --verify"]
    assert [int(row[1]) for row in rows] == counts * 2
    for row in rows:
        assert [cell == "-" for cell in row[2:]] == [row[1] == "0"] * 4
        assert all(number(cell) > 0 for cell in row[2::2] if cell != "-")
    assert [row[3::2] for row in rows[::4]] == [["100%", "100%"]] * 2


def test_an_agent_repeats_its_conversation_in_each_request():
    first, second, third, *_, last, other = agent("to-responses", 10).records(5)
    histories = [json.loads(one)["messages"] for one in (first, second, third, last, other)]
    assert [len(history) for history in histories] == [2, 5, 7, 10, 2]
    for shorter, longer in pairwise(histories[:4]):
        assert longer[: len(shorter)] == shorter
        assert longer[len(shorter)]["role"] == "assistant"
    assert histories[0] != histories[4]
