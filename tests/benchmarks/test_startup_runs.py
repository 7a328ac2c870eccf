"""The benchmark of starting runs, and tells what is imported. Nothing here depends on how fast the machine is."""

import subprocess
import sys
from pathlib import Path

STARTUP = Path(__file__).with_name("startup.py")


def test_each_command_has_a_time_and_what_it_imports():
    run = [sys.executable, "-X", "utf8", str(STARTUP), "--rounds", "1"]
    done = subprocess.run(run, capture_output=True, timeout=120, check=True)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.decode().splitlines()[2:]]
    assert {name: imported for name, _, _, imported in rows} == {
        "python -c pass": "-",
        "converter --version": "-",
        "converter to-responses --help": "msgspec, click",
    }
    assert rows[0][2] == "1.00"
    assert all(float(row[1]) > 0 for row in rows)
