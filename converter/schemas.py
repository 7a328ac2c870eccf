"""A tool's schema: find what is wrong with it, check arguments against it, remember what was found.

Two engines: jsonschema-rs (extra ``fast``) says yes or no, jsonschema says why, and checks what the first one cannot
take (lone surrogates, numbers beyond a double, look-around in a pattern). They must agree, so the few keywords where
they differ are settled here: exact ``multipleOf``, ECMA 262 patterns, no ``format`` and no ``contentEncoding``.
Nothing is ever fetched.

What is sure without them (see `surely`) is not asked of them: that a plain schema is usable, and in the place of
jsonschema that arguments fit. An engine is imported, and made ready for a schema, when it is first asked. A check by
jsonschema that would take too long is given up (see `keywords`), which is never OK.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import count, islice
from typing import Any, Final, NoReturn

from converter.arguments import MEMO_CHARACTERS, flat, holds_large_real, parse_verdict, readings
from converter.keywords import BUDGET, MOST_STEPS, Budget, GivenUpError, afford, is_schema, slow_validator
from converter.memo import Memo
from converter.outcome import Verdict
from converter.patterns import UnusableError, compiled
from converter.reading import has_null_members
from converter.references import Draft, every_node, follow, read_schema, settle
from converter.surely import NOTHING, Certain, certain, usable

__all__ = ["ToolSchema", "parse_verdict", "strict_qualifies", "tool_schema"]

SCHEMA_BYTES: Final = 16 << 20
"""How much text of schemas is remembered before it starts afresh; what is made of it takes some fifty times as much."""

_BESIDE: Final = 16 << 10  # so that no more than about a thousand are remembered

SMALL: Final = 3_500
"""Bytes of a schema that is surely no larger than `afford` bears: 161 steps for ``{},``, and all pairs of a list."""

_GIVEN_UP: Final = (
    "the check was given up, as it takes too long or nests too deep: install the extra `fast`, or simplify the schema"
)


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


def _surely_usable(schema: Any, text: bytes) -> bool:
    """Whether a plain schema has no `problem` with either engine, as far as can be told without one."""
    try:
        if len(text) > SMALL:
            afford(schema)
        patterns = usable(schema)
        if not patterns:
            return patterns is not None
        if _fast_engine() is not None:
            return False  # which has read them before they are looked at here
        for pattern in patterns:
            compiled(pattern)
    except (GivenUpError, UnusableError):
        return False
    return True


PADDED: Final = ", and has null members as tables pad their rows with (--repair null-padding leaves them out)"


SERIALS: Final = count(1)
"""Numbers of schemas, by which one is known again without being held."""


def defines(schema: Any) -> bool:
    """Whether what should be a JSON Schema is the definition of a tool, which as a schema asks for nothing."""
    if not isinstance(schema, dict):
        return False
    named = isinstance(schema.get("name"), str)
    return isinstance(schema.get("function"), dict) or (named and not {"parameters", "input_schema"}.isdisjoint(schema))


class ToolSchema:
    """One tool's parameter schema, ready to check arguments texts against. Made by `tool_schema`.

    ``problem`` is None, or a sentence why this is no usable schema: it is no JSON object or boolean, invalid under its
    metaschema, of an unknown draft, not closed in itself, or without a bound on the time of a check. It prints nothing
    of the schema.
    """

    __slots__ = (
        "_applied",
        "_certain",
        "_divides",
        "_draft",
        "_fast",
        "_named",
        "_patterns",
        "_slow",
        "_stopped",
        "_text",
        "known",
        "problem",
        "serial",
    )

    def __init__(self, text: bytes) -> None:
        self.serial = next(SERIALS)
        self.problem: str | None = None
        self._text = text
        self.known: Memo[str, Verdict] = Memo(MEMO_CHARACTERS)
        self._applied = 1
        self._patterns: tuple[re.Pattern[str], ...] = ()
        self._draft: Draft | None = None  # until an engine is needed
        self._fast: Any = None
        self._slow: Any = None
        self._certain: Certain | None = None
        self._named: set[Any] = set()  # the properties that the schema names, once a fault had to be worded
        self._stopped = ""  # the arguments whose check was given up last: their fault is known
        try:
            schema, plain = read_schema(text)
            if not (plain and _surely_usable(schema, text)):
                self._certain = NOTHING
                self._build(schema, plain)
        except UnusableError as problem:
            self.problem = f"the schema {problem}"
        except GivenUpError:
            self.problem = "the schema is larger than can be checked without the extra `fast`"

    def _build(self, schema: Any, plain: bool) -> None:
        draft = self._engage(schema, plain)
        if self._fast is None and not is_schema(schema, draft):
            padded = PADDED if has_null_members(self._text) else ""
            name = draft.validator.removesuffix("Validator")
            raise UnusableError(f"is invalid under the metaschema of {name}{padded}")
        if isinstance(schema, dict) and re.search(rb'ef"|\\u|unevaluated', self._text):
            self._applied = follow(schema, draft, lambda each: is_schema(each, draft))
        if self._fast is None:
            self._prepare(draft)

    def _engage(self, schema: Any, plain: bool) -> Draft:
        """Settle the schema, and have the fast engine take it where it can be had."""
        draft = settle(schema)
        # Of a large real, jsonschema-rs divides the double; here it is divided as it is spelled.
        self._divides = re.search(rb"multipleOf|\\u", self._text) is not None
        plain = plain and not (self._divides and holds_large_real(schema))
        self._fast = _fast_validator(schema, draft) if plain else None
        self._draft = draft
        return draft

    def _engaged(self) -> Draft:
        return self._draft or self._engage(*read_schema(self._text))

    def _prepare(self, draft: Draft) -> None:
        self._slow, self._patterns = slow_validator(self._text, draft)

    def verdict(self, arguments: str) -> Verdict:
        """ARGUMENTS_PARSE, ARGUMENTS_SCHEMA or OK. With a `problem`, arguments that parse are OK, unchecked."""
        known = self.known.get(arguments)
        if known is not None:
            return known
        if self.problem:
            return parse_verdict(arguments)  # not remembered: what is in `known` has been checked
        if (value := flat(arguments)) is not None:
            passed = self._fits(arguments, value, True)
        else:
            try:
                taken = readings(arguments)
            except ValueError:
                return self.known.keep(arguments, Verdict.ARGUMENTS_PARSE)
            passed = all(self._fits(arguments, value, plain) for value, plain in taken)
        return self.known.keep(arguments, Verdict.OK if passed else Verdict.ARGUMENTS_SCHEMA)

    def _fits(self, arguments: str, value: Any, plain: bool) -> bool:
        if plain and _fast_engine() is None and self._surely(arguments, value):
            return True
        self._engaged()
        if plain and self._fast is not None and not (self._divides and holds_large_real(value)):
            try:
                return bool(self._fast.is_valid(value))
            except (ValueError, TypeError, OverflowError):
                pass  # a value that it does not take
        errors = self._errors(value, 1, MOST_STEPS)
        if errors is None:  # what could not be checked is not let through
            self._stopped = arguments
        return errors == []

    def _surely(self, arguments: str, value: Any) -> bool:
        if self._certain is None:
            self._certain = certain(read_schema(self._text)[0])
        return len(arguments) <= self._certain.longest and self._certain.test(value)

    def _errors(self, value: Any, most: int, steps: float) -> list[Any] | None:
        """The first failures that jsonschema finds; None if it found none, but was stopped."""
        errors: list[Any] = []
        started = BUDGET.set(Budget(self._applied, self._patterns, steps))
        try:
            if self._slow is None:
                self._prepare(self._engaged())
            for error in islice(self._slow.iter_errors(value), most):
                errors.append(error)
        except (GivenUpError, UnusableError, RecursionError):
            return errors or None
        finally:
            BUDGET.reset(started)
        return errors

    def fault(self, arguments: str) -> str:
        """A sentence for a faulty verdict. It names keywords and properties of the schema, nothing of the arguments."""
        try:
            taken = readings(arguments)
        except ValueError as error:
            return str(error)
        if self.problem:
            return self.problem
        errors: list[Any] | None = None
        if arguments != self._stopped:
            self._engaged()
            # Where the other engine has judged, only a sentence is looked for: it is not worth as much time.
            steps = MOST_STEPS if self._fast is None else MOST_STEPS / 8
            errors = next((found for value, _ in taken if (found := self._errors(value, 50, steps)) != []), [])
        if errors:
            return self._word(min(errors, key=lambda e: (len(e.absolute_path), list(map(str, e.absolute_schema_path)))))
        return _GIVEN_UP if errors is None and self._fast is None else "the schema is not met"

    def _word(self, error: Any) -> str:
        """The sentence for one failure of jsonschema. A step of the path that the schema does not name is a ``*``."""
        if not self._named:
            schema, _ = read_schema(self._text)
            self._named = {name for node in every_node(schema) for name in _names(node)}
        steps = [step if isinstance(step, int) or step in self._named else "*" for step in error.absolute_path]
        place = "".join("/" + _brief(str(step)).replace("~", "~0").replace("/", "~1") for step in steps) or "the top"
        sentence = f"'{error.validator or 'false'}' of the schema is not met at {place}"
        if error.validator == "required":
            missing = [name for name in error.validator_value if name not in error.instance]
            sentence += f": missing {', '.join(map(repr, map(_brief, missing[:5])))}"
        return sentence.encode("utf-8", "backslashreplace").decode()


def _brief(name: str) -> str:
    """A property's name, for a sentence that a person reads. One that holds JSON was torn out of a record."""
    name = name if len(name) <= 64 else f"{name[:64]}…"
    return name if _NAME.fullmatch(name) else "an unreadable name"


_NAME: Final = re.compile(r"[\w .:/$@~…*-]*")


def _names(node: dict[str, Any]) -> Any:
    properties = node.get("properties")
    return properties if isinstance(properties, dict) else ()


_SCHEMAS: Final[Memo[bytes, ToolSchema]] = Memo(SCHEMA_BYTES)


def tool_schema(text: bytes) -> ToolSchema:
    """The schema that stands in a JSON text (an object or a boolean), remembered by its text."""
    known = _SCHEMAS.get(text)
    return _SCHEMAS.keep(text, ToolSchema(text), _BESIDE) if known is None else known


_STRICT: Final[Memo[bytes, bool]] = Memo(SCHEMA_BYTES)


def strict_qualifies(text: bytes) -> bool:
    """Whether a parameter schema is fit for OpenAI's strict mode, which is on unasked where it is.

    The rule (Structured Outputs guide): the root is an object, every object is closed (``additionalProperties`` false)
    and requires all its properties, every array says its items, and nothing is left without a type.
    """
    known = _STRICT.get(text)
    return _STRICT.keep(text, _qualifies(text), _BESIDE) if known is None else known


def _qualifies(text: bytes) -> bool:
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
