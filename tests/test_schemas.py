"""A tool's schema: what is faulty, what fits, what is said of it, and that nothing is fetched."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from converter import schemas
from converter.arguments import MEMO_CHARACTERS
from converter.outcome import Verdict
from converter.schemas import ToolSchema, parse_verdict, strict_qualifies, tool_schema

PARSE, SCHEMA, OK = Verdict.ARGUMENTS_PARSE, Verdict.ARGUMENTS_SCHEMA, Verdict.OK

REPORT = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "required": ["region"],
    "properties": {"region": {"type": "string", "enum": ["apac", "emea", "amer"]}},
}
"""The parameters of get_latest_sales_report, the worked example."""

Make = Callable[[Any], ToolSchema]


def dumped(schema: Any) -> bytes:
    return schema if isinstance(schema, bytes) else json.dumps(schema).encode()


@pytest.fixture(params=["fast", "pure"])
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes a schema with jsonschema-rs, or as if it were not installed."""
    if request.param == "fast":
        pytest.importorskip("jsonschema_rs")
    else:
        monkeypatch.setattr(schemas, "_fast_engine", lambda: None)
    return lambda schema: ToolSchema(dumped(schema))


# --- the worked example ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "verdict", "fault"),
    [
        ('{"region":"apac"}', OK, None),
        (' {\n"region" : "emea"}\t', OK, None),
        ('{"region":"global"}', SCHEMA, "'enum' of the schema is not met at /region"),
        (
            '{"region":"apac","password":"hunter2"}',
            SCHEMA,
            "'additionalProperties' of the schema is not met at the top",
        ),
        ("{}", SCHEMA, "'required' of the schema is not met at the top: missing 'region'"),
        ("[]", SCHEMA, "'type' of the schema is not met at the top"),
        ('{"region":"apac"', PARSE, "not JSON at character 17"),
    ],
)
def test_the_worked_example(make: Make, arguments: str, verdict: Verdict, fault: str | None) -> None:
    tool = make(REPORT)
    assert tool.problem is None
    assert [tool.verdict(arguments), tool.verdict(arguments)] == [verdict, verdict]
    if fault:
        assert tool.fault(arguments) == fault


# --- one JSON text ---------------------------------------------------------------------------------------------------

NOT_ONE_TEXT = [
    "",
    " ",
    "NaN",
    '{"a":Infinity}',
    "-Infinity",
    "{} {}",
    "1 2",
    "[1,]",
    "01",
    "1.",
    ".5",
    "+1",
    "'a'",
    '{"a":1}x',
    '\ufeff{"a":1}',
    '{"a":1}\ufeff',
    '"\x01"',
    '"a\nb"',
    "\x0b1",
    "\xa01",
    '"\\x41"',
    '"\\ud8"',
    '{"a":1,"a":2}',
    '{"a":1,"a":1}',
    '{"a":{"b":[{"c":1,"c" :2}]}}',
    '{"a":1,"\\u0061":2}',
    '{"\\ud800":1,"\\ud800":2}',
    '{"t":"x\\":","a":1,"a":2}',
    "[" * 1_000_000,
    "[" * 1_000_000 + "]" * 1_000_000,
    '{"a":' * 1_000_000,
    "[" * 129 + "]" * 129,
]
ONE_TEXT = [
    "{}",
    "null",
    "0",
    "-0",
    '"\\ud800"',
    '"\ud800"',
    '"\\u0000"',
    '"\x7f\u2028"',
    '{"a":{"a":1},"b":[{"a":1},{"a":2}]}',
    '{"url":"http://a:b","text":"a\\":b","\\":":1}',
    "1e999",
    "-1e999",
    "1e-999",
    "1e99999999999999999999",
    "7" * 100_000,
    "-" + "7" * 400,
    "[" * 128 + "]" * 128,
]


@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [*((text, PARSE) for text in NOT_ONE_TEXT), *((text, OK) for text in ONE_TEXT)],
    ids=lambda value: ascii(value)[:30],
)
def test_arguments_are_one_json_text(make: Make, arguments: str, verdict: Verdict) -> None:
    assert parse_verdict(arguments) is verdict
    assert make(True).verdict(arguments) is verdict
    assert make({"type": "STRING"}).verdict(arguments) is verdict  # a faulty schema checks nothing else
    if verdict is PARSE:
        assert make(True).fault(arguments)


def json_texts() -> st.SearchStrategy[str]:
    keys = st.sampled_from(["a", "b", "a:", '":', "\\", "é"])
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | keys,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
        max_leaves=8,
    )
    return st.builds(json.dumps, values, indent=st.sampled_from([None, 1]), ensure_ascii=st.booleans())


@given(json_texts(), st.data())
def test_parsing_agrees_with_a_plain_reading(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    text = text[:at] + data.draw(st.sampled_from(["", "", ",", '"a":1,', "}", '"', "0", ":"])) + text[at:]

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError(pairs)
        return dict(pairs)

    try:
        json.loads(text, object_pairs_hook=once)
        expected = OK
    except ValueError:
        expected = PARSE
    assert parse_verdict(text) is expected


# --- numbers and other values where engines differ -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "arguments", "fits"),
    [
        ({"type": "integer"}, "1.0", True),
        ({"type": "integer"}, "1.5", False),
        ({"type": "integer"}, "1e300", True),
        ({"type": "integer"}, "1e999", True),
        ({"type": "integer"}, "7" * 5000, True),
        ({"type": "integer"}, "7" * 400 + ".5", False),
        ({"type": "integer"}, "true", False),
        ({"type": "number"}, "1e999", True),
        ({"type": "string"}, "7" * 5000, False),
        ({"maximum": 5}, "7" * 5000, False),
        ({"minimum": 5.5}, "1e999", True),
        ({"exclusiveMaximum": 0}, "-1e999", True),
        ({"maximum": 10**30}, str(10**30), True),
        ({"maximum": 10**30}, str(10**30 + 1), False),
        ({"const": 2**53 + 1}, "9007199254740992.0", False),
        ({"const": 1}, "1.0", True),
        ({"const": 1}, "true", False),
        ({"enum": [0]}, "false", False),
        ({"multipleOf": 0.1}, "0.3", True),
        ({"multipleOf": 0.01}, "1.13", True),
        ({"multipleOf": 0.1}, "0.35", False),
        ({"multipleOf": 0.1}, "1e300", True),
        ({"multipleOf": 3}, "1e999", False),
        ({"multipleOf": 2}, "1e999999999999999999", True),
        ({"multipleOf": 7}, "7" * 5000, True),
        (b'{"multipleOf":' + b"7" * 5000 + b"}", "7" * 5000, True),
        (b'{"multipleOf":' + b"7" * 5000 + b"}", "7" * 4999 + "8", False),
        ({"enum": [[1, {"a": True}]]}, '[1.0,{"a":true}]', True),
        ({"enum": [[1, {"a": True}]]}, '[1,{"a":1}]', False),
        ({"const": {"a": [0]}}, '{"a":[false]}', False),
        ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, "3", False),
        ({"prefixItems": [{"type": "null"}], "items": {"type": "integer"}}, "[null,1,2]", True),
        ({"prefixItems": [{"type": "null"}], "items": {"type": "integer"}}, "[1,1]", False),
        ({"unevaluatedProperties": {"items": {"type": "null"}}}, '{"a":[1,1]}', False),
        ({"multipleOf": 1e300}, "1", False),
        # a number is what is spelled, and what a double makes of it
        ({"maximum": 5}, "5.0000000000000000001", False),
        ({"exclusiveMinimum": 5}, "5.0000000000000000001", False),
        ({"minimum": 5}, "5.0000000000000000001", True),
        ({"type": "integer"}, "1.00000000000000000001", False),
        ({"properties": {"a": {"items": {"enum": [0.1]}}}}, '{"a":[0.10000000000000000001]}', False),
        ({"multipleOf": 3}, "1e300", False),
        ({"multipleOf": 3}, "3e300", True),
        ({"multipleOf": 3}, "1.5e1", True),
        ({"const": 9007199254740993}, "9007199254740993", True),
        ({"const": 9007199254740992}, "9007199254740993", False),
        ({"const": 9007199254740992}, "9007199254740993.0", False),
        ({"not": {"const": 0}}, "1e-400", False),
        ({"maximum": 0}, "1e-400", False),
        ({"maximum": 0}, "1e-99999999999999999999", False),
        ({"const": 0.30000000000000004}, "0.30000000000000004", True),
        ({"maximum": 1.7976931348623157e308}, "1.7976931348623157e308", True),
        ({"type": "string"}, '"1234567890.1234567890"', True),
        ({"contains": {"type": "null"}, "minContains": 2, "maxContains": 2}, "[null,1,null]", True),
        ({"contains": {"type": "null"}, "maxContains": 1}, "[null,null]", False),
        ({"contains": {"type": "null"}, "minContains": 0}, "[1]", True),
        ({"contains": False}, "[1]", False),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "contains": {"type": "null"}, "minContains": 2},
            "[null]",
            True,
        ),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": False, "b": ["c"]}},
            '{"b":1}',
            False,
        ),
        ({"multipleOf": 0.5}, "7" * 400 + ".5", True),
        ({"multipleOf": 0.5}, "7" * 400 + "." + "5" * 100_000, False),
        ({"uniqueItems": True}, "[1,true,[1],[true]]", True),
        ({"uniqueItems": True}, "[[1],[true],[1.0]]", False),
        ({"uniqueItems": True}, '[{"a":1,"b":2},{"b":2,"a":1}]', False),
        ({"maxLength": 1}, '"\U0001f600"', True),
        ({"type": "string", "maxLength": 1}, '"\\ud800"', True),
        ({"additionalProperties": False}, '{"\\ud800":1}', False),
        ({"format": "email"}, '"nobody"', True),
        ({"format": "date-time", "contentEncoding": "base64"}, '"!"', True),
        ({"dependencies": {"a": ["b"]}}, '{"a":1}', True),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": ["b"]}}, '{"a":1}', False),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "contentEncoding": "base64"}, '"!"', True),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "format": "email"}, '"nobody"', True),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}, "1.0", False),
        ({"$schema": "http://json-schema.org/draft-04/schema", "maximum": 1, "exclusiveMaximum": True}, "1", False),
        ({"$schema": "https://json-schema.org/draft/2019-09/schema", "items": [{"type": "string"}]}, "[1]", False),
        ({"prefixItems": [{"type": "string"}]}, "[1]", False),
        (False, "1", False),
        (True, "1", True),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_values_are_checked_alike(make: Make, schema: Any, arguments: str, fits: bool) -> None:
    tool = make(schema)
    assert tool.problem is None
    assert tool.verdict(arguments) is (OK if fits else SCHEMA)
    if not fits:
        assert "of the schema is not met at" in tool.fault(arguments)


# --- schemas that cannot be used -------------------------------------------------------------------------------------

LOCAL = {"$defs": {"word": {"$anchor": "here", "$id": "https://a.example/word", "type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (b"null", "neither an object nor a boolean"),
        (b"[]", "neither an object nor a boolean"),
        (b"{", "not one JSON text"),
        (b"\xff", "not UTF-8"),
        (b'{"type":"object","type":"array"}', "a key stands twice"),
        (b"[" * 1_000_000, "not one JSON text"),
        ({"type": "STRING"}, "invalid under the metaschema"),
        ({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}, "invalid under the metaschema"),
        ({"properties": {"y": None}}, "invalid under the metaschema"),
        ({"properties": {"y": {"required": True}}}, "invalid under the metaschema"),
        ({"$id": 5}, "invalid under the metaschema"),
        ({"$ref": 5}, "invalid under the metaschema"),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"a": True}}, "invalid under"),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "enum": [1, 1.0]}, "invalid under"),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "enum": []}, "invalid under"),
        ({"$schema": "https://example.com/mine"}, "names a $schema"),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, "names a $schema"),
        ({"$schema": 5}, "names a $schema"),
        ({"$schema": "http://["}, "names a $schema"),
        ({"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}, "mixes drafts"),
        ({"$ref": "http://a.example/x"}, "outside itself"),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, "outside itself"),
        ({"$ref": "file:///etc/passwd"}, "outside itself"),
        ({"$ref": "other.json#/a"}, "outside itself"),
        ({"$dynamicRef": "http://a.example/x#y"}, "outside itself"),
        ({"$id": "https://a.example/b", "items": {"$ref": "c"}}, "outside itself"),
        ({"items": {"anyOf": [{"properties": {"a": {"$ref": "//b"}}}]}}, "outside itself"),
        (b'{"\\u0024r\\u0065\\u0066":"http://a.example/x"}', "outside itself"),
        ({"$ref": "#/a"}, "leads nowhere"),
        ({"$ref": "#a"}, "leads nowhere"),
        ({"allOf": [True], "items": {"$ref": "#/allOf/x"}}, "leads nowhere"),
        ({"$ref": "#/$defs/a/properties/b", "$defs": {"a": True}}, "leads nowhere"),
        ({"$ref": "#/minimum/b", "minimum": 1}, "leads nowhere"),
        ({"$ref": "#/x", "x": {"type": "STRING"}}, "what is no schema"),
        ({"$ref": "#/x", "x": [1]}, "what is no schema"),
        ({"$ref": "#"}, "leads back to itself"),
        ({"$dynamicAnchor": "a", "$dynamicRef": "#a"}, "leads back to itself"),
        ({"anyOf": [{"type": "null"}, {"not": {"$ref": "#"}}]}, "leads back to itself"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, "back to itself"),
        ({"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": "#"}, "back to itself"),
        ({"pattern": "("}, "no regular expression"),
        ({"patternProperties": {"[": True}}, "no regular expression"),
        ({"pattern": "[" * 30_000}, "no regular expression"),
        ({"pattern": "(" * 3_000 + ")" * 3_000}, "no regular expression"),
    ],
    ids=lambda value: ascii(value)[:60],
)
def test_a_faulty_schema_says_why(make: Make, schema: Any, problem: str) -> None:
    tool = make(schema)
    assert tool.problem is not None
    assert tool.problem.startswith("the schema ")
    assert problem in tool.problem
    assert tool.verdict('{"a":1}') is OK
    assert tool.verdict("{") is PARSE


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"$ref": "#/$defs/word", **LOCAL}, '"a"', "1"),
        ({"$ref": "word#here", "$id": "https://a.example/", **LOCAL}, '"a"', "1"),
        ({"$ref": "#w", "$defs": {"x": {"$anchor": "w", "type": "string"}}}, '"a"', "1"),
        ({"items": {"$ref": "#"}, "type": ["array", "null"]}, "[[null]]", "[[1]]"),
        (
            {"$dynamicAnchor": "n", "type": "object", "additionalProperties": {"$dynamicRef": "#n"}},
            '{"a":{}}',
            '{"a":1}',
        ),
        ({"$ref": "#/x/y", "x": {"y": {"type": "string"}}}, '"a"', "1"),
        ({"$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": {"type": "string"}}}, '"a"', "1"),
        (
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "properties": {"a": {"$ref": "#/$defs/a", "minimum": 9}},
                "$defs": {"a": {"type": "integer"}},
            },
            '{"a":1}',
            '{"a":"x"}',
        ),
        (
            {"properties": {"$ref": {"type": "string"}, "$schema": {"type": "null"}}},
            '{"$ref":"http://a"}',
            '{"$ref":1}',
        ),
        ({"const": {"$ref": "http://a.example", "$schema": "x"}}, '{"$ref":"http://a.example","$schema":"x"}', "1"),
        ({"description": "\ud800", "type": "null"}, "null", "1"),
        ({"$ref": "#/x", "x": {"pattern": r"^\d$", "dependencies": {"a": ["b"]}}}, '{"a":1}', '"\u0663"'),
        ({"$ref": "#/x/1", "x": [0, {"not": {"$ref": "#/y~1z"}}], "y/z": {"pattern": r"^\d$"}}, '"\u0663"', '"1"'),
    ],
    ids=lambda value: ascii(value)[:60],
)
def test_references_inside_the_schema_are_followed(make: Make, schema: Any, good: str, bad: str) -> None:
    tool = make(schema)
    assert tool.problem is None
    assert [tool.verdict(good), tool.verdict(bad)] == [OK, SCHEMA]


@pytest.mark.parametrize(
    ("draft", "keyword"), [("draft-04", "id"), ("draft-06", "$id"), ("draft-07", "$id"), ("draft-07", "$ref")]
)
def test_a_name_that_is_no_text_means_nothing_where_the_draft_knows_no_schema(
    make: Make, draft: str, keyword: str
) -> None:
    named = {
        "$schema": f"http://json-schema.org/{draft}/schema#",
        "$defs": {"a": {keyword: 1}},
        "definitions": {"b": {}},
    }
    assert make({**named, "not": {"$ref": "#/definitions/b"}}).problem is None
    assert make({**named, "not": {"$ref": "#/$defs/a"}}).problem == "the schema holds a reference to what is no schema"


def test_a_schema_that_explodes_is_refused(make: Make) -> None:
    doubling: dict[str, Any] = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)}
    chain: dict[str, Any] = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(2000)}
    for defs in (doubling, chain):
        defs[f"d{len(defs)}"] = True
        problem = make({"$ref": "#/$defs/d0", "$defs": defs}).problem
        assert problem is not None
        assert "more references and combinators" in problem


@pytest.fixture
def pure(monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.setattr(schemas, "_fast_engine", lambda: None)
    return lambda schema: ToolSchema(dumped(schema))


def nested(depth: int) -> str:
    return '{"a":' * depth + "{}" + "}" * depth


TWICE = {"type": "object", "properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}
ONES = "[" + "1," * 400_000 + "1]"
NO_END = {
    "a reference taken twice": (TWICE, nested(60)),
    "a dynamic one": (
        json.loads(json.dumps(TWICE).replace('"$ref": "#"', '"$dynamicRef": "#n"')) | {"$dynamicAnchor": "n"},
        nested(60),
    ),
    "four repeats": ({"pattern": "^a+a+a+a+$"}, json.dumps("a" * 2000 + "!")),
    "forty options": ({"pattern": "^" + "a?" * 40 + "b$"}, json.dumps("a" * 40)),
    "repeats with an end": ({"pattern": "^a{0,999}a{0,999}a{0,999}b$"}, json.dumps("a" * 2000)),
    "a pattern for names": ({"patternProperties": {"a+a+a+!": True}}, json.dumps({"a" * 2000: 1})),
    "a name that no pattern knows": ({"unevaluatedProperties": False}, json.dumps({f"k{i}": 1 for i in range(60_000)})),
    "long texts in many messages": ({"anyOf": [{"type": "null"}] * 2000}, json.dumps(["x" * 900_000])),
    "many failures": ({"unevaluatedProperties": {"items": {"type": "null"}}}, f'{{"a":{ONES}}}'),
    "many required names": ({"items": {"required": [f"n{i}" for i in range(9000)]}}, "[{}" + ",{}" * 200_000 + "]"),
    "a long choice": ({"items": {"enum": [[0] * 500 + [i] for i in range(500)]}}, json.dumps([[0] * 500] * 600)),
    "long numbers": ({"anyOf": [{"multipleOf": 7}] * 2000}, "1" + "3" * 900_000),
}


@pytest.mark.parametrize("name", NO_END)
def test_the_pure_engine_ends(pure: Make, name: str) -> None:
    schema, arguments = NO_END[name]
    tool = pure(schema)
    assert tool.problem is None
    assert tool.verdict(arguments) is SCHEMA
    assert tool.fault(arguments)


def test_a_check_that_was_given_up_says_so_and_what_to_do(pure: Make) -> None:
    tool = pure(TWICE)
    assert tool.verdict(nested(8)) is OK
    assert tool.verdict(nested(30)) is SCHEMA
    assert tool.fault(nested(30)) == (
        "the check was given up, as it takes too long or nests too deep: "
        "install the extra `fast`, or simplify the schema"
    )


def test_what_is_long_but_plain_is_checked_by_the_pure_engine(pure: Make) -> None:
    row = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}, "required": ["id"]}
    tool = pure({"type": "array", "items": {**row, "additionalProperties": False}})
    rows = [{"id": 100, "name": "a name"}] * 10_000
    assert tool.verdict(json.dumps(rows)) is OK
    assert tool.verdict(json.dumps([*rows, {}])) is SCHEMA


def test_a_huge_schema_with_references_is_for_neither_engine(make: Make) -> None:
    huge = {"$ref": "#/$defs/x", "$defs": {"x": {"anyOf": [{"type": "null"}] * 20_000}}}
    problems = "more than 20,000 subschemas", "without the extra `fast`"
    assert any(words in str(make(huge).problem) for words in problems)


def test_a_huge_schema_is_not_for_the_pure_engine(pure: Make) -> None:
    assert pure({"anyOf": [{"type": "null"}] * 1000}).problem is None
    for huge in ({"anyOf": [{"type": "null"}] * 9000}, {"prefixItems": [True] * 9000}):
        assert pure(huge).problem == "the schema is larger than can be checked without the extra `fast`"


def test_deep_arguments_under_a_recursive_schema_do_not_crash(make: Make) -> None:
    tool = make({"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#"}}]})
    assert tool.verdict("[" * 20 + "]" * 20) is OK
    assert tool.verdict("[" * 128 + "1" + "]" * 128) is SCHEMA
    assert tool.fault("[" * 128 + "1" + "]" * 128)


# --- patterns --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"^\d+$", "12", "\u0663"),
        (r"^a$", "a", "a\n"),
        (r"^.$", "a", "\u2028"),
        (r"^\w$", "_", "é"),
        (r"^\s$", "\xa0", "a"),
        (r"^\S$", "a", "\xa0"),
        (r"^[^\s]$", "a", "\ufeff"),
        (r"^\/[\w-]+$", "/a-b", "a"),
        (r"^[[a&&b]$", "[", "x"),
        (r"^(?<year>\d{4})-\d\d$", "2024-01", "24-01"),
        (r"^\u{41}\u0042\cJ$", "AB\n", "AB"),
        (r"^[a-z0-9]+(?:-[a-z0-9]+)*$", "a-b-c9", "a--b"),
        (r"^(?:[a-z0-9-]+\.)+[a-z]{2,}$", "a.b.com", "a..com"),
        (r"^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.|$)){4}$", "10.0.0.1", "10.0.0.256"),
        (r"^(?=.*[A-Z]).{3,}$", "abC", "abc"),
        ("b", "abc", "a"),
        (r"\W", "é", "a"),
        (r"[^\w]b", "éb", "ab"),
        ("a|b", "xb", "x"),
    ],
)
def test_patterns_are_those_of_ecma_262(make: Make, pattern: str, good: str, bad: str) -> None:
    tool = make({"pattern": pattern, "patternProperties": {pattern: {"type": "null"}}, "additionalProperties": False})
    assert tool.problem is None
    assert [tool.verdict(json.dumps(good)), tool.verdict(json.dumps(bad))] == [OK, SCHEMA]
    assert [tool.verdict(json.dumps({good: None})), tool.verdict(json.dumps({bad: None}))] == [OK, SCHEMA]


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "^(a|a)*$",
        "^(a?a)*$",
        "^(([a-z])+.)+[A-Z]$",
        "(?:a|aa)+$",
        "(?=(a+)+$)a",
        "^(?:a?a*)*$",
        "^((a|b|ab)*c?)*$",
    ],
)
@pytest.mark.usefixtures("may_not_hang")
def test_a_pattern_takes_no_exponential_time(make: Make, pattern: str) -> None:
    tool = make({"type": "string", "pattern": pattern})
    verdict = tool.verdict(json.dumps("a" * 2000 + "!"))
    assert verdict is SCHEMA or "repeats inside a repeat" in str(tool.problem)


def test_a_long_text_is_not_tried_by_the_pure_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "_fast_engine", lambda: None)
    long = json.dumps("a" * 5000)
    assert ToolSchema(b'{"pattern":"^a+$"}').verdict(long) is OK  # linear: any length
    for schema in (b'{"pattern":"a+a*"}', b'{"not":{"pattern":"b+b*"}}'):
        assert ToolSchema(schema).verdict(long) is SCHEMA
        assert "was given up" in ToolSchema(schema).fault(long)


# --- privacy, memory, start-up ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "null"},
        {"enum": [1]},
        {"additionalProperties": False},
        {"additionalProperties": {"type": "null"}},
        {"propertyNames": {"maxLength": 1}},
        {"unevaluatedProperties": False},
        {"maxProperties": 0},
        {"not": {}},
        {"anyOf": [{"type": "null"}, {"required": ["x"]}]},
        {"properties": {"known": {"properties": {"deep/er": False}}}},
        {"patternProperties": {"s": {"items": {"type": "null"}}}},
        False,
    ],
    ids=str,
)
def test_a_fault_prints_nothing_of_the_arguments(make: Make, schema: Any) -> None:
    arguments = '{"secretkey":["secretvalue",4711],"known":{"deep/er":"secretvalue"}}'
    tool = make(schema)
    assert tool.verdict(arguments) is SCHEMA
    assert not any(word in tool.fault(arguments) for word in ("secret", "4711"))


def test_a_path_names_what_the_schema_names(make: Make) -> None:
    tool = make({"properties": {"a/b": {"additionalProperties": {"items": {"type": "null"}}}}})
    assert tool.fault('{"a/b":{"secret":[null,1]}}') == "'type' of the schema is not met at /a~1b/*/1"


def test_a_fault_is_the_same_on_every_run(make: Make) -> None:
    tool = make({"additionalProperties": {"type": "null"}})
    assert {tool.fault(json.dumps({str(i): 1 for i in range(9)})) for _ in range(5)} == {
        "'type' of the schema is not met at /*"
    }


def test_memory_is_bounded(make: Make) -> None:
    tool = make(REPORT)
    for number in range(12_000):
        tool.verdict(f'{{"region":"{number}"}}')
    tool.verdict(json.dumps("x" * 1_000_000))
    assert sum(map(len, tool.known)) <= MEMO_CHARACTERS
    assert tool_schema(dumped(REPORT)) is tool_schema(dumped(REPORT))


def test_nothing_heavy_is_imported_before_something_is_not_sure() -> None:
    code = (
        "import sys; from converter.schemas import *; parse_verdict('{}');"
        "heavy = {'jsonschema', 'jsonschema_rs', 'referencing'};"
        """tool = ToolSchema(b'{"type":"object","properties":{"a":{"type":"integer"}}}');"""
        "print(tool.problem, heavy & sys.modules.keys() or 'none');"
        """print(tool.verdict('{"a":1}').value, heavy & sys.modules.keys() <= {'jsonschema_rs'});"""
        """print(tool.fault('{"a":""}') != '', heavy & sys.modules.keys() >= {'jsonschema', 'referencing'})"""
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["None", "none", "ok", "True", "True", "True"]


# --- strict mode -----------------------------------------------------------------------------------------------------


def closed(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        **more,
    }


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (REPORT, True),
        (closed({}), True),
        (closed({"a": closed({"b": {"type": ["string", "null"]}})}), True),
        (closed({"a": {"type": "array", "items": closed({})}}), True),
        (closed({"a": {"anyOf": [closed({}), {"type": "null"}]}}), True),
        (closed({"a": {"$ref": "#/$defs/x"}}, **{"$defs": {"x": closed({})}}), True),
        (closed({"a": {"enum": ["x"]}, "default": {"type": "string", "default": {"type": "object"}}}), True),
        ({"type": "object", "properties": {}}, False),
        (closed({"a": {"type": "string"}}, required=[]), False),
        (closed({"a": {"type": "string"}}, additionalProperties=True), False),
        (closed({"a": {"type": "string"}}, additionalProperties={"type": "string"}), False),
        (closed({"a": {"type": "object"}}), False),
        (closed({"a": {"type": ["object", "null"]}}), False),
        (closed({"a": {"type": "array", "items": {"type": "object"}}}), False),
        (closed({"a": {"type": "array"}}), False),
        (closed({"a": {"anyOf": [{"type": "object"}, {"type": "null"}]}}), False),
        (closed({"a": {"$ref": "#/$defs/x"}}, **{"$defs": {"x": {"type": "object"}}}), False),
        (closed({"a": {}}), False),
        (closed({"a": True}), False),
        (closed({"a": None}), False),
        (closed({"a": {"type": "string"}}, patternProperties={"x": {"type": "string"}}), False),
        ({"type": "string"}, False),
        ({"anyOf": [closed({})]}, False),
        ({}, False),
        (True, False),
        (b"null", False),
        (b"{", False),
    ],
    ids=lambda value: ascii(value)[:80],
)
def test_strict_mode_wants_every_object_closed(schema: Any, strict: bool) -> None:
    assert strict_qualifies(dumped(schema)) is strict
