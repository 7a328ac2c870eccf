"""The pure engine: jsonschema, with its own opinion of some keywords, and with its steps counted.

What it does is counted by rule and not by the clock, so that the same arguments have the same verdict on every
machine. A check that needs more than `MOST_STEPS` is given up, which is never OK.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextvars import ContextVar
from decimal import Decimal
from functools import cache
from itertools import islice
from typing import Any, Final

from converter.arguments import Sizes, decimal, frozen, multiple
from converter.patterns import compiled, effort
from converter.references import Draft, every_node, read_schema, settle

MOST_STEPS: Final = 400_000
"""Steps of jsonschema that one check may take: about one application of a keyword each, some microseconds."""


class GivenUpError(Exception):
    """A check was not made to its end, so that nothing can be said for the arguments."""


class Budget:
    """The steps that are left for one check, and what they are reckoned by."""

    __slots__ = ("applied", "left", "patterns", "sizes")

    def __init__(self, applied: int = 1, patterns: tuple[re.Pattern[str], ...] = (), steps: float = MOST_STEPS) -> None:
        self.left = steps
        self.sizes = Sizes()
        self.applied = applied
        self.patterns = patterns

    def spend(self, steps: float) -> None:
        """Take so many steps, or give the check up."""
        self.left -= steps
        if self.left < 0:
            raise GivenUpError

    def own(self, keyword: str, given: Any) -> float:
        """The steps that one keyword takes whatever the value."""
        steps: float = _DEAR.get(keyword, 1)
        if keyword in ("required", "dependentRequired", "dependencies"):
            steps += self.sizes.of(given) / 256
        elif type(given) is dict or type(given) is list:
            steps += len(given) / 16
        return steps

    def apply(self, keyword: str, given: Any, value: Any) -> None:
        """Pay for one keyword on one value: for going over both once, and for a message that spells the value."""
        steps = self.own(keyword, given)
        if type(value) is dict or type(value) is list:
            steps += len(value) / 8 + self.sizes.of(value) / 512
        elif type(value) is str or type(value) is Decimal:
            steps += value.__sizeof__() / 512
        if keyword in ("unevaluatedProperties", "unevaluatedItems") and type(value) in (dict, list):
            # jsonschema goes through all that may apply, and looks each name up in a list of what they name.
            steps += self.applied * (1 + len(value) + len(value) ** 2 / 128)
            steps += self.applied * sum(effort(each, str(key)) for key in value for each in self.patterns)
        self.spend(steps)


_DEAR: Final = {"$ref": 10, "$dynamicRef": 50, "$recursiveRef": 50}
"""What takes longer: a dynamic reference goes through all schemas around it."""

BUDGET: ContextVar[Budget] = ContextVar("budget")


def _counted(keyword: str, check: Any) -> Any:
    def counted(validator: Any, given: Any, value: Any, schema: Any) -> Any:
        BUDGET.get().apply(keyword, given, value)
        return check(validator, given, value, schema)

    return counted


@cache
def _slow_engine(draft: Draft) -> Any:
    """The validator class of jsonschema with the keywords of which this module has its own opinion."""
    import jsonschema  # type: ignore[import-untyped]

    base = getattr(jsonschema, draft.validator)
    is_integer = base.TYPE_CHECKER.is_type

    def integer(_: Any, value: Any) -> bool:
        if isinstance(value, Decimal):
            return bool(value == value.to_integral_value())
        return bool(is_integer(value, "integer"))

    own = {keyword: check for keyword, check in _OWN.items() if keyword in base.VALIDATORS}
    checks = {**base.VALIDATORS, **own, "items": _items(base)}
    if "contains" in checks:
        checks["contains"] = _contains(counts="unevaluatedItems" in checks)
    return jsonschema.validators.extend(
        base,
        {keyword: _counted(keyword, check) for keyword, check in checks.items()},
        type_checker=base.TYPE_CHECKER.redefine("integer", integer),
    )


def afford(schema: Any) -> None:
    """Give up on a schema that is not held against its metaschema in bounded time."""
    budget = Budget()
    for node in every_node(schema):
        budget.spend(160)
        for value in node.values():
            inside = value.values() if type(value) is dict else value if type(value) is list else ()
            budget.spend(1 + len(inside) + 120 * sum(type(each) is bool for each in inside))
            if type(value) is list and len({type(each) for each in value}) > 1:
                budget.spend(len(inside) ** 2 / 16)  # jsonschema compares all pairs of what cannot be sorted


def is_schema(schema: Any, draft: Draft) -> bool:
    """Whether a schema is valid under its metaschema, where that can be told in bounded time."""
    import jsonschema

    afford(schema)
    try:
        getattr(jsonschema, draft.validator).check_schema(schema, format_checker=None)
    except jsonschema.SchemaError:
        return False
    except RecursionError:
        raise GivenUpError from None
    return True


def slow_validator(text: bytes, draft: Draft) -> tuple[Any, tuple[re.Pattern[str], ...]]:
    """A validator of jsonschema, and the patterns for names in it.

    Raises `UnusableError` when a pattern is not for `re`.
    """
    import referencing

    schema, _ = read_schema(text)
    settle(schema)
    patterns: list[re.Pattern[str]] = []
    for node in every_node(schema):
        if isinstance(node.get("pattern"), str):
            node["pattern"] = compiled(node["pattern"])
        if isinstance(named := node.get("patternProperties"), dict):
            renamed = {compiled(key) if isinstance(key, str) else key: named[key] for key in named}
            node["patternProperties"] = renamed
            patterns += renamed
        if isinstance(choice := node.get("enum"), list):
            node["enum"] = frozenset(map(frozen, choice))
        if type(inside := node.get("unevaluatedProperties")) is dict:
            node["unevaluatedProperties"] = {"not": {"not": inside}}  # one failure for a name, not all of them
    return _slow_engine(draft)(schema, registry=referencing.Registry()), tuple(patterns)


def _failure() -> Any:
    from jsonschema.exceptions import ValidationError  # type: ignore[import-untyped]

    return ValidationError("")


def _fits(validator: Any, value: Any, schema: Any) -> bool:
    fits = next(validator.descend(value, schema), None) is None
    BUDGET.get().spend(0 if fits else 3)
    return fits


def _any_of(validator: Any, branches: Any, value: Any, _: Any) -> Iterator[Any]:
    if not any(_fits(validator, value, each) for each in branches):
        yield _failure()


def _one_of(validator: Any, branches: Any, value: Any, _: Any) -> Iterator[Any]:
    if len(list(islice((each for each in branches if _fits(validator, value, each)), 2))) != 1:
        yield _failure()


def _not(validator: Any, schema: Any, value: Any, _: Any) -> Iterator[Any]:
    if _fits(validator, value, schema):
        yield _failure()


def _items(base: Any) -> Any:
    check, prefixed = base.VALIDATORS["items"], "prefixItems" in base.VALIDATORS

    def items(validator: Any, given: Any, value: Any, schema: Any) -> Iterator[Any]:
        if type(value) is not list or type(given) is not dict or "$id" in given or "id" in given:
            yield from check(validator, given, value, schema) or ()
            return
        child = validator.evolve(schema=given)  # one for all items; without an $id, references mean the same in it
        for index in range(len(schema.get("prefixItems", ())) if prefixed else 0, len(value)):
            for error in child.iter_errors(value[index]):
                error.path.appendleft(index)
                yield error

    return items


def _contains(counts: bool) -> Any:
    """Whether enough items fit, and in the drafts that count them, not too many."""

    def contains(validator: Any, given: Any, value: Any, schema: Any) -> Iterator[Any]:
        if type(value) is not list:
            return
        least, most = 1, len(value)
        if counts:
            least, most = schema.get("minContains", least), schema.get("maxContains", most)
        if not least <= sum(_fits(validator, each, given) for each in value) <= most:
            yield _failure()

    return contains


def _found(pattern: Any, text: str) -> bool:
    regex = compiled(pattern) if isinstance(pattern, str) else pattern
    BUDGET.get().spend(0.2 + effort(regex, text))
    return regex.search(text) is not None


def _pattern(_: Any, pattern: Any, value: Any, __: Any) -> Iterator[Any]:
    if isinstance(value, str) and not _found(pattern, value):
        yield _failure()


def _pattern_properties(validator: Any, given: Any, value: Any, _: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for pattern, schema in given.items():
            for key in value:
                if _found(pattern, key):
                    yield from validator.descend(value[key], schema, path=key, schema_path=str(pattern))


def _additional_properties(validator: Any, given: Any, value: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(value, dict) or given is True:
        return
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", ())
    for key in value:
        if key in named or any(_found(pattern, key) for pattern in patterns):
            continue
        if given is False:
            yield _failure()
            return
        yield from validator.descend(value[key], given, path=key)


def _multiple_of(validator: Any, divisor: Any, value: Any, _: Any) -> Iterator[Any]:
    if validator.is_type(value, "number"):
        digits = [len(decimal(each).as_tuple().digits) for each in (value, divisor)]
        BUDGET.get().spend(digits[0] / 32 * (1 + digits[1] / 256) + digits[1] ** 2 / 4096)
        if not multiple(value, divisor):
            yield _failure()


def _unique_items(_: Any, unique: Any, value: Any, __: Any) -> Iterator[Any]:
    """In linear time; jsonschema compares every pair of objects."""
    if unique is True and isinstance(value, list) and len({_hashable(each) for each in value}) < len(value):
        yield _failure()


def _enum(_: Any, choice: Any, value: Any, __: Any) -> Iterator[Any]:
    if _hashable(value) not in (choice if isinstance(choice, frozenset) else map(frozen, choice)):
        yield _failure()


def _const(_: Any, constant: Any, value: Any, __: Any) -> Iterator[Any]:
    whole = type(constant) in (dict, list)
    if (whole and type(value) is not type(constant)) or _hashable(value) != _hashable(constant):
        yield _failure()


def _hashable(value: Any) -> Any:
    budget = BUDGET.get()
    budget.spend(budget.sizes.of(value) / 8 if type(value) is dict or type(value) is list else 0)
    return frozen(value)


_OWN: Final = {
    "additionalProperties": _additional_properties,
    "anyOf": _any_of,
    "const": _const,
    "enum": _enum,
    "multipleOf": _multiple_of,
    "not": _not,
    "oneOf": _one_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "uniqueItems": _unique_items,
}
"""Keywords that are exact, or cheaper, here: no failure is spelled that nobody reads."""
