"""A request's outline: its messages or items as they stand, one text each, and each of its settings as it stands.

What a log repeats from record to record (a conversation so far, tools, settings) is told by these texts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from msgspec import UNSET, Raw, Struct, UnsetType, ValidationError, defstruct, json
from msgspec.structs import astuple

from converter import chat, responses

NOTHING: Final = Raw(b"")
"""In place of a setting that is not there: no JSON text is empty."""


def _outlines(request: type[Struct], history: str, rare: str, *others: str) -> Callable[[Any], tuple[Any, Any]]:
    """From the type of a history to two outlines with it: one with the settings that many requests have, and the full.

    Of some forty settings a request has three.
    """
    names = request.__struct_fields__
    settings = [name for name in names if name not in (history, "tools", *others)]

    def outline(type_: Any, settings: list[str]) -> Any:
        fields: list[Any] = [("history", list[type_]), ("tools", Raw | UnsetType, UNSET)]
        fields += [(name, Raw, NOTHING) for name in settings]
        name, rename = f"{request.__name__}Outline", {"history": history}
        return defstruct(name, fields, rename=rename, forbid_unknown_fields=True, gc=False, kw_only=True)

    @cache
    def outlines(type_: Any) -> tuple[Any, Any]:
        return outline(type_, settings[: settings.index(rare)]), outline(type_, settings)

    return outlines


def lists(type_: Any) -> tuple[Any, Any]:
    """A bare list of messages or items has no settings."""
    return list[type_], list[type_]


chat_requests: Final = _outlines(chat.Request, "messages", chat.RARE_SETTINGS, "functions", "function_call")
responses_requests: Final = _outlines(responses.Request, "input", responses.RARE_SETTINGS)

_SETTINGS: Final = 2
"""How many fields stand before the settings."""


def key(body: Any) -> bytes:
    """All settings of a request as they stand: the same bytes mean the same settings."""
    return b"\0".join(astuple(body)[_SETTINGS:]).rstrip(b"\0")


def settings(body: Any) -> dict[str, Raw]:
    """The settings that a request has, by name."""
    named = zip(body.__struct_fields__[_SETTINGS:], astuple(body)[_SETTINGS:], strict=True)
    return {name: value for name, value in named if value is not NOTHING}


@cache
def _decoder(type_: Any) -> Callable[[bytes], Any]:
    return json.Decoder(type_).decode


@cache
def _among(full: type[Struct]) -> Any:
    """The same outline, among whatever other fields."""
    return defstruct(full.__name__, [], bases=(full,), forbid_unknown_fields=False, gc=False, kw_only=True)


class Decoder:
    """Decodes the outlines of one log.

    Its requests are much alike in the settings that they have: where the common outline did not fit, the full one is
    taken from then on.
    """

    __slots__ = ("among", "decode", "full", "names")

    def __init__(self, common: Any, full: Any) -> None:
        self.decode, self.full = _decoder(common), _decoder(full)
        self.names: frozenset[str] = frozenset()
        if isinstance(full, type) and issubclass(full, Struct):
            self.names = frozenset(full.__struct_encode_fields__)
            self.among = _decoder(_among(full))

    def outline(self, text: bytes) -> Any:
        """The outline of this text. Raises `msgspec.ValidationError` where it has none, and `msgspec.DecodeError`."""
        try:
            return self.decode(text)
        except ValidationError:
            if self.decode is self.full:
                raise
        body = self.full(text)
        self.decode = self.full
        return body
