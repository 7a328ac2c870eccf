"""The benchmark runs, and its rows have a verdict. Nothing here depends on how fast the machine is."""

import subprocess
import sys
from pathlib import Path

HOSTILE = Path(__file__).with_name("hostile.py")


def test_it_runs():
    run = [sys.executable, "-X", "utf8", str(HOSTILE), "--quick", "over the limit", "metadata", "minLength", "doubled"]
    done = subprocess.run(run, capture_output=True, timeout=120, check=True)
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in done.stdout.decode().splitlines()]
    found = {row[0]: row[-1] if "record" in rows[2][0] and len(row) == 5 else row[2] for row in rows if len(row) > 4}
    assert found["a line of 200 MB, over the limit"] == "too_long"
    assert found["a million arrays in metadata"] == "too_deep"
    assert found["minLength 1e400"] == found["$ref doubled 30 times"] == "invalid_tool_schema"
