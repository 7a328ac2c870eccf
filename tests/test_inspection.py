"""Records to look at: whole sheets, as a user reads them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import USER, USER_ITEM, asks, call, completion, function_call, output, response, said, tool

from converter import Options
from converter.inspection import prepare
from converter.outcome import Converted, Rejected

KNOWN = {"tools": {"f": {"type": "object", "required": ["a"]}}}


def sheet(record, line=7, **options):
    text = record if isinstance(record, bytes) else json.dumps(record).encode()
    [seen], outcome = prepare(Options(**options))(line, text)
    assert isinstance(outcome, Converted | Rejected)
    return seen.shown()


def read(text):
    """The lines of a sheet, their columns parted by one bar whatever their widths are."""
    return ["|".join(filter(None, (cell.strip() for cell in line.split("  ")))) for line in text.splitlines()]


def test_columns_are_as_wide_as_they_need_to_be():
    record = {"messages": [USER, asks(call()), tool()]}
    assert sheet(record, tools={"f": True}) == (
        "line 7: chat-request, written\n"
        "  /messages/0               message user                     x   /input/0  message user          completed"
        "  not_function_call  =\n"
        "  /messages/1/tool_calls/0  function_call         f  call_1  {}  /input/1  function_call         completed"
        "  ok                 =\n"
        "  /messages/2               function_call_output     call_1  ok  /input/2  function_call_output  completed"
        "  not_function_call  =\n"
    )


ROWS = {
    "an answer": (
        completion(asks(call(arguments='{"a": 1}')) | {"content": "z"}, "tool_calls"),
        [
            "line 7: completion, written",
            "/choices/0/message|message assistant|z|/output/0|message assistant|completed|not_function_call|=",
            '/choices/0/message/tool_calls/0|function_call|f|call_1|{"a": 1}|/output/1|function_call|completed|ok|=',
        ],
    ),
    "a refused one": (
        [USER_ITEM, function_call(), output()],
        [
            "line 7: item-list, refused",
            "/0|message user|x|completed|not_function_call",
            "/1|function_call|f|call_1|{}|completed|arguments_schema",
            "/2|function_call_output|call_1|ok|completed|not_function_call",
            "refused: arguments_schema at /1/arguments: …",
        ],
    ),
    "a text as input": (
        {"instructions": "be kind", "input": "x"},
        [
            "line 7: responses-request, written",
            "/messages/0|message system|completed|not_function_call|be kind",
            "/input|message user|x|/messages/1|message user|completed|not_function_call|=",
        ],
    ),
    "nothing that is known": (
        {"foo": 1},
        ["line 7: of no known shape, refused", "refused: unknown_shape at the top: …"],
    ),
    "no JSON": (b"{cut", ["line 7: of no known shape, refused", "refused: invalid_json at the top: …"]),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_sheet(name):
    record, expected = ROWS[name]
    found = read(sheet(record, **KNOWN))
    assert len(found) == len(expected)
    for line, wanted in zip(found, expected, strict=True):
        assert line == wanted or (wanted.endswith("…") and line.startswith(wanted[:-1]))


def test_what_has_changed_is_shown_on_both_sides():
    record = {"messages": [USER, asks(call(arguments={"a": 1})), tool()]}
    found = read(sheet(record, repair=["stringify-arguments"], **KNOWN))
    assert found[2].startswith('/messages/1/tool_calls/0|function_call|f|call_1|{"a": 1}|/input/1|function_call')
    assert "repaired at /messages/1/tool_calls/0/function/arguments: " in found[4]


def test_the_answer_of_a_pair_knows_the_tools_of_its_request():
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "required": ["a"]}}}]
    record = {"request": {"messages": [USER], "tools": tools}, "response": completion(asks(call()))}
    found = read(sheet(record))
    assert found[0] == "line 7: chat-request, refused"
    assert found[2] == "/response/choices/0/message/tool_calls/0|function_call|f|call_1|{}|completed|arguments_schema"


def test_an_item_that_is_moved_is_found_again():
    items = [USER_ITEM, function_call(), said("z") | {"type": "message"}, output()]
    found = read(sheet(items, tools={"f": True}))
    assert any(line.startswith("/2|message assistant|z|/1|message assistant") and line.endswith("=") for line in found)
    assert "moved at /2: text behind calls of its turn" in found


def test_long_words_and_many_places_are_cut():
    strange = {f"field_{number}": 1 for number in range(9)}
    found = sheet({"messages": [{"role": "user", "content": "x" * 1000 + "\x1b\n", **strange}]})
    assert "x" * 59 + "…" in found
    assert "x" * 60 not in found
    assert "/messages/0/field_4 and 4 more" in found
    assert "field_5" not in found


def test_nothing_steers_a_terminal():
    found = sheet({"messages": [{"role": "user", "content": "a\x1b[2J\nb"}]})
    assert "a\\x1b[2J\\nb" in found
    assert found.count("\n") == 2


WORDS = [
    "messages",
    "input",
    "output",
    "role",
    "content",
    "tool_calls",
    "function",
    "arguments",
    "id",
    "type",
    "choices",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_whatever_the_record_is_there_is_a_sheet(record):
    assert sheet(record, line=3).startswith("line 3: ")


def test_all_other_bodies():
    for record, name in (
        (response(function_call()), "response"),
        ([USER, asks(call())], "message-list"),
        ({"input": [USER_ITEM]}, "responses-request"),
    ):
        assert read(sheet(record, tools={"f": True}))[0] == f"line 7: {name}, written"
