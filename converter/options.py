"""What a user can ask for. One value, made once, for the command line and the library alike."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from converter.outcome import ALLOWABLE

Verb = Literal["to-responses", "to-chat"]
LOOKS: Final = frozenset({"check", "inspect"})
"""The commands that write what is to be seen of a record, and not what it becomes."""

REPAIRS: Final[dict[str, str]] = {
    "stringify-arguments": "arguments recorded as an object become the string that stands in the log",
    "empty-arguments": 'empty arguments ("") become "{}"',
    "lift-media": "media in a tool output moves into a user message behind the batch of outputs",
    "fill-call-ids": "calls and outputs without an id are paired by order and given one",
    "rename-call-ids": "ids used twice or longer than 64 characters are made anew, on call and output alike",
    "null-padding": "nulls that a table format put into optional fields are left out",
    "drop-orphans": "outputs without a call and calls never answered are left out",
    "developer-to-system": "developer messages become system messages",
}
"""The repairs that can be asked for by name. None is ever made unasked."""


class Options(Struct, frozen=True, kw_only=True):
    """How to convert. The defaults lose nothing silently and repair nothing.

    - ``tools``: tool definitions of either envelope (a list), or ``{name: JSON Schema}``; they go before the record's
      own tools.
    - ``allow``: reasons to be written all the same, with the notice ``allowed`` (see `converter.outcome.ALLOWABLE`).
    - ``repair``: names of `REPAIRS`.
    - ``shape``: the name of a shape, instead of looking at the record's keys.
    - ``accept_loss``: losses to bear under ``strict``, as JSON Pointers in which ``*`` stands for one part.
    - ``at``: pointers to the values to convert, where they sit inside something else.
    - ``request_at``, ``response_at``: where the two halves of a pair stand.
    - ``choice``: which choice of a completion to take, by its index.

    Raises `ValueError` when a name is unknown.
    """

    tools: Any = None
    require_schema: bool = False
    allow: Collection[str] = frozenset()
    repair: Collection[str] = frozenset()
    reasoning: Literal["drop", "keep", "summary"] = "drop"
    target: Literal["core", "openai"] = "core"
    strict: bool = False
    accept_loss: Sequence[str] = ()
    verify: bool = False
    shape: str | None = None
    at: Sequence[str] = ()
    request_at: str = "/request"
    response_at: str = "/response"
    choice: int | None = None

    def __post_init__(self) -> None:
        known = {"allow": ALLOWABLE, "repair": REPAIRS.keys()}
        for field, names in known.items():
            asked = getattr(self, field)
            if isinstance(asked, str):
                raise ValueError(f"{field} is one string, expected a set of names")
            if unknown := sorted(set(asked) - set(names)):
                raise ValueError(f"{field} does not know {', '.join(unknown)}; it knows {', '.join(sorted(names))}")
            if not isinstance(asked, frozenset):
                # A frozen struct can only be set this way, and a list of names is what people write.
                force_setattr(self, field, frozenset(asked))
        if isinstance(self.tools, (str, bytes, os.PathLike)):
            raise ValueError("tools is a text or a path, expected a list of definitions, or schemas by name")
        for field in ("at", "accept_loss"):
            asked = getattr(self, field)
            if isinstance(asked, str):
                raise ValueError(f"{field} is one string, expected a list of JSON Pointers")
            force_setattr(self, field, tuple(asked))
            for pointer in asked:
                if pointer and not pointer.startswith("/"):
                    raise ValueError(f"{field} holds no JSON Pointer, expected one like /{pointer.lstrip('/')}")
        choices = {"reasoning": ("drop", "keep", "summary"), "target": ("core", "openai")}
        for field, values in choices.items():
            if getattr(self, field) not in values:
                raise ValueError(f"{field} is not one of {', '.join(values)}")
