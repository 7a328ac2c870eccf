"""What was found once, by the text that it was found for: bounded by characters, started afresh when it is full.

It only saves time. What is found again is what would be found anew.
"""

from __future__ import annotations

from typing import Generic, TypeVar

Text = TypeVar("Text", str, bytes)
Found = TypeVar("Found")


class Memo(dict[Text, Found], Generic[Text, Found]):
    """Findings by their texts."""

    __slots__ = ("left", "room")

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = self.left = room

    def keep(self, text: Text, found: Found, beside: int = 64) -> Found:
        """Remember a finding, unless its text is long, and give it back. ``beside``: what it takes beside its text."""
        size = len(text) + beside
        if size <= self.room // 8:
            if size > self.left:
                self.clear()
                self.left = self.room
            self.left -= size
            self[text] = found
        return found

    def free(self, text: Text, beside: int = 64) -> None:
        """Forget a finding of this size, before another one is kept for its text."""
        del self[text]
        self.left += len(text) + beside
