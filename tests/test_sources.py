"""The sources that ``--from`` knows: a sample of each as it lies on disk, and what comes out.

``samples/sources/NAME.jsonl`` is made from the documented shape with invented values; beside it lies what
to-responses writes of it. What the bodies become is tested elsewhere: here it is where they are found and put.
"""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from converter import Options, Refused, to_chat, to_responses
from converter.cli import main
from converter.convert import prepare
from converter.files import opened
from converter.outcome import Converted
from converter.records import records
from converter.shapes import FILES, NAMED
from converter.sources import SOURCES, UNREADABLE

FOLDER = Path(__file__).parent / "samples" / "sources"
NAMES = sorted({*SOURCES, *NAMED, "har"})
REPAIRS = {"openpipe": {"fill-call-ids"}}
USER = {"role": "user", "content": "x"}
ANSWER = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "y"}, "finish_reason": "stop"}],
}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def sample(name, form=None):
    with opened(str(FOLDER / f"{name}.jsonl")) as source:
        return list(records(source, form or FILES.get(name, "auto")))


def options(name, **more):
    return Options(shape=name, repair=frozenset(REPAIRS.get(name, ())), **more)


def why(record, name):
    with pytest.raises(Refused) as refused:
        to_responses(record, Options(shape=name))
    (reason,) = refused.value.reasons
    return str(reason)


# ---------------------------------------------------------------- the samples


def test_every_source_has_a_sample():
    assert sorted(path.stem for path in FOLDER.glob("*.jsonl") if ".to-" not in path.name) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_what_comes_out(name):
    written = [to_responses(text, options(name)).json for _, text in sample(name)]
    assert written == (FOLDER / f"{name}.to-responses.jsonl").read_bytes().splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_what_comes_out_can_be_read_again(name):
    """The pairs without ``--from``, the records that kept their form with it; nothing is left to convert."""
    plain = prepare("to-responses", Options())
    for _, text in sample(name):
        made = to_responses(text, options(name)).json
        again = plain(1, made)
        if not isinstance(again, Converted):
            again = prepare("to-responses", options(name))(1, made)
        assert isinstance(again, Converted)
        assert again.json == made


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_the_other_way(name):
    """Rows that already hold Chat bodies are written as they stand, or with the request put together."""
    for _, text in sample(name):
        made = to_chat(text, options(name)).body
        assert '"input"' not in json.dumps(made.get("request", {}))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "codex"])
def test_found_on_the_command_line(name, tmp_path):
    given = ["--from", name, *(f"--repair={repair}" for repair in REPAIRS.get(name, ()))]
    result = CliRunner().invoke(main, ["to-responses", str(FOLDER / f"{name}.jsonl"), "-q", *given])
    assert (result.exit_code, result.stdout_bytes) == (0, (FOLDER / f"{name}.to-responses.jsonl").read_bytes())


def test_codex_is_one_record_even_where_its_first_line_does_not_tell(tmp_path):
    path = tmp_path / "rollout.jsonl"
    path.write_text('{"id": "s", "git": {}}\n' + (FOLDER / "codex.jsonl").read_text())
    result = CliRunner().invoke(main, ["to-responses", str(path), "-q", "--from", "codex"])
    assert (result.exit_code, result.stdout_bytes) == (0, (FOLDER / "codex.to-responses.jsonl").read_bytes())


NOTICES = {
    "azure-apim": {},
    "braintrust": {"filled": ["/created"]},
    "fine-tuning": {"dropped": ["/messages/4/weight"]},
    "langsmith": {"dropped": ["/outputs/usage_metadata"]},
    "openhands": {"dropped": ["/messages/0/content/0/cache_control"]},
    "openpipe": {"repaired": ["/messages/2/tool_calls/0", "/messages/3/tool_call_id"]},
    "har": {
        "dropped": ["/startedDateTime", "/time", "/timings", "/request/method", "/request/url", "/response/status"]
    },
    "litellm": {},
    "helicone": {},
    "weave": {},
    "vcr": {},
    "mlflow": {},
    "inspect": {},
    "databricks": {},
}


@pytest.mark.parametrize("name", NOTICES)
def test_what_is_said_of_it(name):
    first = to_responses(sample(name)[0][1], options(name))
    assert {notice.code: notice.paths for notice in first.notices} == NOTICES[name]


IN_PLACE = sorted({name for name, source in SOURCES.items() if not source.parts} | {"mlflow"})
POINTERS = {
    **{name: [source.request, source.response] for name, source in SOURCES.items()},
    "mlflow": ["/data/spans/1/attributes/mlflow.spanInputs", "/data/spans/1/attributes/mlflow.spanOutputs"],
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_all_around_the_bodies_stays(name):
    for _, text in sample(name):
        before, after = json.loads(text), to_responses(text, options(name)).body
        assert list(before) == list(after)
        for pointer in filter(None, POINTERS[name]):
            for value in (before, after):
                *way, last = [int(part) if part.isdigit() else part for part in pointer.split("/")[1:]]
                for part in way:
                    value = value[part]
                value[last] = None
        assert before == after


@pytest.mark.parametrize("name", sorted({name for name, source in SOURCES.items() if source.tell} | {"mlflow"}))
@pytest.mark.parametrize("convert", [to_responses, to_chat])
def test_unsaid_a_record_of_a_source_is_refused_by_name(name, convert):
    for _, text in sample(name):
        with pytest.raises(Refused) as refused:
            convert(text)
        (reason,) = refused.value.reasons
        assert reason.code == "unknown_shape"
        assert reason.message.endswith(f"(--from {name} reads it)")


# ---------------------------------------------------------------- requests that are put together


def test_where_the_parts_of_a_request_stood():
    row = {
        "call_type": "completion",
        "messages": [USER, {**USER, "x": 1}],
        "model": "m",
        "model_parameters": {"seed": 1, "tools": [{**TOOL, "y": 1}]},
        "response": {**ANSWER, "z": 1},
    }
    said = {notice.code: notice.paths for notice in to_responses(row, options("litellm")).notices}
    assert sorted(said["dropped"]) == [
        "/messages/1/x",
        "/model_parameters/seed",
        "/model_parameters/tools/0/y",
        "/response/z",
    ]


def test_what_is_not_a_part_stays_behind_the_bodies():
    row = {"a": 1, "input": [USER], "output": ANSWER["choices"], "metadata": {"model": "m"}, "z": {"k": 1.50}}
    made = to_responses(json.dumps(row).replace("1.5", "1.50"), options("braintrust"))
    assert list(made.body) == ["request", "response", "a", "z"]
    assert made.json.endswith(b',"a":1,"z":{"k": 1.50}}')
    assert made.body["response"]["model"] == "m"


def test_a_record_over_several_lines_becomes_one():
    row = {"messages": [USER], "kwargs": {}, "response": ANSWER, "more": {"a": [1]}}
    assert b"\n" not in to_responses(json.dumps(row, indent=2), options("openhands")).json


def test_a_name_that_a_body_takes_is_told():
    row = {"messages": [USER], "kwargs": {}, "request": "mine", "response": ANSWER}
    assert ["/request"] in [
        notice.paths for notice in to_responses(row, options("openhands")).notices if notice.code == "dropped"
    ]


@pytest.mark.parametrize("nothing", [None, "", {}])
def test_a_row_without_an_answer_is_a_request(nothing):
    made = to_responses(
        {"messages": [USER], "model": "m", "model_parameters": {}, "response": nothing}, options("litellm")
    )
    assert (list(made.body), made.body["response"]) == (["request", "response"], nothing)


def test_items_are_an_input():
    items = [{"type": "message", "role": "user", "content": "x"}]
    row = {"call_type": "aresponses", "model": "m", "messages": items, "model_parameters": {}}
    assert to_chat(row, options("litellm")).body["request"] == {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
    }


# ---------------------------------------------------------------- what is refused

REFUSED = [
    (
        "litellm",
        {"call_type": "embedding", "messages": [USER]},
        "unknown_shape at the top: a log record of LiteLLM: a call of another API (call_type), …",
    ),
    (
        "litellm",
        {"messages": "redacted-by-litellm"},
        "unknown_shape at the top: a log record of LiteLLM: the messages were redacted …",
    ),
    (
        "litellm",
        {"messages": [{"role": "user", "content": "x... (litellm_truncated skipped 9 chars) ...y"}]},
        "unknown_shape at /messages: a log record of LiteLLM: LiteLLM cut …",
    ),
    (
        "litellm",
        {"id": "x"},
        "missing_field at the top: a log record of LiteLLM without a body, expected one at /response",
    ),
    (
        "langfuse",
        {"type": "SPAN", "input": "x"},
        "unknown_shape at the top: a row of Langfuse: a row of another type than GENERATION",
    ),
    (
        "langfuse",
        {"type": "GENERATION", "input": "plain words"},
        "unknown_shape at /input: a string that holds no JSON, expected a body",
    ),
    (
        "langsmith",
        {"run_type": "chain", "inputs": {}},
        "unknown_shape at the top: a run of LangSmith: a run of another type than llm",
    ),
    (
        "langsmith",
        {"run_type": "llm", "inputs": {"messages": [[{"lc": 1}]]}},
        "unknown_shape at the top: a run of LangSmith: LangChain's own messages …",
    ),
    (
        "braintrust",
        {"span_attributes": {"type": "task"}, "input": [USER]},
        "unknown_shape at the top: a span of Braintrust: a span of another type than llm",
    ),
    (
        "braintrust",
        {
            "input": [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": {"type": "braintrust_attachment"}}}],
                }
            ]
        },
        "unknown_shape at /input: a span of Braintrust: an attachment …",
    ),
    (
        "databricks",
        {"status_code": 429, "request": json.dumps({"messages": [USER]}), "response": "{}"},
        "not_finished at /status_code: a call that failed: …",
    ),
    (
        "weave",
        {"inputs": {"messages": "weave:///a/b"}, "output": None},
        "unknown_shape at /inputs: a call of W&B Weave: a reference …",
    ),
    (
        "azure-apim",
        {"SequenceNumber": 1, "RequestMessages": [USER]},
        "unknown_shape at the top: a row of Azure API Management: a later piece …",
    ),
    (
        "azure-apim",
        {"SequenceNumber": 0, "RequestMessages": '[{"role": "us'},
        "unknown_shape at /RequestMessages: a string that holds no JSON, …",
    ),
    (
        "openhands",
        {"messages": [USER], "fncall_messages": [], "response": ANSWER},
        "unknown_shape at the top: a completion log of OpenHands: the calls …",
    ),
    (
        "inspect",
        {"event": "tool"},
        "unknown_shape at the top: a model event of Inspect AI: an event of another kind than model",
    ),
    (
        "inspect",
        {"event": "model", "call": {"request": {"messages": [{"role": "user", "content": "attachment://ab"}]}}},
        "unknown_shape at /call/request: a model event of Inspect AI: a reference …",
    ),
    (
        "helicone",
        {"request_id": "q"},
        "missing_field at the top: a row of Helicone without a body, expected one at /request_body or /response_body",
    ),
    ("helicone", [USER], "unknown_shape at the top: not a helicone, as --from says"),
    ("mlflow", {"data": {"spans": []}}, "unknown_shape at /data/spans: a trace with no model call, expected one …"),
    (
        "mlflow",
        {"spans": [{"attributes": {"mlflow.spanType": "LLM"}}] * 2},
        "unknown_shape at /spans: a trace with several model calls, …",
    ),
    ("codex", {"messages": [USER]}, "unknown_shape at the top: not a codex, as --from says"),
    ("openai-batch", {"messages": [USER]}, "unknown_shape at the top: not a openai-batch, as --from says"),
    (
        "vcr",
        {"request": {"body": ""}, "response": {"body": {"string": "{}"}, "status": {"code": 500}}},
        "not_finished at /response/status/code: …",
    ),
]


@pytest.mark.parametrize(("name", "record", "sentence"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_not_read(name, record, sentence):
    reason = why(record, name)
    assert reason == sentence if not sentence.endswith("…") else reason.startswith(sentence[:-1])


def test_what_is_not_read_is_tried_for_every_condition():
    assert {name for name, source in SOURCES.items() if source.unfit or source.cuts or source.status} <= {
        name for name, _, _ in REFUSED
    }


@pytest.mark.parametrize("name", UNREADABLE)
def test_sources_that_cannot_be_exact_are_refused_by_name(name):
    assert why({"x": 1}, name) == f"unknown_shape at the top: {UNREADABLE[name].label}: {UNREADABLE[name].why}"
    result = CliRunner().invoke(main, ["to-chat", "--from", name], input="{}")
    assert result.exit_code == 2
    assert UNREADABLE[name].why[:40] in result.output


TOLD = {
    "litellm-spend": {
        "request_id": "q",
        "spend": 0.1,
        "call_type": "acompletion",
        "messages": [USER],
        "response": ANSWER,
    },
    "datadog": {"span_id": "s", "meta": {"kind": "llm", "input": {"messages": [{"role": "user", "content": "None"}]}}},
    "opentelemetry": {"name": "chat", "span_id": "s", "attributes": {"gen_ai.input.messages": "[]"}},
    "inspect-log": {"version": 2, "eval": {}, "samples": []},
    "openai-evals": {"run_id": "r", "event_id": 0, "sample_id": "s", "type": "sampling", "data": {"prompt": [USER]}},
    "tensorzero": {"id": "i", "input": "{}", "output": "[]", "inference_params": "{}"},
}


def test_every_tell_has_a_sample():
    assert set(TOLD) == {name for name, source in UNREADABLE.items() if source.tell}


@pytest.mark.parametrize(("name", "record"), TOLD.items())
@pytest.mark.parametrize("convert", [to_responses, to_chat])
def test_their_records_are_refused_with_the_reason(name, record, convert):
    with pytest.raises(Refused) as refused:
        convert(record)
    (reason,) = refused.value.reasons
    assert str(reason) == f"unknown_shape at the top: {UNREADABLE[name].label} ({UNREADABLE[name].why})"


# ---------------------------------------------------------------- the command line


@pytest.mark.parametrize("option", ["--at", "--request-at", "--response-at", "--accept-loss"])
def test_a_pointer_begins_with_a_slash(option):
    result = CliRunner().invoke(main, ["to-responses", option, "messages"], input="{}")
    assert result.exit_code == 2
    assert "'messages' is no JSON Pointer, expected one like /messages" in result.output


def test_the_halves_of_a_pair_are_named_on_the_command_line():
    row = json.dumps({"in": {"messages": [USER]}, "out": ANSWER})
    result = CliRunner().invoke(main, ["to-responses", "-q", "--request-at", "/in", "--response-at", "/out"], input=row)
    made = json.loads(result.stdout)
    assert (made["in"]["input"][0]["role"], made["out"]["object"]) == ("user", "response")


def test_a_name_that_is_not_known():
    result = CliRunner().invoke(main, ["to-responses", "--from", "nonsense"], input="{}")
    assert result.exit_code == 2
    assert "'nonsense' is not one of chat-request, message-list, " in result.output


def test_langfuse_may_hold_an_answer_that_is_calls_alone():
    asked = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": F}]}
    row = {"id": "l", "traceId": "t", "type": "GENERATION", "input": [USER], "output": asked}
    [item] = to_responses(row, Options(shape="langfuse")).body["output"]
    assert (item["type"], item["call_id"]) == ("function_call", "c")


def test_helicone_may_hold_an_answer_that_calls_itself_a_chunk():
    choice = {"index": 0, "delta": {}, "message": {"role": "assistant", "content": "y"}, "finish_reason": "stop"}
    answer = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    row = {"request_body": {"messages": [USER]}, "response_body": answer}
    made = to_responses(row, Options(shape="helicone")).body["response_body"]
    assert made["output"][0]["content"][0]["text"] == "y"


F = {"name": "f", "arguments": "{}"}
