"""What a record is: wrappers and what stays around their bodies, and formats that are refused by name."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from converter import Options, Refused, foreign, to_chat, to_responses
from converter.convert import prepare
from converter.kinds import KINDS, recognise
from converter.outcome import Converted
from converter.shapes import FOUND, KNOWN, NAMED, SHAPE_TABLE, SHAPES, SOURCE_TABLE
from converter.sources import SOURCES, UNREADABLE

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "find", "parameters": SCHEMA}}]
USER = {"role": "user", "content": "x"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q":"a"}'}}],
}
REQUEST = {"model": "m", "messages": [USER], "tools": TOOLS, "temperature": 0.5}
ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": CALL, "finish_reason": "tool_calls"}],
}
RESPONSE = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m", "output": []}
CHUNK = {
    "id": "c",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
}
SSE = f"data: {json.dumps(CHUNK)}\n\ndata: [DONE]\n\n"


def why(record, options=None, convert=to_responses):
    with pytest.raises(Refused) as refused:
        convert(record, options or Options())
    return [str(reason) for reason in refused.value.reasons]


def converted(body, **fields):
    return to_responses(body, Options(**fields)).body


# ---------------------------------------------------------------- pairs


@pytest.mark.parametrize("spelled", [lambda body: body, json.dumps], ids=["objects", "strings"])
def test_both_halves_of_a_pair_are_converted_in_place(spelled):
    made = to_responses({"n": 1, "request": spelled(REQUEST), "response": spelled(ANSWER), "ms": 12}).body
    assert list(made) == ["n", "request", "response", "ms"]
    request, response = (
        made[name] if spelled is not json.dumps else json.loads(made[name]) for name in ("request", "response")
    )
    assert request == converted(REQUEST)
    assert response["output"] == converted(ANSWER)["output"]
    assert (response["temperature"], response["tools"][0]["name"]) == (0.5, "find")


def test_the_request_of_a_pair_has_the_tools_of_its_answer():
    result = to_responses({"request": REQUEST, "response": ANSWER})
    assert "unchecked" not in [notice.code for notice in result.notices]
    wrong = json.loads(json.dumps(ANSWER).replace('\\"a\\"', "1"))
    assert why({"request": REQUEST, "response": wrong})[0].startswith(
        "arguments_schema at /response/choices/0/message/tool_calls/0/"
    )


ANSWERED = [USER, CALL, {"role": "tool", "tool_call_id": "c1", "content": "y"}]
ITEMS = to_responses(ANSWERED).body


@pytest.mark.parametrize("request_", [{"messages": ANSWERED}, ANSWERED, {"input": ITEMS}, ITEMS])
def test_item_ids_of_a_pair_are_unique_in_all_of_it(request_):
    """An answer may use a call id again that its request has."""
    answer = {**ANSWER, "choices": [{"index": 0, "finish_reason": "tool_calls", "message": CALL}]}
    made = to_responses({"request": request_, "response": answer}).body
    history = made["request"] if isinstance(made["request"], list) else made["request"]["input"]
    ids = [item["id"] for item in (*history, *made["response"]["output"]) if "id" in item]
    assert len(ids) == len(set(ids)) == 2


@pytest.mark.parametrize("answer", [SSE, {"chunks": [CHUNK]}, [CHUNK]], ids=["sse", "chunks", "array"])
def test_a_stream_as_the_answer_of_a_pair(answer):
    made = to_responses({"request": REQUEST, "response": answer}).body
    assert made["response"]["output"][0]["content"][0]["text"] == "Hi"


@pytest.mark.parametrize("nothing", [None, "", {}])
def test_a_half_that_is_not_there_stays_as_it_is(nothing):
    assert to_responses({"request": REQUEST, "response": nothing}).body == {
        "request": converted(REQUEST),
        "response": nothing,
    }


def test_names_of_a_pair_can_be_said():
    options = Options(request_at="/a/b", response_at="/c~1d")
    made = to_responses({"a": {"b": REQUEST, "z": 1}, "c/d": ANSWER}, options).body
    assert made["a"] == {"b": converted(REQUEST), "z": 1}
    assert made["c/d"]["object"] == "response"
    lists = to_responses({"messages": [USER], "response": ANSWER}, Options(request_at="/messages")).body
    assert lists["messages"] == converted([USER])


def test_a_fault_inside_a_half_is_told_with_its_place():
    assert why({"request": {"contents": []}, "response": ANSWER})[0].startswith(
        "unknown_shape at /request: a Gemini request; "
    )
    assert why({"request": "plain words", "response": ANSWER})[0].startswith(
        "unknown_shape at /request: a string that holds no JSON"
    )
    dropped = to_responses({"request": {**REQUEST, "seed": 7}, "response": ANSWER}).notices[0]
    assert (dropped.code, dropped.paths) == ("dropped", ["/request/seed"])


def test_a_conversation_in_an_answer_is_not_left_out():
    for beside in ({"messages": REQUEST["messages"]}, {"input": "x"}):
        record, [asked] = {**ANSWER, **beside}, beside
        advice = f"(--at /{asked} converts the conversation alone)"
        assert why(record) == [f"unknown_shape at the top: a conversation beside its answer {advice}"]
    assert to_responses({**ANSWER, "messages": REQUEST["messages"]}, Options(at=("/messages",))).json
    assert to_responses({**ANSWER, "prompt": "x"}).json


@pytest.mark.parametrize("wrapped", [{"at": ("/body",)}, {"shape": "chat-request"}, {"shape": "message-list"}, {}])
def test_a_row_of_a_rejects_file_is_opened_before_the_options_say_where_to_look(wrapped):
    record = REQUEST["messages"] if wrapped.get("shape") == "message-list" else REQUEST
    record = {"body": record} if "at" in wrapped else record
    row = {"source": "log.jsonl", "line": 3, "reasons": [], "record": record}
    assert to_responses(row, Options(**wrapped)).json == to_responses(record, Options(**wrapped)).json
    whole = to_responses({"source": 1, "line": 2, "reasons": 3, "record": REQUEST}, Options(at=("/record",))).body
    assert whole == {"source": 1, "line": 2, "reasons": 3, "record": converted(REQUEST)}


# ---------------------------------------------------------------- batch files


def line(**fields):
    return {"custom_id": "r-1", **fields}


URLS = {
    "/v1/chat/completions": "/v1/responses",
    "/openai/v1/chat/completions": "/openai/v1/responses",
    "/chat/completions": "/responses",
    "https://x.test/v1/chat/completions?api-version=1": "https://x.test/v1/responses?api-version=1",
}


@pytest.mark.parametrize(("url", "moved"), URLS.items())
def test_a_batch_line_moves_to_the_other_endpoint_and_back(url, moved):
    there = to_responses(line(method="POST", url=url, body=REQUEST))
    assert there.body == line(method="POST", url=moved, body=converted(REQUEST))
    assert to_responses(there.json).json == there.json
    assert to_chat(there.json).body["url"] == url


def test_a_batch_line_without_url_and_with_a_body_as_a_string():
    made = to_responses(line(body=json.dumps(REQUEST))).body
    assert made == line(body=made["body"])
    assert json.loads(made["body"]) == converted(REQUEST)


def test_batch_answers():
    inside = to_responses(
        line(id="b", response={"status_code": 200, "request_id": "q", "body": ANSWER}, error=None)
    ).body
    assert inside == line(
        id="b", response={"status_code": 200, "request_id": "q", "body": converted(ANSWER)}, error=None
    )
    assert to_responses(line(response=ANSWER)).body == line(response=converted(ANSWER))
    as_text = to_responses(line(response={"status_code": 200, "body": json.dumps(ANSWER)})).body
    assert json.loads(as_text["response"]["body"]) == converted(ANSWER)


FAILED = {
    "an error": line(response=None, error={"code": "x", "message": "m"}),
    "an error as a string": line(response=None, error="timeout"),
    "no answer": line(error="timeout"),
    "a status": line(response={"status_code": 429, "body": {"error": {"message": "m"}}}),
}


@pytest.mark.parametrize("record", FAILED.values(), ids=FAILED.keys())
def test_a_batch_line_that_failed_is_no_answer(record):
    assert why(record)[0].startswith("not_finished at /response")


def test_a_batch_line_for_another_endpoint():
    assert why(line(url="/v1/embeddings", body={"input": "x"})) == [
        "unknown_shape at /url: a batch line for another endpoint than the two envelopes'"
    ]


def test_a_batch_line_keeps_its_bytes():
    text = b'{ "custom_id" : "\\u00e4" , "x":1.50,"x" : 2e1, "body":[{"role":"user","content":"x"}] }'
    made = to_responses(text).json
    assert made.startswith(b'{ "custom_id" : "\\u00e4" , "x":1.50,"x" : 2e1, "body":[{')
    assert made.endswith(b"}] }")


# ---------------------------------------------------------------- --at

BODY = '[{"role":"user","content":"x"}]'
WRITTEN = json.dumps(to_responses(json.loads(BODY)).body, separators=(",", ":"))


def at(*pointers):
    return Options(at=pointers)


AROUND = {
    "blanks": ('  {"a" :\t1 , "m": %s ,"z":[ ] }', ["/m"]),
    "escapes": ('{"\\u006d" : "\\/\\u00e9", "m\\u006d":%s}', ["/mm"]),
    "duplicate keys": ('{"n":1,"m": %s,"n":2}', ["/m"]),
    "not ASCII": ('{"ä€😀":"😀","x":{"ö":[0,%s,"ü"]}}', ["/x/ö/1"]),
    "numbers": ('{"a":1.50,"b":-0.0,"c":1e400,"m":%s}', ["/m"]),
    "slash and tilde": ('{"a/b":{"m~n":%s}}', ["/a~1b/m~0n"]),
    "an empty key": ('{"":{"":%s}}', ["//"]),
    "several": ('{"a": %s, "b" : {"c":%s}}', ["/b/c", "/a"]),
    "the same twice": ('{"a": %s}', ["/a", "/a"]),
}


@pytest.mark.parametrize(("around", "pointers"), AROUND.values(), ids=AROUND.keys())
def test_all_around_the_value_is_kept_to_the_byte(around, pointers):
    holes = around.count("%s")
    result = to_responses((around % ((BODY,) * holes)).encode(), at(*pointers))
    assert result.json.decode() == (around % ((WRITTEN,) * holes)).strip()


@pytest.mark.parametrize("pointer", ["/m", "/m/0"])
def test_a_value_that_stands_at_two_places_is_not_converted_at_one_of_them(pointer):
    with pytest.raises(Refused, match=f"duplicate_key at {pointer}: a key on the way"):
        to_responses(f'{{"m":"first","m":[{BODY}]}}', at(pointer))


def test_json_in_a_string_becomes_a_string_again():
    text = json.dumps(
        {"a": BODY, "b": json.dumps({"messages": [{"role": "user", "content": 'é\n"😀'}]})}, ensure_ascii=False
    )
    made = to_responses(text, at("/a", "/b")).body
    assert json.loads(made["a"]) == json.loads(WRITTEN)
    assert json.loads(made["b"])["input"][0]["content"] == 'é\n"😀'


def test_a_record_over_several_lines_becomes_one_line():
    made = to_responses(f'{{\n  "a": 1.50,\n  "m": {BODY}\n}}', at("/m")).json
    assert made.decode() == f'{{"a":1.50,"m":{WRITTEN}}}'


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ),
    st.sampled_from([None, 1]),
)
def test_whatever_stands_beside_the_value_stays(beside, indent):
    text = json.dumps({"before": beside, "m": json.loads(BODY), "after": [beside]}, indent=indent, ensure_ascii=False)
    made = to_responses(text.encode(), at("/m"))
    assert made.body == {"before": beside, "m": json.loads(WRITTEN), "after": [beside]}
    assert b"\n" not in made.json


MISSING = ["/x", "/m/1", "/m/01", "/m/-", "/m/0/x", "/a/b"]


@pytest.mark.parametrize("pointer", MISSING)
def test_a_pointer_that_leads_nowhere(pointer):
    reason = why(f'{{"a":1,"m":{BODY}}}', at(pointer))
    assert reason == [f"missing_field at {pointer}: no value stands here, as --at or --from says"]


def test_pointers_to_a_value_and_into_it():
    assert why(f'{{"a":{{"m":{BODY}}}}}', at("/a/m", "/a")) == [
        "wrong_type at /a/m: a part of another value that --at names, expected values apart"
    ]


def test_the_whole_record_is_a_value_too():
    assert to_responses(BODY, at("")).json.decode() == WRITTEN


# ---------------------------------------------------------------- session logs


def item(**payload):
    return {"timestamp": "t", "type": "response_item", "payload": payload}


SESSION = [
    {"timestamp": "t", "type": "session_meta", "payload": {"id": "s"}},
    item(type="message", role="user", content=[{"type": "input_text", "text": "x"}]),
    item(type="function_call", name="find", arguments="{}", call_id="c1"),
    {"timestamp": "t", "type": "event_msg", "payload": {"type": "token_count"}},
    item(type="function_call_output", call_id="c1", output="y"),
]


def test_a_session_is_one_conversation():
    result = to_chat(SESSION)
    assert [message["role"] for message in result.body] == ["user", "assistant", "tool"]
    assert [(notice.code, notice.paths) for notice in result.notices if notice.code == "dropped"] == [
        ("dropped", ["/0", "/3"])
    ]
    assert [entry["type"] for entry in to_responses(SESSION).body] == [
        "message",
        "function_call",
        "function_call_output",
    ]


def test_faults_of_a_session_lead_into_its_lines():
    said = {"content": "y", "success": True}
    assert why([*SESSION[:4], item(type="function_call_output", call_id="c1", output=said)], convert=to_chat) == [
        "wrong_type at /4/payload/output: an object, expected a string or an array"
    ]
    assert why([*SESSION, item(type="web_search_call", status="completed")], convert=to_chat)[0].startswith(
        "unsupported_item at /5/payload: "
    )


def test_a_session_without_items():
    assert why(SESSION[:1])[0].startswith(
        "unknown_shape at the top: a session log without items (no line of type response_item)"
    )
    assert why(SESSION[0])[0].startswith("unknown_shape at the top: one line of a session log (")


# ---------------------------------------------------------------- recorded HTTP


def entry(text=None, *, status=200, **content):
    posted = {"mimeType": "application/json", "text": json.dumps(REQUEST)}
    return {
        "time": 12,
        "request": {"method": "POST", "url": "https://example.test/v1/chat/completions", "postData": posted},
        "response": {"status": status, "content": {"text": json.dumps(ANSWER) if text is None else text, **content}},
    }


def test_an_entry_of_a_har_file_becomes_a_pair():
    result = to_responses(entry())
    assert result.body == to_responses({"request": REQUEST, "response": ANSWER}).body
    (dropped,) = [notice.paths for notice in result.notices if notice.code == "dropped"]
    assert dropped == ["/time", "/request/method", "/request/url", "/response/status"]


HTTP = {
    "another host": (
        entry("<html>"),
        "unknown_shape at /response/content/text: a string that holds no JSON, expected a body",
    ),
    "no body": (entry(""), "unknown_shape at /response/content/text: an HTTP exchange without this body, …"),
    "a failed call": (entry(status=500), "not_finished at /response/status: …"),
    "not base64": (entry("x", encoding="base64"), "wrong_type at /response/content/text: …"),
    "another API": (entry('{"candidates": []}'), "unknown_shape at /response/content/text: a Gemini response; …"),
}


@pytest.mark.parametrize(("record", "sentence"), HTTP.values(), ids=HTTP.keys())
def test_an_exchange_that_is_no_pair(record, sentence):
    (reason,) = why(record)
    assert reason == sentence if not sentence.endswith("…") else reason.startswith(sentence[:-1])


# ---------------------------------------------------------------- a conversation beside its answer

TOGETHER = {
    "messages and response": {"messages": [USER], "response": ANSWER},
    "messages and tools and output": {"messages": [USER], "tools": TOOLS, "output": "x"},
    "messages and choices": {"messages": [USER], "choices": ANSWER["choices"]},
    "input and output": {"input": [USER], "output": [{"role": "assistant", "content": "y"}]},
    "input and output as texts": {"input": "x", "output": "y"},
    "messages and chunks": {"messages": [USER], "chunks": [CHUNK]},
    "input and sse": {"input": "x", "sse": SSE},
    "prompt and responses": {"prompt": ["x"], "responses": ["y"]},
}


@pytest.mark.parametrize("record", TOGETHER.values(), ids=TOGETHER.keys())
@pytest.mark.parametrize("convert", [to_responses, to_chat])
def test_half_of_a_record_is_never_converted(record, convert):
    (reason,) = why(record, convert=convert)
    asked, said = (next(key for key in names if key in record) for names in (foreign.CONVERSATIONS, foreign.ANSWERS))
    both = f"--request-at /{asked} --response-at /{said} " if said != "choices" else f"--at /{asked} "
    assert reason.startswith(f"unknown_shape at the top: a conversation beside its answer ({both}")


def test_one_half_can_be_asked_for():
    record = {"messages": [USER], "response": {"n": 1}}
    assert to_responses(record, at("/messages")).body == {"messages": converted([USER]), "response": {"n": 1}}


def test_an_answer_that_repeats_its_request_is_an_answer():
    assert to_responses({**RESPONSE, "input": [USER]}).body["output"] == []
    assert to_responses({**ANSWER, "prompt": []}).body["object"] == "response"


# ---------------------------------------------------------------- foreign formats

PART = {"type": "tool_use", "id": "t", "name": "n", "input": {}}
FOREIGN = {
    "an API error body": [
        {"error": {"message": "m"}},
        {"error": "m"},
        {"message": "m"},
        {"detail": [{"msg": "m"}]},
        {"object": "error", "message": "m", "code": 1},
    ],
    f"{UNREADABLE['langchain'].label} ({UNREADABLE['langchain'].why})": [
        {"messages": [[{"lc": 1, "type": "constructor", "kwargs": {}}]]}
    ],
    "a batch result of Anthropic": [
        {"custom_id": "c", "result": {"type": "succeeded", "message": {}}},
        {"type": "succeeded", "message": {}},
    ],
    "an HTTP answer around a body (--at /body converts it)": [{"status_code": 200, "request_id": "q", "body": ANSWER}],
    "an HTTP message around a body (--at, --request-at and --response-at say where it stands)": [
        {"method": "POST", "headers": {}, "body": REQUEST}
    ],
    "one line of a session log (the lines of one file are one record; --from session-log reads them)": [SESSION[0]],
    "one chunk of a stream (a file whose first line is one is read as its streams)": [CHUNK],
    "one event of a stream (a file whose first line is one is read as its streams)": [
        {"type": "response.created", "response": RESPONSE}
    ],
    "a Bedrock Converse request": [
        {"messages": [USER], "inferenceConfig": {}},
        {"messages": [{"role": "user", "content": [{"text": "x"}]}], "system": [{"text": "s"}]},
        {"messages": [{"role": "user", "content": [{"toolResult": {"toolUseId": "t"}}]}]},
    ],
    "a Bedrock Converse response": [{"output": {"message": {}}, "stopReason": "end_turn"}],
    "a Bedrock Invoke request": [{"inputText": "x"}, {"prompt": "x", "max_gen_len": 9}],
    "a Bedrock Invoke response": [
        {"generation": "x", "stop_reason": "stop"},
        {"inputTextTokenCount": 1, "results": []},
    ],
    "a Cohere request": [
        {"messages": [USER], "documents": []},
        {"message": "x", "chat_history": []},
        {"messages": [{"role": "assistant", "tool_plan": "x"}]},
    ],
    "a Cohere response": [
        {"id": "c", "message": {"role": "assistant"}, "finish_reason": "COMPLETE"},
        {"text": "x", "generation_id": "g"},
    ],
    "an Anthropic Messages request": [
        {"messages": [USER], "system": "s"},
        {"messages": [USER], "stop_sequences": ["x"]},
        {"messages": [{"role": "user", "content": [PART]}]},
        {"messages": [USER], "tools": [{"name": "n", "input_schema": {}}]},
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "base64"}}]}]},
    ],
    "an Anthropic Messages response": [
        {"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"}
    ],
    "a Gemini request": [{"contents": [{"parts": []}]}],
    "a Gemini response": [{"candidates": []}],
    "a Gemini Interactions request": [
        {"input": [{"type": "user_input", "content": []}]},
        {"input": "x", "system_instruction": "s"},
    ],
    "an Ollama request": [{"messages": [USER], "options": {}}],
    "an Ollama generate request": [{"prompt": "x", "options": {}}],
    "an Ollama response": [{"message": {"role": "assistant"}, "done": True}, {"response": "x", "done": True}],
    "an Ollama stream": [{"ndjson": '{"message":{},"done":false}\n'}],
    "a ShareGPT row": [{"conversations": [{"from": "human", "value": "x"}]}],
    "a preference row": [{"chosen": [], "rejected": []}, {"input": {"messages": []}, "preferred_output": []}],
    "an instruction row (instruction, input, output)": [{"instruction": "x", "input": "y", "output": "z"}],
    "a row of a prompt and its answer": [{"prompt": "x", "completion": "y"}, {"prompt": "x", "response": "y"}],
    "a row of a text and its label": [{"text": "x", "label": "y"}],
    "a legacy completions request": [{"model": "m", "prompt": "x"}],
    "a legacy completions answer": [{"object": "text_completion", "choices": [{"text": "x"}]}],
    "an embeddings request": [
        {"input": "x", "encoding_format": "float"},
        {"model": "m", "input": ["x"]},
        {"model": "m", "input": [1, 2]},
    ],
    "an embeddings answer": [{"object": "list", "data": [{"object": "embedding"}]}],
    "a speech request": [{"input": "x", "voice": "v"}],
    "a trace of MLflow (--from mlflow reads it)": [{"info": {}, "data": {"spans": []}}],
    "a HAR file (its entries are one record each)": [{"log": {"entries": []}}],
    "a VCR cassette (its interactions are one record each)": [{"interactions": []}],
    "an Agents SDK run state": [{"$schemaVersion": "1", "current_agent": {}}],
    "a trace of CrewAI": [
        {"execution_type": "crew", "status": "x"},
        {"events": [{"event_id": "e", "event_data": {}}], "batch_metadata": {}},
    ],
    "a batch state file": [{"stage": "done", "batch": {}, "results": []}],
    "a batch job": [{"input_file_id": "f", "endpoint": "/v1/responses", "completion_window": "24h"}],
    "an Assistants request": [{"assistant_id": "a"}, {"model": "m", "name": "n", "tools": []}],
    "a page of items (--at /data converts them)": [
        {"object": "list", "data": [{"type": "message", "role": "user", "content": []}]}
    ],
    "a list of items under a key (--at /items converts it)": [
        {"items": [{"type": "message", "role": "user", "content": []}]}
    ],
    "a page of a list (one record each: its elements)": [{"object": "list", "data": []}],
    "a single message or item, expected a list of them": [
        USER,
        {"type": "function_call_output", "call_id": "c", "output": "x"},
    ],
}
CASES = [(name, record) for name, samples in FOREIGN.items() for record in samples]


def test_every_foreign_format_has_a_sample():
    assert list(FOREIGN) == [name for name, _ in foreign.OBJECTS]


@pytest.mark.parametrize(("name", "record"), CASES)
def test_foreign_objects_are_refused_by_name(name, record):
    for convert in (to_responses, to_chat):
        (reason,) = why(record, convert=convert)
        assert reason.startswith(f"unknown_shape at the top: {name}{tail(name)}")


def tail(name):
    """What a record is known by comes behind its name, unless that says itself what to do."""
    return "" if name.endswith(")") else "; known are chat-request, "


ODD_ARRAYS = {
    "a list of ShareGPT turns": [{"from": "human", "value": "x"}],
    "a list of Gemini contents": [{"role": "user", "parts": [{"text": "x"}]}],
    "a list of LangChain messages": [{"lc": 1, "type": "constructor", "kwargs": {}}],
    "an array of numbers": [1, 2],
    "an array of arrays and objects": [[], {}],
}


@pytest.mark.parametrize(("name", "record"), ODD_ARRAYS.items())
def test_foreign_arrays_are_refused_by_name(name, record):
    assert why(record)[0].startswith(f"unknown_shape at the top: {name}{tail(name)}")


FRAMES = {
    "a stream of Anthropic Messages": [{"type": "message_start", "message": {}}, {"type": "content_block_start"}],
    "a stream of Gemini": [{"candidates": []}],
    "a stream of Ollama": [{"message": {}, "done": False}],
    "a stream of Bedrock Converse": [{"messageStart": {}}],
    "a stream of Cohere": [{"type": "message-start"}],
}


@pytest.mark.parametrize(("name", "frames"), FRAMES.items())
def test_foreign_streams_are_refused_by_name(name, frames):
    sse = "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames)
    for record, place in (({"chunks": frames}, "/chunks"), ({"sse": sse}, "/sse"), (sse, "the top")):
        assert why(json.dumps(record))[0].startswith(f"unknown_shape at {place}: {name}{tail(name)}")


def test_a_span_with_events_is_a_span():
    record = {"name": "n", "kind": "k", "attributes": [], "events": [{"name": "e", "attributes": []}]}
    assert why(record)[0].startswith("unknown_shape at the top: an OpenTelemetry span (")


def test_api_resources_are_named():
    assert why({"id": "t", "object": "thread.run", "assistant_id": "a"})[0].startswith(
        "unknown_shape at the top: an API resource of type thread.run; "
    )


@pytest.mark.parametrize(("name", "record"), CASES)
def test_no_strict_decoder_takes_a_foreign_record(name, record):
    text = json.dumps(record).encode()
    for kind in KINDS.values():
        try:
            body = kind.decode(text)
        except msgspec.ValidationError:
            continue
        assert not kind.certain(body)


@pytest.mark.parametrize("verb", ["to-responses", "to-chat"])
@pytest.mark.parametrize(("name", "record"), CASES)
def test_what_went_before_does_not_change_what_a_record_is(verb, name, record):
    step = prepare(verb, Options())
    for before in (
        REQUEST,
        [USER],
        ANSWER,
        {"input": "x"},
        [{"type": "message", "role": "user", "content": "x"}],
        RESPONSE,
    ):
        step(1, json.dumps(before).encode())
        assert not isinstance(step(2, json.dumps(record).encode()), Converted), before


OWN = {
    "vendor keys": (
        "chat-request",
        {"messages": [USER], "provider": {}, "plugins": [], "chat_template_kwargs": {}, "top_k": 3},
    ),
    "a row of a data set": ("chat-request", {"messages": [USER], "label": 1, "source": "x"}),
    "a failed call": ("chat-request", {"messages": [USER], "error": "timeout"}),
    "a stored prompt": ("responses-request", {"prompt": {"id": "p"}}),
    "nothing but a history": ("responses-request", {"model": "m", "previous_response_id": "r"}),
    "a delta beside the message (Perplexity)": (
        "completion",
        {"choices": [{"index": 0, "delta": {}, "message": CALL}]},
    ),
    "an empty prompt (Together)": ("completion", {**ANSWER, "prompt": []}),
    "an error that is null": ("response", {**RESPONSE, "error": None}),
    "no word for what it is": ("response", {"output": []}),
    "items of a provider": ("item-list", [{"type": "openai:web_search_call"}]),
    "documents that are null": ("chat-request", {"messages": [USER], "documents": None}),
}


@pytest.mark.parametrize(("name", "record"), OWN.values(), ids=OWN.keys())
def test_records_of_the_two_envelopes_are_not_taken_for_foreign(name, record):
    assert recognise(json.dumps(record).encode()).name == name


# ---------------------------------------------------------------- the tables


def test_the_tables_hold_every_name_once():
    assert len(set(KNOWN)) == len(KNOWN)
    assert set(KNOWN) == {*KINDS, *FOUND, *NAMED, *SOURCES}
    assert set(SHAPES) == {*FOUND, *NAMED, *SOURCES, *UNREADABLE}
    assert set(SHAPE_TABLE) == {*KINDS, *FOUND, *NAMED, "wrapped (--at)"}
    assert set(SOURCE_TABLE) == set(SOURCES)


@pytest.mark.parametrize("row", [*SHAPE_TABLE.values(), *(row[:2] for row in SOURCE_TABLE.values())])
def test_every_row_says_what_comes_in_and_what_comes_out(row):
    assert all(row)
    assert not any("|" in cell or "\n" in cell for cell in row)


RECOGNISED = {
    "chat-request": REQUEST,
    "message-list": [USER, CALL],
    "completion": ANSWER,
    "responses-request": {"input": "x"},
    "item-list": [{"type": "message", "role": "user", "content": "x"}],
    "response": RESPONSE,
    "stream": [CHUNK],
    "session-log": SESSION,
    "batch-input": line(body=REQUEST),
    "batch-output": line(response={"body": ANSWER}),
    "har": entry(),
    "rejects": {"source": "log.jsonl", "line": 3, "reasons": [], "record": REQUEST},
    "pair": {"request": REQUEST, "response": ANSWER},
}


def test_every_shape_that_is_found_has_a_sample():
    assert set(RECOGNISED) == {*KINDS, *FOUND}


@pytest.mark.parametrize(("name", "record"), RECOGNISED.items())
def test_a_shape_that_is_found_is_the_one_that_can_be_said(name, record):
    assert to_responses(record).json == to_responses(record, Options(shape=name)).json
    for other in FOUND.keys() - {name}:
        if other not in ("pair",):
            place = "/record" if name == "rejects" else "the top"  # a row of a rejects file is opened first
            assert why(record, Options(shape=other)) == [f"unknown_shape at {place}: not a {other}, as --from says"]
