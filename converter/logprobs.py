"""Log probabilities of tokens: both envelopes spell them alike, and their lists are passed on as they stand."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.json import Decoder

from converter.reading import elements_of, members_of


class _Top(Struct):
    token: str
    logprob: float
    bytes: list[int]


class _Token(_Top):
    top_logprobs: list[_Top]


class _LooseTop(Struct):
    token: str
    logprob: float
    bytes: list[int] | None = None


class _LooseToken(_LooseTop):
    top_logprobs: list[_LooseTop] | None = None


_WHOLE: Final = Decoder(list[_Token]).decode
_LOOSE: Final = Decoder(list[_LooseToken]).decode


NONE: Final = "no list of tokens and their log probabilities"


def are_whole(raw: Raw) -> bool:
    """Whether a value is a list of tokens with all that both envelopes require of one."""
    return _decodes(_WHOLE, raw)


def filled(raw: Raw) -> list[dict[str, Any]] | None:
    """The tokens with ``bytes`` and ``top_logprobs``, which servers leave out or null; None if there are none."""
    return list(map(_token, elements_of(raw))) if _decodes(_LOOSE, raw) else None


def _decodes(decode: Any, raw: Raw) -> bool:
    try:
        decode(raw)
    except msgspec.DecodeError:
        return False
    return True


def _token(raw: Raw) -> dict[str, Any]:
    entry = _top(raw)
    tops = entry.get("top_logprobs", _NULL)
    return {**entry, "top_logprobs": [] if tops == _NULL else list(map(_top, elements_of(tops)))}


def _top(raw: Raw) -> dict[str, Any]:
    members = members_of(raw)
    return {**members, "bytes": [] if members.get("bytes", _NULL) == _NULL else members["bytes"]}


_NULL: Final = Raw(b"null")
