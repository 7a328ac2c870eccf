"""Both engines give one verdict: with the extra ``fast`` and without it, the same calls are let through.

What the pure engine cannot check in bounded time it does not let through, so that a disagreement is only ever of that
kind. Set ``CONVERTER_SCHEMA_SUITE`` to the folder ``tests`` of the published JSON-Schema-Test-Suite (the source
distribution of jsonschema has it under ``json``), and ``CONVERTER_RECORDINGS`` to a folder of JSONL logs, to hold
the same against them.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from converter import schemas, surely
from converter.keywords import BUDGET, MOST_STEPS, Budget, slow_validator
from converter.outcome import Verdict
from converter.references import settle
from converter.schemas import ToolSchema

pytest.importorskip("jsonschema_rs")

OK, SCHEMA = Verdict.OK, Verdict.ARGUMENTS_SCHEMA
ONLY_FAST = "only the extra `fast`", "without the extra `fast`"
"""What the pure engine says of a schema that it does not take although it may be right."""


class Engine:
    """A schema in one engine. What is sure without an engine has to be what the engine says when it is always asked."""

    def __init__(self, text: bytes, **without: Any) -> None:
        self.without = without
        with self.patched():
            self.quick = ToolSchema(text)
        with self.patched(usable=lambda schema: None):
            self.alone = ToolSchema(text)
        assert self.quick.problem == self.alone.problem

    @contextmanager
    def patched(self, **more: Any) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name, stand_in in {**self.without, **more}.items():
                patch.setattr(schemas, name, stand_in)
            yield

    @property
    def problem(self) -> str | None:
        return self.alone.problem

    def verdict(self, arguments: str) -> Verdict:
        with self.patched():
            found = self.quick.verdict(arguments)
        assert found is self.alone.verdict(arguments), arguments
        return found

    def fault(self, arguments: str) -> str:
        with self.patched():
            sentence = self.quick.fault(arguments)
        assert sentence == self.alone.fault(arguments)
        return sentence


Engines = tuple[Engine, Engine]


def both(schema: Any) -> Engines:
    """One schema in both engines. The pure one may refuse what the other takes, and says why; nothing else differs."""
    text = json.dumps(schema).encode()
    fast, pure = Engine(text), Engine(text, _fast_engine=lambda: None)
    if fast.problem is None and pure.problem is not None:
        assert any(words in pure.problem for words in ONLY_FAST)
    else:
        assert fast.problem == pure.problem
    return fast, pure


def verdicts(engines: Engines, arguments: str) -> Verdict | None:
    """The verdict of both, or None where the pure engine has none: nothing may pass there."""
    fast, pure = engines
    if pure.problem is not None:
        return None
    expected, found = fast.verdict(arguments), pure.verdict(arguments)
    if expected is OK and found is SCHEMA and "was given up" in pure.fault(arguments):
        return None
    assert found is expected, arguments
    return expected


# ---------------------------------------------------------------- generated

NAMES = st.sampled_from(["a", "b", "c"])
NUMBERS = st.sampled_from([0, 1, -1, 2, 3, 0.5, 1.0, 0.1, 0.3, 1e22, 1e300, 2**63, 2**64 + 1, 10**30, -0.0, 1.13])
LEAVES = st.none() | st.booleans() | NUMBERS | st.sampled_from(["", "a", "ab", "é", "\U0001f600", "a\n", "2024-01-01"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)
TYPES = st.sampled_from(["string", "number", "integer", "object", "array", "boolean", "null"])
SIZE = st.integers(0, 2)

DRAFTS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
"""The drafts that are known, by their folder in the published suite."""

Parts = dict[str, st.SearchStrategy[Any]]


def shared(inner: st.SearchStrategy[Any]) -> Parts:
    """Keywords of every draft."""
    several, named = st.lists(inner, min_size=1, max_size=2), st.dictionaries(NAMES, inner, max_size=2)
    return {
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "multipleOf": st.sampled_from([1, 2, 3, 0.1, 0.01, 0.5, 1e300, 10**30, 2.0]),
        **dict.fromkeys(("minimum", "maximum"), NUMBERS),
        **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), SIZE),
        **dict.fromkeys(("allOf", "anyOf", "oneOf"), several),
        **dict.fromkeys(("not", "items", "additionalProperties"), inner),
        "properties": named,
        "uniqueItems": st.booleans(),
        "required": st.lists(NAMES, unique=True, min_size=1, max_size=2),
        "pattern": st.sampled_from(["^a", "b$", r"^\d+", ".", r"\W", "[^a]"]),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "[bc]", "."]), inner, max_size=2),
        "format": st.sampled_from(["date", "email"]),
        "$ref": st.sampled_from(["#", "#/definitions/a", "#/definitions/b"]),
    }


def with_item_lists(inner: st.SearchStrategy[Any]) -> Parts:
    """Before 2020-12."""
    return {"items": inner | st.lists(inner, min_size=1, max_size=2), "additionalItems": inner}


def with_dependencies(inner: st.SearchStrategy[Any]) -> Parts:
    """Before 2019-09."""
    names = st.lists(NAMES, unique=True, min_size=1, max_size=2)
    return {"dependencies": st.dictionaries(NAMES, inner | names, max_size=2)}


def from_6(inner: st.SearchStrategy[Any]) -> Parts:
    """Since draft 6."""
    return {
        "const": VALUES,
        "contains": inner,
        "propertyNames": inner,
        **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), NUMBERS),
    }


def from_7(inner: st.SearchStrategy[Any]) -> Parts:
    """Since draft 7."""
    return dict.fromkeys(("if", "then", "else"), inner)


def from_2019(inner: st.SearchStrategy[Any]) -> Parts:
    """Since 2019-09."""
    return {
        **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), inner),
        "dependentSchemas": st.dictionaries(NAMES, inner, max_size=2),
        "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, unique=True, max_size=2), max_size=2),
        **dict.fromkeys(("minContains", "maxContains"), SIZE),
    }


KEYWORDS = {
    "draft4": (shared, with_item_lists, with_dependencies),
    "draft6": (shared, with_item_lists, with_dependencies, from_6),
    "draft7": (shared, with_item_lists, with_dependencies, from_6, from_7),
    "draft2019-09": (
        *(shared, with_item_lists, from_6, from_7, from_2019),
        lambda inner: {"$recursiveRef": st.just("#"), "$recursiveAnchor": st.just(True)},
    ),
    "draft2020-12": (
        *(shared, from_6, from_7, from_2019),
        lambda inner: {"prefixItems": st.lists(inner, min_size=1, max_size=2), "$dynamicRef": st.just("#n")},
    ),
}


def generated(draft: str) -> st.SearchStrategy[Any]:
    """Schemas of a draft."""

    def parts(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        known: Parts = {}
        for keywords in KEYWORDS[draft]:
            known.update(keywords(inner))
        return st.lists(st.sampled_from(sorted(known)), min_size=1, max_size=3, unique=True).flatmap(
            lambda chosen: st.fixed_dictionaries({key: known[key] for key in chosen})
        )

    leaf = st.fixed_dictionaries({"type": TYPES})
    return st.recursive(leaf if draft == "draft4" else st.booleans() | leaf, parts, max_leaves=5)


@pytest.mark.parametrize("draft", DRAFTS)
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_generated_schemas_and_values(draft: str, data: st.DataObject) -> None:
    schema = data.draw(generated(draft))
    if isinstance(schema, dict):
        given = data.draw(st.fixed_dictionaries(dict.fromkeys("ab", generated(draft))))
        anchored = {"n": {"$dynamicAnchor": "n", **({} if isinstance(given["a"], bool) else given["a"])}}
        schema = {
            **schema,
            "$schema": DRAFTS[draft],
            "definitions": {**given, **(anchored if draft == "draft2020-12" else {})},
        }
    engines = both(schema)
    for value in data.draw(st.lists(VALUES, min_size=1, max_size=8)):
        verdicts(engines, json.dumps(value))


@settings(suppress_health_check=list(HealthCheck))
@given(
    generated("draft2020-12"),
    VALUES,
    st.sampled_from(["$ref", "$id", "$anchor", "items", "type", "properties", "pattern", "$defs"]),
)
def test_no_schema_crashes(schema: Any, junk: Any, keyword: str) -> None:
    if isinstance(schema, dict):
        engines = both({**schema, keyword: junk})
        for arguments in ('{"a":1}', "[1]", '"x"'):
            verdicts(engines, arguments)


# ---------------------------------------------------------------- plain schemas, of which much is sure

PLAIN_VALUES = st.recursive(
    st.none() | st.booleans() | st.sampled_from([0, 1, 1.0, 2, 2.5, 10**30, "", "a", "ab", "b" * 3]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
PLAIN_DRAFTS = (None, DRAFTS["draft7"], DRAFTS["draft2019-09"], DRAFTS["draft2020-12"])
SAID = {"title": "a", "description": "", "default": 1, "format": "date", "nullable": True, "x-order": ["a"]}


UNUSABLE = ("(", "(a+)+")


def plain(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas of what most tools' schemas hold, and little else."""
    named = st.dictionaries(NAMES, inner, max_size=3)
    parts: Parts = {
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "enum": st.lists(PLAIN_VALUES, max_size=4),
        "const": PLAIN_VALUES,
        **dict.fromkeys(("properties", "definitions"), named),
        "required": st.lists(NAMES, unique=True, max_size=2),
        **dict.fromkeys(("additionalProperties", "items", "not"), inner),
        **dict.fromkeys(("anyOf", "allOf", "oneOf"), st.lists(inner, min_size=1, max_size=3)),
        "$ref": st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/definitions/a", "#/properties/a", "#/items", "#/x"]),
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), st.sampled_from([0, 1, 1.5])),
        **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), SIZE),
        "pattern": st.sampled_from(["^a", "b$", "^(a|b)*$", "a+b", *UNUSABLE]),
        **{name: st.just(given) for name, given in SAID.items()},
    }
    chosen = st.lists(st.sampled_from(sorted(parts)), max_size=4, unique=True)
    return chosen.flatmap(lambda keys: st.fixed_dictionaries({key: parts[key] for key in keys}))


PLAIN = st.recursive(st.booleans() | st.fixed_dictionaries({"type": TYPES}), plain, max_leaves=6)


def plain_roots() -> st.SearchStrategy[Any]:
    def root(schema: Any, draft: str | None, defs: Any) -> Any:
        return {"$schema": draft, **schema, "$defs": defs} if draft else {**schema, "$defs": defs}

    return st.builds(
        root, plain(PLAIN), st.sampled_from(PLAIN_DRAFTS), st.fixed_dictionaries(dict.fromkeys("ab", PLAIN))
    )


@settings(suppress_health_check=list(HealthCheck))
@given(plain_roots(), st.lists(PLAIN_VALUES, min_size=4, max_size=8))
def test_what_is_sure_is_what_the_engines_say(schema: Any, values: list[Any]) -> None:
    engines = both(schema)
    for value in values:
        verdicts(engines, json.dumps(value))


JUNK = st.none() | st.booleans() | st.sampled_from([0, 1, -1, 1.0, 0.5, "", "a", "string", "#", "#/$defs/a"])


@settings(suppress_health_check=list(HealthCheck))
@given(
    PLAIN,
    st.sampled_from(sorted({*surely.KEYWORDS, *surely.OTHER, "$id", "$anchor", "$dynamicAnchor", "$vocabulary"})),
    JUNK | st.lists(JUNK | PLAIN, max_size=3) | st.dictionaries(NAMES, JUNK | PLAIN, max_size=2),
    st.sampled_from(PLAIN_DRAFTS),
    st.booleans(),
)
def test_no_faulty_schema_is_surely_usable(
    schema: Any, keyword: str, given: Any, draft: str | None, inside: bool
) -> None:
    faulty = {**(schema if isinstance(schema, dict) else {}), keyword: given}
    named = {"$schema": draft} if draft else {}
    both({**named, "properties": {"a": faulty}} if inside else {**named, **faulty})


@settings(suppress_health_check=list(HealthCheck))
@given(plain_roots(), st.lists(PLAIN_VALUES, min_size=4, max_size=8))
def test_what_is_sure_is_never_given_up(schema: Any, values: list[Any]) -> None:
    """The engine takes no more steps for it than its text lets expect."""
    patterns = surely.usable(schema)
    if patterns is None or set(UNUSABLE) & set(patterns):
        return
    known = surely.certain(schema)
    text = json.dumps(schema).encode()
    for value in values:
        if known.test(value):
            spent = steps(text, value)
            assert spent * (known.longest + 1) <= MOST_STEPS * (len(json.dumps(value, separators=(",", ":"))) + 1)


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"allOf": [{"type": "string"}] * 200}, json.dumps("a" * 1_100_000)),
        ({"items": {"anyOf": [{"enum": ["a"]}, {"type": "array"}]}}, json.dumps([[0] * 500] * 900)),
        ({"anyOf": [{"pattern": "a+a+a+!"}, {"type": "string"}]}, json.dumps("a" * 2000)),
    ],
    ids=["a long text", "a choice", "a pattern"],
)
def test_what_is_given_up_is_not_sure(schema: Any, arguments: str) -> None:
    fast, pure = both(schema)
    assert fast.verdict(arguments) is OK
    assert pure.verdict(arguments) is SCHEMA
    assert "was given up" in pure.fault(arguments)


def steps(schema: bytes, value: Any) -> float:
    """What jsonschema takes to let a value pass."""
    budget = Budget(steps=1e12)
    started = BUDGET.set(budget)
    validator, _ = slow_validator(schema, settle(json.loads(schema)))
    assert next(validator.iter_errors(value), None) is None
    BUDGET.reset(started)
    return 1e12 - budget.left


# ---------------------------------------------------------------- where the pure engine says less


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"pattern": r"^\p{Lu}"}, '"A"'),
        ({"patternProperties": {r"^\p{L}+$": True}}, '{"a":1}'),
        ({"pattern": "^(a+)+$"}, '"a"'),
        ({"anyOf": [{"type": "object"}] * 9000}, "{}"),
    ],
    ids=["letters by category", "names by category", "repeats inside a repeat", "a huge schema"],
)
def test_what_only_the_fast_engine_checks_is_unusable_without_it(schema: Any, arguments: str) -> None:
    fast, pure = both(schema)
    assert fast.problem is None
    assert fast.verdict(arguments) is OK
    assert pure.problem is not None


# ---------------------------------------------------------------- the published suite


def suite() -> list[Path]:
    folder = os.environ.get("CONVERTER_SCHEMA_SUITE")
    return sorted(path for draft in DRAFTS for path in (Path(folder) / draft).rglob("*.json")) if folder else []


BESIDE_THE_DRAFT = {"format", "content.json", "dependencies-compatibility.json", "ecmascript-regex.json"}
"""Optional parts of the suite that ask for what a draft leaves open; both engines must agree, not with the suite."""


@pytest.mark.skipif(not suite(), reason="CONVERTER_SCHEMA_SUITE names no folder of the suite")
@pytest.mark.parametrize("path", suite(), ids=lambda path: "/".join(path.parts[-3:]))
def test_the_published_suite(path: Path) -> None:
    draft = next(part for part in path.parts if part in DRAFTS)
    ruled = "optional" not in path.parts or not BESIDE_THE_DRAFT & set(path.parts)
    for case in json.loads(path.read_text("utf-8")):
        schema = case["schema"]
        engines = both({"$schema": DRAFTS[draft], **schema} if isinstance(schema, dict) else schema)
        for test in case["tests"]:
            found = verdicts(engines, json.dumps(test["data"]))
            if found is not None and ruled:
                assert (found is OK) is test["valid"], (case["description"], test["description"])


# ---------------------------------------------------------------- recorded schemas


def recorded() -> dict[str, dict[str, list[str]]]:
    """By tool name: the schemas and the arguments in a folder of logs, as texts."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: {"schemas": [], "arguments": []})
    for path in sorted(Path(os.environ.get("CONVERTER_RECORDINGS", "")).glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            for value in objects(json.loads(line)):
                if isinstance(name := value.get("name"), str):
                    if isinstance(value.get("parameters"), dict):
                        found[name]["schemas"].append(json.dumps(value["parameters"]))
                    if isinstance(value.get("arguments"), str):
                        found[name]["arguments"].append(value["arguments"])
    return found


def objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inside in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(inside)


def changed(arguments: str, schema: Any) -> Iterator[str]:
    """Arguments, and some that differ from them in one member."""
    yield arguments
    try:
        value = json.loads(arguments)
    except ValueError:
        return
    members = value if isinstance(value, dict) else {}
    names = schema.get("properties", {}) if isinstance(schema, dict) else {}
    for key in [*members, *(names if isinstance(names, dict) else ())]:
        yield json.dumps({other: members[other] for other in members if other != key})
        for junk in (None, True, 1, -1.5, 1e300, "", "a" * 300, [], ["x"], {}, {"a": 1}):
            yield json.dumps({**members, key: junk})


@pytest.mark.skipif("CONVERTER_RECORDINGS" not in os.environ, reason="CONVERTER_RECORDINGS names no folder of logs")
def test_recorded_schemas() -> None:
    counts: Counter[str] = Counter()
    for tool in recorded().values():
        for text in sorted(set(tool["schemas"])):
            schema = json.loads(text)
            engines = both(schema)
            counts["schemas"] += 1
            assert engines[0].problem == engines[1].problem
            for arguments in sorted({each for one in {*tool["arguments"], "{}"} for each in changed(one, schema)}):
                assert engines[1].problem is not None or verdicts(engines, arguments) is not None
                counts["arguments"] += 1
    assert counts["schemas"]
    print(dict(counts))
