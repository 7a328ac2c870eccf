"""For the whole suite: no network, and how long hypothesis may look."""

import os
import signal
import socket

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

LOCAL = {getattr(socket, "AF_UNIX", None)}
"""Worker processes talk to each other; nothing else may be reached."""


class _NoNetwork(socket.socket):
    def __init__(self, family=socket.AF_INET, *arguments, **keywords):
        if family not in LOCAL:
            raise AssertionError("a test opened a network socket")
        super().__init__(family, *arguments, **keywords)


def _refuse(*arguments, **keywords):
    raise AssertionError("a test looked for a host on the network")


@pytest.fixture(autouse=True, scope="session")
def no_network():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "socket", _NoNetwork)
        for name in ("getaddrinfo", "gethostbyname", "create_connection"):
            patch.setattr(socket, name, _refuse)
        yield


@pytest.fixture(autouse=True)
def answers_to_signals():
    """A command sets them for its process, which here is the one that tests."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background
    yield
    for number, answer in zip(numbers, before, strict=True):
        signal.signal(number, answer)
