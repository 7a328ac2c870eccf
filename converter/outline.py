"""A request's outline: its messages or items as they stand, one text each, and each of its settings as it stands.

What a log repeats from record to record (a conversation so far, tools, settings) is told by these texts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec import UNSET, Raw, Struct, UnsetType, ValidationError, defstruct, json
from msgspec.structs import astuple

from converter import chat, responses

NOTHING: Final = Raw(b"")
"""In place of a setting that is not there: no JSON text is empty."""


class Outline(NamedTuple):
    """What the outlines of one envelope's requests have: where the history stands, and the settings, the common first.

    ``history`` is None for a bare list of messages or items, which has no settings.
    """

    history: str | None = None
    settings: tuple[str, ...] = ()
    common: int = 0

    def of(self, message: Any, settings: tuple[str, ...], *, others: bool = False) -> Any:
        """The type of an outline with these settings, by the type of its messages. ``others``: beside other fields."""
        if self.history is None:
            return list[message]
        fields: list[Any] = [("history", list[message]), ("tools", Raw | UnsetType, UNSET)]
        fields += [(name, Raw, NOTHING) for name in settings]
        rename, names = {"history": self.history}, {"names": f"{' '.join(settings)}\0".encode()}
        return defstruct(
            "Outline", fields, rename=rename, namespace=names, forbid_unknown_fields=not others, gc=False, kw_only=True
        )


def _requests(request: type[Struct], history: str, rare: str, *others: str) -> Outline:
    settings = tuple(name for name in request.__struct_fields__ if name not in (history, "tools", *others))
    return Outline(history, settings, settings.index(rare))


LISTS: Final = Outline()
CHAT_REQUESTS: Final = _requests(chat.Request, "messages", chat.RARE_SETTINGS, "functions", "function_call")
RESPONSES_REQUESTS: Final = _requests(responses.Request, "input", responses.RARE_SETTINGS)


def stand(body: Any) -> Any:
    """The tools and all settings of a request as they stand, to be compared with those of another one."""
    return astuple(body)[1:]


def frame(body: Any) -> int:
    """How many bytes a request takes beside the elements of its history, where nothing stands twice and no space."""
    history, *names = body.__struct_encode_fields__
    fields = [(name, value) for name, value in zip(names, stand(body), strict=True) if value]
    return len(b'{"":[]}') + len(history) + sum(len(b',"":') + len(name) + len(bytes(value)) for name, value in fields)


def key(names: bytes, stand: tuple[Any, ...]) -> bytes:
    """All settings of a request as they stand: the same bytes mean the same settings, in whatever outline they are."""
    tools, *others = stand
    return (b"\0" if tools is UNSET else b"") + names + b"\0".join(others)


def settings(body: Any) -> dict[str, Raw]:
    """The settings that a request has, by name, in the order of the envelope."""
    named = zip(body.__struct_fields__[2:], stand(body)[1:], strict=True)
    return {name: value for name, value in named if value is not NOTHING}


@lru_cache(256)
def _decoder(outline: Outline, message: Any, settings: tuple[str, ...], others: bool = False) -> Callable[[bytes], Any]:
    return json.Decoder(outline.of(message, settings, others=others)).decode


class Decoder:
    """Decodes the outlines of one log.

    Its requests are much alike in the settings that they have, and of some forty each has three. So the outline has the
    common ones, and every other one from the first request on that has it.
    """

    __slots__ = ("decode", "have", "message", "names", "outline", "settings")

    def __init__(self, outline: Outline, message: Any) -> None:
        self.outline = outline
        self.message = message
        self.names = frozenset((outline.history, "tools", *outline.settings)) if outline.history else frozenset()
        self.settings = outline.settings[: outline.common]
        self.have = frozenset((outline.history, "tools", *self.settings))
        self.decode = _decoder(outline, message, self.settings)

    def read(self, text: bytes) -> Any:
        """The outline of a text. Raises `msgspec.ValidationError` where it has none."""
        try:
            return self.decode(text)
        except ValidationError:
            body = _decoder(self.outline, self.message, self.outline.settings)(text)
        if self.outline.history:
            self._grow(settings(body))
        return self.decode(text)

    def among(self, text: bytes, names: Collection[str]) -> Any:
        """The outline of a text beside other fields. ``names`` are all that it has."""
        self._grow(names)
        return _decoder(self.outline, self.message, self.settings, True)(text)

    def _grow(self, names: Collection[str]) -> None:
        """From now on these settings are part of the outline."""
        if not self.have.issuperset(names):
            self.have = self.have.union(names)
            self.settings = tuple(name for name in self.outline.settings if name in self.have)
            self.decode = _decoder(self.outline, self.message, self.settings)
