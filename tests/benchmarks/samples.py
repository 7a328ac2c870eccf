"""The conversations that are measured, in both envelopes. All values are invented, but for those of a log of one's own.

`chat.json` and `responses.json` hold one conversation: 12 messages with four calls, and the three tools that they call.
The second was made from the first by the converter, once. Where one record differs from the next (in ids, texts and
argument values) stands a number, `MARK`, which `Sample.records` replaces, so that no two records are alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

VERBS: Final = ("to-responses", "to-chat")
LENGTHS: Final = (4, 16, 64, 256, 1024)
GROWTHS: Final = (10, 50, 100)
TOOLS: Final = (1, 16, 128)
CALLS: Final = 4
"""Calls in the conversation of 12 messages."""

MARK: Final = b"1000000"
_NUMBERS: Final = count(1_000_001)

_FILES: Final = {"to-responses": "chat.json", "to-chat": "responses.json"}
_LISTS: Final = {"to-responses": "messages", "to-chat": "input"}

_ROUND: Final = (1, 2, 1, 1, 1, 1, 3, 1, 1, 1)
"""Items that messages 2 to 11 are in Open Responses. These ten end where they began, so they can be repeated."""

_ASKED: Final = (1, 4, 6, 9)
"""Behind how many of these ten a request is made: whatever follows, the model said it."""


class Sample(NamedTuple):
    """A conversation as pieces of JSON text, each of which gets a number of its own."""

    pieces: tuple[bytes, ...]

    def records(self, how_many: int) -> list[bytes]:
        """Records that differ from each other, and from all that were made before."""
        return [self._record() for _ in range(how_many)]

    def _record(self) -> bytes:
        return b"".join(piece.replace(MARK, b"%d" % next(_NUMBERS)) for piece in self.pieces)


class Agent(NamedTuple):
    """The requests of one agent after the other, each with the conversation so far, which grows to so many messages.

    ``head`` and ``tail`` stand around the messages, of which the first one is in the head.
    """

    head: bytes
    messages: tuple[bytes, ...]
    tail: bytes

    def records(self, how_many: int) -> list[bytes]:
        """Requests of conversations that differ from each other, and from all that were made before."""
        return list(islice(self._requests(), how_many))

    def _requests(self) -> Iterator[bytes]:
        mark = MARK
        while True:
            said = self.head
            for at, message in enumerate(self.messages):
                place = at % len(_ROUND)
                mark = mark if place else b"%d" % next(_NUMBERS)  # a call and its output bear the same one
                said += b"," + message.replace(MARK, mark)
                if place + 1 in _ASKED:
                    yield said + self.tail


def conversation(verb: str) -> Sample:
    """The conversation of 12 messages, in the envelope that this command reads."""
    return Sample((msgspec.json.encode(_body(verb)),))


def of_length(verb: str, length: int) -> Sample:
    """A conversation of so many messages: the middle of the other one, again and again, with other values."""
    rounds = _messages(verb, length)
    turns = [b",".join(rounds[start : start + len(_ROUND)]) for start in range(0, length, len(_ROUND))]
    head, tail = _around(_body(verb), _LISTS[verb])
    return Sample((head, *(turn + b"," for turn in turns[:-1]), turns[-1], tail))


def agent(verb: str, length: int) -> Agent:
    """An agent whose conversation has a first message, and at its end so many others."""
    body = _body(verb)
    head, tail = _around(body, _LISTS[verb])
    return Agent(head + msgspec.json.encode(body[_LISTS[verb]][0]), tuple(_messages(verb, length)), tail)


def _messages(verb: str, length: int) -> list[bytes]:
    """So many messages, each as the items that it is in this envelope."""
    entries = iter(_body(verb)[_LISTS[verb]][1:])
    widths = _ROUND if verb == "to-chat" else (1,) * len(_ROUND)
    messages = [msgspec.json.encode(list(islice(entries, width)))[1:-1] for width in widths]
    return list(islice(cycle(messages), length))


def with_tools(verb: str, how_many: int, *, new: bool = False) -> Sample:
    """A short conversation with so many tools, one of which is called. ``new``: no record repeats another's tools."""
    body = _body(verb)
    name = body["tools"][0].get("function", body["tools"][0])["name"]
    body[_LISTS[verb]] = _calling(name, body[_LISTS[verb]])
    body["tools"] = [*body["tools"][:how_many], *(_filler(verb, number) for number in range(how_many - 3))]
    if new:
        for tool in body["tools"]:
            tool.get("function", tool)["parameters"]["$comment"] = MARK.decode()
    return Sample((msgspec.json.encode(body),))


def recorded(log: Path, member: str | None) -> list[bytes]:
    """The lines of a file, or what stands in them under one key."""
    lines = [line for line in log.read_bytes().splitlines() if line.strip()]
    if member:
        lines = [bytes(msgspec.json.decode(line, type=dict[str, msgspec.Raw])[member]) for line in lines]
    return lines


def _body(verb: str) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.json.decode((Path(__file__).parent / _FILES[verb]).read_bytes())
    return body


def _around(body: dict[str, Any], key: str) -> tuple[bytes, bytes]:
    """The text before and behind the entries of one list."""
    head, tail = msgspec.json.encode({**body, key: []}).split(b'"%s":[]' % key.encode())
    return head + b'"%s":[' % key.encode(), b"]" + tail


def _calling(name: str, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries without calls of other tools, and without the outputs of these."""
    kept = []
    answered = set()
    for entry in entries:
        if "tool_calls" in entry:
            calls = [call for call in entry["tool_calls"] if call["function"]["name"] == name]
            answered |= {call["id"] for call in calls}
            kept.append({**entry, "tool_calls": calls})
        elif entry.get("type") == "function_call":
            if entry["name"] == name:
                answered.add(entry["call_id"])
                kept.append(entry)
        elif entry.get("tool_call_id", entry.get("call_id")) in {None, *answered}:
            kept.append(entry)
    return kept


def _filler(verb: str, number: int) -> dict[str, Any]:
    """One more tool definition, with a schema of its own."""
    parameters = {
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "description": "Words to look for."},
            "page": {"type": "integer", "minimum": 1, "maximum": 1000 + number},
            "order": {"type": "string", "enum": ["newest", "oldest", "best"]},
            "since": {"type": "integer", "minimum": 0},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    function = {"name": f"search_{number:03}", "description": f"Search ledger {number}.", "parameters": parameters}
    if verb == "to-responses":
        return {"type": "function", "function": function}
    return {"type": "function", **function, "strict": False}
