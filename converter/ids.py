"""Ids and times that the target requires and the source may lack. They derive from the record alone.

Ids are unique within it, and match ``[A-Za-z0-9_-]{1,64}``.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

from msgspec import UNSET, Raw, UnsetType

from converter.outcome import Account
from converter.reading import kind

PLAIN: Final = re.compile(r"[A-Za-z0-9_-]{1,56}")
"""What can stand behind a prefix: 56 characters leave room for one within 64."""


def digest(*parts: str) -> str:
    """24 characters that stand for these texts."""
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def suffix(identifier: str, prefixes: tuple[str, ...]) -> str:
    """An envelope's id without its prefix, so that it can bear the other envelope's."""
    for prefix in prefixes:
        identifier = identifier.removeprefix(prefix)
    return identifier if PLAIN.fullmatch(identifier) else digest(identifier)


def legacy_call_id(name: str, ordinal: int) -> str:
    """The call id of the n-th legacy ``function_call`` of a record, which had none."""
    return f"call_{digest(name, str(ordinal))}"


def filled_call_id(name: str, ordinal: int) -> str:
    """The call id for the n-th call of a record that was logged without one (``--repair fill-call-ids``)."""
    return f"call_{digest('filled', name, str(ordinal))}"


def renamed_call_id(call_id: str, ordinal: int) -> str:
    """A new call id in place of one that was used before or is too long (``--repair rename-call-ids``)."""
    return f"call_{digest('renamed', call_id, str(ordinal))}"


def seconds(raw: Raw | UnsetType, path: str, account: Account) -> Raw:
    """A time in whole seconds since 1970. Some clones log fractions, some texts, some nothing."""
    text = bytes(raw) if raw is not UNSET else b"null"
    if text.isdigit() and text != b"0":
        return Raw(text)
    if raw is not UNSET and kind(raw) == "a number" and 0 < float(text) < 1e15:
        if float(text) != int(float(text)):
            account.notice("dropped", path, "the fraction of a second")
        return Raw(str(int(float(text))).encode())
    if text not in (b"null", b"0"):
        account.notice("dropped", path, "no time in seconds")
    account.notice("filled", path, "a time: the target requires one, and the log has none")
    return Raw(b"0")
