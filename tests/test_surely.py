"""What is sure without an engine: what it covers, and where it stops. That it is right is in `test_engines`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from jsonschema_specifications import REGISTRY

from converter import schemas
from converter.keywords import MOST_STEPS, afford
from converter.references import MOST_APPLIED
from converter.schemas import SMALL, ToolSchema
from converter.surely import DEEPEST, KEYWORDS, MOST_MADE, OTHER, certain, usable

Make = Callable[[Any], ToolSchema]

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
PLACE = {
    "type": "object",
    "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}},
    "required": ["lat", "lon"],
}


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


# --- schemas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        True,
        False,
        {},
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"a": {"type": ["string", "null"], "enum": ["x", None]}}, "required": ["a"]},
        {"$defs": {"Place": PLACE}, "properties": {"at": {"$ref": "#/$defs/Place"}}, "additionalProperties": False},
        {"$schema": DRAFT_7, "$ref": "#/definitions/Place", "definitions": {"Place": PLACE}},
        {"properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "A"}}},
        {"items": {"$ref": "#"}},
        {"properties": {"$ref": {"type": "string"}, "$id": {"const": 1}, "unevaluatedItems": False}},
        {"type": "string", "nullable": True, "example": ["x"], "x-order": 1, "strict": "yes"},
        {"oneOf": [{"minimum": 0}, {"multipleOf": 0.5}], "not": {"uniqueItems": True}, "if": {}, "then": False},
        {"const": {"$ref": "http://a.example", "$id": 1}, "examples": [{"type": "x"}]},
        nested(DEEPEST - 1),
    ],
    ids=lambda value: ascii(value)[:60],
)
def test_what_tools_have_is_surely_usable(schema: Any) -> None:
    assert usable(schema) == []


@pytest.mark.parametrize(
    ("schema", "patterns"),
    [
        ({"pattern": "^a"}, ["^a"]),
        ({"items": {"patternProperties": {"^a": {"pattern": "b"}, "(": True}}}, ["^a", "(", "b"]),
        ({"const": {"pattern": "a"}, "properties": {"pattern": {}}}, []),
    ],
    ids=str,
)
def test_patterns_are_given_to_be_looked_at(schema: Any, patterns: list[str]) -> None:
    assert usable(schema) == patterns


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "STRING"},
        {"type": []},
        {"type": ["string", "string"]},
        {"type": [["string"]]},
        {"type": None},
        {"enum": "a"},
        {"required": "a"},
        {"required": [1]},
        {"required": ["a", "a"]},
        {"properties": []},
        {"properties": {"a": None}},
        {"properties": {"a": {"items": {"minLength": "1"}}}},
        {"additionalProperties": "false"},
        {"items": [{}]},
        {"items": 1},
        {"anyOf": []},
        {"anyOf": {}},
        {"allOf": [1]},
        {"not": None},
        {"minimum": "0"},
        {"minimum": True},
        {"minLength": -1},
        {"minLength": 1.0},
        {"maxItems": False},
        {"multipleOf": 0},
        {"pattern": 1},
        {"uniqueItems": 1},
        {"title": None},
        {"examples": {}},
        {"deprecated": 0},
        {"$defs": {"a": 1}},
        {"$id": "https://a.example/"},
        {"$anchor": "a"},
        {"id": "a"},
        {"unevaluatedProperties": False},
        {"dependencies": {"a": ["b"]}},
        {"$ref": "#a"},
        {"$ref": 1},
        {"$ref": "https://a.example/"},
        {"$ref": "#/x", "x": {"type": "string"}},
        {"$ref": "#/$defs", "$defs": {"type": {}}},
        {"$ref": "#/$defs/a", "$defs": {"a": True}},
        {"$ref": "#/$defs/a%20b", "$defs": {"a b": {}}},
        {"$ref": "#/$defs/a~1b", "$defs": {"a/b": {}}},
        {"$ref": "#/allOf/0", "allOf": [{}]},
        {"$ref": "#"},
        {"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#"}}}},
        {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 0, "exclusiveMinimum": True},
        {"$schema": "http://json-schema.org/draft-06/schema#"},
        {"$schema": "https://a.example/"},
        {"$schema": 1},
        {"items": {"$schema": DRAFT_7}},
        nested(DEEPEST),
    ],
    ids=lambda value: ascii(value)[:60],
)
def test_what_is_faulty_or_rare_is_for_an_engine(schema: Any) -> None:
    assert usable(schema) is None


def test_references_that_multiply_are_for_an_engine() -> None:
    doubling: dict[str, Any] = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(20)}
    assert 2 ** len(doubling) > MOST_APPLIED
    assert usable({"$ref": "#/$defs/d0", "$defs": {**doubling, "d20": {}}}) is None


def test_no_keyword_of_a_draft_passes_for_an_unknown_one() -> None:
    drafts = jsonschema.Draft7Validator, jsonschema.Draft201909Validator, jsonschema.Draft202012Validator
    names = {keyword for draft in drafts for keyword in draft.VALIDATORS}
    for metaschema in REGISTRY:
        if "draft-07" in metaschema or "/draft/20" in metaschema:
            names |= REGISTRY.contents(metaschema).get("properties", {}).keys()
    assert {"unevaluatedItems", "contentSchema", "$dynamicAnchor"} <= names
    assert {name for name in names if name not in KEYWORDS | dict.fromkeys(OTHER) and name[0] != "$"} == set()


def test_every_keyword_of_an_engine_has_its_steps_reckoned() -> None:
    drafts = jsonschema.Draft7Validator, jsonschema.Draft201909Validator, jsonschema.Draft202012Validator
    taken = {keyword for draft in drafts for keyword in draft.VALIDATORS} & KEYWORDS.keys()
    assert {keyword for keyword in taken if KEYWORDS[keyword].make is None} == set()


@pytest.mark.parametrize(
    "text",
    [
        b'{"anyOf":[%b]}' % b",".join([b"{}"] * (SMALL // 3 - 5)),
        b'{"default":["",%b]}' % b",".join([b"1"] * (SMALL // 2 - 10)),
        b'{"default":[%b]}' % b",".join([b"true"] * (SMALL // 5 - 5)),
    ],
    ids=["subschemas", "pairs", "booleans"],
)
def test_a_small_schema_can_be_held_against_its_metaschema(text: bytes) -> None:
    assert SMALL - 20 < len(text) <= SMALL
    afford(json.loads(text))


# --- values ----------------------------------------------------------------------------------------------------------

SURE = [
    ({"type": "integer"}, [0, 10**30, -1], [True, 1.0, 1.5, "1", None]),
    ({"type": "number"}, [0, 0.5], [False, "1"]),
    ({"type": "boolean"}, [True], [0, 1, None]),
    ({"type": ["string", "null"]}, ["", None], [0, False, [], {}]),
    ({"enum": ["a", 1, None]}, ["a", 1, None], ["b", True, 1.0, 0, False, [1]]),
    ({"enum": [True, [1], {"a": 1}, 1.0]}, [True], [1, [1], {"a": 1}, 1.0]),
    ({"const": 0}, [0], [False, 0.0, None]),
    ({"properties": {"a": {"type": "string"}}}, [{}, {"a": ""}, {"b": 1}, [], 1], [{"a": 1}, {"a": None}]),
    ({"properties": {"a": True, "b": False}}, [{"a": 1}], [{"b": 1}]),
    ({"required": ["a", "b"]}, [{"a": 1, "b": 2, "c": 3}, "a"], [{}, {"a": 1}]),
    ({"properties": {"a": {}}, "additionalProperties": False}, [{}, {"a": 1}, []], [{"a": 1, "b": 1}]),
    ({"properties": {"a": {}}, "additionalProperties": {"type": "null"}}, [{"a": 1, "b": None}], [{"b": 1}]),
    ({"additionalProperties": False, "patternProperties": {"a": {}}}, [], [{}, {"a": 1}, {"b": 1}]),
    ({"items": {"type": "string"}}, [[], ["a"], {"a": 1}], [[1], ["a", None]]),
    ({"items": False}, [[]], [[1]]),
    ({"minimum": 1, "exclusiveMaximum": 2}, [1, 1.5, "0", True, None], [0, 2, 2.0]),
    ({"exclusiveMinimum": 1, "maximum": 2.5}, [1.5, 2.5], [1, 2.75]),
    ({"minimum": 2**53 + 1}, [2**53 + 1], [2**53, float(2**53)]),
    ({"minLength": 1, "maxLength": 2}, ["a", "é😀", 5], ["", "abc"]),
    ({"minItems": 1, "maxItems": 1}, [[1], "ab", {}], [[], [1, 2]]),
    ({"minProperties": 1, "maxProperties": 1}, [{"a": 1}, []], [{}, {"a": 1, "b": 1}]),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, ["a", None], [1]),
    ({"anyOf": [{"pattern": "a+a+"}, {"type": "null"}]}, [], [None, "aa"]),
    ({"anyOf": [{"properties": {"a": {"oneOf": [{}]}}}, {"type": "object"}]}, [], [{}, {"a": 1}]),
    ({"allOf": [{"minimum": 0}, {"maximum": 1}]}, [0, 1, "a"], [-1, 2]),
    ({"$ref": "#/$defs/a", "maxLength": 1, "$defs": {"a": {"type": "string"}}}, ["a"], ["ab", 1]),
    ({"properties": {"a": {"$ref": "#"}, "b": {"type": "null"}}}, [{"a": {"b": None}}], [{"a": {"a": {}}}, {"b": 1}]),
    ({"properties": {name: {"$ref": "#/$defs/x"} for name in "ab"}, "$defs": {"x": {}}}, [{"a": 1, "b": 1}], []),
    ({"properties": {"a": {"pattern": "x+x+"}, "b": {}}}, [{"b": 1}], [{"a": "xx"}]),
    ({"pattern": "^[a-z-]+$"}, ["a-b", 1, []], ["", "A", "a\n"]),
    ({"pattern": "b"}, ["abc"], ["ac"]),
    *(({keyword: given}, [], [1, "x", []]) for keyword, given in {"multipleOf": 1, "uniqueItems": True}.items()),
    *(({keyword: given}, [], [1, "x", []]) for keyword, given in {"not": {"const": 0}, "oneOf": [{}]}.items()),
    (False, [], [None, {}]),
    (True, [None, {}, [1.0]], []),
    (nested(3), [[[["a"]], []], 1], [[[[1]]], [[["a"], [1]]]]),
]
"""A schema, values that surely satisfy it, and values of which nothing is said here."""


@pytest.mark.parametrize(("schema", "sure", "asked"), SURE, ids=lambda value: ascii(value)[:60])
def test_values(schema: Any, sure: list[Any], asked: list[Any]) -> None:
    known = certain(schema)
    assert [known.longest > 0 and known.test(value) for value in sure] == [True] * len(sure)
    assert [known.longest > 0 and known.test(value) for value in asked] == [False] * len(asked)


def test_a_schema_of_which_nothing_is_sure_is_not_asked() -> None:
    for schema in ({"pattern": "a+a+"}, {"type": "string", "pattern": "a+a+"}, {"allOf": [{"type": "string"}, False]}):
        assert certain(schema).longest < 0


def test_references_are_followed_as_deep_as_schemas_stand_in_each_other() -> None:
    chain = {f"d{i}": {"items": {"$ref": f"#/$defs/d{i + 1}"}} for i in range(DEEPEST)}
    schema = {"$ref": "#/$defs/d0", "$defs": {**chain, f"d{DEEPEST}": {}}}
    assert usable(schema) == []
    assert [certain(schema).test(json.loads("[" * depth + "]" * depth)) for depth in (2, DEEPEST)] == [True, False]


def steps(schema: Any) -> float:
    """How many an engine takes for one value at most, by how long a text may be."""
    return MOST_STEPS / (2 * (certain(schema).longest + 1))


NAMES = {"required": [f"n{number}" for number in range(200)]}


@pytest.mark.parametrize(
    "beside", [{"anyOf": [NAMES]}, {"allOf": [NAMES]}, {"$ref": "#/$defs/x", "$defs": {"x": NAMES}}]
)
def test_what_is_checked_on_one_value_adds_up(beside: Any) -> None:
    assert steps({**NAMES, **beside}) > 1.9 * steps(NAMES)


def test_a_pattern_counts_by_the_ways_in_which_it_matches() -> None:
    assert steps({"pattern": "^(a|ab){9}c$"}) > steps({"pattern": "^(a|ab){3}c$"}) > steps({"pattern": "^abc$"})


def test_a_choice_in_a_branch_may_be_compared_with_what_is_large() -> None:
    alone, branch = {"enum": ["a"]}, {"anyOf": [{"enum": ["a"]}]}
    assert steps(branch) > steps(alone) + 60
    assert steps({"anyOf": [{}], **alone}) < steps(branch)


def test_what_is_long_is_for_an_engine_and_the_longer_the_more_there_is_to_check() -> None:
    lengths = [
        certain(schema).longest
        for schema in (
            {"type": "object"},
            {"type": "object", "required": ["a"]},
            {"properties": {"a": {"type": "object", "required": [f"n{i}" for i in range(200)]}}},
            {"anyOf": [{"type": "object"}] * 100},
            {"anyOf": [{"allOf": [{"type": "object"}] * 20}] * 100},
        )
    ]
    assert lengths == sorted(lengths, reverse=True)
    assert len(set(lengths)) == len(lengths)
    assert 10_000 < lengths[0] < 100_000


def test_no_more_tests_are_made_than_can_be_afforded() -> None:
    doubling: dict[str, Any] = {
        f"d{i}": {"properties": {name: {"$ref": f"#/$defs/d{i + 1}"} for name in "ab"}} for i in range(20)
    }
    schema = {"$ref": "#/$defs/d0", "$defs": {**doubling, "d20": {"type": "null"}}}
    assert 2 ** len(doubling) > MOST_MADE
    assert usable(schema) == []
    assert [certain(schema).test(value) for value in ({}, {"a": {}}, {"b": {}})] == [True, True, False]


# --- in front of the engines -----------------------------------------------------------------------------------------


@pytest.fixture
def pure(monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes a schema as if jsonschema-rs were not installed."""
    monkeypatch.setattr(schemas, "_fast_engine", lambda: None)
    return lambda schema: ToolSchema(json.dumps(schema).encode())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The schemas for which jsonschema was made ready."""
    prepared: list[Any] = []
    slow_validator = schemas.slow_validator
    monkeypatch.setattr(schemas, "slow_validator", lambda *given: prepared.append(given) or slow_validator(*given))
    return prepared


def test_what_is_not_sure_is_asked_of_jsonschema(pure: Make, asked: list[Any]) -> None:
    tool = pure({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
    for arguments in ('{"a":1}', ' { "a" : 2, "b":[{}] }', '{"a":3,"b":0.5}'):
        assert tool.verdict(arguments).value == "ok"
    assert not asked
    assert [tool.verdict(arguments).value for arguments in ('{"a":1.0}', "{}")] == ["ok", "arguments_schema"]
    assert len(asked) == 1


def test_what_is_long_is_asked_of_jsonschema(pure: Make, asked: list[Any]) -> None:
    tool = pure({"type": "array", "items": {"type": "string"}})
    assert [tool.verdict(json.dumps(["a"] * times)).value for times in (1, 20_000)] == ["ok", "ok"]
    assert len(asked) == 1


def test_a_real_that_no_double_holds_is_asked_of_jsonschema(pure: Make, asked: list[Any]) -> None:
    tool = pure({"maximum": 5})
    assert [tool.verdict(number).value for number in ("5.0", "5.0000000000000000001")] == ["ok", "arguments_schema"]
    assert len(asked) == 1
