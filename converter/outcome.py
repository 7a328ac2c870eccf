"""What can be said about a record: reasons for a refusal, notices, verdicts, and the two outcomes.

Every other room speaks in these words; the words themselves know nothing of the two envelopes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct


class Verdict(StrEnum):
    """What the replay gate says of one item, in the order in which the gate looks."""

    NAMESPACED = "namespaced"
    NOT_FUNCTION_CALL = "not_function_call"
    STATUS = "status"
    ARGUMENTS_TYPE = "arguments_type"
    ARGUMENTS_PARSE = "arguments_parse"
    ARGUMENTS_SCHEMA = "arguments_schema"
    OK = "ok"


REASONS: Final[dict[str, tuple[str, ...]]] = {
    "text": ("invalid_json", "invalid_utf8", "too_deep", "too_long", "not_a_record"),
    "shape": ("unknown_shape", "mixed_envelopes", "missing_field", "wrong_type", "stream_conflict"),
    "gate": (
        "namespaced",
        "status",
        "arguments_type",
        "arguments_parse",
        "arguments_schema",
        "schema_missing",
        "invalid_tool_schema",
    ),
    "pairing": ("orphan_output", "early_output", "duplicate_output", "ambiguous_call_id", "unanswered_call"),
    "no counterpart": (
        "unsupported_item",
        "unsupported_content",
        "unsupported_tool",
        "several_choices",
        "incomplete_history",
        "not_finished",
    ),
    "limits": ("limit",),
    "asked for": ("duplicate_key", "loss", "verify"),
}
"""The closed list of reason codes, by family."""

ALLOWABLE: Final[frozenset[str]] = frozenset(
    {*REASONS["gate"], *REASONS["no counterpart"]} - {"arguments_type", "several_choices"}
)
"""The reasons that ``--allow`` may turn into a notice: the others would make the output invalid."""

NOTICES: Final[tuple[str, ...]] = (
    "dropped",
    "echo",
    "filled",
    "moved",
    "joined",
    "repaired",
    "allowed",
    "open_call",
    "reused_call_id",
    "unchecked",
    "odd",
)
"""The closed list of notice codes."""

LOSSES: Final[frozenset[str]] = frozenset({"dropped", "moved", "joined", "odd"})
"""The notices that make ``--strict`` refuse a record."""


class Reason(Struct, frozen=True, gc=False):
    """Why a record is not written: a code of `REASONS`, a JSON Pointer into the record, a sentence."""

    code: str
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.code} at {self.path or 'the top'}: {self.message}"


class Notice(Struct, frozen=True, gc=False):
    """What a reader of a written record must know: a code of `NOTICES`, JSON Pointers into the input, a detail."""

    code: str
    paths: list[str]
    detail: str = ""


class Refused(Exception):
    """The record is not written. ``reasons`` holds every fault that could be seen in one pass."""

    def __init__(self, reasons: list[Reason]) -> None:
        super().__init__(reasons)
        self.reasons = reasons

    def __str__(self) -> str:
        return "; ".join(map(str, self.reasons))


class Converted(Struct, gc=False):
    """A record that is written: its position (from 1), the bytes to write, and the notices."""

    line: int
    json: bytes
    notices: list[Notice]

    @property
    def body(self) -> Any:
        """The written record as parsed JSON."""
        try:
            return msgspec.json.decode(self.json)
        except msgspec.DecodeError:
            return json.loads(self.json)  # lone surrogates, kept as their escape: msgspec reads none


class Rejected(Struct, gc=False):
    """A record that is refused: its position (from 1), the reasons, and the text as it stood."""

    line: int
    reasons: list[Reason]
    text: bytes

    @property
    def record(self) -> Any:
        """The record as parsed JSON, or as a string where it is not JSON."""
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            return self.text.decode("utf-8", "backslashreplace")

    def raw(self) -> Raw:
        """The record for the rejects file: the text to the letter where it is JSON, on one line, else as a string."""
        text = self.text.strip(b" \t\r\n")
        try:
            msgspec.json.decode(masking(text), type=Raw)
            text.decode()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return Raw(msgspec.json.encode(self.text.decode("utf-8", "backslashreplace")))
        # No string of JSON goes over a line's end.
        return Raw(b"".join(line.strip() for line in text.splitlines()) if b"\n" in text else text)


_SURROGATE: Final = re.compile(rb"\\u[dD]")
"""What may be half of a pair: msgspec reads no lone one, which JSON allows."""


def masking(text: bytes) -> bytes:
    """A JSON text of the same length, in which other characters stand for surrogates."""
    return _SURROGATE.sub(rb"\\u0", text)


def _joined(details: Iterable[str]) -> str:
    """Details that differ, one behind the other."""
    return "; ".join(dict.fromkeys(filter(None, details)))


Found = dict[str, dict[str, str]]
"""Notices: by code, the details by their pointers."""

Layer = dict[str, Any]
"""For the pointer of a list, where each of its elements stood before: a position, or what to put in its place.

For the pointer of an object that was put together, a dict: the pointers at which its members stood, and under ``*``
the pointer of the object that held all others.
"""


class Account:
    """What is said of one record while it passes through the house: reasons and notices, with their pointers.

    ``allow`` holds the reasons that the user turned into the notice ``allowed``; ``base`` is put before every
    pointer (a body inside a batch line or a pair). Each of ``layers`` holds, for the lists that lost elements, the
    earlier positions of those that stayed: a pointer goes through them, so that it leads into the record as logged.
    """

    base: str = ""
    layers: tuple[Layer, ...] = ()

    def __init__(self, allow: Collection[str] = frozenset(), base: str = "") -> None:
        self.allow = allow
        if base:
            self.base = base
        self.reasons: dict[Reason, None] = {}
        self.found: Found = {}

    def notice(self, code: str, path: str, detail: str = "") -> None:
        """Add a pointer to the notice of this code; details that differ are joined."""
        path = self.logged(path)
        details = self.found.setdefault(code, {})
        if not details.get(path):
            details[path] = detail

    def say(self, found: Found) -> None:
        """Say what was found before, with pointers into the same body."""
        plain = not (self.base or self.layers)
        for code, details in found.items():
            if plain and code not in self.found:
                self.found[code] = details.copy()
                continue
            for path, detail in details.items():
                self.notice(code, path, detail)

    def repeat(self, notice: Notice) -> None:
        """Say once more what was said before, of the same bytes."""
        for path in notice.paths:
            self.notice(notice.code, path, notice.detail)

    def refuse(self, code: str, path: str, message: str) -> bool:
        """Add a reason; true where the user allowed it, so that the caller goes on with what is left."""
        if code in self.allow:
            self.notice("allowed", path, f"{code}: {message}")
            return True
        reason = Reason(code, self.logged(path), message)
        self.reasons[reason] = None
        return False

    def logged(self, path: str) -> str:
        """The pointer as it leads into the record that was logged."""
        for layer in self.layers:
            place = ""
            for part in path.split("/")[1:]:
                kept = layer.get(place)
                if isinstance(kept, dict):
                    place += kept[part] if part in kept else f"{kept.get('*', '')}/{part}"
                else:
                    place += f"/{kept[int(part)] if kept is not None and part.isdigit() else part}"
            path = place
        return self.base + path

    def clear(self) -> None:
        """Unsay all that was said: the record is read anew, from its beginning."""
        self.found.clear()
        self.reasons.clear()
        self.base, self.layers = "", ()

    def respell(self, spelled: Callable[[str], str]) -> None:
        """Spell pointers and sentences anew: they hold stand-ins for what no text can hold."""
        self.found = {
            code: {spelled(path): spelled(detail) for path, detail in details.items()}
            for code, details in self.found.items()
        }
        self.reasons = {Reason(one.code, spelled(one.path), spelled(one.message)): None for one in self.reasons}

    def absorb(self, other: Account, *codes: str) -> None:
        """Take over what was said of the same body: all of it, or the reasons and the notices of some codes."""
        for code, details in other.found.items():
            if not codes or code in codes:
                mine = self.found.setdefault(code, {})
                for path, detail in details.items():
                    if not mine.get(path):
                        mine[path] = detail
        self.reasons.update(other.reasons)

    def join(self, other: Account) -> None:
        """Say here what was said there, of the same body."""
        self.say(other.found)
        for reason in other.reasons:
            self.refuse(reason.code, reason.path, reason.message)

    def aside(self) -> Account:
        """A blank account of the same body."""
        other = Account(self.allow, self.base)
        other.layers = self.layers
        return other

    def notices(self) -> list[Notice]:
        """The notices, at most one a code, in the order in which they were found."""
        return [
            Notice(code, list(told), _joined(told.values()) if any(told.values()) else "")
            for code, told in self.found.items()
        ]
