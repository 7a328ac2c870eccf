"""A handful of killed runs (see `killed_runs`, which is a command for many)."""

import sys

import pytest
from killed_runs import KILLS, Ground, rounds

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds processes by /proc")


def test_what_stands_after_a_kill_is_whole(tmp_path):
    runs = 2 * len(KILLS)
    ends = rounds(Ground(tmp_path / "ground", 400_000), runs, seed=7)
    assert ends.total() == runs
