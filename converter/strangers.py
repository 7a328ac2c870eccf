"""Fields of a request that its envelope does not have: whether it is one all the same, and what of them is dropped."""

from __future__ import annotations

from msgspec import Struct

from converter.kinds import KINDS
from converter.options import Options
from converter.outcome import Account, Refused
from converter.reading import Members, escape, says_nothing
from converter.shapes import open_record


class Strangers(Struct, gc=False):
    """What is said of these fields. Their pointers stand before and behind those of the history, as in the record."""

    known: bool
    before: list[str] = []
    behind: list[str] = []


def tell(paths: list[str], account: Account) -> None:
    """Say that these are dropped."""
    for path in paths:
        account.notice("dropped", path)


def vetted(text: bytes, members: Members, beside: Members, kind: str, history: str) -> Strangers:
    """What is said of the fields in ``beside``. A field may tell that the record is of another format."""
    if not beside.keys().isdisjoint(KINDS[kind].type.__struct_encode_fields__):
        return Strangers(False)  # a field of the envelope that outlines do without
    try:
        opened = open_record(text, Options(), Account())
    except Refused:
        return Strangers(False)
    [first, *others] = opened.bodies
    if others or first.text is not text or first.kind.name != kind:
        return Strangers(False)
    told = [name for name, raw in beside.items() if not says_nothing(raw)]
    names = list(members)
    middle = names.index(history)
    before = [f"/{escape(name)}" for name in told if names.index(name) < middle]
    behind = [f"/{escape(name)}" for name in told if names.index(name) > middle]
    return Strangers(True, before, behind)
