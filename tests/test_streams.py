"""Folding of streams: tiny invented streams, and the whole value that each folds to."""

import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from converter import Options, to_chat, to_responses
from converter.outcome import Account, Refused
from converter.responses_stream import EVENTS
from converter.streams import Frames, chunk_id, fold, frames, is_stream

# ---------------------------------------------------------------- help


def text_of(record: Any) -> bytes:
    return record if isinstance(record, bytes) else json.dumps(record).encode()


def folded(record: Any) -> tuple[Any, list[tuple[str, list[str], str]]]:
    """The folded value and the notices; the stream must not be refused."""
    account = Account()
    result = fold(frames(text_of(record)), account)
    assert list(account.reasons) == []
    assert result is not None
    return json.loads(result), [(n.code, n.paths, n.detail) for n in account.notices()]


def refused(record: Any) -> list[str]:
    """Why the stream is refused, as sentences."""
    account = Account()
    try:
        assert fold(frames(text_of(record)), account) is None
    except Refused as refusal:
        return [str(reason) for reason in refusal.reasons]
    return [str(reason) for reason in account.reasons]


def delta(finish: str | None = None, index: int = 0, **fields: Any) -> dict[str, Any]:
    return {
        "object": "chat.completion.chunk",
        "choices": [{"index": index, "delta": fields, "finish_reason": finish}],
    }


def call(index: int | None = 0, **fields: Any) -> dict[str, Any]:
    """A delta with one piece of a tool call."""
    head = {} if index is None else {"index": index}
    name = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    return delta(tool_calls=[{**head, **fields, "function": name}])


def chat(*chunks: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    return {"chunks": [*chunks, delta(finish)]}


def completion(message: dict[str, Any], finish: str = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": None, **message}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"object": "chat.completion", "choices": [choice], **more}


def function(name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return {**more, "function": {"name": name, "arguments": arguments}}


def sse(*payloads: Any, end: str = "\n\n", done: bool = True) -> str:
    lines = [f"data: {json.dumps(payload)}{end}" for payload in payloads]
    return "".join([*lines, f"data: [DONE]{end}" if done else ""])


# ---------------------------------------------------------------- Chat chunks

HELLO = [delta(role="assistant", content=""), delta(content="Hel"), delta(content="lo"), delta("stop")]

CHAT = {
    "text": (chat(delta(role="assistant", content="Hel"), delta(content="lo")), completion({"content": "Hello"})),
    "an empty answer": (chat(delta(content="")), completion({"content": ""})),
    "refusal": (
        chat(delta(content=None, refusal="I "), delta(refusal="will not.")),
        completion({"refusal": "I will not."}),
    ),
    "no content beside a refusal": (chat(delta(content=""), delta(refusal="No.")), completion({"refusal": "No."})),
    "reasoning": (
        chat(delta(content=None, reasoning_content="a"), delta(reasoning_content="b"), delta(content="c")),
        completion({"content": "c", "reasoning_content": "ab"}),
    ),
    "reasoning under two names": (
        chat(delta(reasoning="a", reasoning_content="a"), delta(content="c")),
        completion({"content": "c", "reasoning": "a", "reasoning_content": "a"}),
    ),
    "reasoning details": (
        chat(
            delta(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "a", "format": "f"}]),
            delta(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "a", "signature": "s"}]),
            delta(reasoning_details=[{"type": "reasoning.encrypted", "index": 1, "data": "xx", "id": "rs_1"}]),
            delta(reasoning_details=[{"type": "reasoning.encrypted", "index": 1, "data": "yy", "id": "rs_2"}]),
        ),
        completion(
            {
                "reasoning_details": [
                    {"type": "reasoning.text", "index": 0, "text": "aa", "format": "f", "signature": "s"},
                    {"type": "reasoning.encrypted", "index": 1, "data": "xx", "id": "rs_1"},
                    {"type": "reasoning.encrypted", "index": 1, "data": "yy", "id": "rs_2"},
                ]
            }
        ),
    ),
    "content as parts": (
        chat(
            delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]),
            delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "m"}]}]),
            delta(content=[{"type": "text", "text": "a"}]),
            delta(content="b"),
        ),
        completion({"content": "ab", "reasoning_content": "hmm"}),
    ),
    "a part of another kind": (
        chat(delta(content="a"), delta(content="b"), delta(content=[{"type": "reference", "reference_ids": [1]}])),
        completion({"content": [{"type": "text", "text": "ab"}, {"type": "reference", "reference_ids": [1]}]}),
    ),
    "one call": (
        chat(call(id="c1", type="function", name="sum", arguments=""), call(arguments='{"a"'), call(arguments=":1}")),
        completion({"tool_calls": [function("sum", '{"a":1}', id="c1", type="function")]}),
    ),
    "two calls interleaved": (
        chat(
            call(0, id="a", name="f", arguments=""),
            call(1, id="b", name="g", arguments="{"),
            call(0, arguments="{}"),
            call(1, arguments="}"),
        ),
        completion({"tool_calls": [function("f", "{}", id="a"), function("g", "{}", id="b")]}),
    ),
    "two pieces of one call in one chunk": (
        chat(
            delta(
                tool_calls=[
                    {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}},
                    {"index": 0, "function": {"arguments": "}"}},
                ]
            )
        ),
        completion({"tool_calls": [function("f", "{}", id="a")]}),
    ),
    "calls by index, not by arrival": (
        chat(call(1, id="b", name="g", arguments="{}"), call(0, id="a", name="f", arguments="{}")),
        completion({"tool_calls": [function("f", "{}", id="a"), function("g", "{}", id="b")]}),
    ),
    "id and name repeated": (
        chat(call(id="a", name="f", arguments="{"), call(id="a", name="f", arguments="}")),
        completion({"tool_calls": [function("f", "{}", id="a")]}),
    ),
    "id and name emptied": (
        chat(call(id="a", name="f", arguments="{"), call(id="", name="", arguments="}"), call(id=None, name=None)),
        completion({"tool_calls": [function("f", "{}", id="a")]}),
    ),
    "one index for two calls": (
        chat(call(0, id="a", name="f", arguments="{}"), call(0, id="b", name="f", arguments="{}")),
        completion({"tool_calls": [function("f", "{}", id="a"), function("f", "{}", id="b")]}),
    ),
    "one index for two calls without ids": (
        chat(call(0, name="f", arguments='{"a":1}'), call(0, name="f", arguments='{"a":2}')),
        completion({"tool_calls": [function("f", '{"a":1}'), function("f", '{"a":2}')]}),
    ),
    "no index, ids": (
        chat(call(None, id="a", name="f", arguments="{}"), call(None, id="b", name="f", arguments="{}")),
        completion({"tool_calls": [function("f", "{}", id="a"), function("f", "{}", id="b")]}),
    ),
    "no arguments": (
        chat(call(id="a", name="f", arguments=None)),
        completion({"tool_calls": [{"id": "a", "function": {"name": "f"}}]}),
    ),
    "arguments that are an object": (
        chat(call(id="a", name="f", arguments={"b": 1, "a": 2})),
        completion({"tool_calls": [function("f", {"b": 1, "a": 2}, id="a")]}),
    ),
    "a custom call": (
        chat(
            delta(tool_calls=[{"index": 0, "id": "a", "type": "custom", "custom": {"name": "sh", "input": "l"}}]),
            delta(tool_calls=[{"index": 0, "custom": {"input": "s"}}]),
        ),
        completion({"tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "sh", "input": "ls"}}]}),
    ),
    "what a provider adds to a call": (
        chat(call(id="a", name="f", arguments="{}", extra_content={"google": {"thought_signature": "s", "x": None}})),
        completion(
            {"tool_calls": [function("f", "{}", id="a") | {"extra_content": {"google": {"thought_signature": "s"}}}]}
        ),
    ),
    "the old function_call": (
        chat(delta(function_call={"name": "f", "arguments": ""}), delta(function_call={"arguments": "{}"})),
        completion({"function_call": {"name": "f", "arguments": "{}"}}),
    ),
    "audio": (
        chat(delta(audio={"id": "a", "data": "QQ"}), delta(audio={"data": "==", "transcript": "hi", "expires_at": 1})),
        completion({"audio": {"id": "a", "data": "QQ==", "transcript": "hi", "expires_at": 1}}),
    ),
    "annotations": (
        chat(delta(content="a", annotations=[{"type": "url_citation"}]), delta(annotations=[{"type": "x"}])),
        completion({"content": "a", "annotations": [{"type": "url_citation"}, {"type": "x"}]}),
    ),
    "what providers add": (
        chat(
            {**delta(content="a", channel="analysis", padding="zz"), "provider": "P", "obfuscation": "x", "p": "abc"},
            {**delta(channel="final", native=None), "x_groq": {"id": "r"}},
            {"choices": [], "x_groq": {"usage": {"total_tokens": 3}}},
        ),
        completion(
            {"content": "a", "channel": "final"},
            provider="P",
            x_groq={"id": "r", "usage": {"total_tokens": 3}},
            usage={"total_tokens": 3},
        ),
    ),
    "said once, and counted last": (
        [
            {"id": "", "object": "", "created": 0, "choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
            {"id": "x", "created": 5, "model": "m", "usage": {"total_tokens": 1}, **delta(content="a")},
            {"id": "y", "created": 6, "model": "m2", "usage": None, **delta("length")},
            {"id": "x", "choices": [], "usage": {"total_tokens": 2}, "service_tier": "default"},
            {"id": "x", "choices": [], "usage": {"total_tokens": 0}},
        ],
        completion(
            {"content": "a"},
            "length",
            id="x",
            created=5,
            model="m",
            prompt_filter_results=[{"prompt_index": 0}],
            service_tier="default",
            usage={"total_tokens": 2},
        ),
    ),
    "Moonshot counts in the choice": (
        chat({"choices": [{"index": 0, "delta": {"content": "a"}, "usage": {"total_tokens": 2}}]}),
        completion({"content": "a"}, usage={"total_tokens": 2}),
    ),
    "the answer so far beside the delta": (
        chat(
            {"choices": [{"delta": {"content": "a"}, "message": {"role": "assistant", "content": "a"}, "text": "a"}]},
            {"choices": [{"delta": {"content": "b"}, "message": {"role": "assistant", "content": "ab"}}]},
        ),
        completion({"content": "ab"}),
    ),
    "a whole message instead of deltas": (
        {"chunks": [{"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "ab"}}]}]},
        completion({"content": "ab"}),
    ),
    "no delta": (chat(delta(content="a"), {"choices": [{"index": 0, "delta": None}]}), completion({"content": "a"})),
    "chunks in an array": (HELLO, completion({"content": "Hello"})),
    "[DONE] in an array": ([*HELLO, "[DONE]"], completion({"content": "Hello"})),
}


@pytest.mark.parametrize(("record", "expected"), CHAT.values(), ids=CHAT)
def test_chunks(record: Any, expected: Any) -> None:
    assert is_stream(text_of(record))
    assert folded(record) == (expected, [])


def test_choices_and_log_probabilities_are_kept_apart() -> None:
    one = {"token": "a", "logprob": -1, "bytes": None, "top_logprobs": []}
    chunks = [delta(index=1, content="b"), delta(content="a"), delta("stop"), delta("length", index=1)]
    chunks[1]["choices"][0]["logprobs"] = {"content": [one], "refusal": None}
    chunks[2]["choices"][0] |= {"logprobs": {"content": [one]}, "content_filter_results": {"hate": {"filtered": False}}}
    value, _ = folded(chunks)
    assert value["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "a"},
            "finish_reason": "stop",
            "logprobs": {"content": [one, one]},
            "content_filter_results": {"hate": {"filtered": False}},
        },
        {"index": 1, "message": {"role": "assistant", "content": "b"}, "finish_reason": "length"},
    ]


ODD = {
    "no index": (
        chat(call(None, id="a", name="f", arguments="{"), call(None, arguments="}")),
        completion({"tool_calls": [function("f", "{}", id="a")]}),
        "/choices/0/message/tool_calls/0",
        "pieces of a tool call bear no index: they continue the call opened last",
    ),
    "a name in pieces": (
        chat(call(id="a", name="open_", arguments=""), call(name="door", arguments="{}")),
        completion({"tool_calls": [function("open_door", "{}", id="a")]}),
        "/choices/0/message/tool_calls/0",
        "a tool name came in several pieces, which were joined",
    ),
    "a name that grows": (
        chat(call(id="a", name="open", arguments=""), call(name="open_door", arguments="{}")),
        completion({"tool_calls": [function("open_door", "{}", id="a")]}),
        "/choices/0/message/tool_calls/0",
        "a tool name came in several pieces, which were joined",
    ),
    "an id for each piece": (
        chat(call(id="a", name="f", arguments="{"), call(id="b", arguments="}")),
        completion({"tool_calls": [function("f", "{}", id="a")]}),
        "/choices/0/message/tool_calls/0/id",
        "pieces of one tool call bear different ids: the first is kept",
    ),
    "text after the end": (
        {"chunks": [delta("stop", content="a"), delta("stop", content="b")]},
        completion({"content": "ab"}),
        "/choices/0/message",
        "the answer goes on after its finish_reason",
    ),
}


@pytest.mark.parametrize(("record", "expected", "path", "detail"), ODD.values(), ids=ODD)
def test_what_had_to_be_guessed_is_told(record: Any, expected: Any, path: str, detail: str) -> None:
    assert folded(record) == (expected, [("odd", [path], detail)])


@pytest.mark.parametrize(
    ("chunk", "finish"),
    [
        (delta(content="a"), "stop"),
        (call(id="a", name="f", arguments="{}"), "tool_calls"),
        (delta(function_call={"name": "f", "arguments": "{}"}), "function_call"),
    ],
)
def test_a_server_that_says_done_and_no_finish_reason(chunk: Any, finish: str) -> None:
    value, notices = folded(sse(chunk))
    assert value["choices"][0]["finish_reason"] == finish
    detail = "the stream ended with [DONE] and without a finish_reason"
    assert notices == [("filled", ["/choices/0/finish_reason"], detail)]


# ---------------------------------------------------------------- Responses events


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind if kind in ("error", "ping") else f"response.{kind}", **fields}


def message(text: str | None = None, name: str = "msg_1", **more: Any) -> dict[str, Any]:
    content = [] if text is None else [{"type": "output_text", "text": text, "annotations": []}]
    status = "in_progress" if text is None else "completed"
    return {"type": "message", "id": name, "role": "assistant", "status": status, "content": content, **more}


def fcall(arguments: str = "", number: int = 0, **more: Any) -> dict[str, Any]:
    head = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": "read"}
    return {**head, "arguments": arguments, "status": "completed" if arguments else "in_progress", **more}


def added(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return event("output_item.added", output_index=index, item=item)


def done(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return event("output_item.done", output_index=index, item=item)


def text(piece: str, name: str = "msg_1", kind: str = "output_text", **more: Any) -> dict[str, Any]:
    return event(f"{kind}.delta", item_id=name, output_index=0, content_index=0, delta=piece, **more)


def completed(*output: dict[str, Any], **more: Any) -> dict[str, Any]:
    return event("completed", response={"status": "completed", "output": list(output), **more})


def response(*output: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"object": "response", "status": "completed", "output": list(output), **more}


REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
LINK = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}

RESPONSES = {
    "the terminal response alone": ([completed(message("Hi"))], response(message("Hi"))),
    "items of the events": (
        [added(0, message()), text("H"), text("i"), done(0, message("Hi")), completed()],
        response(message("Hi")),
    ),
    "both": (
        [added(0, message()), text("Hi"), done(0, message("Hi")), completed(message("Hi"))],
        response(message("Hi")),
    ),
    "closing events alone": (
        [
            event("output_text.done", item_id="msg_1", output_index=0, content_index=0, text="Hi"),
            done(0, message("Hi")),
            completed(),
        ],
        response(message("Hi")),
    ),
    "interleaved calls": (
        [
            added(0, fcall()),
            added(1, fcall(number=1)),
            event("function_call_arguments.delta", item_id="fc_0", output_index=0, delta='{"p"'),
            event("function_call_arguments.delta", item_id="fc_1", output_index=1, delta="{}"),
            event("function_call_arguments.delta", item_id="fc_0", output_index=0, delta=":1}"),
            done(1, fcall("{}", 1)),
            done(0, fcall('{"p":1}')),
            completed(),
        ],
        response(fcall('{"p":1}'), fcall("{}", 1)),
    ),
    "ids made anew for each event": (
        [
            added(0, message()),
            event(
                "content_part.added",
                item_id="a",
                output_index=0,
                content_index=0,
                part={"type": "output_text", "text": ""},
            ),
            text("Hi", "b"),
            done(0, message("Hi", "msg_2")),
            completed(),
        ],
        response(message("Hi", "msg_2")),
    ),
    "what only the opening events say": (
        [
            event(
                "created", response={"id": "resp_1", "status": "in_progress", "model": "m", "usage": None, "output": []}
            ),
            event("in_progress", response={"id": "resp_1", "status": "in_progress", "tools": []}),
            event("completed", response={"output": [message("Hi")], "usage": None}),
        ],
        response(message("Hi"), id="resp_1", model="m", tools=[], usage=None),
    ),
    "what stands beside the response": (
        [event("completed", response={"output": [message("Hi")]}, copilot_usage={"n": 1}, sequence_number=3)],
        response(message("Hi"), copilot_usage={"n": 1}),
    ),
    "reasoning, by two names": (
        [
            added(0, dict(REASONING)),
            text("h", "rs_1", "reasoning"),
            text("m", "rs_1", "reasoning_text"),
            event("reasoning_summary_text.delta", item_id="rs_1", output_index=0, summary_index=0, delta="s"),
            event("completed", response={"output": [{**REASONING, "encrypted_content": "e"}]}),
        ],
        response(
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "s"}],
                "content": [{"type": "reasoning_text", "text": "hm"}],
                "encrypted_content": "e",
            }
        ),
    ),
    "a refusal": (
        [
            added(0, message()),
            text("N", kind="refusal"),
            text("o", kind="refusal"),
            event("refusal.done", item_id="msg_1", output_index=0, content_index=0, refusal="No"),
            done(0, message(content=[{"type": "refusal", "refusal": "No"}])),
            completed(),
        ],
        response(message(content=[{"type": "refusal", "refusal": "No"}])),
    ),
    "annotations and log probabilities that only events tell": (
        [
            added(0, message()),
            text("Hi", logprobs=[{"token": "Hi"}]),
            event("output_text.annotation.added", item_id="msg_1", output_index=0, content_index=0, annotation=LINK),
            completed(message("Hi")),
        ],
        response(
            message(
                content=[{"type": "output_text", "text": "Hi", "annotations": [LINK], "logprobs": [{"token": "Hi"}]}]
            )
            | {"status": "completed"}
        ),
    ),
    "parts counted from 1": (
        [
            added(0, message()),
            event("output_text.delta", item_id="msg_1", output_index=0, content_index=1, delta="Hi"),
            done(0, message("Hi")),
            completed(message("Hi")),
        ],
        response(message("Hi")),
    ),
    "a custom tool call": (
        [
            added(0, {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "sh", "input": ""}),
            event("custom_tool_call_input.delta", item_id="ctc_1", output_index=0, delta="ls"),
            event("custom_tool_call_input.done", item_id="ctc_1", output_index=0, input="ls"),
            done(0, {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "sh", "input": "ls"}),
            completed(),
        ],
        response({"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "sh", "input": "ls"}),
    ),
    "how a hosted tool goes on": (
        [
            event("web_search_call.searching", item_id="ws_1", output_index=0),
            done(0, {"type": "web_search_call", "id": "ws_1", "status": "completed"}),
            {"type": "keepalive", "sequence_number": 3},
            completed(),
        ],
        response({"type": "web_search_call", "id": "ws_1", "status": "completed"}),
    ),
    "an incomplete response": (
        [
            event(
                "incomplete", response={"output": [message("H")], "incomplete_details": {"reason": "max_output_tokens"}}
            )
        ],
        {**response(message("H"), incomplete_details={"reason": "max_output_tokens"}), "status": "incomplete"},
    ),
}


@pytest.mark.parametrize(("record", "expected"), RESPONSES.values(), ids=RESPONSES)
@pytest.mark.parametrize("box", [lambda e: e, lambda e: {"events": e}, lambda e: {"sse": sse(*e, done=False)}])
def test_events(record: Any, expected: Any, box: Any) -> None:
    assert is_stream(text_of(box(record)))
    assert folded(box(record)) == (expected, [])


TOLD = {
    "a provider's event": (
        [completed(message("Hi")), {"type": "acme:trace", "ms": 3}],
        response(message("Hi")),
        ("dropped", ["/events/1"], "event acme:trace skipped"),
    ),
    "a field of an event": (
        [{**added(0, message()), "vendor": 1}, completed(message("Hi"))],
        response(message("Hi")),
        ("dropped", ["/events/0/vendor"], "vendor of event response.output_item.added"),
    ),
    "an item that is never ended": (
        [
            added(0, fcall()),
            event("function_call_arguments.delta", item_id="fc_0", output_index=0, delta="{}"),
            completed(),
        ],
        response(fcall("{}")),
        ("odd", ["/output/0"], "no event ended this item: it is put together from its pieces"),
    ),
    "two items in one place": (
        [added(0, message()), done(0, message("Hi")), added(0, fcall()), done(0, fcall("{}")), completed()],
        response(message("Hi"), fcall("{}")),
        ("odd", ["/output/1"], "two items share output_index 0"),
    ),
}


@pytest.mark.parametrize(("record", "expected", "notice"), TOLD.values(), ids=TOLD)
def test_what_a_reader_must_know_of_events(record: Any, expected: Any, notice: Any) -> None:
    assert folded({"events": record}) == (expected, [notice])


def test_every_text_event_has_both_ends() -> None:
    names = {name.removesuffix(".delta") for name in EVENTS if name.endswith(".delta") and "audio" not in name}
    assert {f"{name}.done" for name in names} <= EVENTS.keys()


# ---------------------------------------------------------------- refusals

CUT = "the answer was cut off"
NEVER = "the answer was never finished"
DIFFER = "the stream tells two different values of"
AGAIN = "(record the answer again, or keep it aside)"
TWICE = "arguments in strings, or as one object"
OWN = "(give each its own record)"
ENDS = "not_finished at /1: the stream ends after"

REFUSED = {
    "cut": (
        {"chunks": HELLO[:2]},
        [f"not_finished at /chunks/1: the stream ends after frame 2 without a finish_reason or [DONE]: {CUT}"],
    ),
    "one choice cut": (
        [delta("stop", content="a"), delta(index=1, content="b")],
        [f"{ENDS} frame 2 without a finish_reason or [DONE]: {CUT}"],
    ),
    "no choice": (
        [{"object": "chat.completion.chunk", "choices": []}],
        ["not_finished at /0: the stream holds no choice at all"],
    ),
    "an error between": (
        {"chunks": [*HELLO[:2], {"error": {"code": "rate_limit_exceeded", "message": "private words"}}]},
        [f"not_finished at /chunks/2: frame 3 of 3 is an error (rate_limit_exceeded): {NEVER}"],
    ),
    "an error in a choice": (
        {"chunks": [{"choices": [{"delta": {}, "error": {"message": "private words"}}]}]},
        [f"not_finished at /chunks/0: frame 1 of 1 is an error: {NEVER}"],
    ),
    "an error event": (
        f'{sse(HELLO[1], done=False)}event: error\ndata: {{"message":"private words","code":429}}\n\n',
        [f"not_finished at the top: frame 2 of 2 is an error (429): {NEVER}"],
    ),
    "an error at once": (
        [{"error": {"type": "overloaded"}}],
        [f"not_finished at /0: event 1 is an error (overloaded): {NEVER}"],
    ),
    "cut inside a frame": (
        {"sse": sse(HELLO[1], done=False) + 'data: {"choices":[{"del'},
        ["not_finished at /sse: the stream breaks off inside frame 2, which is not whole JSON"],
    ),
    "a frame that is no JSON": (
        {"sse": 'data: {"choices":\n\n' + sse(*HELLO)},
        ["invalid_json at /sse: frame 1 of the stream is not JSON, and others follow it"],
    ),
    "two streams": (
        {"sse": sse(*HELLO) + sse(*HELLO)},
        [f"stream_conflict at /sse: frame 5 follows [DONE]: the record holds several streams {OWN}"],
    ),
    "two answers": (
        [{"id": "a", **delta("stop", content="a")}, {"id": "b", **delta("stop", content="b")}],
        [f"stream_conflict at /1: frame 2 begins another answer after the first has finished {OWN}"],
    ),
    "deltas and message disagree": (
        [{"choices": [{"delta": {"content": "a"}, "message": {"content": "b"}, "finish_reason": "stop"}]}],
        ["stream_conflict at /choices/0/message/content: the message beside the deltas holds another text"],
    ),
    "wrong types": (
        [delta(content=1), delta(tool_calls={}), delta("stop")],
        [
            "wrong_type at /0: frame 1: a number at delta/content, expected a string or an array of parts",
            "wrong_type at /1: frame 2: an object at delta/tool_calls, expected an array of objects",
        ],
    ),
    "arguments twice": (
        chat(call(id="a", name="f", arguments={"a": 1}), call(id="a", arguments={"a": 2})),
        [f"wrong_type at /chunks/1: frame 2: an object at delta/tool_calls, expected {TWICE}"],
    ),
    "old text completions": (
        [{"object": "text_completion", "choices": [{"index": 0, "text": "a"}]}],
        ["unknown_shape at the top: choices with a text and no delta: chunks of the old text completions"],
    ),
    "no record": ({"chunks": [1]}, ["wrong_type at /chunks/0: frame 1 is no JSON object"]),
    "another stream": (
        {"events": [{"type": "message_start", "message": {}}]},
        ["unknown_shape at /events: neither Chat chunks nor Responses events; the frames hold message, type"],
    ),
    "no frames": (
        {"sse": ": hello\n\n"},
        ["unknown_shape at /sse: neither Chat chunks nor Responses events; the frames hold no frame at all"],
    ),
    "both envelopes": (
        [delta(content="a"), completed()],
        ["mixed_envelopes at the top: the stream holds Chat chunks and Responses events"],
    ),
    "no stream": ({"messages": []}, ["unknown_shape at the top: an object without chunks, events or sse is no stream"]),
    "sse that is no text": ({"sse": 1}, ["wrong_type at /sse: the frames of a stream must be a string here"]),
    "no UTF-8": (b'["\xff"]', ["invalid_utf8 at the top: byte 2 of the stream is not UTF-8"]),
    "nested too deeply": (b"[" * 20000, ["too_deep at the top: the stream is nested too deeply to be read"]),
    "no end of a response": (
        [added(0, message()), text("Hi")],
        [f"{ENDS} event 2 (response.output_text.delta) without response.completed: {CUT}"],
    ),
    "a failed response": (
        [event("error", error={"code": "server_error"}), event("failed", response={"error": {"code": "server_error"}})],
        [f"not_finished at /0: event 1 is an error (server_error): {NEVER}"],
    ),
    "a response that failed without an error event": (
        [event("failed", response={"error": {"code": "server_error", "message": "private words"}})],
        [f"not_finished at /0: event 1 is response.failed (server_error): {NEVER}"],
    ),
    "a cancelled response": (
        [event("cancelled", response={})],
        [f"not_finished at /0: event 1 is response.cancelled: {NEVER}"],
    ),
    "two responses": (
        [completed(), event("created", response={})],
        ["stream_conflict at /1: event 2 follows the end of the response (give each stream a record)"],
    ),
    "number of parts": (
        [added(0, message()), text("a"), {**text("b"), "content_index": 1}, done(0, message("a")), completed()],
        ["stream_conflict at /output/0/content: parts told by the events: 2, held by the finished item: 1"],
    ),
    "number of items": (
        [done(0, message("Hi")), completed(message("Hi"), fcall("{}"))],
        ["stream_conflict at /output: items told by the events: 1, held by response.completed: 2"],
    ),
    "call ids": (
        [done(0, fcall("{}")), completed(fcall("{}", call_id="call_9"))],
        [f"stream_conflict at /output/0/call_id: {DIFFER} call_id {AGAIN}"],
    ),
    "type and arguments": (
        [done(0, fcall("{}")), completed(message("Hi"))],
        [f"stream_conflict at /output/0/type: {DIFFER} type {AGAIN}"],
    ),
    "text": (
        [added(0, message()), text("Hi"), done(0, message("Ho")), completed()],
        [f"stream_conflict at /output/0/content/0/text: {DIFFER} text {AGAIN}"],
    ),
    "deltas": (
        [
            added(0, fcall()),
            event("function_call_arguments.delta", item_id="fc_0", output_index=0, delta="{"),
            event("function_call_arguments.done", item_id="fc_0", output_index=0, arguments="{}"),
            completed(fcall("{}")),
        ],
        [f"stream_conflict at /output/0/arguments: {DIFFER} arguments {AGAIN}"],
    ),
    "spoken answers": (
        [event("audio.delta", delta="QQ=="), completed()],
        ["unsupported_content at /0: event 1: spoken answers have no counterpart"],
    ),
}


@pytest.mark.parametrize(("record", "reasons"), REFUSED.values(), ids=REFUSED)
def test_refusals(record: Any, reasons: list[str]) -> None:
    assert refused(record) == reasons


def test_a_cut_stream_can_be_allowed() -> None:
    account = Account(frozenset({"not_finished"}))
    result = fold(frames(text_of(HELLO[:2])), account)
    assert json.loads(result or b"") == {**completion({"content": "Hel"}), "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "Hel"}, "finish_reason": None}
    ]}  # fmt: skip
    assert [n.code for n in account.notices()] == ["allowed"]


# ---------------------------------------------------------------- frames

ONE = '{"choices":[{"delta":{"content":"a b"},"finish_reason":"stop"}]}'

SSE = {
    "plain": (f"data: {ONE}\n\ndata: [DONE]\n\n", [ONE], 1),
    "CRLF": (f"data: {ONE}\r\n\r\ndata: [DONE]\r\n\r\n", [ONE], 1),
    "CR": (f"data: {ONE}\r\rdata: [DONE]\r\r", [ONE], 1),
    "no blank": (f"data:{ONE}\ndata:{ONE}\ndata:[DONE]", [ONE, ONE], 2),
    "no [DONE], no last line end": (f"data: {ONE}", [ONE], None),
    "comments, events, ids, empty data": (
        f": PROCESSING\n\nevent: x\nid: 1\nretry: 5\ndata: {ONE}\n\ndata:\n\ndata: \n\n: end",
        [ONE],
        None,
    ),
    "several data lines": ('data: {"a":\ndata: 1}\n\ndata: [DONE]\n\n', ['{"a":\n1}'], 1),
    "byte order mark": (f"\ufeffdata: {ONE}\n\n", [ONE], None),
    "space in front": (f" data: {ONE}\n\n", [ONE], None),
    "separators of other standards": ('data: {"a":"\u2028\u0085"}\n\n', ['{"a":"\u2028\u0085"}'], None),
    "frames after [DONE]": (f"data: [DONE]\n\ndata: {ONE}\n\n", [ONE], 0),
}


@pytest.mark.parametrize(("sent", "items", "end"), SSE.values(), ids=SSE)
@pytest.mark.parametrize("box", [str.encode, lambda s: text_of(s), lambda s: text_of({"sse": s})])
def test_sse(sent: str, items: list[str], end: int | None, box: Any) -> None:
    assert is_stream(box(sent))
    found = frames(box(sent))
    assert [bytes(item).decode() for item in found.items] == items
    assert found.done == end


def test_frames_can_be_pointed_at_where_they_stand_apart() -> None:
    assert frames(b'{"chunks":[{}]}').where(3) == "/chunks/3"
    assert frames(b"[{}]").where(3) == "/3"
    assert frames(b'{"sse":"data: {}"}').where(3) == "/sse"


def test_what_stands_beside_a_stream_is_named() -> None:
    _, notices = folded({"chunks": HELLO, "seconds/all": 3})
    assert notices == [("dropped", ["/seconds~1all"], "beside the stream")]


@pytest.mark.parametrize(
    "record",
    [
        b'{"messages":[]}', b'[{"role":"user","content":"data: x"}]', b'"hello data: x"', b'"hello"', b"3", b"", b"{",
        b'[{"type":"message","role":"user"}]', b'{"object":"chat.completion","choices":[]}', b'{"events":3}', b"[1]",
    ],
)  # fmt: skip
def test_what_is_no_stream(record: bytes) -> None:
    assert not is_stream(record)


@pytest.mark.parametrize(
    ("item", "name"),
    [
        (b'{"id":"x","object":"chat.completion.chunk","choices":[]}', "x"),
        (b'{"id":"x","object":"chat.completion"}', None),
        (b'{"id":3,"object":"chat.completion.chunk"}', None),
        (b"[1]", None),
        (b"{", None),
    ],
)
def test_chunk_id(item: bytes, name: str | None) -> None:
    assert chunk_id(item) == name
    assert chunk_id(Raw(item)) == name


def test_frames_from_many_lines() -> None:
    items = [Raw(json.dumps(chunk).encode()) for chunk in HELLO]
    assert json.loads(fold(Frames(items), Account()) or b"") == completion({"content": "Hello"})


# ---------------------------------------------------------------- exactness


def test_numbers_keep_their_spelling() -> None:
    chunk = (
        b'[{"choices":[{"delta":{"content":"a"},"finish_reason":"stop","logprobs":{"content":[{"token":"a","logprob":-0.10}]}}],'
        b'"cost":1e-7,"big":123456789012345678901234567890}]'
    )
    result = fold(frames(chunk), Account()) or b""
    assert b'"logprob":-0.10}' in result
    assert b'"cost":1e-7' in result
    assert b'"big":123456789012345678901234567890' in result


def test_half_a_character_in_each_of_two_chunks() -> None:
    chunk = r'{"choices":[{"delta":{"content":"%s"},"finish_reason":"stop"}],"cost":0.10}'
    both = b"[%s,%s]" % ((chunk % r"a\ud83d").encode(), (chunk % r"\ude00b").encode())
    result = fold(frames(both), Account()) or b""
    assert '"content":"a😀b"'.encode() in result
    assert b'"cost":0.10' in result
    lone = fold(frames(b"[%s]" % (chunk % r"a\ud83d").encode()), Account()) or b""
    assert rb'"content":"a\ud83d"' in lone


WORDS = st.text(max_size=30)
ARGUMENTS = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=9), max_size=3).map(json.dumps)


@st.composite
def cut(draw: st.DrawFn, whole: str) -> list[str]:
    """The text in pieces of random size."""
    places = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    return [whole[a:b] for a, b in zip([0, *places], [*places, len(whole)], strict=True)]


@st.composite
def answers(draw: st.DrawFn) -> tuple[str, str, list[tuple[str, str]]]:
    names = st.sampled_from(["f", "get_map", "x-1"])
    return draw(WORDS), draw(WORDS), draw(st.lists(st.tuples(names, ARGUMENTS), max_size=3))


@settings(deadline=None, max_examples=40)
@given(data=st.data(), answer=answers())
def test_any_cut_of_a_completion_folds_to_it(data: st.DataObject, answer: Any) -> None:
    words, thoughts, calls = answer
    streams = [
        [delta(reasoning_content=piece) for piece in data.draw(cut(thoughts))],
        [delta(content=piece) for piece in data.draw(cut(words))],
        *(
            [call(n, id=f"c{n}", name=name, arguments=""), *(call(n, arguments=p) for p in data.draw(cut(arguments)))]
            for n, (name, arguments) in enumerate(calls)
        ),
    ]
    chunks = []
    while any(streams):
        chunks.append(data.draw(st.sampled_from([stream for stream in streams if stream])).pop(0))
    wanted: dict[str, Any] = {"content": words or (None if calls or thoughts else "")}
    wanted |= {"reasoning_content": thoughts} if thoughts else {}
    wanted |= {"tool_calls": [function(n, a, id=f"c{k}") for k, (n, a) in enumerate(calls)]} if calls else {}
    assert folded(sse(*chunks, delta("stop"))) == (completion(wanted), [])


@settings(deadline=None, max_examples=40)
@given(data=st.data(), answer=answers())
def test_any_cut_of_a_response_folds_to_it(data: st.DataObject, answer: Any) -> None:
    words, _, calls = answer
    items = [message(words), *(fcall(arguments, n, name=name) for n, (name, arguments) in enumerate(calls, 1))]
    streams = [[added(0, message()), *(text(p) for p in data.draw(cut(words))), done(0, items[0])]]
    for n, item in enumerate(items[1:], 1):
        pieces = data.draw(cut(item["arguments"]))
        kind = "function_call_arguments.delta"
        deltas = [event(kind, item_id=item["id"], output_index=n, delta=piece) for piece in pieces]
        streams.append([added(n, {**item, "arguments": ""}), *deltas, done(n, item)])
    events = []
    while any(streams):
        events.append(data.draw(st.sampled_from([stream for stream in streams if stream])).pop(0))
    terminal = completed(*items) if data.draw(st.booleans()) else completed()
    assert folded({"events": [*events, terminal]}) == (response(*items), [])


@given(st.binary(max_size=60) | st.text(alphabet='data: {}[]"\\ud83,\n1', max_size=60).map(str.encode))
def test_no_text_breaks_the_reader(record: bytes) -> None:
    is_stream(record)
    chunk_id(record)
    account = Account()
    with contextlib.suppress(Refused):
        result = fold(frames(record), account)
        assert (result is None) == bool(account.reasons)
        assert result is None or msgspec.json.decode(result) is not None


def test_of_streams_that_are_mixed_line_by_line_no_empty_answer_is_made():
    def chunk(name, finish=None, **delta):
        return {"id": name, "object": "chat.completion.chunk", "choices": [{"delta": delta, "finish_reason": finish}]}

    only_the_end = [chunk("b", "stop")]
    with pytest.raises(Refused, match="only the end of an answer"):
        to_responses(only_the_end)
    assert to_responses([chunk("b", content=""), chunk("b", "stop")]).json
    assert to_responses([chunk("b", role="assistant"), chunk("b", "stop")]).json


# ---------------------------------------------------------------- streams that are of the target's format already


def chunk_of(delta, finish=None, **more):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [{**choice, **more}]}


def test_chunks_that_stay_chat_become_a_whole_completion():
    token = {"token": "y", "logprob": -1, "bytes": [121], "top_logprobs": []}
    first = {**chunk_of({"role": "assistant", "content": "y"}, logprobs={"content": [token]}), "service_tier": "vendor"}
    calls = [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]
    result = to_chat([first, chunk_of({"tool_calls": calls}, "tool_calls")], Options(tools={"f": True}))
    [choice] = result.body["choices"]
    assert choice["message"] == {
        "role": "assistant",
        "content": "y",
        "refusal": None,
        "tool_calls": [{"type": "function", "id": "c", "function": {"name": "f", "arguments": "{}"}}],
    }
    assert choice["logprobs"] == {"content": [token], "refusal": None}
    assert [(one.code, one.paths) for one in result.notices] == [("dropped", ["/service_tier"])]


@pytest.mark.parametrize(
    ("asked", "echoed", "dropped"),
    [
        ({"effort": "low"}, {"effort": "low", "summary": None}, []),
        ({"effort": "vast"}, {"effort": None, "summary": None}, ["/reasoning/effort"]),
        ({}, None, []),
    ],
)
def test_events_that_stay_responses_become_a_whole_response(asked, echoed, dropped):
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
    done = {
        **head,
        "status": "completed",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "y"}]}, {"type": "reasoning"}],
        "reasoning": asked,
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
        "tools": [{"type": "function", "name": "f"}, {"type": "web_search"}],
    }
    result = to_responses(
        [
            {"type": "response.created", "sequence_number": 0, "response": {**head, "status": "in_progress"}},
            {"type": "response.completed", "sequence_number": 1, "response": done},
        ]
    )
    message, thought = result.body["output"]
    assert (message["role"], message["status"], thought["summary"]) == ("assistant", "completed", [])
    assert result.body["reasoning"] == echoed
    assert result.body["text"]["format"]["schema"] is None
    assert result.body["tools"] == [
        {"type": "function", "name": "f", "description": None, "parameters": None, "strict": None}
    ]
    told = {one.code: one.paths for one in result.notices}
    assert told == {"echo": ["/text/format/schema", "/tools/1"], **({"dropped": dropped} if dropped else {})}
