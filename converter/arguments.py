"""One arguments text: read it strictly as JSON, remember what was found, measure and compare its values."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NoReturn

import msgspec

from converter.memo import Memo
from converter.outcome import Verdict

DEEPEST: Final = 128
"""How many arrays and objects may stand in each other: RFC 8259 section 9 lets a reader say; as serde_json does."""

MEMO_CHARACTERS: Final = 250_000
"""How much arguments text one memo may hold before it starts afresh."""

_KEY: Final = re.compile(r'"[ \t\n\r]*:')
_UNSEEN: Final = frozenset({list, float})
_ROUNDED: Final = re.compile(r"[0-9][0-9.]{15}|[0-9][eE]-0*[1-9][0-9]{2}")
"""Where a real stands that a double may not hold: 16 digits or more, or one near zero."""


def flat(text: str) -> dict[str, Any] | None:
    """The object that a text is, where one look tells all: no key twice, no other object or array in it, no real."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    # Every key leaves a `":` in the text, so a text with no more of them than the value has keys repeats none.
    if value.__class__ is dict and text.count(":") == len(value) and _UNSEEN.isdisjoint(map(type, value.values())):
        return value
    return None


def load(text: str) -> tuple[Any, bool]:
    """The value of one JSON text, and whether it is plain: what any engine can take. Raises ValueError in own words."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return _careful(text), False
    keys, reals = _counted(value)
    if reals and _ROUNDED.search(text):
        exact = _careful(text)
        return exact, bool(exact == value)
    if text.count(":") != keys and len(_KEY.findall(text)) != keys:
        _careful(text)
    return value, True


def readings(text: str) -> list[tuple[Any, bool]]:
    """What readers may make of one JSON text, as `load`: its numbers as they are spelled, and its reals as doubles.

    They differ for a real that no double holds: 5.0000000000000000001 is more than 5, and most readers take it for 5.
    """
    value, plain = load(text)
    if not plain and _ROUNDED.search(text):
        rounded = json.loads(text, parse_int=_integer, parse_float=_double)
        if rounded != value:
            return [(value, False), (rounded, False)]
    return [(value, plain)]


def parse_fault(text: str) -> str:
    """Why a text is not one JSON text, in a sentence; empty where it is one."""
    try:
        load(text)
    except ValueError as error:
        return str(error)
    return ""


def _counted(value: Any, depth: int = 1) -> tuple[int, bool]:
    """How many keys stand in a value, at any depth, and whether a real does."""
    if value.__class__ is not dict and value.__class__ is not list:
        return 0, value.__class__ is float
    if depth > DEEPEST:
        raise ValueError(f"arrays and objects stand in each other more than {DEEPEST} deep")
    keys, inside = (len(value), value.values()) if value.__class__ is dict else (0, value)
    reals = False
    for each in inside:
        if each.__class__ is dict or each.__class__ is list:
            more, real = _counted(each, depth + 1)
            keys += more
            reals = reals or real
        elif each.__class__ is float:
            reals = True
    return keys, reals


def _careful(text: str) -> Any:
    """As `load`, for what msgspec does not read or does not see: surrogates, big numbers, repeated keys."""
    try:
        value = json.loads(
            text, object_pairs_hook=_once, parse_constant=_no_constant, parse_int=_integer, parse_float=_real
        )
    except json.JSONDecodeError as error:
        what = "a second value stands" if error.msg == "Extra data" else "not JSON"
        raise ValueError(f"{what} at character {error.pos + 1}") from None
    except RecursionError:
        raise ValueError(f"arrays and objects stand in each other more than {DEEPEST} deep") from None
    _counted(value)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _no_constant(_: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not JSON")


def _integer(text: str) -> int | Decimal:
    try:
        return int(text)
    except ValueError:  # beyond Python's own limit of digits
        return Decimal(text)


def _real(text: str) -> float | Decimal:
    """A double where it stands for what is spelled, else the decimal itself."""
    value = float(text)
    finite = value - value == 0
    if finite and _ROUNDED.search(text) is None:
        return value
    try:
        exact = Decimal(text)
    except InvalidOperation:  # an exponent of twenty digits: as large, or as small, as a Decimal gets
        power = "-999999999999999999" if finite else "999999999999999999"
        return Decimal(f"{'-' * text.startswith('-')}1e{power}")
    return value if finite and exact == Decimal(repr(value)) else exact


def _double(text: str) -> float | Decimal:
    value = float(text)
    return value if value - value == 0 else _real(text)


_PARSED: Final[Memo[str, Verdict]] = Memo(MEMO_CHARACTERS)


def parse_verdict(arguments: str) -> Verdict:
    """ARGUMENTS_PARSE unless the text is one JSON text (RFC 8259) that repeats no key in an object, else OK."""
    known = _PARSED.get(arguments)
    if known is not None:
        return known
    try:
        load(arguments)
    except ValueError:
        return _PARSED.keep(arguments, Verdict.ARGUMENTS_PARSE)
    return _PARSED.keep(arguments, Verdict.OK)


# --- values ----------------------------------------------------------------------------------------------------------


class Sizes(dict[int, int]):
    """About how many characters the arrays and objects of one value take, by identity."""

    __slots__ = ()

    def of(self, value: Any) -> int:
        """The size of one value."""
        if type(value) is str or type(value) is Decimal:
            return value.__sizeof__()
        if type(value) is not dict and type(value) is not list:
            return 4
        known = self.get(id(value))
        if known is None:
            inside = [*value, *value.values()] if type(value) is dict else value
            known = self[id(value)] = 2 + 4 * len(inside) + sum([self.of(each) for each in inside])
        return known


def holds_large_real(value: Any) -> bool:
    """Whether some real in a value is beyond 2 ** 53: there the double is another whole number than it spells."""
    if type(value) is dict or type(value) is list:
        return any(map(holds_large_real, value.values() if type(value) is dict else value))
    return type(value) is float and abs(value) >= 2**53


def multiple(value: Any, divisor: Any) -> bool:
    """Whether one number is a multiple of another, on the decimals as they are written: 0.3 is one of 0.1."""
    return _is_multiple(decimal(value), decimal(divisor))


def decimal(number: Any) -> Decimal:
    """A number as it is written."""
    return number if isinstance(number, Decimal) else Decimal(str(number))


def _is_multiple(value: Decimal, divisor: Decimal) -> bool:
    if not value or value.adjusted() < divisor.adjusted():
        return not value
    (_, digits, power), (_, by, shift) = value.as_tuple(), divisor.as_tuple()
    power = int(power) - int(shift)
    if power < 0:  # a multiple of 10 ** -power first, then of the rest: no step is longer than the number
        if any(digits[power:]):
            return False
        digits, power = digits[:power], 0
    modulus = _whole(by)
    rest: int = 0
    for digit in digits:  # one by one: the number may be longer than Python turns into an int
        rest = (rest * 10 + digit) % modulus
    return bool(rest * pow(10, power, modulus) % modulus == 0)


def _whole(digits: tuple[int, ...]) -> int:
    """The number of some digits, which may be more than `int` takes."""
    return sum(
        int("".join(map(str, digits[at : at + 4000]))) * 10 ** max(len(digits) - at - 4000, 0)
        for at in range(0, len(digits), 4000)
    )


def frozen(value: Any) -> Any:
    """A hashable that is equal where JSON Schema holds two values equal: 1 and 1.0, but not 1 and true."""
    if isinstance(value, list):
        return ("array", *map(frozen, value))
    if isinstance(value, dict):
        return "object", frozenset((key, frozen(each)) for key, each in value.items())
    return ("boolean", value) if isinstance(value, bool) else value
