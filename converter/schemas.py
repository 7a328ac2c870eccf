"""A tool's schema: find what is wrong with it, check arguments against it, remember what was found.

Two engines: jsonschema-rs (extra ``fast``) says yes or no, jsonschema says why, and checks what the first one cannot
take (lone surrogates, numbers beyond a double, look-around in a pattern). They must agree, so the few keywords where
they differ are settled here: exact ``multipleOf``, ECMA 262 patterns, no ``format`` and no ``contentEncoding``.
Both are imported when the first schema is looked at. Nothing is ever fetched.

What jsonschema does is counted in steps, by rule and not by the clock, so that the same arguments have the same verdict
on every machine. A check that needs more than `MOST_STEPS` is given up, which is never OK.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextvars import ContextVar
from decimal import Decimal
from functools import cache, lru_cache
from itertools import islice
from typing import Any, Final, NoReturn

from converter.arguments import Memo, Sizes, decimal, frozen, load, multiple, parse_verdict
from converter.outcome import Verdict
from converter.patterns import UnusableError, compiled, effort
from converter.references import Draft, every_node, follow, read_schema, settle

__all__ = ["ToolSchema", "parse_verdict", "strict_qualifies", "tool_schema"]

MOST_SCHEMAS: Final = 1024
"""Schemas remembered."""

MOST_STEPS: Final = 400_000
"""Steps of jsonschema that one check may take: about one application of a keyword each, some microseconds."""

_GIVEN_UP: Final = (
    "the check was given up, as it takes too long or nests too deep: install the extra `fast`, or simplify the schema"
)


class _GivenUpError(Exception):
    """A check was not made to its end, so that nothing can be said for the arguments."""


# --- the fast engine -------------------------------------------------------------------------------------------------


@cache
def _fast_engine() -> Any:
    """The module jsonschema_rs, or None."""
    try:
        import jsonschema_rs
    except ImportError:
        return None
    return jsonschema_rs


def _no_retrieval(_: str) -> NoReturn:
    raise ValueError("nothing is fetched")


def _fast_validator(schema: Any, draft: Draft) -> Any:
    """A validator of jsonschema-rs, or None where it cannot be had; its patterns run in linear time."""
    engine = _fast_engine()
    if engine is None:
        return None
    try:
        return getattr(engine, draft.validator)(
            schema, validate_formats=False, retriever=_no_retrieval, pattern_options=engine.RegexOptions()
        )
    except (ValueError, TypeError, AttributeError, OverflowError, engine.ReferencingError):
        return None  # jsonschema decides whether the schema is at fault


# --- the slow engine, counted ----------------------------------------------------------------------------------------


class _Budget:
    """The steps that are left for one check, and what they are reckoned by."""

    __slots__ = ("applied", "left", "patterns", "sizes")

    def __init__(self, applied: int = 1, patterns: tuple[re.Pattern[str], ...] = ()) -> None:
        self.left: float = MOST_STEPS
        self.sizes = Sizes()
        self.applied = applied
        self.patterns = patterns

    def spend(self, steps: float) -> None:
        """Take so many steps, or give the check up."""
        self.left -= steps
        if self.left < 0:
            raise _GivenUpError

    def apply(self, keyword: str, given: Any, value: Any) -> None:
        """Pay for one keyword on one value: for going over both once, and for a message that spells the value."""
        steps: float = 10 if keyword[0] == "$" else 1
        if type(value) is dict or type(value) is list:
            steps += len(value) / 8 + self.sizes.of(value) / 512
        elif type(value) is str or type(value) is Decimal:
            steps += value.__sizeof__() / 512
        if keyword in ("required", "dependentRequired", "dependencies"):
            steps += self.sizes.of(given) / 256
        elif type(given) is dict or type(given) is list:
            steps += len(given) / 16
        if keyword in ("unevaluatedProperties", "unevaluatedItems") and type(value) in (dict, list):
            # jsonschema goes through all that may apply, and looks each name up in a list of what they name.
            steps += self.applied * (1 + len(value) + len(value) ** 2 / 128)
            steps += self.applied * sum(effort(each, str(key)) for key in value for each in self.patterns)
        self.spend(steps)


_BUDGET: ContextVar[_Budget] = ContextVar("budget")


def _counted(keyword: str, check: Any) -> Any:
    def counted(validator: Any, given: Any, value: Any, schema: Any) -> Any:
        _BUDGET.get().apply(keyword, given, value)
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
    return jsonschema.validators.extend(
        base,
        {keyword: _counted(keyword, check) for keyword, check in checks.items()},
        type_checker=base.TYPE_CHECKER.redefine("integer", integer),
    )


def _check(schema: Any, draft: Draft) -> bool:
    """Whether a schema is valid under its metaschema, where that can be told in bounded time."""
    import jsonschema

    budget = _Budget()
    for node in every_node(schema):
        budget.spend(160)
        for value in node.values():
            inside = value.values() if type(value) is dict else value if type(value) is list else ()
            budget.spend(1 + len(inside) + 120 * sum(type(each) is bool for each in inside))
            if type(value) is list and len({type(each) for each in value}) > 1:
                budget.spend(len(inside) ** 2 / 16)  # jsonschema compares all pairs of what cannot be sorted
    try:
        getattr(jsonschema, draft.validator).check_schema(schema, format_checker=None)
    except jsonschema.SchemaError:
        return False
    except RecursionError:
        raise _GivenUpError from None
    return True


def _slow_validator(text: bytes, draft: Draft) -> tuple[Any, tuple[re.Pattern[str], ...]]:
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
    _BUDGET.get().spend(0 if fits else 3)
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


def _found(pattern: Any, text: str) -> bool:
    regex = compiled(pattern) if isinstance(pattern, str) else pattern
    _BUDGET.get().spend(0.2 + effort(regex, text))
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
        _BUDGET.get().spend(digits[0] / 32 * (1 + digits[1] / 256) + digits[1] ** 2 / 4096)
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
    budget = _BUDGET.get()
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


# --- the surface -----------------------------------------------------------------------------------------------------


class ToolSchema:
    """One tool's parameter schema, ready to check arguments texts against. Made by `tool_schema`.

    ``problem`` is None, or a sentence why this is no usable schema: it is no JSON object or boolean, invalid under its
    metaschema, of an unknown draft, not closed in itself, or without a bound on the time of a check. It prints nothing
    of the schema.
    """

    __slots__ = ("_applied", "_draft", "_fast", "_memo", "_patterns", "_slow", "_stopped", "_text", "problem")

    def __init__(self, text: bytes) -> None:
        self.problem: str | None = None
        self._text = text
        self._memo = Memo()
        self._applied = 1
        self._patterns: tuple[re.Pattern[str], ...] = ()
        self._fast: Any = None
        self._slow: Any = None
        self._stopped = ""  # the arguments whose check was given up last: their fault is known
        try:
            self._build()
        except UnusableError as problem:
            self.problem = f"the schema {problem}"
        except _GivenUpError:
            self.problem = "the schema is larger than can be checked without the extra `fast`"

    def _build(self) -> None:
        schema, plain = read_schema(self._text)
        self._draft = draft = settle(schema)
        self._fast = _fast_validator(schema, self._draft) if plain else None
        if self._fast is None and not _check(schema, draft):
            raise UnusableError(f"is invalid under the metaschema of {self._draft.validator.removesuffix('Validator')}")
        if isinstance(schema, dict) and re.search(rb'ef"|\\u|unevaluated', self._text):
            self._applied = follow(schema, draft, lambda each: _check(each, draft))
        if self._fast is None:
            self._prepare()

    def _prepare(self) -> None:
        self._slow, self._patterns = _slow_validator(self._text, self._draft)

    def verdict(self, arguments: str) -> Verdict:
        """ARGUMENTS_PARSE, ARGUMENTS_SCHEMA or OK. With a `problem`, arguments that parse are OK, unchecked."""
        known = self._memo.get(arguments)
        return known if known is not None else self._memo.keep(arguments, self._judge(arguments))

    def _judge(self, arguments: str) -> Verdict:
        try:
            value, plain = load(arguments)
        except ValueError:
            return Verdict.ARGUMENTS_PARSE
        if self.problem or self._fits(arguments, value, plain):
            return Verdict.OK
        return Verdict.ARGUMENTS_SCHEMA

    def _fits(self, arguments: str, value: Any, plain: bool) -> bool:
        if plain and self._fast is not None:
            try:
                return bool(self._fast.is_valid(value))
            except (ValueError, TypeError, OverflowError):
                pass  # a value that it does not take
        errors = self._errors(value, 1)
        if errors is None:  # what could not be checked is not let through
            self._stopped = arguments
        return errors == []

    def _errors(self, value: Any, most: int) -> list[Any] | None:
        """The first failures that jsonschema finds; None if it found none, but was stopped."""
        errors: list[Any] = []
        started = _BUDGET.set(_Budget(self._applied, self._patterns))
        try:
            if self._slow is None:
                self._prepare()
            for error in islice(self._slow.iter_errors(value), most):
                errors.append(error)
        except (_GivenUpError, UnusableError, RecursionError):
            return errors or None
        finally:
            _BUDGET.reset(started)
        return errors

    def fault(self, arguments: str) -> str:
        """A sentence for a faulty verdict. It names keywords and properties of the schema, nothing of the arguments."""
        try:
            value, _ = load(arguments)
        except ValueError as error:
            return str(error)
        if self.problem:
            return self.problem
        errors = None if arguments == self._stopped else self._errors(value, 50)
        if errors:
            return self._word(min(errors, key=lambda e: (len(e.absolute_path), list(map(str, e.absolute_schema_path)))))
        return _GIVEN_UP if errors is None and self._fast is None else "the schema is not met"

    def _word(self, error: Any) -> str:
        """The sentence for one failure of jsonschema. A step of the path that the schema does not name is a ``*``."""
        schema, _ = read_schema(self._text)
        names = {name for node in every_node(schema) for name in _names(node)}
        steps = [step if isinstance(step, int) or step in names else "*" for step in error.absolute_path]
        place = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps) or "the top"
        sentence = f"'{error.validator or 'false'}' of the schema is not met at {place}"
        if error.validator == "required":
            missing = [name for name in error.validator_value if name not in error.instance]
            sentence += f": missing {', '.join(map(repr, missing[:5]))}"
        return sentence.encode("utf-8", "backslashreplace").decode()


def _names(node: dict[str, Any]) -> Any:
    properties = node.get("properties")
    return properties if isinstance(properties, dict) else ()


@lru_cache(MOST_SCHEMAS)
def tool_schema(text: bytes) -> ToolSchema:
    """The schema that stands in a JSON text (an object or a boolean), remembered by its text."""
    return ToolSchema(text)


@lru_cache(MOST_SCHEMAS)
def strict_qualifies(text: bytes) -> bool:
    """Whether a parameter schema is fit for OpenAI's strict mode, which is on unasked where it is.

    The rule (Structured Outputs guide): the root is an object, every object is closed (``additionalProperties`` false)
    and requires all its properties, every array says its items, and nothing is left without a type.
    """
    try:
        schema, _ = read_schema(text)
    except UnusableError:
        return False
    return isinstance(schema, dict) and "object" in _types(schema) and _is_strict(schema)


def _types(schema: dict[str, Any]) -> list[Any]:
    named = schema.get("type", ["object"] if "properties" in schema else [])
    return named if isinstance(named, list) else [named]


def _is_strict(schema: Any) -> bool:
    if not isinstance(schema, dict) or not {"type", "properties", "enum", "const", "anyOf", "$ref"} & schema.keys():
        return False
    if "object" in _types(schema):
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if schema.get("additionalProperties") is not False or "patternProperties" in schema:
            return False
        if not isinstance(properties, dict) or not isinstance(required, list):
            return False
        if any(name not in required for name in properties):
            return False
    if "array" in _types(schema) and "items" not in schema:
        return False
    return all(_is_strict(each) for each in _strict_parts(schema))


def _strict_parts(schema: dict[str, Any]) -> Iterator[Any]:
    """All that stands where a schema is expected, whether it is one or not."""
    for key, value in schema.items():
        if key in ("properties", "$defs", "definitions"):
            yield from value.values() if isinstance(value, dict) else (None,)
        elif key in ("anyOf", "allOf", "oneOf", "prefixItems"):
            yield from value if isinstance(value, list) else (None,)
        elif key in ("items", "not", "if", "then", "else"):
            yield value
