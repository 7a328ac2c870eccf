"""The ways that a record may take, for tests that compare them."""

from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from converter import Options
from converter.convert import Session

CHAT, RESPONSES = "to-responses", "to-chat"


def rooms(verb, **options):
    """A session in which every record is walked through room by room."""
    session = Session(verb, Options(**options))
    session.recalls, session.recall = {}, None
    return session


@contextmanager
def short_enough(short=1, probe=4):
    """Conversations of so many messages, and bytes, are remembered."""
    places = {"histories.SHORT": short, "recall.SHORT": short, "beginnings.PROBE": probe, "beginnings.LEAST": probe}
    with ExitStack() as stack:
        for place, value in places.items():
            stack.enter_context(patch(f"converter.{place}", value))
        yield
