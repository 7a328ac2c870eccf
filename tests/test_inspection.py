"""Records to look at: whole sheets, as a user reads them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import USER, USER_ITEM, asks, call, completion, function_call, output, response, said, tool

from converter import Options
from converter.inspection import prepare
from converter.outcome import Converted, Rejected


def sheet(record, line=7, **options):
    text = record if isinstance(record, bytes) else json.dumps(record).encode()
    [seen], outcome = prepare(Options(**options))(line, text)
    assert isinstance(outcome, Converted | Rejected)
    return seen.shown("log")


@pytest.fixture(autouse=True)
def columns(monkeypatch):
    """A terminal of 94 columns."""
    monkeypatch.setenv("COLUMNS", "94")


SHEETS = {
    "a request": (
        {"messages": [USER, asks(call()), tool()]},
        """\
log:7: chat-request, written
  /messages/0                                  |   /input/0
    message  user                              |     message  user
    x                                          | =   x
  /messages/1/tool_calls/0                     |   /input/1
    function_call  completed  ok               |     function_call  completed  ok
    f  call_1                                  | =   f  call_1
    {}                                         | =   {}
  /messages/2                                  |   /input/2
    function_call_output                       |     function_call_output
    call_1                                     | =   call_1
    ok                                         | =   ok
""",
    ),
    "an answer without a schema": (
        completion(asks(call(name="g")) | {"content": "z"}, "tool_calls"),
        """\
log:7: completion, written
  /choices/0/message                           |   /output/0
    message  assistant                         |     message  assistant
    z                                          | =   z
  /choices/0/message/tool_calls/0              |   /output/1
    function_call  completed  ok  unchecked    |     function_call  completed  ok  unchecked
    g  call_1                                  | =   g  call_1
    {}                                         | =   {}
  unchecked at /choices/0/message/tool_calls/0/function/arguments: g
""",
    ),
    "a refused one": (
        [USER_ITEM, function_call("[]", name="h"), output()],
        """\
log:7: item-list, refused
  /0
    message  user
    x
  /1
    function_call  completed  arguments_schema
    h  call_1
    []
  /2
    function_call_output
    call_1
    ok
  refused: arguments_schema at /1/arguments: 'type' of the schema is not met at the top (--tools gives another schema, \
--allow arguments_schema writes the call as it is)
""",
    ),
    "a text as input": (
        {"instructions": "be kind", "input": "x"},
        """\
log:7: responses-request, written
    (made)                                     |   /messages/0
                                               |     message  system
                                               |     be kind
  /input                                       |   /messages/1
    message  user                              |     message  user
    x                                          | =   x
""",
    ),
    "what is moved, and what is left out": (
        [USER_ITEM, function_call(), said("z") | {"type": "message"}, {"type": "reasoning", "summary": []}, output()],
        """\
log:7: item-list, written
  /0                                           |   /0
    message  user                              |     message  user
    x                                          | =   x
  /1                                           |   /1/tool_calls/0
    function_call  completed  ok               |     function_call  completed  ok
    f  call_1                                  | =   f  call_1
    {}                                         | =   {}
  /2                                           |   /1
    message  assistant                         |     message  assistant
    z                                          | =   z
  /3                                           |     (left out)
    reasoning                                  |
  /4                                           |   /2
    function_call_output                       |     function_call_output
    call_1                                     | =   call_1
    ok                                         | =   ok
  moved at /2: text behind calls of its turn
  dropped at /3: reasoning (--reasoning keep carries it)
""",
    ),
    "nothing that is known": (
        {"foo": 1},
        """\
log:7: refused
  refused: unknown_shape at the top: an object with the keys foo; known are chat-request, message-list, completion, \
responses-request, item-list, response (--from says which one a log holds, --at where the value stands)
""",
    ),
}
KNOWN = {"tools": {"f": True, "h": {"type": "object"}}}


@pytest.mark.parametrize("name", SHEETS)
def test_a_sheet(name):
    record, expected = SHEETS[name]
    assert sheet(record, **KNOWN) == expected


def test_what_a_repair_changed_is_shown_on_both_sides():
    asked = [USER, asks(call({"a": 1}), call(id="", name="f")), tool(), tool("")]
    found = sheet({"messages": asked}, repair=["stringify-arguments", "fill-call-ids"], **KNOWN).splitlines()
    marks = [(left.strip(), right.split()) for left, _, right in (line.partition("|") for line in found)]
    assert ('{"a": 1}', ["≠", '{"a":', "1}"]) in marks  # an object before, and a string now
    [right] = [right for left, right in marks if left == "f"]
    assert right[:2] == ["≠", "f"]
    assert right[2].startswith("call_")


def test_places_are_those_of_the_record():
    """Where the log of a session wraps its items, and where items were left out."""
    session = [{"type": "response_item", "payload": item} for item in (USER_ITEM, function_call(), output())]
    text = b"[" + b",".join(json.dumps(one).encode() for one in ({"type": "event_msg", "payload": {}}, *session)) + b"]"
    assert "\n  /2/payload " in sheet(text, **KNOWN)


def test_the_answer_of_a_pair_knows_the_tools_of_its_request():
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "required": ["a"]}}}]
    record = {"request": {"messages": [USER], "tools": tools}, "response": completion(asks(call()))}
    found = sheet(record).splitlines()
    assert found[0] == "log:7: chat-request and completion, refused"
    assert found[4:6] == [
        "  /response/choices/0/message/tool_calls/0",
        "    function_call  completed  arguments_schema",
    ]


def test_a_schema_that_cannot_be_used_checks_nothing():
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "strange"}}}]
    assert "function_call  completed  ok  unchecked\n" in sheet({"messages": [USER, asks(call())], "tools": tools})


def test_long_words_and_many_places_are_cut():
    strange = {f"field_{number}": 1 for number in range(9)}
    found = sheet({"messages": [{"role": "user", "content": "xy" * 1000, **strange}]})
    assert found.count("xy") < 140
    assert "…" in found
    assert max(map(len, found.splitlines()[:-1])) <= 94
    assert "/messages/0/field_4 and 4 more" in found
    assert "field_5" not in found


def test_wide_characters_take_two_columns():
    [row] = [line for line in sheet({"messages": [{"role": "user", "content": "日本語"}]}).splitlines() if "日" in line]
    assert row == f"    日本語{' ' * 37}| =   日本語"


def test_a_system_message_that_is_made_takes_no_other_place():
    found = sheet({"instructions": "hi", "input": "hi"}).splitlines()
    assert [line[:12].strip() for line in found if "/messages" in line] == ["(made)", "/input"]


@pytest.mark.parametrize("key", ["content", "\\udfff"])
def test_lone_surrogates_are_shown_as_they_are_spelled(key):
    text = b'{"messages":[{"role":"user","content":"hi \\ud800","%b":"\\ud800 yo"},{"role":"assistant","content":"z"}]}'
    found = sheet(text % key.encode())
    assert found.startswith("log:7: chat-request, written\n")
    assert found.count("\\ud800") >= 2
    assert "lone-surrogate-" not in found


@pytest.mark.parametrize(
    ("shape", "record"),
    [
        ("chat-request", {"messages": [USER]}),
        ("message-list", [USER]),
        ("responses-request", {"input": [USER_ITEM]}),
        ("item-list", [USER_ITEM]),
        ("completion", completion(said("x"))),
        (
            "response",
            response({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}),
        ),
        ("pair", {"request": {"messages": [USER]}, "response": completion(said("x"))}),
    ],
)
def test_a_shape_that_is_said_is_that_of_the_source(shape, record):
    found = sheet(record, shape=shape)
    assert found.count("= ") >= 1
    assert "(left out)" not in found
    assert "(made)" not in found


@pytest.mark.parametrize("text", [b"\xff\\udc00", b'{"a":"\\ud800', b'"\\ud800"'])
def test_what_is_no_record_has_a_sheet_of_reasons_alone(text):
    assert sheet(text).startswith("log:7: refused\n  refused: ")


def test_reasons_do_not_steer_a_terminal():
    found = sheet({"messages": [USER], "\x1b[2J\n": 1}, strict=True)
    assert "refused: loss at /\\x1b[2J\\n: " in found


def test_nothing_steers_a_terminal():
    found = sheet({"messages": [{"role": "user", "content": "a\x1b[2J\nb"}]})
    assert "a\\x1b[2J\\nb" in found
    assert found.count("\n") == 4


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
    assert sheet(record, line=3).startswith("log:3: ")
