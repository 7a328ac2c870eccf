"""Fields of a request that its envelope does not have: whether it is one all the same, and what of them is dropped.

What a record is, its fields tell, and of few of them also the values. Ids and times of a gateway differ in every
record, so it is remembered which values were looked at, and a record is looked at anew only where one of these is new.
"""

from __future__ import annotations

from collections.abc import ItemsView, ValuesView
from typing import Any, Final

from msgspec import Raw, Struct, ValidationError

from converter.kinds import KINDS
from converter.memo import Memo
from converter.options import Options
from converter.outcome import Account, Refused
from converter.reading import Members, encode, escape, kind, members_of, says_nothing
from converter.shapes import open_record
from converter.streams import LISTS

ROOM: Final = 1 << 20
"""How many bytes of names and values are remembered before it is started afresh."""


class Strangers(Struct, gc=False):
    """What is said of these fields. Their pointers stand before and behind those of the history, as in the record.

    ``names`` are all that stand in the record beside them.
    """

    known: bool
    names: frozenset[str] = frozenset()
    before: list[str] = []
    behind: list[str] = []


def tell(paths: list[str], account: Account) -> None:
    """Say that these are dropped."""
    for path in paths:
        account.notice("dropped", path)


class Watched(dict[str, Raw]):
    """The members of a record, and the names of those whose values were looked at."""

    def __init__(self, members: Members) -> None:
        super().__init__(members)
        self.looked = {*IN_TEXT}

    def __getitem__(self, name: str) -> Raw:
        self.looked.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a member, or the default."""
        self.looked.add(name)
        return super().get(name, default)

    def items(self) -> ItemsView[str, Raw]:  # type: ignore[override]
        """All members."""
        self.looked |= self.keys()
        return super().items()

    def values(self) -> ValuesView[Raw]:  # type: ignore[override]
        """All values."""
        self.looked |= self.keys()
        return super().values()


IN_TEXT: Final = frozenset({*LISTS, "sse", "request", "response"})
"""Members whose values shapes look for in the text itself."""


class Vetting:
    """Looks at the fields that requests of one kind have beside those of the envelope."""

    def __init__(self, kind: str, history: str, names: frozenset[str | None]) -> None:
        self.kind = kind
        self.history = history
        self.names = names
        self.looked: Memo[bytes, set[str]] = Memo(ROOM)
        self.vetted: Memo[bytes, Strangers] = Memo(ROOM)

    def vet(self, text: bytes) -> Strangers | None:
        """What is said of such fields of a request, or None where it has none.

        Raises `msgspec.ValidationError` where it is no request, or may be none.
        """
        members = members_of(text)
        beside = {name: raw for name, raw in members.items() if name not in self.names}
        if not beside:
            return None
        # The history is looked at message by message; here it only counts whether it says anything.
        history = members.get(self.history, Raw(b"null"))
        others = {name: raw for name, raw in members.items() if name not in (self.history, "tools")}
        names = encode([list(members), kind(history), says_nothing(history)])
        looked = self.looked.get(names)
        key = self._key(names, others, looked or set())
        found = self.vetted.get(key)
        if found is None:
            watched = Watched(members)
            found = self._vetted(text, watched, beside)
            looked = (looked or set()) | (watched.looked & others.keys())
            self.looked.keep(names, looked, 2 * len(names))
            key = self._key(names, others, looked)
            self.vetted.keep(key, found, 2 * len(key))
        if not found.known:
            raise ValidationError
        return found

    def _key(self, names: bytes, others: Members, looked: set[str]) -> bytes:
        silent = [says_nothing(raw) for raw in others.values()]
        return names + encode([silent, [raw for name, raw in others.items() if name in looked]])

    def _vetted(self, text: bytes, members: Watched, beside: Members) -> Strangers:
        if not beside.keys().isdisjoint(KINDS[self.kind].type.__struct_encode_fields__):
            return Strangers(False)  # a field of the envelope that outlines do without
        if self.history not in members:
            return Strangers(False)  # a request that goes on from a stored response alone
        try:
            opened = open_record(text, Options(), Account(), members)
        except Refused:
            return Strangers(False)
        [first, *others] = opened.bodies
        if others or first.text is not text or first.kind.name != self.kind:
            return Strangers(False)
        told = [name for name, raw in beside.items() if not says_nothing(raw)]
        names = list(members)
        middle = names.index(self.history)
        before = [f"/{escape(name)}" for name in told if names.index(name) < middle]
        behind = [f"/{escape(name)}" for name in told if names.index(name) > middle]
        return Strangers(True, frozenset(members.keys() - beside.keys()), before, behind)
