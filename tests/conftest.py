"""For the whole suite: no network, and how long hypothesis may look."""

import os
import runpy
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "quick",
    max_examples=50,
    deadline=None,
    derandomize=True,
    phases=set(Phase) - {Phase.explain},
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough", max_examples=2000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

OFFLINE = Path(__file__).with_name("offline")
runpy.run_path(str(OFFLINE / "sitecustomize.py"))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(OFFLINE), os.environ.get("PYTHONPATH")]))


@pytest.fixture(autouse=True)
def answers_to_signals():
    """A command sets them for its process, which here is the one that tests."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background
    yield
    for number, answer in zip(numbers, before, strict=True):
        signal.signal(number, answer)


@pytest.fixture
def may_not_hang():
    """What takes ten seconds of the processor hangs: it shall take no time worth a word."""

    def hang(number, frame):
        pytest.fail("ten seconds of processor time, and no end")

    before = signal.signal(signal.SIGPROF, hang)
    signal.setitimer(signal.ITIMER_PROF, 10)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)
