"""The way in: a body's text becomes its struct, in one step where it is strict, else by way of `converter.reading`."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from converter import habits
from converter.kinds import Kind
from converter.options import Options
from converter.outcome import REASONS, Account
from converter.reading import Reading, tidy


class Entered(Struct):
    """A body as its struct, and what was seen on the way in: fields passed over, data repaired, items left out.

    ``faulty``: some of it was refused and is left out too. It will not be written; the rest may hold more faults.
    """

    body: Any
    seen: Account | None = None
    left_out: frozenset[str] = frozenset()
    shifts: dict[str, list[Any]] = {}
    faulty: bool = False

    @property
    def changed(self) -> bool:
        """Whether the struct holds something else than the text: a repair was made, or something was left out."""
        return self.seen is not None and bool(self.shifts or self.left_out or "repaired" in self.seen.found)

    def confess(self, account: Account, rest: Account) -> None:
        """Say all that is wrong with a faulty body: what was refused on the way in, and what was found in the ``rest``.

        Not what may follow from what was left out: of pairing, since a call or an output may be among it; of what is
        missing; of a place of which a reason stands already, or of a field right in it, since something else may stand
        in for what was there.
        """
        assert self.seen is not None
        account.absorb(self.seen)
        told = {reason.path for reason in account.reasons}
        for reason in rest.reasons:
            follows = reason.code in REASONS["pairing"] or reason.code in REASONS["shape"]
            if not follows and told.isdisjoint((reason.path, reason.path.rpartition("/")[0])):
                account.reasons[reason] = None


def enter(kind: Kind, text: bytes, account: Account, options: Options) -> Entered | None:
    """The body, or None where nothing of it can be read. Its pointers lead through ``shifts`` from then on.

    Raises `msgspec.DecodeError` and `RecursionError` where the text is no JSON.
    """
    try:
        return Entered(kind.decode(text))
    except msgspec.ValidationError:
        pass
    seen = Account(account.allow, account.base)
    seen.layers = account.layers
    reading = Reading(seen, options, habits.TABLES[kind.envelope])
    tidied = tidy(Raw(text), kind.type, "", reading)
    if tidied is None:
        account.absorb(seen)
        return None
    account.layers = (reading.shifts, *account.layers)
    return Entered(kind.decode(tidied), seen, frozenset(reading.left_out), reading.shifts, bool(seen.reasons))
