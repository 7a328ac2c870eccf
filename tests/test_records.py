"""Files into records: the streams of a file with a frame a line, and files that are one object around their records."""

import json
from itertools import count, islice

import pytest

from converter import to_chat
from converter.files import from_bytes
from converter.records import FORMS, records


def read(lines, form="auto", **how):
    text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    return list(records(from_bytes(text.encode(), "log.jsonl"), form, **how))


def chunk(name, finish=None, *, index=0, **delta):
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return {"id": name, "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def usage(name, **more):
    counts = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {
        "id": name,
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [],
        **more,
        "usage": counts,
    }


def event(kind, **fields):
    return {"type": f"response.{kind}", **fields}


def start(name):
    return chunk(name, role="assistant", content="")


FILTERED = {"id": "", "object": "", "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}
COMPLETION = {
    "id": "c",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "x"},
            "delta": {"content": "x"},
            "finish_reason": "stop",
        }
    ],
}
REQUEST = {"messages": [{"role": "user", "content": "x"}]}

THREADS = {
    "one stream": [[start("a"), chunk("a", content="x"), chunk("a", "stop")]],
    "a new id after a finish": [[start("a"), chunk("a", "stop")], [start("b"), chunk("b", "stop")]],
    "counts behind the finish": [
        [start("a"), chunk("a", "stop"), usage("a")],
        [start("b"), chunk("b", "stop"), usage("b")],
    ],
    "counts under another id": [[start("a"), chunk("a", "stop"), usage("x")], [start("b"), chunk("b", "stop")]],
    "an empty id first (Azure)": [
        [FILTERED, start("a"), chunk("a", "stop")],
        [FILTERED, start("b"), chunk("b", "stop")],
    ],
    "an id in every chunk": [
        [start("a"), chunk("b", content="x"), chunk("c", "stop")],
        [start("d"), chunk("e", "stop")],
    ],
    "no ids": [[start(""), chunk("", content="x"), chunk("", "stop")], [start(""), chunk("", "stop")]],
    "two choices": [
        [start("a"), chunk("a", index=1, content="y"), chunk("a", "stop"), chunk("a", "stop", index=1)],
        [start("b")],
    ],
    "two choices, an id in every chunk": [
        [start("a"), chunk("b", "stop"), chunk("c", index=1, content="y"), chunk("d", "stop", index=1)],
        [start("e")],
    ],
    "a cut stream": [[start("a"), chunk("a", content="x")], [start("b"), chunk("b", "stop")]],
    "the mark of the end": [[start("a"), chunk("a", "stop"), "[DONE]"], [start("a"), chunk("a", "stop"), "[DONE]"]],
    "an error breaks off": [[start("a"), {"error": {"message": "x"}}], [start("b"), chunk("b", "stop")]],
    "a last chunk with an id of its own": [
        [start("a"), {**chunk("z", "stop"), "object": "chat.completion.done"}],
        [start("b")],
    ],
    "events": [[event("created"), event("in_progress"), event("completed")], [event("created"), event("failed")]],
    "events that are cut": [[event("created"), event("in_progress")], [event("created"), event("completed")]],
    "an error among events": [
        [event("created"), {"type": "error", "message": "x"}, event("failed")],
        [event("created")],
    ],
    "chunks, then events": [[start("a"), chunk("a", "stop")], [event("created"), event("completed")]],
}


@pytest.mark.parametrize("streams", THREADS.values(), ids=THREADS.keys())
def test_each_stream_is_one_record(streams):
    found = read([json.dumps(frame) for stream in streams for frame in stream])
    lines = [1 + sum(map(len, streams[:number])) for number in range(len(streams))]
    assert [(line, json.loads(text)) for line, text in found] == list(zip(lines, streams, strict=True))


@pytest.mark.parametrize(
    "other", [REQUEST, COMPLETION, "not json", [REQUEST["messages"][0]]], ids=["request", "answer", "broken", "array"]
)
def test_another_line_is_a_record_of_its_own(other):
    text = other if isinstance(other, str) else json.dumps(other)
    found = read([start("a"), chunk("a", "stop"), text, "", start("b"), chunk("b", "stop")])
    assert [line for line, _ in found] == [1, 3, 5]
    assert found[1][1].decode() == text


def test_answers_that_are_whole_are_no_frames():
    filtered = {**COMPLETION, "prompt_filter_results": [{"prompt_index": 0}]}
    assert len(read([filtered, filtered])) == 2
    assert len(read([COMPLETION, COMPLETION])) == 2


def test_interleaved_streams_are_not_mixed():
    found = read([start("a"), start("b"), chunk("a", content="x"), chunk("b", content="y"), chunk("a", "stop")])
    for _, text in found:
        assert len({frame["id"] for frame in json.loads(text)} - {""}) <= 2
    assert len(found) > 1


def test_a_line_that_is_too_long_costs_itself_alone():
    found = read([start("a"), "x" * 900, start("b")], limit=400)
    assert [(line, text is None) for line, text in found] == [(1, False), (2, True), (3, False)]


def test_only_one_stream_is_held():
    taken = count()

    def lines():
        for number in count(1):
            next(taken)
            name = f"s{number // 100}"
            yield number, json.dumps(chunk(name, "stop" if number % 100 == 99 else None, content="x")).encode()

    for line, text in islice(FORMS["frames"](lines()), 20):
        assert next(taken) < line + 220
        assert len(json.loads(text)) <= 100


def test_a_stream_put_together_is_converted():
    ((_, text),) = read([start("a"), chunk("a", content="Hello"), chunk("a", "stop"), usage("a")])
    assert to_chat(text).body["choices"][0]["message"]["content"] == "Hello"


# ---------------------------------------------------------------- files that are one object

ENTRY, INTERACTION = {"request": {"n": 1}}, {"request": {"body": "ä"}}
HOLDERS = {
    "har": ({"log": {"version": "1.2", "creator": {}, "entries": [ENTRY, ENTRY]}}, [ENTRY, ENTRY]),
    "vcr": ({"version": 1, "interactions": [INTERACTION, INTERACTION]}, [INTERACTION, INTERACTION]),
    "stored completions": ({"object": "list", "data": [COMPLETION], "has_more": False}, [COMPLETION]),
    "no entries": ({"log": {"entries": []}}, []),
}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(("value", "held"), HOLDERS.values(), ids=HOLDERS.keys())
def test_a_file_around_its_records(value, held, indent):
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    found = read([text])
    assert [json.loads(record) for _, record in found] == held
    for line, record in found:
        assert record.decode().split("\n")[0] in text.split("\n")[line - 1]


@pytest.mark.parametrize(
    "value",
    [
        {"log": "entries"},
        {"log": {"entries": 1}},
        {"object": "list", "data": [{"object": "embedding"}]},
        {"data": [1], "object": "x"},
    ],
)
def test_what_only_looks_like_one_is_a_record(value):
    assert [json.loads(text) for _, text in read([value])] == [value]


def test_a_broken_file_is_given_whole():
    found = read(['{"log": {"entries": [', '{"a": 1}, nonsense]}}'], form="values")
    assert [line for line, _ in found] == [1]
