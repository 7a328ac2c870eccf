"""A tool's schema: find what is wrong with it, check arguments against it, remember what was found.

Two engines: jsonschema-rs (extra ``fast``) says yes or no, jsonschema says why, and checks what the first one cannot
take (lone surrogates, numbers beyond a double, look-around in a pattern). They must agree, so the few keywords where
they differ are settled here: exact ``multipleOf``, ECMA 262 patterns, no ``format`` and no ``contentEncoding``.
Both are imported when the first schema is looked at. Nothing is ever fetched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from functools import cache, lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from converter.outcome import Verdict

DEEPEST: Final = 128
"""How many arrays and objects may stand in each other: RFC 8259 section 9 lets a reader say; as serde_json does."""

LONGEST_TRIED: Final = 2048
"""Characters of a string on which jsonschema tries a pattern with two or more open repeats (see `_reach`)."""

LONGEST_PATTERN: Final = 4096
"""Characters of a pattern that jsonschema is given."""

MEMO_CHARACTERS: Final = 250_000
"""How much arguments text one memo may hold before it starts afresh."""

MOST_SCHEMAS, MOST_APPLIED, LONGEST_CHAIN = 1024, 10_000, 64
"""Schemas remembered; subschemas that may apply to one value; references and combinators that may follow each other."""


class _UnusableError(Exception):
    """The sentence why a schema cannot be used."""


class _UntriedError(Exception):
    """A check that would take too long was not made, so that nothing can be said for the arguments."""


class _Memo(dict[str, Verdict]):
    """Verdicts by arguments text, bounded by characters."""

    __slots__ = ("room",)

    def __init__(self) -> None:
        super().__init__()
        self.room = MEMO_CHARACTERS

    def keep(self, text: str, verdict: Verdict) -> Verdict:
        size = len(text) + 64  # the entry itself
        if size <= MEMO_CHARACTERS // 8:
            if size > self.room:
                self.clear()
                self.room = MEMO_CHARACTERS
            self.room -= size
            self[text] = verdict
        return verdict


# --- arguments -------------------------------------------------------------------------------------------------------

_KEY: Final = re.compile(r'"[ \t\n\r]*:')


def _load(text: str) -> tuple[Any, bool]:
    """The value of one JSON text, and whether it is plain: what any engine can take. Raises ValueError in own words."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return _careful(text), False
    # Every key leaves a `":` in the text, so a text with no more of them than the value has keys repeats none.
    keys = _count_keys(value)
    if text.count(":") != keys and len(_KEY.findall(text)) != keys:
        _careful(text)
    return value, True


def _count_keys(value: Any) -> int:
    """How many keys stand in a value, level by level."""
    keys = depth = 0
    level = [value] if type(value) in (dict, list) else []
    while level:
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"arrays and objects stand in each other more than {DEEPEST} deep")
        below: list[Any] = []
        for item in level:
            inside = item
            if type(item) is dict:
                keys += len(item)
                inside = item.values()
            below += [each for each in inside if type(each) is dict or type(each) is list]
        level = below
    return keys


def _careful(text: str) -> Any:
    """As `_load`, for what msgspec does not read or does not see: surrogates, big numbers, repeated keys."""
    try:
        value = json.loads(
            text, object_pairs_hook=_once, parse_constant=_no_constant, parse_int=_integer, parse_float=_real
        )
    except json.JSONDecodeError as error:
        what = "a second value stands" if error.msg == "Extra data" else "not JSON"
        raise ValueError(f"{what} at character {error.pos + 1}") from None
    except RecursionError:
        raise ValueError(f"arrays and objects stand in each other more than {DEEPEST} deep") from None
    _count_keys(value)
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
    value = float(text)
    if value - value == 0:
        return value
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of twenty digits: as large as a Decimal gets
        return Decimal("-1e999999999999999999" if text[0] == "-" else "1e999999999999999999")


_PARSED: Final = _Memo()


def parse_verdict(arguments: str) -> Verdict:
    """ARGUMENTS_PARSE unless the text is one JSON text (RFC 8259) that repeats no key in an object, else OK."""
    known = _PARSED.get(arguments)
    if known is not None:
        return known
    try:
        _load(arguments)
    except ValueError:
        return _PARSED.keep(arguments, Verdict.ARGUMENTS_PARSE)
    return _PARSED.keep(arguments, Verdict.OK)


# --- patterns --------------------------------------------------------------------------------------------------------

_CLASS: Final = r"\[\^?(?:\\.|[^\]\\])*\]"
_ATOM: Final = rf"(?:\\.|{_CLASS}|[^\\\[\](){{}}*+?|^$])"
_REPEAT: Final = r"(?:[*+?]|\{\d+(?:,\d*)?\})\??"
_ECMA: Final = re.compile(rf"\\(?:u\{{[0-9a-fA-F]+\}}|c[A-Za-z]|.)|{_CLASS}|\(\?<(?![=!])|[.$\[]", re.DOTALL)
_GROUP: Final = re.compile(rf"\\.|{_CLASS}|\((?:\?(?:[:=!]|<[=!]|P?<\w+>))?|\)([*+]|\{{\d+(?:,\d*)?\}})?", re.DOTALL)
_OPEN: Final = re.compile(rf"\\.|{_CLASS}|([*+]|\{{\d+,\}})", re.DOTALL)
_FIXED: Final = re.compile(rf"(?:{_ATOM}(?:\{{\d+\}})?)+", re.DOTALL)
_LED: Final = re.compile(rf"(\\\W|[^\\\[\](){{}}*+?|^$.])((?:{_ATOM}(?:{_REPEAT})?)+)", re.DOTALL)
_TRAILED: Final = re.compile(rf"((?:{_ATOM}(?:{_REPEAT})?)+)(\\\W|[^\\\[\](){{}}*+?|^$.])", re.DOTALL)
_SPACE: Final = r"\s\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"


def _python_pattern(pattern: str) -> str:
    """An ECMA 262 pattern as one for `re`; raises `_UnusableError` where that cannot be, or its time could explode."""
    try:
        if len(pattern) > LONGEST_PATTERN:
            raise OverflowError
        python = f"(?a:{_ECMA.sub(_python_token, pattern)})"
        re.compile(python)
    except (re.error, RecursionError, OverflowError):
        raise _UnusableError(
            "holds a pattern that is no regular expression, or one that only the extra `fast` reads"
        ) from None
    if not _steady(pattern):
        raise _UnusableError(
            "holds a pattern with repeats inside a repeat, which only the extra `fast` checks in bounded time"
        )
    return python


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


def _steady(pattern: str) -> bool:
    """Whether no group is repeated that can match the same text in several ways, by a test that errs towards no."""
    starts: list[int] = []
    for token in _GROUP.finditer(pattern):
        if token[0][0] == "(":
            starts.append(token.end())
        elif token[0][0] == ")" and starts:
            body = pattern[starts.pop() : token.start()]
            if token[1] and not _repeatable(body, token[1]):
                return False
    return True


def _repeatable(body: str, repeat: str) -> bool:
    if _FIXED.fullmatch(body):
        return True
    if repeat[0] == "{" and not repeat.endswith(",}") and int(re.findall(r"\d+", repeat)[-1]) <= 8:
        return not any(match[1] for match in _OPEN.finditer(body))
    # A separator that nothing else in the group matches, as in (?:-[a-z0-9]+)* and (?:[a-z]+\.)+
    for form, separator, rest in ((_LED, 1, 2), (_TRAILED, 2, 1)):
        if match := form.fullmatch(body):
            mark = match[separator][-1]
            atoms = re.findall(_ATOM, re.sub(rf"({_ATOM}){_REPEAT}", r"\1", match[rest], flags=re.DOTALL), re.DOTALL)
            if not any(re.fullmatch(_ECMA.sub(_python_token, atom), mark) for atom in atoms):
                return True
    return False


@lru_cache(4096)
def _reach(pattern: str) -> float:
    """Characters on which a pattern may be tried: any number where its time is linear."""
    opens = sum(1 for match in _OPEN.finditer(pattern) if match[1])
    return LONGEST_TRIED if opens + (not pattern.startswith("(?a:^")) > 1 else float("inf")


# --- the schema as a document ----------------------------------------------------------------------------------------

_BESIDE: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"})
_SINGLE: Final = frozenset({"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if"}) | {
    *("items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties")
}
_LISTED: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
_NAMED: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)


class _Draft(NamedTuple):
    validator: str
    """The name of its class, the same in both engines."""
    references: tuple[str, ...]
    ignored: tuple[str, ...]
    """Keywords that one engine asserts although the draft, or the other engine, does not."""


_ENCODED: Final = ("$schema", "contentEncoding", "contentMediaType")
_NEWEST: Final = "json-schema.org/draft/2020-12/schema"
_DRAFTS: Final = {
    "json-schema.org/draft-04/schema": _Draft("Draft4Validator", ("$ref",), _ENCODED),
    "json-schema.org/draft-06/schema": _Draft("Draft6Validator", ("$ref",), _ENCODED),
    "json-schema.org/draft-07/schema": _Draft("Draft7Validator", ("$ref",), _ENCODED),
    "json-schema.org/draft/2019-09/schema": _Draft(
        "Draft201909Validator", ("$ref", "$recursiveRef"), (*_ENCODED, "dependencies")
    ),
    _NEWEST: _Draft("Draft202012Validator", ("$ref", "$dynamicRef"), (*_ENCODED, "dependencies")),
}
"""The drafts that both engines know, by ``$schema`` without scheme and empty fragment. Draft 3 is not among them."""


def _read(text: bytes) -> tuple[Any, bool]:
    """The schema as parsed JSON, and whether it is plain (see `_load`)."""
    try:
        schema, plain = _load(text.decode())
    except ValueError as error:
        reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise _UnusableError(f"is not one JSON text: {reason}") from None
    if not isinstance(schema, (dict, bool)):
        raise _UnusableError("is neither an object nor a boolean")
    return schema, plain


def _dialect(node: dict[str, Any], default: _Draft) -> _Draft:
    """The draft that a schema names."""
    if "$schema" not in node:
        return default
    name = node["$schema"]
    known = _DRAFTS.get(re.sub(r"^https?://|#$", "", name)) if isinstance(name, str) else None
    if known is None:
        raise _UnusableError("names a $schema that is none of the drafts 4, 6, 7, 2019-09 and 2020-12")
    return known


def _subschemas(node: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The subschemas of a schema, with their keyword; what has not the form of a schema is passed over."""
    for key, value in node.items():
        several: Any = ()
        if key in _NAMED and isinstance(value, dict):
            several = value.values()
        elif key in _LISTED and isinstance(value, list):
            several = value
        elif key in _SINGLE:
            several = (value,)
        for each in several:
            if isinstance(each, dict):
                yield key, each


def _every_node(root: Any) -> Iterator[dict[str, Any]]:
    """The schema and all schemas inside it."""
    left = [root] if isinstance(root, dict) else []
    while left:
        node = left.pop()
        yield node
        left += [each for _, each in _subschemas(node)]


def _settle(root: Any) -> _Draft:
    """The draft of a schema. Takes out, in place, what only one engine would assert, and ``$schema``, now known."""
    if not isinstance(root, dict):
        return _DRAFTS[_NEWEST]
    draft = _dialect(root, _DRAFTS[_NEWEST])
    for node in _every_node(root):
        if _dialect(node, draft) is not draft:
            raise _UnusableError("mixes drafts")
        for keyword in draft.ignored:
            node.pop(keyword, None)
    return draft


def _follow(root: dict[str, Any], draft: _Draft, is_schema: Callable[[Any], bool]) -> None:
    """Refuse references that lead outside, nowhere, to no schema, or round in a circle on one and the same value."""
    import referencing

    specification = _specification(draft)
    # A registry without a way to retrieve: what is not in this document cannot be found.
    document = specification.create_resource(root)
    whole = referencing.Registry().resolver_with_root(document)
    checked = _declared(document)
    beside: dict[Any, list[Any]] = {}  # by identity: the schemas that apply to the same value as this one
    left: list[tuple[Any, Any]] = [(root, whole)]
    while left:
        node, resolver = left.pop()
        if not isinstance(node, dict) or id(node) in beside:
            continue
        same = beside[id(node)] = []
        for keyword, each in _subschemas(node):
            left.append((each, resolver.in_subresource(specification.create_resource(each))))
            if keyword in _BESIDE:
                same.append(id(each))
        for keyword in draft.references:
            if keyword in node:
                target = _target(resolver, node[keyword])
                if id(target.contents) not in checked and not is_schema(target.contents):
                    raise _UnusableError("holds a reference to what is no schema")
                left.append((target.contents, target.resolver))
                same += [id(target.contents), keyword] if keyword != "$ref" else [id(target.contents)]
        for keyword, anchor in (("$dynamicRef", "$dynamicAnchor"), ("$recursiveRef", "$recursiveAnchor")):
            if node.get(anchor):  # may be the target of any dynamic reference, to err towards refusing
                beside.setdefault(keyword, []).append(id(node))
    _bound(beside)


def _declared(document: Any) -> set[int]:
    """The identities of all that the metaschema of this draft has looked at as a schema."""
    seen: set[int] = set()
    left = [document]
    while left:
        resource = left.pop()
        seen.add(id(resource.contents))
        left += resource.subresources()
    return seen


def _target(resolver: Any, reference: str) -> Any:
    from referencing.exceptions import Unresolvable

    try:
        return resolver.lookup(reference)
    except (Unresolvable, ValueError):
        nowhere = reference.startswith("#")
        raise _UnusableError(
            "holds a reference that leads nowhere" if nowhere else "refers to something outside itself"
        ) from None


def _bound(beside: dict[Any, list[Any]]) -> None:
    """Refuse circles (they never end) and graphs whose check would take more than a stated number of steps."""
    steps: dict[Any, int] = {}
    chain: dict[Any, int] = {}
    try:
        for node in TopologicalSorter(beside).static_order():
            below = beside.get(node, [])
            steps[node] = 1 + sum(steps[each] for each in below)
            chain[node] = 1 + max((chain[each] for each in below), default=0)
            if steps[node] > MOST_APPLIED or chain[node] > LONGEST_CHAIN:
                raise _UnusableError("has more references and combinators on one value than can be checked")
    except CycleError:
        raise _UnusableError("holds a reference that leads back to itself without an end") from None


# --- the engines -----------------------------------------------------------------------------------------------------


@cache
def _fast_engine() -> Any:
    """The module jsonschema_rs, or None."""
    try:
        import jsonschema_rs
    except ImportError:
        return None
    return jsonschema_rs


def _specification(draft: _Draft) -> Any:
    import jsonschema  # type: ignore[import-untyped]
    from referencing.jsonschema import specification_with

    meta_schema = getattr(jsonschema, draft.validator).META_SCHEMA
    return specification_with(meta_schema.get("$id") or meta_schema["id"])


def _no_retrieval(_: str) -> NoReturn:
    raise ValueError("nothing is fetched")


def _fast_validator(schema: Any, draft: _Draft) -> Any:
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


@cache
def _slow_engine(draft: _Draft) -> Any:
    """The validator class of jsonschema with the keywords of which this module has its own opinion."""
    import jsonschema

    base = getattr(jsonschema, draft.validator)
    is_integer = base.TYPE_CHECKER.is_type

    def integer(_: Any, value: Any) -> bool:
        if isinstance(value, Decimal):
            return bool(value == value.to_integral_value())
        return bool(is_integer(value, "integer"))

    own = {"multipleOf": _multiple_of, "uniqueItems": _unique_items, "pattern": _pattern}
    for keyword in ("patternProperties", "additionalProperties", "unevaluatedProperties"):
        if keyword in base.VALIDATORS:
            own[keyword] = _with_short_keys(base.VALIDATORS[keyword])
    return jsonschema.validators.extend(base, own, type_checker=base.TYPE_CHECKER.redefine("integer", integer))


def _failure() -> Any:
    from jsonschema.exceptions import ValidationError  # type: ignore[import-untyped]

    return ValidationError("")


def _pattern(validator: Any, pattern: str, value: Any, _: Any) -> Iterator[Any]:
    if isinstance(value, str):
        if len(value) > _reach(pattern):
            raise _UntriedError
        if not re.search(pattern, value):
            yield _failure()


def _with_short_keys(check: Any) -> Any:
    """The same check, but no pattern is tried on a long key."""

    def short(validator: Any, given: Any, value: Any, schema: Any) -> Iterator[Any]:
        if isinstance(value, dict) and any(len(key) > LONGEST_TRIED for key in value):
            raise _UntriedError
        yield from check(validator, given, value, schema) or ()

    return short


def _multiple_of(validator: Any, divisor: Any, value: Any, _: Any) -> Iterator[Any]:
    """Exact, on the decimals as they are written: 0.3 is a multiple of 0.1."""
    if validator.is_type(value, "number") and not _is_multiple(Decimal(str(value)), Decimal(str(divisor))):
        yield _failure()


def _is_multiple(value: Decimal, divisor: Decimal) -> bool:
    if not value or value.adjusted() < divisor.adjusted():
        return not value
    (_, digits, power), (_, by, shift) = value.as_tuple(), divisor.as_tuple()
    power = int(power) - int(shift)
    if power < 0:  # a multiple of 10 ** -power first, then of the rest: no step is longer than the number
        if any(digits[power:]):
            return False
        digits, power = digits[:power], 0
    modulus = int("".join(map(str, by)))
    rest: int = 0
    for digit in digits:  # one by one: the number may be longer than Python turns into an int
        rest = (rest * 10 + digit) % modulus
    return bool(rest * pow(10, power, modulus) % modulus == 0)


def _unique_items(validator: Any, unique: Any, value: Any, _: Any) -> Iterator[Any]:
    """In linear time; jsonschema compares every pair of objects."""
    if unique is True and isinstance(value, list) and len({_frozen(each) for each in value}) < len(value):
        yield _failure()


def _frozen(value: Any) -> Any:
    """A hashable that is equal where JSON Schema holds two values equal: 1 and 1.0, but not 1 and true."""
    if isinstance(value, list):
        return ("array", *map(_frozen, value))
    if isinstance(value, dict):
        return "object", frozenset((key, _frozen(each)) for key, each in value.items())
    return ("boolean", value) if isinstance(value, bool) else value


def _slow_validator(text: bytes, draft: _Draft) -> Any:
    """A validator of jsonschema; raises `_UnusableError` when a pattern is not for `re`."""
    import referencing

    schema, _ = _read(text)
    _settle(schema)
    for node in _every_node(schema):
        if isinstance(node.get("pattern"), str):
            node["pattern"] = _python_pattern(node["pattern"])
        if isinstance(named := node.get("patternProperties"), dict):
            node["patternProperties"] = {_python_pattern(key): each for key, each in named.items()}
    return _slow_engine(draft)(schema, registry=referencing.Registry())


# --- the surface -----------------------------------------------------------------------------------------------------


class ToolSchema:
    """One tool's parameter schema, ready to check arguments texts against. Made by `tool_schema`.

    ``problem`` is None, or a sentence why this is no usable schema: it is no JSON object or boolean, invalid under its
    metaschema, of an unknown draft, not closed in itself, or without a bound on the time of a check. It prints nothing
    of the schema.
    """

    __slots__ = ("_draft", "_fast", "_memo", "_slow", "_text", "problem")

    def __init__(self, text: bytes) -> None:
        self.problem: str | None = None
        self._text = text
        self._memo = _Memo()
        self._fast: Any = None
        self._slow: Any = None
        try:
            self._build()
        except _UnusableError as problem:
            self.problem = f"the schema {problem}"

    def _build(self) -> None:
        schema, plain = _read(self._text)
        self._draft = _settle(schema)
        self._fast = _fast_validator(schema, self._draft) if plain else None
        if self._fast is None and not self._is_schema(schema):
            raise _UnusableError(
                f"is invalid under the metaschema of {self._draft.validator.removesuffix('Validator')}"
            )
        if isinstance(schema, dict) and re.search(rb'ef"|\\u', self._text):
            _follow(schema, self._draft, self._is_schema)
        if self._fast is None:
            self._slow = _slow_validator(self._text, self._draft)

    def _is_schema(self, schema: Any) -> bool:
        import jsonschema

        try:
            getattr(jsonschema, self._draft.validator).check_schema(schema, format_checker=None)
        except jsonschema.SchemaError:
            return False
        return True

    def verdict(self, arguments: str) -> Verdict:
        """ARGUMENTS_PARSE, ARGUMENTS_SCHEMA or OK. With a `problem`, arguments that parse are OK, unchecked."""
        known = self._memo.get(arguments)
        return known if known is not None else self._memo.keep(arguments, self._judge(arguments))

    def _judge(self, arguments: str) -> Verdict:
        try:
            value, plain = _load(arguments)
        except ValueError:
            return Verdict.ARGUMENTS_PARSE
        return Verdict.OK if self.problem or self._fits(value, plain) else Verdict.ARGUMENTS_SCHEMA

    def _fits(self, value: Any, plain: bool) -> bool:
        if plain and self._fast is not None:
            try:
                return bool(self._fast.is_valid(value))
            except (ValueError, TypeError, OverflowError):
                pass  # a value that it does not take
        try:
            return not self._errors(value, 1)
        except (_UntriedError, _UnusableError, RecursionError, re.error):
            return False  # what could not be checked is not let through

    def _errors(self, value: Any, most: int) -> list[Any]:
        if self._slow is None:
            self._slow = _slow_validator(self._text, self._draft)
        return list(islice(self._slow.iter_errors(value), most))

    def fault(self, arguments: str) -> str:
        """A sentence for a faulty verdict. It names keywords and properties of the schema, nothing of the arguments."""
        try:
            value, _ = _load(arguments)
        except ValueError as error:
            return str(error)
        if self.problem:
            return self.problem
        try:
            errors = self._errors(value, 50)
        except (_UntriedError, _UnusableError, RecursionError, re.error):
            return (
                "the check was not finished: nested too deep, or a long text against a pattern (see the extra `fast`)"
            )
        if not errors:
            return "the schema is not met"
        return self._word(min(errors, key=lambda e: (len(e.absolute_path), list(map(str, e.absolute_schema_path)))))

    def _word(self, error: Any) -> str:
        """The sentence for one failure of jsonschema. A step of the path that the schema does not name is a ``*``."""
        schema, _ = _read(self._text)
        names = {name for node in _every_node(schema) for name in _names(node)}
        steps = [step if isinstance(step, int) or step in names else "*" for step in error.absolute_path]
        place = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps) or "/"
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
        schema, _ = _read(text)
    except _UnusableError:
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
