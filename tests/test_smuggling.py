"""An attacker wants a call to be run that the gate did not mean to pass. Each way in is a test, in both directions.

Each record goes through the public functions by itself, where it may take the shortcut, and once more with a field that
keeps it from the shortcut.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from converter import Options, Refused, Verdict, convert_lines, replay_gate, to_chat, to_responses
from converter.ids import renamed_call_id
from converter.text import key_twice

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "maximum": 5}, "to": {"enum": ["a", "b"]}},
    "additionalProperties": False,
}
ANYTHING = {"type": "object"}
BAD = '{"n":9}'
VERBS = {"to-responses": to_responses, "to-chat": to_chat}


def definition(envelope, parameters, name="f"):
    function = {"name": name, "parameters": parameters}
    return {"type": "function", "function": function} if envelope == "chat" else {"type": "function", **function}


def ask(envelope, arguments="{}", name="f", call_id="c", tools=(SCHEMA,), **more):
    """A request of either envelope: a call of a tool, and its output."""
    defined = {"tools": [definition(envelope, each) for each in tools]} if tools else {}
    if envelope == "chat":
        function = {"name": name, "arguments": arguments}
        call = {"id": call_id, "type": "function", "function": function, **more}
        turn = [{"role": "assistant", "content": None, "tool_calls": [call]}]
        return {"messages": [*turn, {"role": "tool", "tool_call_id": call_id, "content": "y"}], **defined}
    call = {"type": "function_call", "name": name, "call_id": call_id, "arguments": arguments, **more}
    return {"input": [call, {"type": "function_call_output", "call_id": call_id, "output": "y"}], **defined}


def ways(text):
    """One record as it may come: by the shortcut, and with a field that wants to be looked at."""
    return [text, text[:-1] + ',"user":"u"}'] if text.startswith("{") else [text]


def outcomes(record, **options):
    """What becomes of a record, towards both envelopes and by all ways: the reasons' codes, or what is written."""
    text = record if isinstance(record, str) else json.dumps(record)
    found = []
    for verb in VERBS:
        for way in ways(text):
            [outcome] = convert_lines([way], verb, Options(**options))
            reasons = getattr(outcome, "reasons", None)
            found.append(outcome.json.decode() if reasons is None else [reason.code for reason in reasons])
    return found


def refused(record, *codes, **options):
    found = outcomes(record, **options)
    assert all(one == list(codes) for one in found), found


def written(record, **options):
    found = outcomes(record, **options)
    assert all(isinstance(one, str) for one in found), found
    return found


both = pytest.mark.parametrize("envelope", ["chat", "responses"])


# ---------------------------------------------------------------- what the executor reads in the arguments


@both
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ('{"n":9,"n":1}', "arguments_parse"),
        ('{"n":1,"\\u006e":9}', "arguments_parse"),
        ('{"n":1}{"n":9}', "arguments_parse"),
        ('{"n":1} // {"n":9}', "arguments_parse"),
        ('{"n":1}\0', "arguments_parse"),
        ('\ufeff{"n":1}', "arguments_parse"),
        ('{"n":1}\xa0', "arguments_parse"),
        ('{"n":NaN}', "arguments_parse"),
        ("{'n':1}", "arguments_parse"),
        ('{"n":5.0000000000000000001}', "arguments_schema"),
        ('{"n":1.0000000000000000001}', "arguments_schema"),
        ('{"n":1e-400}', "arguments_schema"),
        ('{"n":1e400}', "arguments_schema"),
        ('{"N":1}', "arguments_schema"),
        ('{"to":"\\u0061\\u0301"}', "arguments_schema"),
        ('{"to":"a\\u0000"}', "arguments_schema"),
        ('{"\\u006e":9}', "arguments_schema"),
    ],
    ids=ascii,
)
def test_no_reader_finds_other_arguments(envelope, arguments, code):
    refused(ask(envelope, arguments), code)


@both
def test_arguments_that_say_the_same_in_other_letters_pass_as_they_are(envelope):
    arguments = ' {"\\u0074o" : "\\u0061"}\n'
    assert all(json.dumps(arguments) in one for one in written(ask(envelope, arguments)))


# ---------------------------------------------------------------- which tool is called


@both
@pytest.mark.parametrize("name", ["f ", " f", "f\0", "\uff46", "f\u200b", "f.f", "", "f" * 65, "f\u0301"])
def test_a_name_that_only_looks_like_another_is_no_name(envelope, name):
    refused(ask(envelope, BAD, name), "limit")


@both
def test_a_name_of_other_case_is_another_tool(envelope):
    refused(ask(envelope, BAD, "F"), "schema_missing", require_schema=True)


@both
@pytest.mark.parametrize("namespace", ["admin", "\\u0061"])
def test_a_namespace_changes_the_tool(envelope, namespace):
    refused(ask(envelope, namespace=namespace), "unsupported_item")


def test_a_namespace_inside_the_function():
    record = ask("chat")
    record["messages"][0]["tool_calls"][0]["function"]["namespace"] = "admin"
    refused(record, "unsupported_item")
    left = to_responses(record, Options(allow={"unsupported_item"})).body["input"]
    assert not {"function_call", "function_call_output"} & {item["type"] for item in left}


def test_the_gate_itself_knows_namespaces():
    item = {"type": "function_call", "status": "completed", "name": "f", "call_id": "c", "arguments": "{}"}
    assert replay_gate(item, True) is Verdict.OK
    assert replay_gate({**item, "namespace": None}, True) is Verdict.OK
    assert replay_gate({**item, "namespace": "admin"}, True) is Verdict.NAMESPACED


# ---------------------------------------------------------------- by which schema


@both
@pytest.mark.parametrize("tools", [(SCHEMA, ANYTHING), (ANYTHING, SCHEMA), (ANYTHING, SCHEMA, ANYTHING)])
def test_of_two_tools_with_one_name_both_must_be_satisfied(envelope, tools):
    refused(ask(envelope, BAD, tools=tools), "arguments_schema")


def test_legacy_functions_do_not_hide_a_tool():
    functions = [{"name": "f", "parameters": ANYTHING}]
    refused({**ask("chat", BAD), "functions": functions}, "arguments_schema")


@both
def test_no_schema_of_the_record_replaces_one_of_the_users(envelope):
    refused(ask(envelope, BAD, tools=(ANYTHING,)), "arguments_schema", tools={"f": SCHEMA})
    answer = {"object": "response", "id": "r", "model": "m", "created_at": 1, "status": "completed"}
    call = {"type": "function_call", "id": "fc", "status": "completed", "name": "f", "call_id": "c", "arguments": BAD}
    loose = {**answer, "output": [call], "tools": [definition("responses", ANYTHING)]}
    refused(loose, "arguments_schema", tools={"f": SCHEMA})
    request = ask(envelope, tools=(ANYTHING,))
    refused({"request": request, "response": loose}, "arguments_schema", tools={"f": SCHEMA})


@both
def test_an_answer_does_not_loosen_its_requests_schema(envelope):
    call = {"type": "function_call", "id": "fc", "status": "completed", "name": "f", "call_id": "c", "arguments": BAD}
    answer = {"object": "response", "id": "r", "model": "m", "created_at": 1, "status": "completed", "output": [call]}
    answer["tools"] = [definition("responses", ANYTHING)]
    refused({"request": ask(envelope), "response": answer}, "arguments_schema")


@both
@pytest.mark.parametrize(
    "schema", [{"$ref": "file:///f.json"}, {"$ref": "http://a.example/f"}, {"$ref": "f.json"}, {"$schema": "x:y"}]
)
def test_a_schema_that_is_elsewhere_checks_nothing(envelope, schema):
    refused(ask(envelope, tools=(schema,)), "invalid_tool_schema")


@both
def test_a_schema_with_a_key_twice_checks_nothing(envelope):
    text = json.dumps(ask(envelope, BAD)).replace('"maximum": 5', '"maximum": 5, "maximum": 9')
    refused(text, "invalid_tool_schema")


# ---------------------------------------------------------------- what kind of item


@pytest.mark.parametrize(
    "item",
    [
        r'{"type":"openai\u003aweb_search_call","id":"x"}',
        r'{"type":"open\u0061i:web_search_call","id":"x"}',
        r'{"ty\u0070e":"openai:web_search_call","id":"x"}',
        r'{"type":"message","type":"openai:web_search_call","id":"x"}',
        '{"type":"function_call:x","name":"f","call_id":"c","arguments":"{}"}',
    ],
)
def test_a_type_with_a_prefix_however_it_is_spelled(item):
    refused(f'[{{"type":"message","role":"user","content":"x"}},{item}]', "namespaced")


@pytest.mark.parametrize("kind", ["null", "5", '["function_call"]', '"Function_call"', '"function_call\\u0000"', '""'])
def test_a_type_that_is_none_makes_no_call(kind):
    item = f'{{"type":{kind},"name":"f","call_id":"c","arguments":"{{}}"}}'
    found = outcomes(f'[{{"type":"message","role":"user","content":"x"}},{item}]')
    assert all(isinstance(one, list) for one in found)


@pytest.mark.parametrize("status", ['"Completed"', '"completed\\u0000"', '"in_progress"', '"incomplete"', '""'])
def test_a_status_that_is_not_completed(status):
    text = json.dumps(ask("responses")).replace('"name"', f'"status": {status}, "name"')
    found = outcomes(text)
    assert all("status" in one or isinstance(one, str) is (status == '""') for one in found)


def test_calls_stand_only_where_the_gate_looks_for_them():
    """Whoever runs all `tool_calls` of a log must find none that was not looked at."""
    calls = ask("chat", BAD)["messages"][0]["tool_calls"]
    for message in ({"role": "user", "content": "x"}, {"role": "system", "content": "x"}):
        for field, value in (("tool_calls", calls), ("function_call", calls[0]["function"])):
            record = {**ask("chat"), "messages": [{**message, field: value}]}
            with pytest.raises(Refused, match=f"wrong_type at /messages/0/{field}"):
                to_chat(record)
            assert BAD not in to_responses(record).json.decode().replace("\\", "")


# ---------------------------------------------------------------- keys twice around the call


TWICE = {
    "name": ('"name": "f", "arguments"', '"name": "g", "name": "f", "arguments"'),
    "arguments": ('"arguments"', f'"arguments": {json.dumps(BAD)}, "arguments"'),
    "escaped": ('"arguments"', f'"argument\\u0073": {json.dumps(BAD)}, "arguments"'),
    "calls": ('"tool_calls"', '"tool_calls": [{"x": "y"}], "tool_calls"'),
    "messages": ('"messages"', '"messages": [{"x": "y"}], "messages"'),
    "input": ('"input"', '"input": [{"type": "openai:x"}], "input"'),
    "type": ('"type": "function_call",', '"type": "message", "type": "function_call",'),
    "a key that ends in a backslash": ('"arguments"', '"z\\\\": 1, "z\\\\" :2, "arguments"'),
}


@both
@pytest.mark.parametrize("name", TWICE)
def test_of_two_values_of_a_key_the_one_that_was_judged_is_written(envelope, name):
    text = json.dumps(ask(envelope)).replace(*TWICE[name], 1)
    for found in written(text):
        every = json.loads(found, object_pairs_hook=lambda pairs: [key for key, _ in pairs] and pairs)
        _no_key_twice(every)
        assert json.loads(found) == json.loads(found, object_pairs_hook=lambda pairs: dict(reversed(pairs)))


def _no_key_twice(value):
    for pairs in [value] if isinstance(value, list) else []:
        keys = [pair[0] for pair in pairs if isinstance(pair, tuple)]
        assert len(keys) == len(set(keys))
        for each in pairs:
            _no_key_twice(each[1] if isinstance(each, tuple) else each)


@both
def test_strict_refuses_a_key_twice(envelope):
    text = json.dumps(ask(envelope)).replace('"arguments"', '"arguments": "", "arguments"', 1)
    for verb in VERBS.values():
        with pytest.raises(Refused, match=r"duplicate_key at .*/arguments: a key stands twice"):
            verb(text, Options(strict=True))


BLANKS = ["", " ", "\t", "\n", "\r", "  ", "\r\n", " \n", "\n\t "]
KEYS = ['"a"', '"\\u0061"', '"b"', '"a\\\\"', '"a\\u005c"', '"a\\":"', '":"', '""', '","', '"a:"', '"{\\""']
"""As they are spelled: two of them are the same, and two others."""

STRINGS = ['"a"', '":"', '" :"', r'"\\"', r'"\":"', r'"\u003a"', r'"\u0020:"', r'"\u0022:"', r'"\u005c\":"']


@pytest.mark.parametrize("blank", BLANKS)
@pytest.mark.parametrize("value", ["1", *STRINGS])
@pytest.mark.parametrize("key", KEYS)
def test_a_key_twice_is_found_whatever_stands_beside_it(key, value, blank):
    once, twice = f'{{"z":{{}},{key}{blank}:{value}}}', f"{{{key}:{value},{key}{blank}:{value}}}"
    assert key_twice(once.encode()) is None
    assert key_twice(twice.encode()) == f"/{json.loads(key)}"


@given(st.data())
def test_a_key_twice_is_found_however_a_text_is_spelled(data):
    def spelled(value):
        if isinstance(value, str):
            return value
        blank = data.draw(st.sampled_from([*[""] * 5, *BLANKS]))
        keys = data.draw(st.lists(st.sampled_from(KEYS), min_size=len(value), max_size=len(value)))
        if data.draw(st.booleans()):
            return f"[{','.join(map(spelled, value))}]"
        twice.append(len(set(map(json.loads, keys))) < len(keys))
        return (
            "{" + ",".join(f"{key}{blank}:{blank}{spelled(each)}" for key, each in zip(keys, value, strict=True)) + "}"
        )

    twice = []
    leaves = st.sampled_from(["null", "true", "-0", "1e400", "0.10", str(2**70), *STRINGS])
    text = spelled(data.draw(st.recursive(leaves, lambda inside: st.lists(inside, max_size=3))))
    assert (key_twice(text.encode()) is not None) == any(twice)


def test_a_standing_record_with_a_key_twice_says_so_and_keeps_its_spelling():
    text = '{"messages": [{"role": "user", "content": "x"}], "temperature": 0.10, "seed": 1, "seed": 2.50}'
    made = to_chat(text)
    assert made.json == b'{"messages":[{"role":"user","content":"x"}],"temperature":0.10,"seed":2.50}'
    [notice] = made.notices
    assert (notice.code, notice.paths) == ("odd", ["/seed"])
    plain = text.replace(', "seed": 1', "")
    assert to_chat(plain).json.decode() == plain


def test_a_standing_record_that_is_repaired_has_no_key_twice():
    text = """{"messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}, {"role": "user", "content": "x"}],
        "audio": {"a": 1, "a": 2}}"""
    made = to_chat(text, Options(repair={"drop-orphans"}))
    assert made.json == b'{"messages":[{"role":"user","content":"x"}],"audio":{"a":2}}'
    assert [notice.paths for notice in made.notices if notice.code == "odd"] == [["/audio/a"]]


@pytest.mark.parametrize("request_", [[], [{"role": "user", "content": "x"}], "answer", "request", "items"])
@both
def test_the_tools_that_the_user_gave_judge_an_answer_whatever_its_request_is(envelope, request_):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": BAD}}
    item = {"type": "function_call", "name": "f", "call_id": "c", "arguments": BAD, "status": "completed"}
    answers = {
        "chat": {"choices": [{"message": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"}]},
        "responses": {"object": "response", "status": "completed", "output": [item]},
    }
    requests = {
        "answer": {"choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]},
        "request": {"messages": [{"role": "user", "content": "x"}]},
        "items": {"input": "x"},
    }
    pair = {"request": requests[request_] if isinstance(request_, str) else request_, "response": answers[envelope]}
    for verb in VERBS.values():
        with pytest.raises(Refused) as refused:
            verb(pair, Options(tools={"f": SCHEMA}))
        found = {reason.code for reason in refused.value.reasons}
        assert "arguments_schema" in found or found & {"unknown_shape", "mixed_envelopes"}


def test_a_legacy_function_has_its_schema_whatever_type_stands_in_it():
    function = {"type": "custom", "name": "f", "parameters": {"type": "object", "required": ["n"]}}
    record = {**ask("chat", tools=()), "functions": [function]}
    for verb in VERBS.values():
        with pytest.raises(Refused, match="arguments_schema"):
            verb(record)


# ---------------------------------------------------------------- for which call an output is


def turn(*calls):
    """An assistant's turn of calls; each an id and a name."""
    entries = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}} for call_id, name in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": entries}


def tells(call_id, content):
    return {"role": "tool", "tool_call_id": call_id, "content": content}


@pytest.mark.parametrize("call_id", ["c ", "C", "c\0", "\uff43", "c\u200b"])
def test_an_id_that_only_looks_like_another_pairs_nothing(call_id):
    found = outcomes([turn(("c", "f")), tells(call_id, "y")])
    assert all("orphan_output" in one for one in found)


def test_an_output_of_a_legacy_call_answers_no_other():
    named = {"role": "function", "name": "f", "content": "y"}
    legacy = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    for call_id in ("\0function f", "f", "('function_call', 'f')"):
        refused([turn((call_id, "g")), named], "orphan_output")
        refused([legacy, tells(call_id, "y")], "orphan_output")


LONG = "x" * 65
LEGACY = [
    {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
    {"role": "function", "name": "f", "content": "of f"},
]


def first_id(record, *repairs):
    return to_responses(record, Options(repair=set(repairs))).body[0]["call_id"]


def answers(record, *repairs):
    """For each output that is written what it says, and the name of the call that is open with its id."""
    try:
        items = to_responses(record, Options(repair=set(repairs))).body
    except Refused as refusal:
        return {reason.code for reason in refusal.reasons}
    opened, found = {}, []
    for item in items:
        if item["type"] == "function_call":
            assert item["call_id"] not in opened
            opened[item["call_id"]] = item["name"]
        elif item["type"] == "function_call_output":
            found.append((item["output"], opened.pop(item["call_id"])))
    return found


RIGHT = [("of f", "f"), ("of g", "g")]


def test_a_recorded_id_that_is_the_one_to_be_made_takes_no_output_from_another():
    """Ids that have to be made can be reckoned beforehand, so a log may hold one already."""
    made = first_id(LEGACY)
    assert answers([*LEGACY, turn((made, "g")), tells(made, "of g")]) == RIGHT
    both_open = [turn((made, "g")), LEGACY[0], tells(made, "of g"), LEGACY[1]]
    assert "ambiguous_call_id" in answers(both_open)
    filled = first_id([turn(("", "f")), tells("", "of f")], "fill-call-ids")
    for calls in ([(filled, "g"), ("", "f")], [("", "f"), (filled, "g")]):
        asked = [turn(*calls), tells(filled, "of g"), tells("", "of f")]
        assert answers(asked, "fill-call-ids") == {"ambiguous_call_id"}


@pytest.mark.parametrize("number", range(3))
def test_a_renamed_id_that_is_recorded_too(number):
    taken = renamed_call_id(LONG, number)
    for calls in ([(taken, "g"), (LONG, "f")], [(LONG, "f"), (taken, "g")]):
        record = [turn(*calls), *(tells(call_id, f"of {name}") for call_id, name in calls)]
        found = answers(record, "rename-call-ids")
        assert found == {"ambiguous_call_id"} or sorted(found) == RIGHT


def test_item_ids_that_are_made_are_unique():
    record = [turn(("a:b", "f"), ("c", "f"), ("fc_c", "f")), *(tells(one, "y") for one in ("a:b", "c", "fc_c"))]
    made = [item["id"] for item in to_responses(record).body if item["type"] == "function_call"]
    assert len(set(made)) == 3
