"""The library as a migration script uses it: what goes in, what comes out, what is raised, what is never touched."""

import copy
import json
import logging
import pickle
import socket
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from types import MappingProxyType

import pytest
from strategies import USER, USER_ITEM, asks, call, function_call, output, said, tool

import converter
from converter import (
    Converted,
    Notice,
    Options,
    Refused,
    Rejected,
    Verdict,
    convert_lines,
    replay_gate,
    to_chat,
    to_responses,
)
from converter.options import REPAIRS
from converter.outcome import ALLOWABLE

REQUEST = {"model": "m", "messages": [USER, asks(call('{"a": 0.10}')), tool()], "seed": 7}
ITEMS = [USER_ITEM, function_call('{"a": 0.10}'), output()]
SCHEMA = {
    "type": "object",
    "properties": {"region": {"enum": ["apac", "emea"]}},
    "required": ["region"],
    "additionalProperties": False,
}
GOOD = {"type": "function_call", "status": "completed", "arguments": '{"region":"apac"}'}


def test_the_front_door():
    assert len(set(converter.__all__)) == len(converter.__all__)
    assert all(getattr(converter, name) is not None for name in converter.__all__)
    assert converter.SPECIFICATION == "2026-04-24"
    assert resources.files("converter").joinpath("py.typed").is_file()


# ---------------------------------------------------------------- one record


@pytest.mark.parametrize(("convert", "record"), [(to_responses, REQUEST), (to_chat, ITEMS)])
def test_every_form_of_input_gives_the_same(convert, record):
    text = json.dumps(record)
    expected = convert(record)
    pretty = json.dumps(record, indent=2)
    for same in (
        text,
        text.encode(),
        bytearray(text.encode()),
        memoryview(text.encode()),
        f"\ufeff{text}\r\n",
        f"\n \t{text} ",
        pretty,
    ):
        result = convert(same)
        assert (result.body, result.notices) == (expected.body, expected.notices)
        assert b"\n" not in result.json
    assert convert(text).json == expected.json


@pytest.mark.parametrize(("convert", "record"), [(to_responses, REQUEST), (to_chat, ITEMS)])
def test_blanks_behind_a_byte_order_mark_say_nothing(convert, record):
    assert convert(f"\ufeff \n{json.dumps(record)}").body == convert(record).body


def test_the_result():
    result = to_responses(REQUEST)
    assert isinstance(result, Converted)
    assert isinstance(result.json, bytes)
    assert result.body == json.loads(result.json)
    assert result.body["input"][1]["arguments"] == '{"a": 0.10}'
    assert result.notices == [
        Notice("dropped", ["/seed"], ""),
        Notice("unchecked", ["/messages/1/tool_calls/0/function/arguments"], "f"),
    ]


@pytest.mark.parametrize(("convert", "record"), [(to_responses, REQUEST), (to_chat, ITEMS)])
def test_the_record_is_never_changed(convert, record):
    before = copy.deepcopy(record)
    body = convert(record, Options(repair=set(REPAIRS))).body
    if isinstance(body, dict):
        body.clear()
    assert record == before


def test_tuples_are_lists():
    assert to_responses(({**USER},)).body == [USER_ITEM]
    assert to_responses({"messages": (USER,)}).body["input"] == [USER_ITEM]


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {1, 2}, b"x", object(), 1j, MappingProxyType({})], ids=str
)
def test_what_json_cannot_hold_is_refused(value):
    with pytest.raises(Refused) as refused:
        to_responses({"messages": [USER], "temperature": value})
    sentence = "invalid_json at the top: a value that JSON cannot hold, expected what a JSON parser gives"
    assert str(refused.value) == sentence


def test_a_circle_is_refused():
    circle = {"messages": [USER]}
    circle["metadata"] = circle
    with pytest.raises(Refused, match=r"^invalid_json at the top: "):
        to_responses(circle)


def test_half_of_a_surrogate_pair_comes_through():
    record = [{"role": "user", "content": "cut \ud83d"}]
    result = to_responses(record)
    assert result.body == [{"type": "message", "role": "user", "content": "cut \ud83d"}]
    assert b"\\ud83d" in result.json
    assert to_chat(result.body).body == record
    assert to_responses(json.dumps(record)).json == result.json


def test_refused():
    with pytest.raises(Refused) as refused:
        to_responses([asks(call({"a": 1}), call([])), tool(), tool("call_9")])
    reasons = refused.value.reasons
    assert [(reason.code, reason.path) for reason in reasons] == [
        ("arguments_type", "/0/tool_calls/0/function/arguments"),
        ("arguments_type", "/0/tool_calls/1/function/arguments"),
    ]
    assert str(refused.value) == "; ".join(map(str, reasons))
    assert str(reasons[1]) == "arguments_type at /0/tool_calls/1/function/arguments: an array, not a JSON string"


# ---------------------------------------------------------------- many records

LINES = [
    b'{"messages":[{"role":"user","content":"x"}],"seed":1}\n',
    b"\r\n",
    b"   \n",
    b"not json\r\n",
    b'[{"role":"user","content":"\xff"}]\n',
    b'[{"type":"message","role":"user","content":"x"}]',
    b'\xef\xbb\xbf[{"role":"user","content":"y"}]\r\n',
    b'{"a":  1}\n',
]


def test_convert_lines():
    outcomes = list(convert_lines(LINES, "to-responses"))
    assert [outcome.line for outcome in outcomes] == [1, 4, 5, 6, 7, 8]
    assert [type(outcome) for outcome in outcomes] == [Converted, Rejected, Rejected, Converted, Converted, Rejected]
    first, second, third, fourth, fifth, last = outcomes
    assert first.notices == [Notice("dropped", ["/seed"])]
    assert second.reasons[0].code == "invalid_json"
    assert second.record == "not json"
    assert third.reasons[0].code == "invalid_utf8"
    assert third.record == '[{"role":"user","content":"\\xff"}]'
    assert fourth.json == LINES[5]
    assert fifth.body == [{"type": "message", "role": "user", "content": "y"}]
    assert last.record == {"a": 1}
    assert bytes(last.raw()) == b'{"a":  1}'


def test_convert_lines_takes_what_one_record_may_be():
    choice = {"index": 0, "delta": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    frames = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
    parsed, stream, unusable = convert_lines([[USER], frames, {"a": {1}}], "to-responses")
    assert parsed.json == to_responses([USER]).json
    assert stream.body["output"][0]["content"][0]["text"] == "hi"
    assert stream.json == to_responses(frames).json == to_responses(frames.encode()).json
    assert [(reason.code, unusable.line) for reason in unusable.reasons] == [("invalid_json", 3)]


@pytest.mark.parametrize("one", ['{"messages":[]}', b"{}", {"messages": []}])
def test_convert_lines_takes_no_single_record(one):
    with pytest.raises(ValueError, match="lines is one value, expected the lines of a log"):
        convert_lines(one, "to-responses")


def test_convert_lines_is_lazy_and_in_order():
    taken = []

    def lines():
        for number in range(1000):
            taken.append(number)
            yield b'[{"role":"user","content":"%d"}]' % number

    outcomes = convert_lines(lines(), "to-responses")
    assert next(outcomes).body[0]["content"] == "0"
    assert len(taken) == 1
    assert [outcome.body[0]["content"] for outcome in outcomes] == [str(number) for number in range(1, 1000)]


def test_a_line_does_not_change_its_neighbours():
    alone = [list(convert_lines([line], "to-responses")) for line in LINES]
    together = list(convert_lines(LINES, "to-responses"))
    for number, outcomes in enumerate(alone, 1):
        for outcome in outcomes:
            [same] = [one for one in together if one.line == number]
            outcome.line = number
            assert outcome == same


def test_refused_records_can_be_fed_back():
    line = b'[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":{"a": 0.10}}}]}]'
    [rejected] = convert_lines([line], "to-responses")
    [converted] = convert_lines([bytes(rejected.raw())], "to-responses", Options(repair={"stringify-arguments"}))
    assert converted.body[0]["arguments"] == '{"a": 0.10}'


def test_outcomes_travel_between_processes():
    options = Options(tools={"f": SCHEMA}, allow={"status"})
    values = [*convert_lines(LINES, "to-responses", options), options]
    assert pickle.loads(pickle.dumps(values)) == values
    with pytest.raises(Refused) as refused:
        to_responses([1])
    assert pickle.loads(pickle.dumps(refused.value)).reasons == refused.value.reasons


def test_threads_do_not_disturb_each_other():
    lines = [
        json.dumps([asks(call(f'{{"region":"{region}"}}')), tool()]).encode() for region in ("apac", "x", "emea", "y")
    ] * 50
    options = Options(tools={"f": SCHEMA})
    expected = list(convert_lines(lines, "to-responses", options))
    with ThreadPoolExecutor(8) as pool:
        for got in pool.map(lambda _: list(convert_lines(lines, "to-responses", options)), range(16)):
            assert got == expected


# ---------------------------------------------------------------- the replay gate


def test_verdicts_in_their_order():
    assert [verdict.value for verdict in Verdict] == [
        "namespaced",
        "not_function_call",
        "status",
        "arguments_type",
        "arguments_parse",
        "arguments_schema",
        "ok",
    ]
    item = {"type": "acme:function_call", "status": "in_progress", "arguments": None}
    steps = [
        ("type", "function_call_output", Verdict.NOT_FUNCTION_CALL),
        ("type", "function_call", Verdict.STATUS),
        ("status", "completed", Verdict.ARGUMENTS_TYPE),
        ("arguments", '{"region":"apac"', Verdict.ARGUMENTS_PARSE),
        ("arguments", '{"region":"global"}', Verdict.ARGUMENTS_SCHEMA),
        ("arguments", '{"region":"apac"}', Verdict.OK),
    ]
    assert replay_gate(item, SCHEMA) is Verdict.NAMESPACED
    for key, value, verdict in steps:
        item[key] = value
        assert replay_gate(item, SCHEMA) is verdict


VERDICTS = [
    ({}, Verdict.NAMESPACED),
    ({"type": None}, Verdict.NAMESPACED),
    ({"type": 7}, Verdict.NAMESPACED),
    ({"type": ":"}, Verdict.NAMESPACED),
    ({"type": ""}, Verdict.NOT_FUNCTION_CALL),
    ({"type": "message"}, Verdict.NOT_FUNCTION_CALL),
    ({"type": "reasoning"}, Verdict.NOT_FUNCTION_CALL),
    ({"type": "Function_Call"}, Verdict.NOT_FUNCTION_CALL),
    ({**GOOD, "status": None}, Verdict.STATUS),
    ({**GOOD, "status": "COMPLETED"}, Verdict.STATUS),
    ({**GOOD, "status": ["completed"]}, Verdict.STATUS),
    ({key: value for key, value in GOOD.items() if key != "status"}, Verdict.STATUS),
    ({key: value for key, value in GOOD.items() if key != "arguments"}, Verdict.ARGUMENTS_TYPE),
    ({**GOOD, "arguments": {"region": "apac"}}, Verdict.ARGUMENTS_TYPE),
    ({**GOOD, "arguments": b"{}"}, Verdict.ARGUMENTS_TYPE),
    ({**GOOD, "arguments": ""}, Verdict.ARGUMENTS_PARSE),
    ({**GOOD, "arguments": "NaN"}, Verdict.ARGUMENTS_PARSE),
    ({**GOOD, "arguments": '{"region":"apac"}{}'}, Verdict.ARGUMENTS_PARSE),
    ({**GOOD, "arguments": '{"region":"x","region":"apac"}'}, Verdict.ARGUMENTS_PARSE),
    ({**GOOD, "arguments": "{'region':'apac'}"}, Verdict.ARGUMENTS_PARSE),
    ({**GOOD, "arguments": '\ufeff{"region":"apac"}'}, Verdict.ARGUMENTS_PARSE),
    ({**GOOD, "arguments": "[]"}, Verdict.ARGUMENTS_SCHEMA),
    ({**GOOD, "arguments": "null"}, Verdict.ARGUMENTS_SCHEMA),
    ({**GOOD, "arguments": ' {"region"\t:\n"apac"} '}, Verdict.OK),
    ({**GOOD, "arguments": '{"region":"\\u0061pac"}'}, Verdict.OK),
]


@pytest.mark.parametrize(("item", "verdict"), VERDICTS, ids=range(len(VERDICTS)))
def test_verdict(item, verdict):
    before = copy.deepcopy(item)
    assert replay_gate(item, SCHEMA) is verdict
    assert item == before


def test_schemas_of_the_gate():
    assert replay_gate(GOOD, True) is Verdict.OK
    assert replay_gate(GOOD, False) is Verdict.ARGUMENTS_SCHEMA
    assert replay_gate(GOOD, {}) is Verdict.OK
    for unusable in ({"type": "nonsense"}, {"$ref": "https://example.test/schema.json"}):
        with pytest.raises(ValueError, match="the schema cannot be used: "):
            replay_gate(GOOD, unusable)
        assert replay_gate({**GOOD, "status": "failed"}, unusable) is Verdict.STATUS


@pytest.mark.parametrize("item", ["x", None, [], 1])
def test_what_is_no_item_has_no_type_of_the_core(item):
    assert replay_gate(item, None) is Verdict.NAMESPACED


def test_a_definition_is_no_schema():
    """As a schema it would ask for nothing, and let every call through."""
    for definition in ({"name": "f", "parameters": {}}, {"type": "function", "function": {"name": "f"}}):
        with pytest.raises(ValueError, match="the definition of a tool, expected its parameters"):
            replay_gate(GOOD, definition)
    assert replay_gate(GOOD, {"properties": {"name": {}, "parameters": {}}}) is Verdict.OK


# ---------------------------------------------------------------- options

BAD_OPTIONS = [
    ({"allow": {"limit"}}, "allow does not know limit; it knows arguments_parse, "),
    ({"allow": {"x", "a"}}, "allow does not know a, x; "),
    ({"allow": "status"}, "allow is one string, expected a set of names"),
    ({"repair": {"fix"}}, "repair does not know fix; it knows developer-to-system, "),
    ({"repair": "lift-media"}, "repair is one string, expected a set of names"),
    ({"reasoning": "maybe"}, "reasoning is not one of drop, keep, summary"),
    ({"target": "azure"}, "target is not one of core, openai"),
    ({"shape": "nonsense"}, "nonsense"),
    ({"at": "/body"}, "at is one string, expected a list of JSON Pointers"),
    ({"at": ["body"]}, "at holds no JSON Pointer, expected one like /body"),
    ({"accept_loss": "/seed"}, "accept_loss is one string, expected a list of JSON Pointers"),
    ({"accept_loss": ["seed"]}, "accept_loss holds no JSON Pointer, expected one like /seed"),
]


@pytest.mark.parametrize(("fields", "sentence"), BAD_OPTIONS, ids=range(len(BAD_OPTIONS)))
def test_options_that_make_no_sense(fields, sentence):
    with pytest.raises(ValueError, match=sentence):
        to_responses([USER], Options(**fields))


BAD_TOOLS = [
    {"f": {"type": "nonsense"}},
    {"f": "x"},
    {"f": {"$ref": "https://example.test/a.json"}},
    [{"type": "function", "parameters": {}}],
    [{"type": "object", "required": ["a"]}],
    {"f": {"name": "f", "parameters": {"type": "object"}}},
    {"f": {"name": "f", "input_schema": {"type": "object"}}},
    {"f": {"type": "function", "function": {"name": "f", "parameters": {}}}},
    "tools.json",
    Path("tools"),
]


@pytest.mark.parametrize("tools", BAD_TOOLS, ids=range(len(BAD_TOOLS)))
def test_tools_that_cannot_be_used(tools):
    with pytest.raises(ValueError, match="tool"):
        to_responses([USER], Options(tools=tools))


def test_options_are_one_value():
    options = Options(allow=["status", "status"], repair=["lift-media"])
    assert options.allow == {"status"}
    assert options == Options(allow={"status"}, repair={"lift-media"})
    assert Options(allow=ALLOWABLE, repair=REPAIRS).repair == set(REPAIRS)
    with pytest.raises(AttributeError):
        options.strict = True


@pytest.mark.parametrize(
    "tools",
    [
        {"f": SCHEMA},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]},
        [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
        [{"type": "function", "name": "f", "parameters": SCHEMA}],
    ],
    ids=["schemas", "file", "chat", "responses"],
)
def test_tools_in_every_form(tools):
    options = Options(tools=tools)
    assert not to_responses([asks(call('{"region":"apac"}')), tool()], options).notices
    with pytest.raises(Refused, match="arguments_schema"):
        to_responses([asks(call('{"region":"global"}')), tool()], options)


def test_given_tools_go_before_the_records_own():
    record = {
        "messages": [asks(call('{"region":"apac"}')), tool()],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"maxProperties": 0}}}],
    }
    with pytest.raises(Refused, match="arguments_schema"):
        to_responses(record)
    assert to_responses(record, Options(tools={"f": SCHEMA})).notices == []


def test_a_shape_can_be_said():
    assert to_responses([], Options(shape="message-list")).body == []
    with pytest.raises(Refused, match="wrong_type at the top: "):
        to_responses([USER], Options(shape="completion"))


# ---------------------------------------------------------------- pure


def test_nothing_is_read_sent_or_logged(monkeypatch, caplog, capfd):
    def run():
        to_responses(
            {**REQUEST, "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]},
            Options(allow={"arguments_schema"}),
        )
        to_chat(ITEMS)
        list(convert_lines(LINES, "to-chat"))
        replay_gate(GOOD, {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"})
        with pytest.raises(Refused):
            to_responses(
                {
                    "messages": [asks(call()), tool()],
                    "tools": [
                        {
                            "type": "function",
                            "function": {"name": "f", "parameters": {"$ref": "https://example.test/s"}},
                        }
                    ],
                }
            )

    def forbidden(*arguments, **keywords):
        raise AssertionError("the library touched the world")

    run()  # imports what it needs
    with monkeypatch.context() as patch, caplog.at_level(logging.DEBUG):
        patch.setattr(socket, "socket", forbidden)
        patch.setattr("builtins.open", forbidden)
        patch.setattr("os.open", forbidden)
        run()
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


def test_said_texts_go_both_ways():
    record = [USER, said("y"), USER, asks(call()), tool()]
    assert to_chat(to_responses(record).body).body == record


# ---------------------------------------------------------------- call after call


def test_a_call_tells_nothing_of_the_calls_before_it():
    strict, loses = Options(strict=True), {"messages": [{"role": "user", "content": "x"}], "seed": 7}
    for _ in range(3):
        assert [notice.code for notice in to_responses(loses).notices] == ["dropped"]
        with pytest.raises(Refused, match="loss"):
            to_responses(loses, strict)
        with pytest.raises(Refused, match="invalid_json"):
            to_responses("{")


def test_tools_that_were_changed_between_two_calls_count_as_they_are():
    tools = {"f": {"type": "object"}}
    function = {"name": "f", "arguments": "{}"}
    call = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    options = Options(tools=tools)
    assert to_responses([call], options).json
    tools["f"]["required"] = ["a"]
    with pytest.raises(Refused, match="arguments_schema"):
        to_responses([call], options)


def test_tools_that_change_between_two_calls_are_those_of_the_second():
    record = {"messages": [USER, asks(call()), tool()]}
    options = Options(tools={"f": {"type": "object"}})
    assert to_responses(record, options).body == to_responses(record, options).body
    options.tools["f"]["required"] = ["a"]
    with pytest.raises(Refused, match="arguments_schema"):
        to_responses(record, options)
    del options.tools["f"]["required"]
    assert to_responses(record, options).notices == []


def test_tools_that_no_text_can_hold_are_read_in_each_call():
    record = {"messages": [USER]}
    options = Options(tools=[{"type": "function", "name": "f", "parameters": {}, "handler": print}])
    assert to_responses(record, options).body == to_responses(record, options).body


def test_calls_of_threads_do_not_disturb_each_other():
    records = [{"messages": [{"role": "user", "content": f"{number} " * 50}], "seed": number} for number in range(40)]
    expected = [to_responses(record) for record in records]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            assert list(pool.map(to_responses, records)) == expected
