"""What a log may hold that nobody would write on purpose: it is refused or named, and costs nothing but itself."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from converter import Options, Refused, convert_lines, to_chat, to_responses
from converter.convert import Session
from converter.files import from_bytes
from converter.records import records
from converter.report import reject_row

USER = {"role": "user", "content": "x"}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


def asks(call_id="c", name="f", arguments="{}"):
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def tells(call_id="c", **more):
    return {"role": "tool", "tool_call_id": call_id, "content": "y", **more}


def codes(convert, record, **options):
    with pytest.raises(Refused) as refused:
        convert(record, Options(**options))
    return [reason.code for reason in refused.value.reasons]


# ---------------------------------------------------------------- the quick ways and the rooms


def rooms(verb, options=None):
    """A session in which every record is walked through room by room."""
    session = Session(verb, options or Options())
    session.recalls, session.recall = {}, None
    return session


@given(st.text(min_size=1, max_size=80), st.sampled_from(["", "/:", "é"]))
def test_any_call_id_leads_to_the_same_on_every_way(call_id, tail):
    record = json.dumps({"messages": [USER, asks(call_id + tail), tells(call_id + tail)], "tools": TOOLS}).encode()
    session = Session("to-responses", Options())
    by_rooms = rooms("to-responses").outcome(1, record)
    assert [session.outcome(1, record) for _ in range(4)] == [by_rooms] * 4


@pytest.mark.parametrize("call_id", ["call_" + "a" * 40 + ":0", "a" * 65, "a" * 64, "-" * 56 + " "])
def test_a_call_id_costs_no_time_and_keeps_its_limit(call_id):
    record = {"messages": [USER, asks(call_id), tells(call_id)], "tools": TOOLS}
    if len(call_id) > 64:
        assert codes(to_responses, record) == ["limit"]
    else:
        item = to_responses(record).body["input"][1]
        assert item["call_id"] == call_id
        assert len(item["id"]) <= 64


def test_a_text_over_the_limit_is_no_shortcut():
    assert codes(to_responses, {"messages": [{"role": "user", "content": "a" * 10_485_761}]}) == ["limit"]


# ---------------------------------------------------------------- lone surrogates


@pytest.mark.parametrize(("field", "code"), [("arguments", "arguments_parse"), ("name", "limit"), ("call_id", "limit")])
def test_a_call_with_a_lone_surrogate_is_judged_by_what_it_holds(field, code):
    values = {"call_id": "c", "name": "f", "arguments": '{"a":"b"}', field: '{"a":"\ud800"}'}
    record = [USER, asks(**values), tells(values["call_id"])]
    pattern = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^[a-z0-9-]*$"}}}
    assert code in codes(to_responses, record, tools={"f": pattern})


def test_an_escaped_surrogate_inside_arguments_is_the_models_own_text():
    record = [USER, asks(arguments='{"a":"\\ud800"}'), tells()]
    assert to_responses(record).body[1]["arguments"] == '{"a":"\\ud800"}'


def test_pointers_spell_a_surrogate_as_its_escape():
    notices = to_responses({"messages": [{**USER, "content": "\udca7"}], "\ud800k": 1}).notices
    assert {notice.code: notice.paths for notice in notices} == {
        "dropped": ["/\\ud800k"],
        "odd": ["/messages/0/content"],
    }


# ---------------------------------------------------------------- junk where structure should be


@pytest.mark.parametrize("tools", [5, "x", [{"function": "x"}], [None], [[]], [{"type": "function", "name": 1}]])
@pytest.mark.parametrize("inner", [True, False])
def test_junk_in_allowed_tools(tools, inner):
    choice = {"type": "allowed_tools", **({"allowed_tools": {"tools": tools}} if inner else {"tools": tools})}
    assert to_responses({"messages": [USER], "tools": TOOLS, "tool_choice": choice}).notices[0].code == "dropped"
    flat = [{"type": "function", "name": "f", "parameters": {}}]
    assert to_chat({"input": "x", "tools": flat, "tool_choice": choice}).notices[0].code == "dropped"


@pytest.mark.parametrize("logprobs", ["abc", [1], [{"token": "a"}], {"a": 1}, 7])
def test_log_probabilities_that_are_none(logprobs):
    part = {"type": "output_text", "text": "a", "annotations": [], "logprobs": logprobs}
    message = {"type": "message", "id": "m", "status": "completed", "role": "assistant", "content": [part, part]}
    response = {"object": "response", "id": "r", "model": "m", "created_at": 1, "status": "completed"}
    result = to_chat({**response, "output": [message]})
    assert result.body["choices"][0]["logprobs"] is None
    assert {"dropped", "joined"} == {notice.code for notice in result.notices}


@pytest.mark.parametrize("field", ["schema", "name", "description", "strict"])
def test_a_format_of_the_wrong_type_is_left_out(field):
    form = {"name": "a", "schema": {"type": "object"}, field: 5}
    result = to_responses({"messages": [USER], "response_format": {"type": "json_schema", "json_schema": form}})
    assert field not in result.body["text"]["format"]
    assert result.notices[0].paths == [f"/response_format/json_schema/{field}"]


def test_what_a_tool_choice_says_beside_the_name_is_named():
    choice = {"type": "function", "function": {"name": "f", "a": 1}, "b": 2}
    [notice] = to_responses({"messages": [USER], "tools": TOOLS, "tool_choice": choice}).notices
    assert sorted(notice.paths) == ["/tool_choice/b", "/tool_choice/function/a"]


# ---------------------------------------------------------------- gate and pairing


def test_a_response_cut_in_its_last_call_is_not_completed():
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "status": "completed"}
    response = {
        "object": "response",
        "id": "r",
        "model": "m",
        "created_at": 1,
        "status": "incomplete",
        "output": [call],
    }
    assert codes(to_chat, {**response, "incomplete_details": {"reason": "max_output_tokens"}}) == ["status"]


def test_what_goes_with_an_item_that_is_left_out_is_its_own():
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "status": "completed"}
    output = {"type": "function_call_output", "call_id": "c", "output": "for f"}
    items = [{"type": "openai:x", "call_id": "c"}, call, output]
    assert to_responses(items, Options(allow={"namespaced"})).body == [call, output]


def test_legacy_functions_of_a_standing_record_judge_its_calls():
    functions = [{"name": "f", "parameters": {"type": "object", "required": ["a"]}}]
    call = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    assert codes(to_chat, {"messages": [USER, call], "functions": functions}) == ["arguments_schema"]


@pytest.mark.parametrize("repair", ["drop-orphans", "rename-call-ids"])
def test_choices_are_no_turns(repair):
    choices = [
        {"index": 0, "finish_reason": "tool_calls", "message": asks()},
        {"index": 1, "finish_reason": "stop", "message": {"role": "assistant", "content": "x"}},
    ]
    record = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": choices}
    result = to_responses(record, Options(repair={repair}, choice=0))
    assert [item["call_id"] for item in result.body["output"]] == ["c"]


def test_halves_of_a_pair_stand_apart():
    with pytest.raises(ValueError, match="overlap"):
        to_responses({"x": {"messages": [USER]}}, Options(request_at="/x", response_at="/x/y"))


# ---------------------------------------------------------------- a fault of ours


def test_a_fault_of_the_converter_costs_one_record(monkeypatch):
    def fails(self, record):
        if b"bad" in record:
            raise ZeroDivisionError
        return record, []

    monkeypatch.setattr(Session, "convert", fails)
    good, bad = convert_lines([b'"good"', b'"bad"'], "to-responses")
    assert good.json == b'"good"'
    assert [str(reason) for reason in bad.reasons] == [
        "verify at the top: the converter failed on this record; please report what shape it has (ZeroDivisionError)"
    ]


# ---------------------------------------------------------------- bytes that are no text


@pytest.mark.parametrize(
    "record",
    [
        b'{"messages":[{"role":"user","content":"\xff"}]}',
        b'{"messages":[{"role":"user","content":"x"}],"model":"\xff"}',
        b'{"messages":[{"role":"user","content":"x"}],"metadata":{"a":"\xff"}}',
        b'{"messages":[{"role":"user","content":"x"}],"seed":"\xff"}',
        b'{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"\xff"}}]}',
    ],
)
def test_no_byte_that_is_no_text_is_passed_on(record):
    place = record.index(b"\xff")
    for convert in (to_responses, to_chat):
        with pytest.raises(Refused, match=f"invalid_utf8 at the top: byte {place} is not UTF-8"):
            convert(record)


# ---------------------------------------------------------------- repairs pair what belongs together


def asks_for(*calls):
    entries = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}} for call_id, name in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": entries}


def answers(record, repair):
    """For each output what it says, and the name of the call that it answers."""
    body = to_responses(record, Options(repair={repair})).body
    names = {item["call_id"]: item["name"] for item in body if item["type"] == "function_call"}
    return [(item["output"], names[item["call_id"]]) for item in body if item["type"] == "function_call_output"]


def test_rename_call_ids_goes_by_the_outputs_names():
    record = [USER, asks_for(("c", "a"), ("c", "b")), tells(name="b", content="of b"), tells(name="a", content="of a")]
    assert answers(record, "rename-call-ids") == [("of b", "b"), ("of a", "a")]


def test_fill_call_ids_stays_within_a_turn():
    record = [USER, asks_for(("", "a")), tells("", content="of a"), asks_for(("", "b")), tells("", content="of b")]
    assert answers(record, "fill-call-ids") == [("of a", "a"), ("of b", "b")]
    lost = [
        {"type": "message", **USER},
        {"type": "function_call", "name": "a", "arguments": "{}"},
        {"type": "message", **USER},
    ]
    later = [
        {"type": "function_call", "name": "b", "arguments": "{}"},
        {"type": "function_call_output", "output": "of b"},
    ]
    made = to_chat([*lost, *later], Options(repair={"fill-call-ids", "drop-orphans"})).body
    assert [call["function"]["name"] for message in made for call in message.get("tool_calls", [])] == ["b"]


def test_fill_call_ids_goes_by_the_outputs_names():
    record = [USER, asks_for(("", "a"), ("id2", "b")), tells("", name="b", content="of b"), tells("", content="of a")]
    assert answers(record, "fill-call-ids") == [("of b", "b"), ("of a", "a")]


def test_a_standing_answer_that_is_mended_keeps_its_object():
    """It is written anew where something is left out or repaired; what was not touched must come through."""
    items = [{"type": "openai:x", "id": "x"}, {"type": "message", "role": "assistant", "content": "y"}]
    answer = {"object": "response", "id": "r", "model": "m", "created_at": 1, "status": "completed", "output": items}
    assert to_responses(answer, Options(allow={"namespaced"})).body == {**answer, "output": items[1:]}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": {}}}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [call]}}
    record = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    assert to_chat(record, Options(repair={"stringify-arguments"})).body["object"] == "chat.completion"


# ---------------------------------------------------------------- what the fuzzer found


PRETTY = [
    (to_responses, {"messages": [USER], "tools": TOOLS, "metadata": {"a": "b", "c": "d"}}),
    (to_chat, {"input": "x", "metadata": {"a": "b", "c": "d"}}),
    (
        to_chat,
        {"messages": [USER, {**asks(), "function_call": None}], "metadata": {"a": "b", "c": "d"}, "tools": TOOLS},
    ),
]


@pytest.mark.parametrize(("convert", "record"), PRETTY)
@pytest.mark.parametrize("repair", [(), ("empty-arguments",)])
def test_what_is_written_stands_on_one_line(convert, record, repair):
    """What is only passed on (tools, metadata) keeps its spelling, but not the line ends of a pretty-printed record."""
    pretty = json.dumps(record, indent=1)
    result = convert(pretty, Options(repair=repair))
    assert b"\n" not in result.json
    assert result.json == convert(json.dumps(record, separators=(",", ":")), Options(repair=repair)).json


LONE = b'[{"role":"user","content":"\\ud800"}]'


def test_a_record_with_lone_surrogates_leaves_the_session_as_it_should_be():
    plain = b'[{"role":"user","content":"x"}]'
    session = Session("to-chat", Options())
    outcomes = [session.outcome(1, record) for record in (b'[{"type":"message",' + plain[2:], LONE, plain)]
    assert outcomes[2] == Session("to-chat", Options()).outcome(1, plain)


def test_surrogates_are_pointed_at_where_they_were_logged():
    record = [tells("gone"), {**USER, "content": "\ud800"}]
    notices = {one.code: one.paths for one in to_chat(record, Options(repair={"drop-orphans"})).notices}
    assert notices == {"repaired": ["/0"], "odd": ["/1/content"]}


@pytest.mark.parametrize(
    "more", ['"a":1E400', '"a":' + "9" * 5000, '"a":' + "[" * 700 + "]" * 700], ids=["float", "integer", "depth"]
)
def test_surrogates_are_found_beside_any_value(more):
    record = '[{"role":"user","content":"\\ud800",' + more + "}]"
    [notice] = [one for one in to_responses(record.encode()).notices if one.code == "odd"]
    assert notice.paths == ["/0/content"]


def test_surrogates_in_what_is_no_json():
    assert codes(to_responses, b'"\\udc00":', shape="item-list") == ["wrong_type"]


def test_sentences_and_pointers_can_be_printed():
    twice = b'{"messages":[{"role":"user","content":"x"}],"\\ud800":{"a":1,"a":2}}'
    events = b'[{"type":"response.created"},{"type":"response.\\ud83d"}]'
    for record in (twice, events):
        with pytest.raises(Refused) as refused:
            to_responses(record, Options(strict=True))
        assert str(refused.value).encode()


def test_why_a_text_is_no_json_is_told_the_same_whatever_came_before():
    broken = b'[{"type":"message","role":"user","content":t.}]'
    told = []
    for before in (b'{"messages":[]}', b'[{"type":"message","role":"user","content":"x"}]', b"[]"):
        session = Session("to-chat", Options())
        session.outcome(1, before)
        told.append(session.outcome(2, broken).reasons)
    assert told[0] == told[1] == told[2]


@pytest.mark.parametrize("escape", ["\\ud800", "\\uD800", "\\ud83d\\ude00"])
def test_a_rejects_row_holds_surrogates_as_they_stood(escape):
    record = '{\n "a": "' + escape + '",\n "b": 0.10\n}'
    [rejected] = convert_lines([record], "to-chat")
    row = reject_row("log", rejected)
    assert row.count(b"\n") == 1
    assert ('"record":{"a": "' + escape + '","b": 0.10}').encode() in row


def test_a_rejects_row_mends_nothing():
    [rejected] = convert_lines(['{"a":nu\nll}'], "to-chat")
    assert json.loads(reject_row("log", rejected))["record"] == '{"a":nu\nll}'


def test_a_tool_message_before_its_custom_call_is_refused_for_what_it_is():
    custom = {"id": "c", "type": "custom", "custom": {"name": "f", "input": "x"}}
    record = {"messages": [tells(), {"role": "assistant", "tool_calls": [custom]}]}
    assert codes(to_responses, record) == ["unsupported_item", "orphan_output"]


def test_no_part_of_a_broken_array_is_lost():
    text = b'[{"messages":[]}] stray [{"messages":[]}]'
    held = b"".join(record for _, record in records(from_bytes(text), "values"))
    assert b"stray" in held


@pytest.mark.parametrize("limit", ["5.5", "16.0", "1E+2", '"16"', "[16]"])
def test_a_token_limit_that_is_no_whole_number_is_left_out(limit):
    result = to_chat('{"input":"x","max_output_tokens":' + limit + "}")
    assert result.body == {"messages": [USER]}
    assert [(one.code, one.paths) for one in result.notices] == [("dropped", ["/max_output_tokens"])]


@pytest.mark.parametrize(
    "audio", [{}, None, "x", {"data": "QQ=="}, {"data": 5, "format": "wav"}, {"data": "x", "format": "ogg"}]
)
def test_audio_that_chat_cannot_hold(audio):
    record = [{"type": "message", "role": "user", "content": [{"type": "input_audio", "input_audio": audio}]}]
    assert codes(to_chat, record) == ["unsupported_content"]


def test_a_sentence_stays_short_whatever_a_property_is_called():
    long = {"required": ["n" * 5000], "properties": {"p" * 5000: {"type": "string"}}}
    for arguments in ("{}", json.dumps({"n" * 5000: 1, "p" * 5000: 1})):
        with pytest.raises(Refused) as refused:
            to_responses([USER, asks(arguments=arguments)], Options(tools={"f": long}))
        assert len(str(refused.value)) < 400


@pytest.mark.parametrize("role", ["user", "system", "developer", "assistant"])
def test_no_parts_lead_back_as_no_text(role):
    options = Options(verify=True)
    assert to_responses([USER, {"role": role, "content": []}], options)
    assert to_chat([{"type": "message", "role": role, "content": []}], options)


@pytest.mark.parametrize("detail", ["original", "x"])
def test_a_detail_that_chat_does_not_know_is_left_out(detail):
    part = {"type": "input_image", "image_url": "x", "detail": detail}
    result = to_chat([{"type": "message", "role": "user", "content": [part]}])
    assert result.body[0]["content"] == [{"type": "image_url", "image_url": {"url": "x"}}]
    assert [(one.code, one.paths) for one in result.notices] == [("dropped", ["/0/content/0/detail"])]


GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "x"}
FORMATS = [
    (GRAMMAR, {"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}}, []),
    ({"type": "text"}, {"type": "text"}, []),
    ({**GRAMMAR, "more": 1}, {"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}}, ["/more"]),
    ({}, None, []),
    ({**GRAMMAR, "syntax": "abnf"}, None, [""]),
    ({"type": "grammar"}, None, [""]),
    ({"type": "json"}, None, [""]),
]


@pytest.mark.parametrize(("given", "written", "dropped"), FORMATS, ids=range(len(FORMATS)))
def test_a_format_of_a_custom_tool_is_one_that_chat_knows(given, written, dropped):
    result = to_chat({"input": "x", "tools": [{"type": "custom", "name": "f", "format": given}]})
    assert result.body["tools"][0]["custom"].get("format") == written
    assert [path for one in result.notices for path in one.paths] == [f"/tools/0/format{path}" for path in dropped]


@pytest.mark.parametrize(
    "entry", [None, 5, {}, {"token": "a"}, {"token": "a", "logprob": "b"}, {"token": "a", "logprob": 1, "bytes": ["b"]}]
)
def test_what_is_no_log_probability_is_left_out(entry):
    choice = {"index": 0, "message": {"role": "assistant", "content": "x"}, "logprobs": {"content": [entry]}}
    record = {"created": 1, "model": "m", "choices": [{**choice, "finish_reason": "stop"}]}
    result = to_responses(record)
    assert "logprobs" not in result.body["output"][0]["content"][0]
    assert [(one.code, one.paths) for one in result.notices] == [("dropped", ["/choices/0/logprobs/content"])]


def test_a_notice_stays_short_whatever_an_event_holds():
    events = [{"type": "x" * 5000, "n" * 5000: 1}, {"type": "response.created", "n" * 5000: 1}]
    events.append({"type": "response.completed", "response": {"object": "response", "id": "r", "output": []}})
    assert all(len(notice.detail) < 400 for notice in to_responses({"events": events}).notices)


def test_a_time_beyond_any_float_is_compared():
    record = {
        "created": 1,
        "model": "m",
        "choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
    }
    text = json.dumps(record).replace(": 1,", ": " + "9" * 400 + ",")
    assert to_responses(text, Options(verify=True))


@pytest.mark.parametrize("wrap", [lambda items: items, lambda items: {"input": items}], ids=["list", "request"])
def test_a_conversation_of_which_nothing_is_left_is_empty(wrap):
    assert codes(to_chat, wrap([{"type": "item_reference", "id": "x"}]), allow={"unsupported_item"}) == ["limit"]


def test_a_cut_call_with_a_lone_surrogate_is_not_completed():
    message = {"role": "assistant", "tool_calls": asks(arguments='{"\ud800')["tool_calls"]}
    record = {"created": 1, "model": "m", "choices": [{"finish_reason": "length", "message": message}]}
    assert codes(to_responses, record, allow={"arguments_parse"}) == ["status"]


def test_a_status_longer_than_any_number_is_one_of_failure():
    record = '{"custom_id":"1","response":{"status_code":' + "9" * 5000 + ',"body":{"choices":[]}}}'
    assert codes(to_responses, record) == ["not_finished"]
