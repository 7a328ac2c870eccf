"""The benchmark of whole files runs, and its table has a row for each contender. Nothing here depends on speed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FILES = Path(__file__).with_name("files.py")


@pytest.mark.parametrize("sourced", [False, True])
def test_both_directions_are_measured_with_one_process_and_with_two(tmp_path, sourced):
    record = {"messages": [{"role": "user", "content": "hi"}]}
    (tmp_path / "log").write_text(json.dumps({"record": record}) + "\n")
    source = ["--source", str(tmp_path / "log"), "--member", "record"] if sourced else []
    command = [sys.executable, "-X", "utf8", str(FILES), "--bytes", "3e5", "--rounds", "1", *source]
    done = subprocess.run(command, capture_output=True, timeout=120, check=True)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.decode().splitlines()[2:]]
    ours = [row for row in rows if row[2].startswith("converter")]
    assert [row[2][-1] for row in ours] == ["1", "2"] * 2
    assert len({row[0] for row in ours}) == 2
    for row in ours:
        assert float(row[4]) > 0
        assert int(row[7]) > 5 or not sys.platform.startswith("linux")
