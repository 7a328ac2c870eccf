"""What was found once, by the text that it was found for: bounded by characters, started afresh when it is full.

It only saves time. What is found again is what would be found anew.
"""

from __future__ import annotations

from typing import Final, Generic, Protocol, TypeVar

Text = TypeVar("Text", str, bytes)
Found = TypeVar("Found")

LARGEST: Final = 8
"""No finding takes more than this part of the room."""

BRANCHES: Final = 4
"""How many ways to go on from one beginning are remembered: a question that is asked again is answered otherwise."""


class Memo(dict[Text, Found], Generic[Text, Found]):
    """Findings by their texts."""

    __slots__ = ("left", "room")

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = self.left = room

    def keep(self, text: Text, found: Found, beside: int = 64) -> Found:
        """Remember a finding, unless its text is long, and give it back. ``beside``: what it takes beside its text."""
        size = len(text) + beside
        if size <= self.room // LARGEST:
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


class Sized(Protocol):
    """What knows about how many bytes it takes."""

    @property
    def size(self) -> int:
        """Bytes."""


Branch = TypeVar("Branch", bound=Sized)


class Branches(Memo[bytes, list[Branch]], Generic[Branch]):
    """The last findings of one name: what began alike and went on otherwise."""

    __slots__ = ()

    def of(self, name: bytes) -> list[Branch] | tuple[()]:
        """All that have this name, the last one first."""
        return self.get(name, ())

    def grow(self, name: bytes, made: Branch, before: object) -> None:
        """One more; where it goes on from another one, it takes the place of that one."""
        if len(name) + made.size > self.room // LARGEST:
            return
        branches = self.get(name, [])
        if branches:
            self.free(name, sum([each.size for each in branches]))
        kept, size = [made], len(name) + made.size
        for each in branches:
            if each is not before and len(kept) < BRANCHES and size + each.size <= self.room // LARGEST:
                kept.append(each)
                size += each.size
        self.keep(name, kept, sum([each.size for each in kept]))
