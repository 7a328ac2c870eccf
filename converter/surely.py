"""What can be told without an engine: that a schema is surely usable, and that a value surely satisfies it.

Most tools have a schema of a few plain keywords, and most calls satisfy it. That is found out here in a fraction of
the time that a metaschema and jsonschema take. Nothing here ever says no: what is not sure is for the engines of
`schemas`, and they alone refuse. What is sure is what they would say, under every draft and within the same bounds.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from functools import cache
from types import NoneType
from typing import Any, Final, NamedTuple, TypeAlias

from converter.keywords import MOST_STEPS, Budget
from converter.patterns import UnusableError, compiled, slope
from converter.references import SAME_VALUE, bound, dialect, pointed

DEEPEST: Final = 32
"""How many schemas may stand in each other, or follow by reference: far from where an engine gives up."""

MOST_MADE: Final = 1_000
"""Subschemas for which a test is made; one to which two references lead counts twice."""

Test: TypeAlias = Callable[[Any], bool]
"""True where a value surely satisfies a schema; False says nothing."""

_DRAFTS: Final = frozenset({"Draft7Validator", "Draft201909Validator", "Draft202012Validator"})
_REFERENCE: Final = re.compile(r"#(?:/[A-Za-z_$][\w$.-]*)*", re.ASCII)


# --- schemas ---------------------------------------------------------------------------------------------------------


def usable(root: Any) -> list[str] | None:
    """The patterns of a schema that is surely usable where they are, or None.

    It is valid under its metaschema, refers to nothing but what is declared in it, and never in a circle on one value.
    ``root`` is plain (see `load`), and no larger than `afford` bears.
    """
    if not isinstance(root, dict):
        return []
    patterns: list[str] = []
    nodes: list[dict[str, Any]] = []
    refers = False
    left: list[tuple[Any, int]] = [(root, 1)]
    while left:
        node, depth = left.pop()
        if node.__class__ is not dict or depth > DEEPEST or ("$schema" in node and node is not root):
            return None
        nodes.append(node)
        for keyword, given in node.items():
            known = KEYWORDS.get(keyword)
            if known is None:
                if keyword in OTHER or keyword[:1] == "$":
                    return None
                continue  # it says nothing in any draft
            if not known.form(given):
                return None
            if known.inside is not None:
                left += [(each, depth + 1) for each in known.inside(given) if each.__class__ is not bool]
                if keyword == "patternProperties":
                    patterns += given
            elif keyword == "pattern":
                patterns.append(given)
            elif keyword == "$ref":
                refers = True
    try:
        sure = dialect(root).validator in _DRAFTS and not (refers and _astray(root, nodes))
    except UnusableError:
        return None
    return patterns if sure else None


def _astray(root: Any, nodes: list[dict[str, Any]]) -> bool:
    """Whether a reference leads to what is not declared. As `follow`, raises `UnusableError` past the bounds."""
    beside: dict[int, list[int]] = {id(node): [] for node in nodes}
    for node in nodes:
        same = beside[id(node)]
        for keyword in SAME_VALUE & node.keys():
            if inside := KEYWORDS[keyword].inside:
                same += [id(each) for each in inside(node[keyword]) if each.__class__ is dict]
        if "$ref" in node:
            target = _target(root, node["$ref"])
            if id(target) not in beside:
                return True
            same.append(id(target))
    bound(beside)
    return False


def _target(root: Any, reference: str) -> Any:
    return root if reference == "#" else pointed(root, reference)


def _is_text(given: Any) -> bool:
    return type(given) is str


def _is_flag(given: Any) -> bool:
    return type(given) is bool


def _is_list(given: Any) -> bool:
    return type(given) is list


def _is_size(given: Any) -> bool:
    return type(given) is int and given >= 0


def _is_number(given: Any) -> bool:
    return type(given) in _NUMBERS


def _is_divisor(given: Any) -> bool:
    return type(given) in _NUMBERS and given > 0


def _are_names(given: Any) -> bool:
    return type(given) is list and {str}.issuperset(map(type, given)) and len(set(given)) == len(given)


def _are_types(given: Any) -> bool:
    if type(given) is str:
        return given in _CLASSES
    return _are_names(given) and bool(given) and _CLASSES.keys() >= set(given)


def _is_reference(given: Any) -> bool:
    return type(given) is str and _REFERENCE.fullmatch(given) is not None


def _anything(_: Any) -> bool:
    return True


def _are_named(given: Any) -> bool:
    return type(given) is dict


def _are_several(given: Any) -> bool:
    return type(given) is list and bool(given)


# --- values ----------------------------------------------------------------------------------------------------------


class Certain(NamedTuple):
    """What surely satisfies one schema."""

    test: Test
    """For a value whose reals are the doubles that they spell."""
    longest: int
    """The most characters of a value's text: one of so many is surely checked within `MOST_STEPS`, by any engine."""


def certain(root: Any) -> Certain:
    """The test of a schema that is usable. Where none can be made, no text is short enough for it."""
    test, steps = _Making(root).of(root)
    # A text of n characters has at most n/2 + 1 values. The sizes of those that stand equally deep (as `Budget` reckons
    # them) are 21 n at most, and none is tested that stands deeper than `DEEPEST`: by `Budget.apply` that makes
    # (1 + 1/8) (n/2 + 1) + 33 * 21 n / 512 for each of the steps, which is less than 2 (n + 1). So is what a pattern
    # takes, whose steps are those for each character.
    return NOTHING if test is _never else Certain(test, int(MOST_STEPS / (2 * max(steps, 1))) - 1)


class _Made(NamedTuple):
    test: Test
    steps: float = 0
    """At most so many are taken for one value, by what applies to it alone or to one inside it."""


def _always(_: Any) -> bool:
    return True


def _never(_: Any) -> bool:
    return False


NOTHING: Final = Certain(_never, -1)
"""Of no value is anything sure."""

_NO_TEST: Final = _Made(_always)


class _Making:
    """The tests of one schema, as they are made."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.budget = Budget()
        self.left = MOST_MADE
        self.depth = 0
        self.choices = 0  # of which branches are being made
        self.followed: set[str] = set()
        self.unsure = 0  # places so far of which nothing is sure

    def of(self, schema: Any) -> _Made:
        """The test of a schema: of all its keywords, one after the other."""
        if schema is True:
            return _NO_TEST
        self.left -= 1
        if schema.__class__ is not dict or self.depth == DEEPEST or self.left < 0:
            return self.nothing_sure()
        self.depth += 1
        tests: list[Test] = []
        own, inside, beside = 3.0, 0.0, 0.0
        for keyword, given in schema.items():
            known = KEYWORDS.get(keyword)
            if known is None or known.make is None:
                continue  # no engine takes a step for it
            own += self.budget.own(keyword, given)
            test, steps = known.make(self, given, schema)
            if test is not _always:
                tests.append(test)
            if keyword in _BESIDE:
                beside += steps
            elif steps > inside:
                inside = steps
        self.depth -= 1
        return _Made(_all_of(tests), max(own, inside) + beside)

    def nothing_sure(self) -> _Made:
        """Of what stands here."""
        self.unsure += 1
        return _Made(_never)


_BESIDE: Final = SAME_VALUE | {"$ref", "enum", "const", "pattern"}
"""Keywords whose steps are taken for the value itself, and not for one inside it."""


def _all_of(tests: list[Test]) -> Test:
    if not tests or _never in tests:
        return _never if tests else _always
    first, *others = tests
    if not others:
        return first
    second, *more = others
    if not more:
        return lambda value: first(value) and second(value)
    third = _all_of(more)
    return lambda value: first(value) and second(value) and third(value)


def _nothing(making: _Making, given: Any, schema: Any) -> _Made:
    return _NO_TEST


def _unsure(making: _Making, given: Any, schema: Any) -> _Made:
    return making.nothing_sure()


def _type(making: _Making, given: Any, schema: Any) -> _Made:
    return _Made(_of_types((given,) if isinstance(given, str) else tuple(given)))


@cache
def _of_types(names: tuple[str, ...]) -> Test:
    classes = frozenset().union(*(_CLASSES[name] for name in names))
    if len(classes) == 1:
        (one,) = classes
        return lambda value: value.__class__ is one
    return lambda value: value.__class__ in classes


def _enum(making: _Making, given: Any, schema: Any) -> _Made:
    """One of some texts, whole numbers and constants; 1.0 and [1] may be equal to others, as an engine finds out."""
    choice: dict[type, set[Any]] = {}
    for each in given:
        if each.__class__ in _CONSTANTS:
            choice.setdefault(each.__class__, set()).add(each)
    # To compare an array or an object costs its size, and in a branch that is not met it does not end there.
    return _Made(lambda value: value in choice.get(value.__class__, ()), 64 if making.choices else 0)


def _const(making: _Making, given: Any, schema: Any) -> _Made:
    return _enum(making, [given], schema)


def _properties(making: _Making, given: Any, schema: Any) -> _Made:
    made = {name: making.of(each) for name, each in given.items()}
    tests = {name: one.test for name, one in made.items() if one.test is not _always}

    def properties(value: Any) -> bool:
        if value.__class__ is dict:
            for name, each in value.items():
                if (test := tests.get(name)) is not None and not test(each):
                    return False
        return True

    return _Made(properties if tests else _always, max((one.steps for one in made.values()), default=0))


def _additional_properties(making: _Making, given: Any, schema: Any) -> _Made:
    named = frozenset(schema.get("properties", ()))
    if given is False:
        return _Made(lambda value: value.__class__ is not dict or value.keys() <= named)
    test, steps = making.of(given)

    def additional_properties(value: Any) -> bool:
        return value.__class__ is not dict or all(test(value[name]) for name in value if name not in named)

    return _Made(additional_properties if test is not _always else _always, steps)


def _required(making: _Making, given: Any, schema: Any) -> _Made:
    names = frozenset(given)
    return _Made(lambda value: value.__class__ is not dict or value.keys() >= names)


def _items(making: _Making, given: Any, schema: Any) -> _Made:
    test, steps = making.of(given)
    return _Made(lambda value: value.__class__ is not list or all(map(test, value)), steps)


def _any_of(making: _Making, given: Any, schema: Any) -> _Made:
    making.choices += 1
    unsure = making.unsure
    made = [making.of(each) for each in given]
    making.choices -= 1
    if making.unsure > unsure:  # an engine may have been given up at a branch before the one that is met
        return making.nothing_sure()
    tests = [one.test for one in made]
    return _Made(lambda value: any(test(value) for test in tests), sum(one.steps for one in made))


def _every_one(making: _Making, given: Any, schema: Any) -> _Made:
    made = [making.of(each) for each in given]
    return _Made(_all_of([one.test for one in made if one.test is not _always]), sum(one.steps for one in made))


def _ref(making: _Making, given: Any, schema: Any) -> _Made:
    if given in making.followed:
        return making.nothing_sure()  # recursive: without an end
    making.followed.add(given)
    made = making.of(_target(making.root, given))
    making.followed.discard(given)
    return made


def _pattern(making: _Making, given: Any, schema: Any) -> _Made:
    regex = compiled(given)
    steps = slope(regex)
    if steps is None:
        return making.nothing_sure()
    return _Made(lambda value: value.__class__ is not str or regex.search(value) is not None, 1 + steps)


def _limit(within: Callable[[Any, Any], bool]) -> _Make:
    def make(making: _Making, given: Any, schema: Any) -> _Made:
        return _Made(lambda value: value.__class__ not in _NUMBERS or within(value, given))

    return make


def _length(measured: type[str | list[Any] | dict[str, Any]], within: Callable[[int, int], bool]) -> _Make:
    def make(making: _Making, given: Any, schema: Any) -> _Made:
        def length(value: Any) -> bool:
            return not isinstance(value, measured) or within(len(value), given)

        return _Made(length)

    return make


_NUMBERS: Final = frozenset({int, float})
_CONSTANTS: Final = frozenset({str, int, bool, NoneType})
_CLASSES: Final[dict[str, frozenset[type]]] = {
    "array": frozenset({list}),
    "boolean": frozenset({bool}),
    "integer": frozenset({int}),
    "null": frozenset({NoneType}),
    "number": _NUMBERS,
    "object": frozenset({dict}),
    "string": frozenset({str}),
}
"""The classes whose values are surely of a type: whether a real is an integer, an engine tells."""


# --- the table -------------------------------------------------------------------------------------------------------


_Make: TypeAlias = Callable[[_Making, Any, Any], _Made]
"""From what a keyword is given, and the schema that it stands in, to its test."""


class _Keyword(NamedTuple):
    form: Callable[[Any], bool]
    """Whether what it is given is valid, but for the schemas in it."""
    make: _Make | None = None
    """Makes its test; None where no engine looks at it."""
    inside: Callable[[Any], Iterable[Any]] | None = None
    """The schemas in it."""


def _of_one(make: _Make) -> _Keyword:
    return _Keyword(_anything, make, lambda given: (given,))


def _of_several(make: _Make) -> _Keyword:
    return _Keyword(_are_several, make, iter)


def _of_named(make: _Make | None) -> _Keyword:
    return _Keyword(_are_named, make, dict.values)


KEYWORDS: Final[dict[str, _Keyword]] = {
    "$ref": _Keyword(_is_reference, _ref),
    "type": _Keyword(_are_types, _type),
    "enum": _Keyword(_is_list, _enum),
    "const": _Keyword(_anything, _const),
    "properties": _of_named(_properties),
    "required": _Keyword(_are_names, _required),
    "additionalProperties": _of_one(_additional_properties),
    "items": _of_one(_items),
    "anyOf": _of_several(_any_of),
    "allOf": _of_several(_every_one),
    "minimum": _Keyword(_is_number, _limit(operator.ge)),
    "maximum": _Keyword(_is_number, _limit(operator.le)),
    "exclusiveMinimum": _Keyword(_is_number, _limit(operator.gt)),
    "exclusiveMaximum": _Keyword(_is_number, _limit(operator.lt)),
    "minLength": _Keyword(_is_size, _length(str, operator.ge)),
    "maxLength": _Keyword(_is_size, _length(str, operator.le)),
    "minItems": _Keyword(_is_size, _length(list, operator.ge)),
    "maxItems": _Keyword(_is_size, _length(list, operator.le)),
    "minProperties": _Keyword(_is_size, _length(dict, operator.ge)),
    "maxProperties": _Keyword(_is_size, _length(dict, operator.le)),
    "pattern": _Keyword(_is_text, _pattern),
    "patternProperties": _of_named(_unsure),
    "multipleOf": _Keyword(_is_divisor, _unsure),
    "uniqueItems": _Keyword(_is_flag, _unsure),
    **dict.fromkeys(("oneOf", "prefixItems"), _of_several(_unsure)),
    **dict.fromkeys(("not", "if", "then", "else", "contains", "propertyNames"), _of_one(_unsure)),
    **dict.fromkeys(("$defs", "definitions"), _of_named(None)),
    "format": _Keyword(_is_text, _nothing),
    **dict.fromkeys(("$schema", "$comment", "title", "description"), _Keyword(_is_text)),
    **dict.fromkeys(("deprecated", "readOnly", "writeOnly"), _Keyword(_is_flag)),
    "default": _Keyword(_anything),
    "examples": _Keyword(_is_list),
}

OTHER: Final = frozenset(
    {"additionalItems", "contentEncoding", "contentMediaType", "contentSchema", "dependencies", "dependentRequired"}
    | {"dependentSchemas", "id", "maxContains", "minContains", "unevaluatedItems", "unevaluatedProperties"}
)
"""Keywords of the drafts that are not in the table, but for those with a ``$``: an engine reads them."""
