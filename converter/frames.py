"""The frames of a stream as the lines of a file: one chunk or event a line, and where one stream ends."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

FAULTS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a decoder raises for a text that is no JSON."""


class Frame(Struct):
    """What tells of a chunk or an event to which stream it belongs."""

    id: Any = None
    object: Any = None
    type: Any = None
    choices: Any = None
    usage: Any = None
    error: Any = None
    prompt_filter_results: Any = None
    done: Any = False

    @property
    def event(self) -> str:
        """The type of an event of Responses; empty for a chunk of Chat."""
        return self.type if isinstance(self.type, str) and self.type.startswith("response.") else ""

    def chosen(self) -> list[dict[str, Any]]:
        """The choices of a chunk."""
        return [one for one in self.choices if isinstance(one, dict)] if isinstance(self.choices, list) else []

    def is_chunk(self, within: bool) -> bool:
        """Whether this is a chunk of Chat. Some answers that are whole have a delta, too, or no choices."""
        chosen = self.chosen()
        if self.object == "chat.completion.chunk" or (self.prompt_filter_results and not chosen):
            return True
        if within:
            return self.choices == [] or any("delta" in choice for choice in chosen)
        return any("delta" in choice and "message" not in choice for choice in chosen)

    def is_error(self) -> bool:
        """Whether this says that the stream broke off."""
        return bool(self.error) or self.type == "error"


DONE: Final = b'"[DONE]"'
LAST: Final = "chat.completion.done"
"""What Perplexity calls its last chunk, which has an id of its own."""

ENDS: Final = frozenset({"response.completed", "response.failed", "response.incomplete", "response.cancelled"})


def frame_of(text: bytes, *, within: bool) -> Frame | None:
    """The frame that a line is, or None. An error, and the mark of the end, are frames ``within`` a stream alone."""
    if within and text == DONE:
        return Frame(done=True)
    try:
        frame = msgspec.json.decode(text, type=Frame)
    except FAULTS:
        return None
    frame.done = False  # no field of a frame
    return frame if frame.event or frame.is_chunk(within) or (within and frame.is_error()) else None


class Thread:
    """The frames of one stream so far, and what tells whether the next frame is still of it.

    The id of a chunk is no sure sign: it may be missing, empty in the first chunk, or new in every chunk.
    """

    def __init__(self) -> None:
        self.start = 0
        self.lines: list[bytes] = []
        self.event = self.over = False
        self.id, self.times = "", 0
        self.ids: set[str] = set()
        self.finished: set[Any] = set()

    def record(self) -> bytes:
        """The frames as the text of one array."""
        return b"[" + b",\n".join(self.lines) + b"]"

    def take(self, number: int, text: bytes, frame: Frame) -> None:
        """One more frame."""
        if not self.lines:
            self.start, self.event = number, bool(frame.event)
        self.lines.append(text)
        self.over = (
            self.over
            or frame.done
            or frame.object == LAST
            or frame.event in ENDS
            or (frame.is_error() and not self.event)
        )
        self.finished |= {one.get("index", 0) for one in frame.chosen() if one.get("finish_reason")}
        if isinstance(frame.id, str) and frame.id:
            self.times = self.times + 1 if frame.id == self.id else 1
            self.id = frame.id
            self.ids.add(frame.id)

    def ends_before(self, frame: Frame) -> bool:
        """Whether the frame begins another stream."""
        if frame.done:
            return False
        if self.over or frame.is_error() or frame.object == LAST:
            return self.over or (frame.is_error() and bool(self.finished))
        if self.event or frame.event:
            return not (self.event and frame.event) or frame.event == "response.created"
        name = frame.id if isinstance(frame.id, str) else ""
        other = bool(name and self.id and name != self.id)
        if not self.finished:
            return other and (self.times > 1 or name in self.ids)
        if not frame.chosen():
            return not frame.usage and (other or not name)
        open_ones = any(one.get("index", 0) not in self.finished for one in frame.chosen())
        return (other and not (open_ones and len(self.ids) > 1)) or self._begins_again(frame)

    def _begins_again(self, frame: Frame) -> bool:
        """A role for a choice that was finished, where the id does not say that the stream goes on."""
        if isinstance(frame.id, str) and frame.id == self.id != "":
            return False
        deltas = [one.get("delta") for one in frame.chosen() if one.get("index", 0) in self.finished]
        return any(isinstance(delta, dict) and delta.get("role") for delta in deltas)
