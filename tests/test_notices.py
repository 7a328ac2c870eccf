"""Every notice: what gives it, with its pointers and its detail, and what says nothing and gives none."""

import pytest
from strategies import USER, USER_ITEM, asks, call, completion, function_call, output, response, said, tool

from converter import Options, Refused, to_chat, to_responses
from converter.ids import legacy_call_id
from converter.outcome import LOSSES, NOTICES

R, C = "to-responses", "to-chat"
VERBS = {R: to_responses, C: to_chat}
KNOWN = {"tools": {"f": True}}
NONE = {"messages": [USER]}
ITEM = {
    "type": "message",
    "id": "msg_1",
    "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "y", "annotations": []}],
}
TOOLS = [{"type": "function", "function": {"name": "f"}}]
OPEN_TOOLS = [{"type": "function", "name": "f", "strict": False}]
THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}]}

CITED = {"type": "url_citation", "url_citation": {"start_index": 0, "end_index": 1, "url": "u", "title": "t"}}
FLAT = {"type": "url_citation", "start_index": 0, "end_index": 1, "url": "u", "title": "t"}
CUSTOM = {"id": "c", "type": "custom", "custom": {"name": "s", "input": "i"}}
CUSTOM_ITEM = {"type": "custom_tool_call", "call_id": "c", "name": "s", "input": "i"}

TOKEN = {"token": "y", "logprob": -1, "bytes": [121], "top_logprobs": []}
TOLD = completion(said("y"))["choices"][0]


def images(*urls):
    return [{"type": "image_url", "image_url": {"url": url}} for url in urls]


# What gives which notice, where; a detail is compared where the row has one.
ROWS = [
    ("dropped", R, {}, {**NONE, "seed": 7, "stop": ["a", "b"], "vendor": {"a": [1]}}, ["/vendor", "/stop", "/seed"]),
    ("dropped", R, {}, {**NONE, "n": 2}, ["/n"]),
    ("dropped", R, {}, {**NONE, "response_format": {"type": "json_object"}}, ["/response_format"]),
    ("dropped", R, {}, {**NONE, "max_tokens": 15}, ["/max_tokens"]),
    ("dropped", R, {}, {**NONE, "reasoning_effort": "minimal"}, ["/reasoning_effort"]),
    ("dropped", R, {}, {**NONE, "service_tier": "scale"}, ["/service_tier"]),
    (
        "dropped",
        R,
        {},
        {**NONE, "metadata": {"a/b": 1, "c~d": "x" * 513, "e": "v"}},
        ["/metadata/a~1b", "/metadata/c~0d"],
    ),
    ("dropped", R, {}, {**NONE, "safety_identifier": "s" * 65}, ["/safety_identifier"]),
    ("dropped", R, {}, [{**USER, "name": "ann"}], ["/0/name"]),
    ("dropped", R, {}, [said("y", vendor={"a": 1}, reasoning_content="r")], ["/0/vendor", "/0/reasoning_content"]),
    ("dropped", R, {}, completion(said("y"), system_fingerprint="fp"), ["/system_fingerprint"]),
    (
        "dropped",
        R,
        {},
        completion(
            said("y"),
            usage={
                "prompt_tokens": 1,
                "completion_tokens": 1,
                "total_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 1},
                "completion_tokens_details": {"reasoning_tokens": 0},
            },
        ),
        ["/usage/prompt_tokens_details/audio_tokens"],
    ),
    ("dropped", C, {}, [USER_ITEM, {**USER_ITEM, "vendor": 1}], ["/1/vendor"]),
    ("dropped", C, {}, [THOUGHT, said("y", type="message")], ["/0"]),
    ("dropped", C, {}, {"input": "x", "truncation": "auto", "max_tool_calls": 2}, ["/max_tool_calls", "/truncation"]),
    ("dropped", C, {}, {"input": "x", "reasoning": {"effort": "low", "summary": "auto"}}, ["/reasoning/summary"]),
    (
        "dropped",
        C,
        {},
        {"input": "x", "temperature": 2.5, "presence_penalty": -3},
        ["/temperature", "/presence_penalty"],
    ),
    (
        "echo",
        C,
        {},
        response(ITEM, instructions="i", tools=[{"type": "web_search"}], tool_choice="required", temperature=0.5),
        ["/instructions", "/tools", "/tool_choice", "/temperature"],
    ),
    ("filled", R, {}, {"model": "m", "choices": [{"message": said("y"), "finish_reason": "stop"}]}, ["/created"]),
    (
        "filled",
        R,
        {},
        completion(said("y"), usage={"prompt_tokens": 1, "completion_tokens": 1}),
        ["/usage/prompt_tokens_details", "/usage/completion_tokens_details", "/usage/total_tokens"],
    ),
    (
        "filled",
        R,
        KNOWN,
        [{"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}],
        ["/0/function_call"],
        "call_id: a legacy function_call has none",
    ),
    (
        "filled",
        C,
        {},
        {
            "input": "x",
            "tools": [
                {
                    "type": "function",
                    "name": "f",
                    "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
                }
            ],
        },
        ["/tools/0"],
    ),
    ("filled", C, {}, {"input": "x", "text": {"format": {"type": "json_schema", "schema": {}}}}, ["/text/format"]),
    ("moved", C, KNOWN, [function_call(), {"type": "message", "role": "developer", "content": "d"}, output()], ["/2"]),
    ("moved", C, KNOWN, [function_call(), said("y", type="message"), output()], ["/1"]),
    (
        "joined",
        R,
        {},
        completion(said([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])),
        ["/choices/0/message/content"],
        "several texts of one answer, on the way back",
    ),
    (
        "moved",
        R,
        KNOWN,
        [asks(call()), said("y"), tool()],
        ["/1"],
        "on the way back, text behind calls stands before them",
    ),
    (
        "moved",
        R,
        KNOWN,
        [asks(call()), USER, tool()],
        ["/2"],
        "on the way back, an output stands directly behind its call",
    ),
    (
        "moved",
        R,
        KNOWN,
        [asks(call(id="a")), asks(call(id="b")), tool("b"), asks(call(id="c")), tool("a"), tool("c")],
        ["/4"],
    ),
    ("joined", R, KNOWN, [asks(call(id="a")), asks(call(id="b")), tool("a"), tool("b")], ["/1"]),
    ("dropped", R, KNOWN, [asks(call()), said(""), tool()], ["/1"]),
    (
        "joined",
        R,
        KNOWN,
        [said("y"), asks(call()), tool()],
        ["/1"],
        "the calls follow an assistant message and become one turn with it",
    ),
    (
        "joined",
        C,
        KNOWN,
        [function_call(), output(output=[])],
        ["/1/output"],
        "an empty list of parts becomes an empty text",
    ),
    (
        "dropped",
        R,
        {},
        [said([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], annotations=[CITED])],
        ["/0/annotations"],
        "no single text that they could index",
    ),
    (
        "dropped",
        R,
        {},
        {"messages": [USER], "web_search_options": {}},
        ["/web_search_options"],
        "the model's own search",
    ),
    (
        "dropped",
        R,
        {},
        {"messages": [USER], "tools": TOOLS, "tool_choice": "required", "function_call": "none"},
        ["/function_call"],
        "tool_choice goes before it",
    ),
    (
        "dropped",
        C,
        {},
        response({**ITEM, "status": "incomplete"}),
        ["/output/0/status"],
        "a message cut off in an answer that is not",
    ),
    (
        "moved",
        C,
        {},
        response({**ITEM, "content": [{"type": "refusal", "refusal": "n"}, *ITEM["content"]]}),
        ["/output/0/content/1"],
        "text behind a refusal",
    ),
    (
        "dropped",
        C,
        {},
        [
            {
                **USER_ITEM,
                "content": [{"type": "input_file", "file_data": "data:text/plain;base64,QQ==", "file_url": "u"}],
            }
        ],
        ["/0/content/0/file_url"],
    ),
    ("dropped", C, {}, [USER_ITEM, THOUGHT], ["/1"], "reasoning (--reasoning keep carries it)"),
    ("dropped", C, {"reasoning": "keep"}, [USER_ITEM, THOUGHT], ["/1"], "reasoning that no message follows"),
    (
        "dropped",
        C,
        {"reasoning": "keep"},
        {"input": [USER_ITEM, THOUGHT]},
        ["/input/1"],
        "reasoning that no message follows",
    ),
    ("dropped", C, KNOWN, [function_call(), output(status="incomplete")], ["/1/status"]),
    ("echo", R, KNOWN, [asks(call()), tool(name="f")], ["/1/name"], "the name of the call that it answers"),
    ("dropped", R, KNOWN, [asks(call()), tool(name="g")], ["/1/name"]),
    (
        "allowed",
        R,
        {"allow": {"unsupported_item"}},
        [asks(CUSTOM), tool("c")],
        ["/0/tool_calls/0", "/1"],
    ),
    (
        "repaired",
        C,
        {"repair": {"lift-media"}, **KNOWN},
        [function_call(), output(output=[{"type": "input_image", "image_url": "data:,"}])],
        ["/1/output/0"],
        "lift-media: media put into a user message behind the outputs",
    ),
    (
        "odd",
        R,
        {},
        [{"role": "user", "content": [{"type": "document_url", "document_url": "https://example.test/a.pdf"}]}],
        ["/0/content/0"],
        "Mistral's document_url: the way back gives a file part, where it can",
    ),
    ("odd", C, {}, [CUSTOM_ITEM], ["/0"], "OpenAI's own item; the way back needs --target openai"),
    ("joined", C, {}, response(ITEM, {**ITEM, "id": "msg_2"}), ["/output/1/content/0"]),
    (
        "repaired",
        C,
        {"repair": {"developer-to-system"}},
        [{"type": "message", "role": "developer", "content": "d"}],
        ["/0/role"],
        "developer-to-system",
    ),
    (
        "allowed",
        R,
        {"tools": {"f": False}, "allow": {"arguments_schema"}},
        [asks(call()), tool()],
        ["/0/tool_calls/0/function/arguments"],
        "arguments_schema: 'false' of the schema is not met at the top (--tools gives another schema, --allow arguments_schema writes the call as it is)",
    ),
    (
        "repaired",
        R,
        {"repair": {"empty-arguments"}, **KNOWN},
        [asks({"id": "call_1", "type": "function", "function": {"name": "f"}}), tool()],
        ["/0/tool_calls/0/function"],
        'empty-arguments: no arguments became "{}"',
    ),
    (
        "dropped",
        R,
        {},
        [said("y", annotations=[CITED, {"type": "file_citation", "file_id": "file-1"}])],
        ["/0/annotations/1"],
    ),
    (
        "dropped",
        R,
        {},
        [said("y", annotations=[CITED, {**CITED, "url_citation": {**CITED["url_citation"], "start_index": -1}}])],
        ["/0/annotations/1"],
        "an index below zero",
    ),
    (
        "allowed",
        R,
        {"allow": {"unsupported_item"}},
        [asks(CUSTOM), tool("c"), USER],
        ["/0/tool_calls/0", "/1"],
        "unsupported_item: a custom tool call, which is outside the portable set (--target openai keeps it); the output of a call that was left out",
    ),
    (
        "allowed",
        C,
        {"allow": {"unsupported_item"}},
        [function_call(namespace="n"), output(), USER_ITEM],
        ["/0", "/1"],
        "unsupported_item: a call with a namespace: it changes which tool was called, and Chat has no place for it (--allow unsupported_item leaves it out); the output of a call that was left out",
    ),
    (
        "dropped",
        C,
        {"reasoning": "keep"},
        [{**THOUGHT, "encrypted_content": "e"}, said("y", type="message")],
        ["/0/encrypted_content"],
        "reasoning",
    ),
    ("open_call", R, KNOWN, [USER, asks(call(), call(id="call_2")), tool()], ["/1/tool_calls/1"], ""),
    ("open_call", C, KNOWN, [USER_ITEM, function_call()], ["/1"], ""),
    ("reused_call_id", R, KNOWN, [asks(call()), tool(), asks(call()), tool()], ["/2/tool_calls/0/id"], ""),
    ("reused_call_id", C, KNOWN, [function_call(), output(), function_call(), output()], ["/2/call_id"], ""),
    (
        "unchecked",
        R,
        {},
        [asks(call(), call(name="g", id="call_2"), call(id="call_3")), tool(), tool("call_2"), tool("call_3")],
        [f"/0/tool_calls/{at}/function/arguments" for at in range(3)],
        "f; g",
    ),
    ("unchecked", C, {}, [function_call(), output()], ["/0/arguments"], "f"),
    ("odd", R, {}, b'[{"role":"user","content":"\\ud83d"}]', ["/0/content"], "a lone surrogate, kept as its escape"),
    ("odd", R, KNOWN, completion(asks(call())), ["/choices/0/finish_reason"], "finish_reason stop beside tool calls"),
    (
        "odd",
        R,
        {},
        {**NONE, "max_tokens": 99, "max_completion_tokens": 100},
        ["/max_tokens"],
        "two token limits disagree",
    ),
    (
        "odd",
        R,
        KNOWN,
        [asks(call("[1]")), tool()],
        ["/0/tool_calls/0/function/arguments"],
        "arguments that are JSON but not an object",
    ),
    (
        "odd",
        C,
        KNOWN,
        [function_call(' "text" '), output()],
        ["/0/arguments"],
        "arguments that are JSON but not an object",
    ),
    (
        "odd",
        R,
        KNOWN,
        [asks(call()), tool(content=images("data:,"))],
        ["/1/content/0"],
        "an image in a Chat tool message",
    ),
    (
        "odd",
        R,
        {},
        {**NONE, "tools": TOOLS, "tool_choice": "any"},
        ["/tool_choice"],
        "tool_choice any, read as required",
    ),
    (
        "odd",
        R,
        {},
        {**NONE, "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "nonsense"}}}]},
        ["/tools/0/function/parameters"],
    ),
    (
        "odd",
        R,
        KNOWN,
        {
            "messages": [asks(call()), tool()],
            "tools": [{"type": "function", "function": {"name": "g"}}],
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "g"}}]},
            },
        },
        ["/messages/0/tool_calls/0/function/name"],
    ),
    # answers
    (
        "dropped",
        C,
        {},
        response(ITEM, incomplete_details={"reason": "max_output_tokens"}),
        ["/incomplete_details/reason"],
    ),
    ("filled", C, {}, response(ITEM, model=""), ["/model"], "model: the response names none"),
    (
        "odd",
        C,
        {},
        response(ITEM, status="incomplete", incomplete_details={"reason": "vendor"}),
        ["/incomplete_details/reason"],
        "an unknown reason, read as length",
    ),
    ("dropped", C, {}, response(ITEM, completed_at=2, billing={"payer": "p"}), ["/completed_at", "/billing"]),
    (
        "joined",
        C,
        {},
        response({**ITEM, "content": [{"type": "refusal", "refusal": "no"}] * 2}),
        ["/output/0/content/1"],
        "several refusals of one answer",
    ),
    ("filled", R, {}, completion(said("y"), model=""), ["/model"], "model: the completion names none"),
    (
        "filled",
        R,
        {},
        completion(said("y"), None),
        ["/choices/0/finish_reason"],
        "no finish_reason: read as completed",
    ),
    (
        "odd",
        R,
        {},
        completion(said("y"), "vendor"),
        ["/choices/0/finish_reason"],
        "an unknown finish_reason, read as completed",
    ),
    (
        "odd",
        R,
        {},
        completion(said("y"), "tool_calls"),
        ["/choices/0/finish_reason"],
        "finish_reason tool_calls without a call",
    ),
    (
        "dropped",
        R,
        {},
        {**completion(said("y")), "choices": [{**TOLD, "logprobs": {"content": [], "refusal": [TOKEN]}}]},
        ["/choices/0/logprobs/refusal"],
        "no text part of its own",
    ),
    (
        "filled",
        R,
        {},
        {**completion(said("y")), "choices": [{**TOLD, "logprobs": {"content": [{"token": "y", "logprob": -1}]}}]},
        ["/choices/0/logprobs/content"],
        "bytes and top_logprobs: required there, null or absent here",
    ),
    # settings
    ("dropped", C, {}, {"input": "x", "reasoning": {"effort": "vast"}}, ["/reasoning/effort"]),
    ("dropped", C, {}, {"input": "x", "text": {"verbosity": "vast"}}, ["/text/verbosity"]),
    ("dropped", C, {}, {"input": "x", "text": {"format": {"type": "grammar"}}}, ["/text/format"]),
    (
        "odd",
        C,
        {},
        {"input": "x", "text": {"format": {"type": "json_object"}}},
        ["/text/format"],
        "json_object is OpenAI's own; the way back needs --target openai",
    ),
    ("dropped", C, {}, {"input": "x", "include": "y", "top_logprobs": 21}, ["/include", "/top_logprobs"]),
    (
        "filled",
        C,
        {},
        {"input": "x", "top_logprobs": 2},
        ["/top_logprobs"],
        "logprobs: Chat wants it beside top_logprobs",
    ),
    ("dropped", C, {}, {"input": "x", "background": True}, ["/background"]),
    ("dropped", R, {}, {**NONE, "logprobs": 1, "top_logprobs": -1}, ["/logprobs", "/top_logprobs"]),
    ("dropped", R, {}, {**NONE, "metadata": "x", "verbosity": "vast"}, ["/metadata", "/verbosity"]),
    ("dropped", R, {}, {**NONE, "metadata": {f"k{at}": "v" for at in range(17)}}, ["/metadata"]),
    ("dropped", R, {}, {**NONE, "tools": TOOLS, "function_call": "perhaps"}, ["/function_call"]),
    ("dropped", R, {}, {**NONE, "tool_choice": "perhaps"}, ["/tool_choice"]),
    ("dropped", R, {}, {**NONE, "stream_options": 1}, ["/stream_options"]),
    ("dropped", R, {}, {**NONE, "stream_options": {"include_obfuscation": 1}}, ["/stream_options/include_obfuscation"]),
    # reasoning
    (
        "dropped",
        R,
        {"reasoning": "keep"},
        [said("y", reasoning_content="r", reasoning="other", reasoning_details=[{"type": "vendor", "index": 0}])],
        ["/0/reasoning", "/0/reasoning_details/0/index"],
    ),
    (
        "dropped",
        R,
        {"reasoning": "keep"},
        [said("y", reasoning_details=[{"type": "vendor"}])],
        ["/0/reasoning_details"],
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=[f"{at}-{row[0]}" for at, row in enumerate(ROWS)])
def test_notice(row):
    code, verb, options, record, paths = row[:5]
    notices = VERBS[verb](record, Options(**options)).notices
    [notice] = [notice for notice in notices if notice.code == code]
    assert sorted(notice.paths) == sorted(paths)
    if len(row) > 5:
        assert notice.detail == row[5]


def test_every_notice_has_a_row():
    assert {row[0] for row in ROWS} == set(NOTICES)


# ---------------------------------------------------------------- no notice

SILENT = {
    "null": (R, {**NONE, "seed": None, "stop": None, "vendor": None, "tools": None, "n": None}),
    "empty": (R, {**NONE, "stop": [], "logit_bias": {}, "user": "", "vendor": {}, "metadata": {}}),
    "null in messages": (
        R,
        [said("y", refusal=None, tool_calls=None, function_call=None, audio=None, annotations=None, vendor=None)],
    ),
    "zero counts": (
        R,
        completion(
            said("y"),
            usage={
                "prompt_tokens": 1,
                "completion_tokens": 1,
                "total_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
                "completion_tokens_details": {
                    "reasoning_tokens": 0,
                    "audio_tokens": 0,
                    "accepted_prediction_tokens": 0,
                    "rejected_prediction_tokens": 0,
                },
            },
        ),
    ),
    "n: 1": (R, {**NONE, "n": 1}),
    "log probabilities of nothing": (
        C,
        [said([{"type": "output_text", "text": "y", "annotations": [FLAT], "logprobs": []}], type="message")],
    ),
    "include_usage": (R, {**NONE, "stream": True, "stream_options": {"include_usage": True}}),
    "the name of the call that is answered": (R, [asks(call()), tool(name="f")]),
    "the index of a call": (R, [asks(call(index=0)), tool()]),
    "strict: false": (R, {**NONE, "tools": [{"type": "function", "function": {"name": "f", "strict": False}}]}),
    "strict: false towards Chat": (C, {"input": "x", "tools": OPEN_TOOLS}),
    "store: false": (R, {**NONE, "store": False}),
    "store: false towards Chat": (C, {"input": "x", "store": False}),
    "the source's defaults": (
        C,
        {
            "input": "x",
            "truncation": "disabled",
            "background": False,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
        },
    ),
    "made ids": (R, [asks(call()), tool()]),
    "ids and status: completed": (
        C,
        [{**USER_ITEM, "id": "msg_1", "status": "completed"}, function_call(id="call_1"), output(status="completed")],
    ),
    "instructions": (C, {"instructions": "i", "input": "x"}),
    "echo defaults of a resource": (R, completion(said("y"))),
    "a resource that repeats only defaults": (
        C,
        response(
            ITEM,
            completed_at=None,
            incomplete_details=None,
            error=None,
            previous_response_id=None,
            instructions=None,
            tools=[],
            truncation="disabled",
            parallel_tool_calls=True,
            text={"format": {"type": "text"}},
            reasoning=None,
            background=False,
            store=False,
            metadata={},
            max_output_tokens=None,
            top_logprobs=0,
            presence_penalty=0,
            frequency_penalty=0,
            tool_choice="auto",
        ),
    ),
    "an answer without a role": (R, completion({"role": "", "content": "y"})),
    "an open call of an answer": (R, completion(asks(call()), "tool_calls")),
    "an open call of an answer towards Chat": (C, response(function_call())),
    "null and an empty text beside calls": (R, [asks(call(), content=""), tool()]),
    "each detail of an image": (
        C,
        [
            {**USER_ITEM, "content": [{"type": "input_image", "image_url": "data:,", "detail": detail}]}
            for detail in ("auto", "low", "high", None)
        ],
    ),
    "no tools": (R, {**NONE, "tools": [], "tool_choice": "auto", "parallel_tool_calls": False}),
}


@pytest.mark.parametrize("name", SILENT)
def test_what_says_nothing_gives_no_notice(name):
    verb, record = SILENT[name]
    told = {notice.code for notice in VERBS[verb](record, Options(**KNOWN)).notices}
    assert told == ({"echo"} if name in REPEATED else set())


REPEATED = {"zero counts", "the name of the call that is answered", "a resource that repeats only defaults"}
"""No loss, but not written either: so that the way back can be accounted for, the values are named as an echo."""


# ---------------------------------------------------------------- one notice a code, and what is asked for


def test_at_most_one_notice_a_code():
    record = {
        **NONE,
        "seed": 1,
        "stop": "a",
        "vendor": {"a": 1},
        "messages": [{**USER, "name": "n"}, said("y", weight=0, vendor=1)],
    }
    notices = to_responses(record).notices
    assert [notice.code for notice in notices] == ["dropped"]
    assert sorted(notices[0].paths) == [
        "/messages/0/name",
        "/messages/1/vendor",
        "/messages/1/weight",
        "/seed",
        "/stop",
        "/vendor",
    ]


def test_strict_refuses_what_is_lost_or_odd():
    losses = {row[0] for row in ROWS if row[0] in LOSSES}
    assert losses == LOSSES
    for row in ROWS:
        verb, options, record = row[1:4]
        notices = {notice.code for notice in VERBS[verb](record, Options(**options)).notices} & LOSSES
        if not notices:
            assert VERBS[verb](record, Options(**options, strict=True)).notices
            continue
        with pytest.raises(Refused) as refused:
            VERBS[verb](record, Options(**options, strict=True))
        assert {reason.code for reason in refused.value.reasons} == {"loss"}


@pytest.mark.parametrize(
    ("accepted", "left"),
    [
        (("/seed",), ["/messages/0/name", "/messages/1/name"]),
        (("/messages/*/name",), ["/seed"]),
        (("/messages/0/name", "/seed"), ["/messages/1/name"]),
        (("/seed", "/messages/*/name"), []),
        (("/see?",), ["/messages/0/name", "/messages/1/name", "/seed"]),
        (("/[s]eed",), ["/messages/0/name", "/messages/1/name", "/seed"]),
    ],
)
def test_accepted_losses_do_not_refuse(accepted, left):
    record = {"messages": [{**USER, "name": "a"}, {**USER, "name": "b"}], "seed": 1}
    options = Options(strict=True, accept_loss=accepted)
    if not left:
        assert to_responses(record, options).notices
        return
    with pytest.raises(Refused) as refused:
        to_responses(record, options)
    assert sorted(reason.path for reason in refused.value.reasons) == left


def test_a_pattern_is_a_pointer_in_which_only_the_star_is_special():
    record = {**NONE, "a[0]": 1, "b?": 1}
    assert to_responses(record, Options(strict=True, accept_loss=("/a[0]", "/b?"))).notices


def test_a_standing_record_has_no_notice_of_its_unknown_fields():
    record = {"input": "x", "vendor": {"a": 1}, "seed": 2}
    assert to_responses(record).notices == []
    assert to_responses(record, Options(strict=True)).body == record


def test_pointers_stand_in_the_order_of_the_record():
    names = [f"{letter}{letter}" for letter in "hgfedcba"]
    record = {"input": "x", "reasoning": {"effort": "low", **dict.fromkeys(names, "z")}}
    [notice] = to_chat(record).notices
    assert notice.paths == [f"/reasoning/{name}" for name in names]


def test_a_citation_with_an_index_below_zero_has_no_place():
    cites = [
        {"type": "url_citation", "url_citation": {"start_index": n, "end_index": 5, "url": "u", "title": "t"}}
        for n in (-1, 0)
    ]
    for wrap in (lambda m: [m], lambda m: {"choices": [{"message": m, "finish_reason": "stop"}]}):
        result = to_responses(wrap({"role": "assistant", "content": "x", "annotations": cites}))
        assert b'"start_index":0' in result.json
        assert b"-1" not in result.json
        assert any(path.endswith("/annotations/0") for one in result.notices for path in one.paths)


def test_legacy_calls_are_given_ids_by_their_number():
    legacy = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    answer = {"role": "function", "name": "f", "content": "ok"}
    items = to_responses([legacy, answer, legacy, answer], Options(**KNOWN)).body
    made = [legacy_call_id("f", number) for number in (0, 1)]
    assert [item["call_id"] for item in items] == [made[0], made[0], made[1], made[1]]
