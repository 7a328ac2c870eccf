"""Three ways lead to what is written: room by room, directly where a record is plain, and from what is remembered.

Which one a record takes depends on the records before it, and nothing that is written may tell.
"""

import gc
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import (
    CHAT_RECORDS,
    RESPONSES_RECORDS,
    VALUES,
    asks,
    call,
    dumps,
    function_call,
    lossy,
    output,
    plain,
    said,
    tool,
    with_unknown_fields,
)
from ways import CHAT, RESPONSES, rooms, short_enough

from converter import Converted, Options
from converter.beginnings import PROBE
from converter.conversion import HOLE
from converter.convert import Session
from converter.histories import SHORT
from converter.ids import digest
from converter.memo import BRANCHES, LARGEST, Branches, Memo
from converter.tools import Tools


def strange(records):
    """The same records with fields that no schema knows."""
    return with_unknown_fields(records).map(lambda made: made[1])


RECORDS = {
    verb: records | strange(records) | lossy(records)
    for verb, records in ((CHAT, CHAT_RECORDS), (RESPONSES, RESPONSES_RECORDS))
}
SETTINGS = st.sampled_from(
    [
        {},
        {},
        {"strict": True},
        {"target": "openai"},
        {"reasoning": "keep"},
        {"reasoning": "summary"},
        {"require_schema": True},
        {"verify": True},
        {"allow": {"unsupported_content", "unsupported_item", "arguments_schema", "status", "incomplete_history"}},
        {"tools": {"f": {"type": "object", "required": ["a"]}}},
    ]
)


def entries_of(record):
    """The history of a record, or None."""
    if isinstance(record, dict):
        record = record.get("messages", record.get("input"))
    return record if isinstance(record, list) else None


@st.composite
def disordered(draw, records):
    """Records with a message left out, said twice, at another place, or with another value in it."""
    record = plain(draw(records))
    entries = entries_of(record)
    for _ in range(draw(st.integers(0, 2)) if entries else 0):
        at = draw(st.integers(0, len(entries) - 1))
        change = draw(st.sampled_from(["out", "twice", "elsewhere", "other"]))
        if change == "twice":
            entries.insert(draw(st.integers(0, len(entries))), entries[at])
        elif change == "elsewhere":
            entries.insert(draw(st.integers(0, len(entries))), entries.pop(at))
        elif change == "other" and isinstance(entries[at], dict) and entries[at]:
            key = draw(st.sampled_from(sorted(entries[at])))
            entries[at] = {**entries[at], key: plain(draw(VALUES | st.sampled_from(["", None, "a:b"])))}
        elif change == "out" and len(entries) > 1:
            entries.pop(at)
    return dumps(record).encode()


@pytest.mark.parametrize("verb", [CHAT, RESPONSES])
@given(data=st.data())
def test_no_outcome_tells_which_way_a_record_took(verb, data):
    options = data.draw(SETTINGS)
    texts = data.draw(st.lists(disordered(RECORDS[verb]), min_size=1, max_size=3))
    session = Session(verb, Options(**options))
    expected = [rooms(verb, **options).outcome(1, text) for text in texts]
    for _ in range(4):
        assert [session.outcome(1, text) for text in texts] == expected


@pytest.mark.parametrize(("short", "probe"), [(1, 4), (SHORT, PROBE)])
@given(data=st.data())
def test_conversations_that_grow_and_mix_are_put_together_as_by_the_rooms(short, probe, data):
    verb, options = data.draw(st.sampled_from([CHAT, RESPONSES])), data.draw(SETTINGS)
    records = [json.loads(text) for text in data.draw(st.lists(disordered(RECORDS[verb]), min_size=1, max_size=2))]
    parts = [
        part if isinstance(record, list) else {**record, next(iter(lists(record))): part}
        for record in records
        for entries in [entries_of(record) or []]
        for part in (entries[:length] for length in range(1, len(entries) + 1))
    ]
    session, by_rooms = Session(verb, Options(**options)), rooms(verb, **options)
    write = data.draw(st.sampled_from([json.dumps, dumps]))
    with short_enough(short, probe):
        for part in [*parts, *data.draw(st.permutations(parts * 2))]:
            text = write(part).encode()
            assert session.outcome(1, text) == by_rooms.outcome(1, text)


def lists(record):
    return [key for key in ("messages", "input") if key in record]


TOOLS = {"f": {"type": "object"}}
HISTORY = [said("what?"), asks(call()), tool(), said("so")]
ITEMS = [{"type": "message", "role": "user", "content": "what?"}, function_call(), output()]


def outcomes(verb, *records, **options):
    """The last outcome of each record, after all were seen four times."""
    session = Session(verb, Options(**options))
    found = []
    for _ in range(4):
        found = [session.outcome(1, dumps(record).encode()) for record in records]
    return found


MADE = digest("a b")
"""A call id from which the same item id would be made as from another one, which cannot stand in an item's id."""


@pytest.mark.parametrize(
    ("verb", "history"),
    [
        (CHAT, [*HISTORY, said("and?"), *HISTORY[1:], *HISTORY[1:]]),
        (CHAT, [*HISTORY, asks(call(id="call_2"), call()), tool(), tool("call_2"), *HISTORY[1:]]),
        (CHAT, [said("so"), said("then"), asks(call(id="a b"), call(id=MADE)), tool("a b"), tool(MADE)]),
        (RESPONSES, [*ITEMS, *ITEMS[1:], *ITEMS[1:]]),
    ],
)
def test_call_ids_that_come_again_are_numbered_and_told_as_by_the_rooms(verb, history):
    session = Session(verb, Options(tools=TOOLS))
    for part in (history[:4], history, history[2:], history, history, history[:-2]):
        by_rooms = rooms(verb, tools=TOOLS).outcome(1, dumps(part).encode())
        assert session.outcome(1, dumps(part).encode()) == by_rooms


@pytest.mark.parametrize(
    "other",
    [
        [HISTORY[0], HISTORY[2]],
        [HISTORY[0], HISTORY[1], HISTORY[3]],
        [HISTORY[0], HISTORY[1], HISTORY[1], HISTORY[2]],
        [HISTORY[0], HISTORY[1], HISTORY[2], HISTORY[2]],
        [HISTORY[0], HISTORY[2], HISTORY[1]],
    ],
    ids=["an orphan", "an unanswered call", "a call twice", "an output twice", "an output before its call"],
)
def test_messages_that_are_known_are_paired_anew_in_every_record(other):
    known, refused = outcomes(CHAT, HISTORY, other, tools=TOOLS)
    assert isinstance(known, Converted)
    assert not isinstance(refused, Converted)


def test_arguments_that_are_known_are_judged_by_the_schema_of_their_own_record():
    def record(parameters):
        tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
        return {"messages": HISTORY, "tools": tools}

    lets_through, does_not = outcomes(CHAT, record({"type": "object"}), record({"type": "object", "required": ["a"]}))
    assert isinstance(lets_through, Converted)
    assert [reason.code for reason in does_not.reasons] == ["arguments_schema"]


def test_settings_that_are_known_belong_to_their_own_tools():
    def record(**tools):
        return {"model": "m", "tool_choice": "auto", "messages": [said("x")], **tools}

    function = {"type": "function", "function": {"name": "f", "parameters": {}}}
    without, given_one = outcomes(CHAT, record(), record(tools=[function]))
    assert "tool_choice" not in without.body
    assert given_one.body["tool_choice"] == "auto"


@pytest.mark.parametrize(("verb", "history"), [(CHAT, HISTORY), (RESPONSES, ITEMS)])
def test_a_log_larger_than_what_is_remembered_is_converted_all_the_same(verb, history, monkeypatch):
    monkeypatch.setattr("converter.histories.ROOM", 4000)
    first, *others = history
    records = [[{**first, "content": f"{number} {'x' * 300}"}, *others] for number in range(40)]
    found = outcomes(verb, *records, tools=TOOLS)
    assert found == [rooms(verb, tools=TOOLS).outcome(1, dumps(record).encode()) for record in records]


def test_a_memo_holds_no_more_than_its_room():
    memo = Memo(1000)
    for number in range(1000):
        memo.keep(f"{number:05}", number, 20)
        assert len(memo) * 25 <= 1000
    assert memo["00999"] == 999
    assert memo.keep("x" * 500, 1) == 1
    assert "x" * 500 not in memo


def test_a_memo_has_room_again_for_what_is_replaced():
    memo = Memo(1000)
    memo.keep("other", 0, 20)
    for number in range(1000):
        memo.keep("grows", number, 20)
        memo.free("grows", 20)
    assert memo == {"other": 0}
    assert memo.left == 1000 - len("other") - 20


class Sized:
    """A finding that takes so many bytes."""

    def __init__(self, size):
        self.size = size


def test_the_last_branches_are_known_and_what_goes_on_takes_the_place_of_what_it_goes_on_from():
    branches = Branches(10_000)
    first, second, third, *more = [Sized(100) for _ in range(3 + BRANCHES)]
    branches.grow(b"name", first, None)
    branches.grow(b"name", second, None)
    assert branches.of(b"name") == [second, first]
    branches.grow(b"name", third, first)
    assert branches.of(b"name") == [third, second]
    assert branches.left == 10_000 - len(b"name") - 200
    for each in more:
        branches.grow(b"name", each, None)
    assert branches.of(b"name") == more[::-1]
    assert branches.left == 10_000 - len(b"name") - 100 * BRANCHES
    assert list(branches.of(b"other")) == []


def test_branches_take_no_more_than_the_largest_finding_may():
    branches = Branches(1_000 * LARGEST)
    small, large, full = Sized(400), Sized(600 - len(b"name")), Sized(1_000 - len(b"name"))
    branches.grow(b"name", small, None)
    branches.grow(b"name", large, None)
    assert branches.of(b"name") == [large, small]  # exactly as much as there is room for
    branches.grow(b"name", Sized(1), None)
    assert branches.of(b"name")[1:] == [large]
    branches.grow(b"name", full, None)
    assert branches.of(b"name") == [full]
    branches.grow(b"name", Sized(1_000), full)
    assert branches.of(b"name") == [full]
    assert branches.left == 1_000 * LARGEST - 1_000


@pytest.mark.parametrize("message", [{"reasoning_content": "r" * 10_000}, {f"{'z' * 40}{n}": 1 for n in range(200)}])
def test_a_conversation_that_is_kept_is_reckoned_with_all_that_it_holds(message, monkeypatch):
    monkeypatch.setattr("converter.histories.ROOM", 800_000)
    session = Session(CHAT, Options())
    memory = session.recalls["message-list"].memory
    for number in range(60):
        history = [U, {**U, "content": str(number)}, {**said(str(number % 30)), **message}, U, U]
        for text in [dumps(history).encode()] * 3:
            session.outcome(1, text)
    held = sum(
        sum(map(len, past.texts)) + sum(len(path) for found in past.whole.mapped.values() for path in found)
        for branches in memory.pasts.values()
        for past in branches
    )
    assert 10_000 < held < 800_000


# ---------------------------------------------------------------- fields that no envelope has


@pytest.mark.parametrize(
    ("beside", "refused"),
    [
        ({"response": "a text"}, True),
        ({"response": {"choices": [{"message": said("x"), "finish_reason": "stop"}]}}, True),
        ({"response": []}, False),
        ({"system": "x"}, True),
        ({"options": {"num_ctx": 1}}, True),
    ],
)
def test_a_field_that_was_vetted_lets_no_other_value_and_no_other_format_through(beside, refused):
    harmless = {"messages": HISTORY, "response": None, "zz": 1}
    for record in ({"messages": HISTORY, **beside}, {**beside, "messages": HISTORY}):
        _, found = outcomes(CHAT, harmless, record, tools=TOOLS)
        assert found == rooms(CHAT, tools=TOOLS).outcome(1, dumps(record).encode())
        assert [reason.code for reason in getattr(found, "reasons", [])] == ["unknown_shape"] * refused


def test_fields_that_no_envelope_has_are_named_where_they_stand():
    record = {"zz~": 1, "messages": [{**HISTORY[0], "zz": 2}], "y/y": [3], "null": None}
    [found] = outcomes(CHAT, record)
    assert [(notice.code, notice.paths) for notice in found.notices] == [
        ("dropped", ["/zz~0", "/messages/0/zz", "/y~1y"])
    ]
    assert found == rooms(CHAT).outcome(1, dumps(record).encode())


# ---------------------------------------------------------------- what a breaker found


def one_after_the_other(verb, *records, **options):
    """The outcome of each record in one session, and what the rooms say of it."""
    session = Session(verb, Options(**options))
    texts = [record if isinstance(record, bytes) else dumps(record).encode() for record in records]
    return [(session.outcome(1, text), rooms(verb, **options).outcome(1, text)) for text in texts]


PARTS = [{"type": "text", "text": "b"}]
RARE_IN_CHAT = ["seed", "store", "user", "provider", "logprobs", "service_tier", "metadata"]
RARE_IN_RESPONSES = ["user", "previous_response_id", "truncation", "background", "prompt", "safety_identifier"]


@given(
    st.sampled_from([(CHAT, "messages", RARE_IN_CHAT), (RESPONSES, "input", RARE_IN_RESPONSES)]).flatmap(
        lambda way: st.tuples(
            st.just(way),
            st.lists(st.tuples(st.permutations(way[2]), st.integers(0, 3), st.booleans()), min_size=1, max_size=6),
        )
    )
)
def test_settings_mean_the_same_whatever_settings_came_before(drawn):
    (verb, key, _), chosen = drawn
    part = PARTS if verb == CHAT else [{"type": "input_text", "text": "b"}]
    records = []
    for names, count, parts in chosen:
        entry = {"role": "user", "content": part if parts else "a"}
        entry = entry if verb == CHAT else {"type": "message", **entry}
        records.append({key: [entry], **dict.fromkeys(names[:count], "x")})
    for got, expected in one_after_the_other(verb, *records):
        assert got == expected


@pytest.mark.parametrize(
    "text",
    [
        b'{"seed":"\xff","seed":1,"messages":[{"role":"user","content":"x"}]}',
        b'{"tools":"\xff","tools":null,"messages":[{"role":"user","content":"x"}]}',
        b'{"messages":["\xff"],"messages":[{"role":"user","content":"x"}]}',
        b'{"zz":"\xff","zz":1,"messages":[{"role":"user","content":"x"}]}',
    ],
)
def test_a_value_that_a_second_one_hides_is_looked_at_for_its_bytes(text):
    harmless = b'{"zz":1,"messages":[{"role":"user","content":"x"}]}'
    for got, expected in one_after_the_other(CHAT, harmless, text, text)[1:]:
        assert got == expected
        assert [reason.code for reason in got.reasons] == ["invalid_utf8"]


def test_an_escaped_key_of_another_format_tells_it_after_any_record():
    escaped = b'"tools":[{"type":"function","function":{"name":"f"},"input_\\u0073chema":{}}]}'
    own = b'{"messages":[{"role":"user","content":"x"}],'
    lists, beside = b'[{"role":"user","content":"x"}]', b'{"zz":1,' + own[1:]
    found = one_after_the_other(CHAT, own + escaped, lists, own + escaped, beside + b'"tools":[]}', beside + escaped)
    for got, expected in found:
        assert got == expected
    assert [reason.code for reason in found[2][0].reasons] == ["unknown_shape"]


def test_tools_that_are_forgotten_are_freed():
    session = Session(CHAT, Options())
    gc.disable()
    try:
        for number in range(700):
            tools = [{"type": "function", "function": {"name": f"f{number}", "parameters": {"title": str(number)}}}]
            session.outcome(1, json.dumps({"messages": HISTORY[:1], "tools": tools}).encode())
    finally:
        gc.enable()
    kept = sum(isinstance(one, Tools) for one in gc.get_objects())
    assert kept < 600  # what is remembered is bounded, and no circle keeps the rest


def test_a_record_that_holds_what_stands_for_a_history_is_converted_as_by_the_rooms():
    said_hole = {"type": "message", "role": "assistant", "content": "HOLE"}
    for verb, record in (
        (CHAT, {"model": "HOLE", "messages": [{"role": "user", "content": "HOLE"}, said("a")]}),
        (RESPONSES, {"model": "HOLE", "input": [said_hole, function_call(), output()]}),
        (RESPONSES, {"input": [said_hole, function_call(), output()]}),
    ):
        text = dumps(record).replace('"HOLE"', bytes(HOLE).decode())
        expected = rooms(verb).outcome(1, text.encode())
        session = Session(verb, Options())
        assert isinstance(expected, Converted)
        assert [session.outcome(1, text.encode()) for _ in range(4)] == [expected] * 4


TELLING = {
    "data": [1, {"spans": []}],
    "log": ["x", {"entries": []}],
    "object": ["x", "list", "chat.completion.chunk", "response"],
    "type": ["x", "response.created", "message"],
    "response": ["", {"choices": []}, [1]],
    "events": [1, [{"event_data": 1, "event_id": 2}], [{"type": "response.created"}]],
    "interactions": [1, []],
    "error": [None, "", {"message": "x"}],
    "answer": ["", "x"],
    "contents": [1, []],
    "ndjson": ["x", '{"done":true,"message":{}}'],
    "trace_id": ["1", "2", None, 3],
}
"""Fields that no request has, each with values of which some tell that a record is none."""


@pytest.mark.parametrize("verb", [CHAT, RESPONSES])
@pytest.mark.parametrize("name", TELLING)
def test_what_an_unknown_field_tells_is_looked_at_in_every_record(verb, name):
    session = Session(verb, Options())
    history = {"messages": [said("so")]} if verb == CHAT else {"input": [ITEMS[0]]}
    for number, value in enumerate(TELLING[name] * 3):
        for more in ({}, {"request": number}, {"temperature": number % 2, "top_p": 1}):
            text = dumps({"request_id": str(number), **history, name: value, **more}).encode()
            assert session.outcome(1, text) == rooms(verb).outcome(1, text)


def test_a_request_without_its_history_is_converted_as_by_the_rooms():
    session = Session(RESPONSES, Options())
    for number in range(4):
        text = dumps({"model": "m", "previous_response_id": "resp_1", "trace": number}).encode()
        assert session.outcome(1, text) == rooms(RESPONSES).outcome(1, text)


HELD = {"model": "m", "messages": [said("so")]}
D2, D3 = digest("x", "2"), digest("a", "3")
"""Ids that would be made for the third and the fourth item of a record."""


def turns(*ids):
    """Turns of one call each, or of several that stand in one tuple."""
    return [
        entry
        for one in ids
        for several in [one if isinstance(one, tuple) else (one,)]
        for entry in (asks(*(call(id=each) for each in several)), *map(tool, several))
    ]


AUDIO = {"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}
SAID = {"type": "message", "role": "user", "content": "x"}
U = {"role": "user", "content": "x"}
BEGUN = [U, {**U, "content": "what?"}, *turns("a", "b")]
BEGUN_ITEMS = [
    SAID,
    *(item for each in ("a", "b") for item in (function_call(id=each), output(each))),
    {**SAID, "role": "assistant"},
]


def named_tool(name, **schema):
    """A tool of Chat with a schema of an object."""
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", **schema}}}


SEQUENCES = {
    "a history that says nothing": (CHAT, [{"messages": [], "answer": "yes"}, {"messages": [U], "answer": "yes"}]),
    "an input that says nothing": (RESPONSES, [{"input": "", "answer": "y"}, {"input": [SAID], "answer": "y"}]),
    "a known field that tells": (
        RESPONSES,
        [{"input": [SAID], "prompt": None, "answer": ""}, {"input": [SAID], "prompt": "", "answer": ""}],
    ),
    "an answer with a prompt that tells": (
        CHAT,
        [{"output": [said("so", type="message")], "prompt": prompt} for prompt in (None, [None], "x", None)],
    ),
    "bytes beside tools that are null": (
        CHAT,
        [
            *[b'{"seed":1,"tools":null,"messages":[{"role":"user","content":"x"}]}'] * 3,
            b'{"seed":"\xff\xff\xff","seed":1,"messages":[{"role":"user","content":"x"}]}',
            b'{"zz":"\xff\xff\xff\xff\xff","seed":1,"messages":[{"role":"user","content":"x"}]}',
        ],
    ),
    "a list that is a stream": (CHAT, [[U], [{**U, "object": "chat.completion.chunk"}], [{**U, "type": "response.x"}]]),
    "a list that is a session log": (
        CHAT,
        [
            [U],
            [{**U, "type": "response_item", "payload": U}],
            [{"role": "user", "content": "response_item", "payload": U}],
            [{**U, "payload": U}, {"role": "user", "content": "response_item"}],
        ],
    ),
    "a line's end somewhere else": (
        RESPONSES,
        [
            dumps({"input": [{**SAID, "content": [AUDIO]}], "metadata": {"a": "b"}})
            .replace('"data":"x",', '"data": "x", ')
            .replace('{"a"', '{\n"a"')
            .encode()
        ],
    ),
    "a made id that a call bears": (CHAT, [turns("x", D2, "x", D2), turns("x", D2, "x", D2)]),
    "a made id that came before": (
        CHAT,
        [[U, *turns("a", "b", "z", ("a", "b"))]] * 2 + [[U, *turns("a", "b", D3, ("a", "b"))]],
    ),
    "a role spelled with escapes": (
        RESPONSES,
        [b'{"input":[{"type":"message","role":"\\u0075ser","content":"x"}],"zz":1}'],
    ),
    "parts that are read with care": (
        RESPONSES,
        [
            {"input": [{**SAID, "content": [{"type": "text", "text": "y"}]}], **more}
            for more in ({}, {"zz": 1}, {"zz": 2})
        ],
    ),
    "pointers in their order": (
        RESPONSES,
        [[{"type": "session_meta", "payload": {}}, {"type": "response_item", "payload": {**SAID, "zz": 1}}]],
    ),
    "a history that goes on, and others that do not": (
        CHAT,
        [
            [*BEGUN, *more]
            for last in ([], [said("so", zz=1)])
            for more in (
                [],
                turns("d"),
                last,
                [*last, *turns("a")],
                last,
                [*last, *turns("d", "d")],
                last,
                [*last, *turns("e"), tool("a")],
                last,
            )
        ],
    ),
    "a history that goes on with other tools": (
        CHAT,
        [
            {"messages": [*BEGUN, *more], "tools": [named_tool("f", required=required)]}
            for required in ([], ["a"], [])
            for more in ([], turns("d"))
        ],
    ),
    "an assistant's message that ends a history, and calls behind it": (
        RESPONSES,
        [
            [*BEGUN_ITEMS, *more]
            for last in ([], [{"type": "reasoning", "summary": []}], [{**SAID, "role": "assistant"}])
            for more in (last, [*last, function_call(id="d"), output("d")], last)
        ],
    ),
    "nesting near the limit": (
        CHAT,
        [f'{{"messages":[{{"role":"user","content":"x"}}],"zz":{"[" * n}{"]" * n}}}'.encode() for n in range(980, 999)],
    ),
}
"""Records, of which the earlier ones once made a later one come out as something else."""


@pytest.mark.parametrize("options", [{}, {"verify": True}], ids=["", "verify"])
@pytest.mark.parametrize("name", SEQUENCES)
def test_no_record_is_taken_for_what_an_earlier_one_was(name, options):
    verb, records = SEQUENCES[name]
    texts = [record if isinstance(record, bytes) else dumps(record).encode() for record in records]
    session = Session(verb, Options(**options))
    for text in [*texts, *texts]:
        assert session.outcome(1, text) == rooms(verb, **options).outcome(1, text)


COMPLETION = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": []}
RESPONSE = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": []}
DELTA = {"index": 0, "delta": said("x"), "finish_reason": "stop"}
CHUNK = {**COMPLETION, "object": "chat.completion.chunk", "choices": [DELTA]}
STREAM = [*[{**CHUNK, "choices": [{**DELTA, "finish_reason": None}]}] * 3, CHUNK, {**CHUNK, "choices": []}]
KINDS = [[U], [SAID], {"messages": [U]}, {"input": [SAID]}, COMPLETION, RESPONSE]
"""A record of each kind: the next one is first taken for another of it."""

ODD = ['"\\ud800"', '"\\ud83d\\ude00"', '["\\ud83d\\ude00",1e999]', '["\\ud83d\\ude00",%s]' % ("1" * 5000), "1e999"]
"""JSON texts that some decoders read, and others do not."""


@pytest.mark.parametrize("odd", ODD, ids=["lone", "pair", "a number beyond floats", "long", "a number alone"])
@pytest.mark.parametrize("verb", [CHAT, RESPONSES])
def test_odd_texts_are_odd_whatever_kind_of_record_came_before(verb, odd):
    for place in ("id", "metadata", "zz"):
        streams = [[*STREAM[:at], {**STREAM[at], place: "odd"}, *STREAM[at + 1 :]] for at in (0, 1, 4)]
        for record in [*({**kind, place: "odd"} for kind in KINDS[2:]), [{**U, place: "odd"}], *streams]:
            text = dumps(record).replace('"odd"', odd).encode()
            alone = Session(verb, Options()).outcome(1, text)
            for kind in KINDS:
                session = Session(verb, Options())
                session.outcome(1, dumps(kind).encode())
                assert session.outcome(1, text) == alone


def test_no_two_items_bear_one_id_however_the_call_ids_are_made():
    made = Session(CHAT, Options()).convert(dumps(turns("x", D2, "x", D2)).encode())[0]
    ids = [item["id"] for item in json.loads(made) if item["type"] == "function_call"]
    assert len(set(ids)) == len(ids) == 4


def test_a_tool_name_that_no_call_may_bear_is_refused_however_often_it_comes():
    parameters = {"type": "object", "title": "named"}
    named = {"type": "function", "name": "a b", "parameters": parameters}
    call_item = {"type": "function_call", "id": "fc", "call_id": "c", "name": "a b", "arguments": "{}"}
    body = {"object": "response", "status": "completed", "id": "r", "created_at": 1, "model": "m"}
    record = dumps({**body, "tools": [named], "output": [{**call_item, "status": "completed"}]}).encode()
    first = rooms(RESPONSES).outcome(1, record)
    assert not isinstance(first, Converted)
    assert [rooms(RESPONSES).outcome(1, record) for _ in range(3)] == [first] * 3


def test_call_ids_that_all_come_again_are_each_numbered_and_told():
    many = [U, *turns(*map(str, range(300)))]
    record = dumps([*many, *many[1:]]).encode()
    session = Session(CHAT, Options())
    first, second = session.outcome(1, record), session.outcome(1, record)
    assert first == second == rooms(CHAT).outcome(1, record)
    ids = [item["id"] for item in first.body if item["type"] == "function_call"]
    assert len(set(ids)) == len(ids) == 600
    [told] = [notice.paths for notice in first.notices if notice.code == "reused_call_id"]
    assert len(told) == 300
