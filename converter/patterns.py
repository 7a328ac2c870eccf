"""Regular expressions for the pure engine: ECMA 262 patterns as patterns of `re`, and how long one may take.

`re` tries one way after another to match a text. How many ways there can be is counted beforehand, from the pattern:
a repeat (or an optional part, or an alternative) is a choice only where what it matches could also be matched by what
comes next. Choices in a row multiply; a choice inside a repeat without an end is refused. The count errs towards more.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import comb
from typing import Any, Final, NamedTuple

LONGEST_PATTERN: Final = 4096
"""Characters of a pattern that `re` is given."""

TRIES_A_STEP: Final = 100
"""Characters that `re` looks at in the time in which jsonschema applies a keyword."""


class UnusableError(Exception):
    """The sentence why a schema cannot be used."""


_CLASS: Final = r"\[\^?(?:\\.|[^\]\\])*\]"
_ECMA: Final = re.compile(rf"\\(?:u\{{[0-9a-fA-F]+\}}|c[A-Za-z]|.)|{_CLASS}|\(\?<(?![=!])|[.$\[]", re.DOTALL)
_SPACE: Final = r"\s\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"


@lru_cache(2048)
def compiled(pattern: str) -> re.Pattern[str]:
    """An ECMA 262 pattern for `re`; raises `UnusableError` where that cannot be, or its time could explode."""
    try:
        if len(pattern) > LONGEST_PATTERN:
            raise OverflowError
        # As a flag and not in the group: there a search that begins with a class goes by Unicode all the same.
        python = re.compile(f"(?:{_ECMA.sub(_python_token, pattern)})", re.ASCII)
        ways = _ways_of(python.pattern)
    except (re.error, RecursionError, OverflowError):
        raise UnusableError(
            "holds a pattern that is no regular expression, or one that only the extra `fast` reads"
        ) from None
    if ways is None:
        raise UnusableError(
            "holds a pattern with repeats inside a repeat, which only the extra `fast` checks in bounded time"
        )
    return python


def effort(pattern: re.Pattern[str], text: str) -> float:
    """An upper bound of the steps that a search for a pattern of `compiled` takes on a text."""
    ways = _ways_of(pattern.pattern)
    assert ways is not None
    # Choices in a row end at places in the text that follow each other.
    return ways.times * min(comb(len(text) + ways.power, ways.power), 10**15) / TRIES_A_STEP


def slope(pattern: re.Pattern[str]) -> float | None:
    """The steps for each character, and for the end, of a text: `effort` is no more. None where it grows faster."""
    ways = _ways_of(pattern.pattern)
    assert ways is not None
    return ways.times / TRIES_A_STEP if ways.power <= 1 else None


def _python_token(match: re.Match[str]) -> str:
    token = match[0]
    if token[0] == "[":
        if token == "[":
            raise re.error("a class without an end")
        if token in ("[]", "[^]"):
            return "(?!)" if token == "[]" else r"[\s\S]"
        inside = re.sub(r"\\s|\\.|[\[&~|]|--", _python_in_class, token[1:-1], flags=re.DOTALL)
        return f"[{inside}]"
    if token.startswith(r"\u{"):
        point = int(token[3:-1], 16)
        return re.escape(chr(point)) if point < 0x110000 else "(?!)"
    if len(token) == 3 and token[1] == "c":
        return re.escape(chr(ord(token[2]) % 32))
    other = {".": r"[^\n\r\u2028\u2029]", "$": r"\Z", "(?<": "(?P<", r"\s": f"[{_SPACE}]", r"\S": f"[^{_SPACE}]"}
    return other.get(token, token)


def _python_in_class(match: re.Match[str]) -> str:
    token = match[0]
    if token == r"\s":
        return _SPACE
    if token[0] == "\\":
        return token
    return r"-\-" if token == "--" else "\\" + token  # Python would warn of set operations to come


# --- in how many ways ------------------------------------------------------------------------------------------------

_PIECE: Final = re.compile(
    r"(?P<open>\((?:\?(?::|[=!]|<[=!]|P<\w+>))?)|(?P<close>\))|(?P<bar>\|)|(?P<edge>\^|\\[AZ])|(?P<between>\\[bB])"
    rf"|(?P<atom>\\u[0-9a-fA-F]{{4}}|\\x[0-9a-fA-F]{{2}}|\\[1-9]\d*|\\.|\(\?P=\w+\)|{_CLASS}|.)",
    re.DOTALL,
)
_REPEAT: Final = re.compile(r"(?:([*+?])|\{(\d*)(,?)(\d*)\})[?+]?")
_SAMPLES: Final = frozenset({*map(chr, range(256)), *"\u0131\u0663\u1680\u2028\u3000\u4e2d\ud800\ufeff\U0001f600"})
"""Characters by which it is told whether two atoms can match the same; those that a pattern spells come on top."""

_MANY: Final = 64
"""A repeat that may vary by more than this counts as one without an end."""


class _Ways(NamedTuple):
    """At most ``times`` the ways to choose ``power`` places in the text, in their order."""

    times: float = 1.0
    power: int = 0

    def then(self, other: _Ways) -> _Ways:
        return _Ways(self.times * other.times, self.power + other.power)

    def besides(self, other: _Ways) -> _Ways:
        return _Ways(self.times + other.times, max(self.power, other.power))


class _Part(NamedTuple):
    """An atom or a group with its repeat."""

    first: frozenset[str]
    """With what it can begin."""
    branches: tuple[tuple[_Part, ...], ...] = ()
    least: float = 1
    most: float = 1
    looks: bool = False
    """It looks ahead or behind, and takes nothing."""
    empty: bool = False
    """Its inside can match the empty text."""

    @property
    def passable(self) -> bool:
        return self.least == 0 or self.looks or self.empty


_EDGE: Final = _Part(frozenset())
_BETWEEN: Final = _Part(frozenset(), looks=True)


@lru_cache(4096)
def _ways_of(python: str) -> _Ways | None:
    """The work of one search, by the length of the text; None where it could be exponential in it."""
    parts = _Reader(python).parts
    ways = _in_a_row(parts, frozenset())
    if ways is None:
        return None
    scan = _Ways(1, 1) if any(map(_long, parts)) else _Ways(len(python))
    return ways.then(scan) if _anchored(parts) else ways.then(scan).then(_Ways(1, 1))


def _long(part: _Part) -> bool:
    return part.most > _MANY or any(_long(each) for branch in part.branches for each in branch)


def _anchored(parts: tuple[_Part, ...]) -> bool:
    if not parts or parts[0].looks or parts[0].least < 1:
        return False
    return parts[0] is _EDGE or (bool(parts[0].branches) and all(map(_anchored, parts[0].branches)))


def _in_a_row(parts: tuple[_Part, ...], after: frozenset[str]) -> _Ways | None:
    """The ways of parts that follow each other, before what can begin with ``after``."""
    total = _Ways()
    for part in reversed(parts):
        ways = _one(part, after)
        if ways is None:
            return None
        # What has been looked at is not tried again when the rest fails.
        total = total.besides(ways) if part.looks else total.then(ways)
        after = part.first | after if part.passable else part.first
    return total


def _one(part: _Part, after: frozenset[str]) -> _Ways | None:
    """The ways of one part: those through its inside, as often as it is repeated, and those to end the repeat."""
    inside = _Ways()
    if part.branches:
        around = part.first | after if part.most > 1 else after
        several = [_in_a_row(branch, _SAMPLES if part.looks else around) for branch in part.branches]
        if any(ways is None for ways in several):
            return None
        inside = _either([ways for ways in several if ways], _overlap(part.branches, around))
    if part.most > _MANY and ((part.branches and part.empty) or inside != (1.0, 0)):
        return None
    times = int(min(part.most, _MANY))
    inside = _Ways(min(inside.times, 1e9) ** times, inside.power * times)
    if part.least == part.most or not part.first & after:
        return inside
    return inside.then(_Ways(part.most - part.least + 1) if part.most - part.least <= _MANY else _Ways(1, 1))


def _either(several: list[_Ways], alike: bool) -> _Ways:
    """The ways through alternatives: all of them where several can be tried on one text, else the longest."""
    times = [ways.times for ways in several]
    return _Ways(sum(times) if alike else max(times), max(ways.power for ways in several))


def _overlap(branches: tuple[tuple[_Part, ...], ...], after: frozenset[str]) -> bool:
    """Whether two branches can begin alike."""
    seen: set[str] = set()
    for branch in branches:
        begins = _first(branch) | after if all(part.passable for part in branch) else _first(branch)
        if seen & begins:
            return True
        seen |= begins
    return False


def _first(parts: tuple[_Part, ...]) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for part in parts:
        found |= part.first
        if not part.passable:
            break
    return found


class _Reader:
    """Reads the parts of a pattern that `re` has accepted."""

    def __init__(self, python: str) -> None:
        self.text = python
        self.at = 0
        escaped = re.findall(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))", python)
        self.samples = _SAMPLES | set(python) | {chr(int(long or short, 16)) for long, short in escaped}
        self.atoms: dict[str, frozenset[str]] = {}
        self.parts = self._branches()[0]

    def _branches(self) -> tuple[tuple[_Part, ...], ...]:
        branches: list[list[_Part]] = [[]]
        while (match := _PIECE.match(self.text, self.at)) is not None:
            self.at = match.end()
            kind = match.lastgroup
            if match[0] == "(" and self.text[self.at : self.at + 1] == "?":
                raise re.error("a group of a kind that ECMA 262 does not know")
            if kind == "close":
                break
            if kind == "bar":
                branches.append([])
            else:
                branches[-1].append(self._part(kind, match[0]))
        return tuple(map(tuple, branches))

    def _part(self, kind: Any, token: str) -> _Part:
        if kind == "edge":
            return _EDGE
        if kind == "between":
            return _BETWEEN
        if kind == "atom":
            part = _Part(self._matched(token), empty=_refers_back(token))
        else:
            branches = self._branches()
            empty = any(all(each.passable for each in branch) for branch in branches)
            looks = token.endswith(("=", "!"))
            first = self.samples if looks else frozenset().union(*map(_first, branches))
            part = _Part(frozenset(first), branches, looks=looks, empty=empty)
        least, most = self._repeat()
        return part if (least, most) == (1, 1) else part._replace(least=least, most=most)

    def _matched(self, token: str) -> frozenset[str]:
        """The characters that an atom matches; a back reference may match any."""
        if _refers_back(token):
            return self.samples
        if token not in self.atoms:
            one = re.compile(token, re.ASCII)
            self.atoms[token] = frozenset(each for each in self.samples if one.fullmatch(each))
        return self.atoms[token]

    def _repeat(self) -> tuple[float, float]:
        match = _REPEAT.match(self.text, self.at)
        if match is None:
            return 1, 1
        sign, least, comma, most = match.groups()
        if sign:
            self.at = match.end()
            return {"*": (0, float("inf")), "+": (1, float("inf")), "?": (0, 1)}[sign]
        if not least and not most:  # {} and {,} stand for themselves, and are read as atoms
            return (1, 1)
        self.at = match.end()
        low = float(least or 0)
        return low, float(most) if most else (float("inf") if comma else low)


def _refers_back(token: str) -> bool:
    return token.startswith("(?P=") or (token[0] == "\\" and token[1] in "123456789")
