"""The gate alone, for looking: a row an item, and whether anything in the record is refused."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from converter import standing, verdicts
from converter.conversion import Beside, Conversion, Passage
from converter.entry import enter
from converter.options import Options
from converter.outcome import Account, Converted, Refused, Rejected
from converter.shapes import Body, open_record
from converter.text import BLANK, BOM, fault, shield, utf8
from converter.verdicts import Row


def prepare(options: Options) -> Callable[[int, bytes], tuple[list[Row], Converted | Rejected]]:
    """A function from a line number and a record's text to its rows and its outcome. It never raises.

    Raises `ValueError` where an option makes no sense.
    """
    conversion = Conversion("to-responses", options)

    def outcome(line: int, record: bytes) -> tuple[list[Row], Converted | Rejected]:
        text = record.strip(BLANK).removeprefix(BOM)
        account, rows = Account(options.allow), list[Row]()
        shielded = None
        try:
            utf8(text)
            shielded = shield(text)
            conversion.mark = shielded.mark.decode() if shielded else None
            beside = Beside()
            for body in open_record(shielded.text if shielded else text, options, account).bodies:
                rows += verdicts.rows(line, body.kind, body.text, conversion.given, beside.schemas)
                _gated(conversion, body, account, beside)
        except Refused as refused:
            account.reasons.update(dict.fromkeys(refused.reasons))
        except (msgspec.DecodeError, RecursionError) as error:
            return rows, Rejected(line, [fault(shielded.text if shielded else text, error)], record)
        if shielded:
            rows = [row.respelled(shielded.spelled) for row in rows]
            shielded.tell(account)
        if account.reasons:
            return rows, Rejected(line, list(account.reasons), record)
        return rows, Converted(line, text, account.notices())

    return outcome


def _gated(conversion: Conversion, body: Body, account: Account, beside: Beside) -> None:
    account.base, account.layers = body.base, (body.shifts,) if body.shifts else ()
    entered = enter(body.kind, body.text, account, conversion.options)
    if entered is None:
        return
    rest = account.aside() if entered.faulty else account
    standing.check(conversion, entered.body, Passage(body.text, rest, beside, entered))
    if entered.faulty:
        entered.confess(account, rest)
