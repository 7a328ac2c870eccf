"""Read by every Python that a test starts (it stands on ``PYTHONPATH``), and by the tests' own: no network."""

import sys

LOCAL = (1, -1)
"""Unix sockets, with which worker processes talk to each other, and a family that is taken from an open file."""

LOOKED_UP = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"}


def _offline(event, arguments):
    if event in LOOKED_UP or (event == "socket.__new__" and arguments[1] not in LOCAL):
        raise AssertionError(f"no test may reach the network: {event}")


sys.addaudithook(_offline)
