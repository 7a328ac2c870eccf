"""The gate by itself: what its pairing says of each order of calls and outputs, and what its verdicts leave alone.

An order is a word of letters: `a` a call with the id a, `A` its output, `u` a user's and `s` an assistant's message.
"""

import json

import pytest
from strategies import USER, USER_ITEM, asks, call, function_call, output, response, said, tool

from converter import Notice, Options, Refused, Verdict, check, convert_lines, replay_gate, to_chat, to_responses

KNOWN = {"tools": {"f": True}}
GOOD = {"type": "function_call", "status": "completed", "arguments": "{}"}


def items(order):
    entries = {"u": USER_ITEM, "s": said("y", type="message")}
    return [
        entries.get(letter) or (function_call(id=letter) if letter.islower() else output(letter.lower()))
        for letter in order
    ]


def messages(order):
    entries = {"u": USER, "s": said("y")}
    return [
        entries.get(letter) or (asks(call(id=letter)) if letter.islower() else tool(letter.lower())) for letter in order
    ]


def refused(convert, record):
    """The reasons."""
    with pytest.raises(Refused) as raised:
        convert(record, Options(**KNOWN))
    return raised.value.reasons


def said_of(convert, record, **options):
    """The reasons, or the notices, as (code, position)."""
    try:
        notices = convert(record, Options(**KNOWN, **options)).notices
    except Refused as refused:
        return sorted((reason.code, int(reason.path.split("/")[1])) for reason in refused.reasons)
    return sorted((one.code, int(path.split("/")[1])) for one in notices for path in one.paths)


ORDERS = [
    ("aAbB", []),
    ("aAaA", [("reused_call_id", 2)]),
    ("aAaAaA", [("reused_call_id", 2), ("reused_call_id", 4)]),
    ("aaAA", [("ambiguous_call_id", 1)]),
    ("aaaAAA", [("ambiguous_call_id", 1), ("ambiguous_call_id", 2)]),
    ("aaaAAAA", [("ambiguous_call_id", 1), ("ambiguous_call_id", 2), ("duplicate_output", 6)]),
    ("aaAAB", [("ambiguous_call_id", 1), ("orphan_output", 4)]),
    ("aAA", [("duplicate_output", 2)]),
    ("Aa", [("early_output", 0)]),
    ("AAa", [("early_output", 0), ("early_output", 1)]),
    ("AaA", [("duplicate_output", 2), ("early_output", 0)]),
    ("AbB", [("orphan_output", 0)]),
    ("AbBa", [("early_output", 0)]),
    ("au", [("unanswered_call", 0)]),
    ("aau", [("ambiguous_call_id", 1), ("unanswered_call", 0)]),
]


@pytest.mark.parametrize(("order", "expected"), ORDERS)
def test_what_is_said_of_an_order(order, expected):
    refuses = {code for code, _ in expected} - {"open_call", "reused_call_id"}
    expected = [one for one in expected if not refuses or one[0] in refuses]
    for record in (messages(order), items(order)):  # one of the two is in the target envelope already
        assert said_of(to_responses, record) == expected
        assert said_of(to_chat, record) == expected


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("abA", [("open_call", 1)]),
        ("abAs", [("unanswered_call", 1)]),
        ("abAc", [("unanswered_call", 1)]),
        ("abAcC", [("unanswered_call", 1)]),
        ("abu", [("unanswered_call", 0), ("unanswered_call", 1)]),
        ("aAbuc", [("unanswered_call", 2)]),
    ],
)
def test_an_output_ends_the_turn_of_items(order, expected):
    assert said_of(to_chat, items(order)) == expected
    assert said_of(to_responses, items(order)) == expected


TWO = [asks(call(id="a"), call(id="b")), tool("a")]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (TWO, [("open_call", 0)]),
        ([*TWO, said("y")], [("unanswered_call", 0)]),
        ([*TWO, {"role": "system", "content": "x"}], [("open_call", 0)]),
        ([*TWO, USER], [("unanswered_call", 0)]),
        ([asks(call(id="a")), USER, said("y")], [("unanswered_call", 0)]),
    ],
)
def test_what_ends_the_turn_of_messages(record, expected):
    assert said_of(to_responses, record) == expected


@pytest.mark.parametrize("length", [1, 64])
def test_a_call_id_may_be_as_long_as_the_specification_says(length):
    name = "c" * length
    again = [asks(call(id=name)), tool(name), asks(call(id=name)), tool(name)]
    assert said_of(to_responses, again) == [("reused_call_id", 2)]


def test_a_call_id_of_chat_completions_may_be_longer():
    name = "c" * 65
    again = [function_call(id=name), output(name), function_call(id=name), output(name)]
    assert said_of(to_chat, again) == [("reused_call_id", 2)]


def test_arguments_of_one_character_are_let_through_again():
    entries = [asks(call("1"), call("1", id="call_2")), tool(), tool("call_2")]
    assert said_of(to_responses, entries) == [("odd", 0), ("odd", 0)]
    numbers = [function_call("1"), output(), function_call("1", id="call_2"), output("call_2")]
    assert said_of(to_chat, numbers) == [("odd", 0), ("odd", 2)]


def test_arguments_that_are_no_json_are_not_odd_as_well():
    allowed = said_of(to_responses, [asks(call("nope")), tool()], allow={"arguments_parse"})
    assert allowed == [("allowed", 0)]


def test_a_legacy_call_is_judged_and_answered_once():
    legacy = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    broken = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{"}}
    answer = {"role": "function", "name": "f", "content": "ok"}
    openai = {"target": "openai"}
    assert to_chat([legacy, answer], Options(**KNOWN)).body == [legacy, answer]
    assert said_of(to_chat, [USER, broken, answer]) == [("arguments_parse", 1)]
    assert said_of(to_chat, [legacy, answer, answer]) == [("duplicate_output", 2)]
    assert said_of(to_responses, [legacy, answer, answer], **openai) == [("orphan_output", 2)]
    assert [one.path for one in refused(to_chat, [USER, broken, answer])] == ["/1/function_call/arguments"]
    assert [one.path for one in refused(to_chat, [legacy, answer, answer])] == ["/2"]
    assert to_chat([legacy], Options(**KNOWN)).notices == [Notice("open_call", ["/0"])]


def test_a_tool_that_allowed_tools_names_is_no_oddity():
    tools = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("f", "g")]
    only = [{"type": "function", "function": {"name": "f"}}]
    record = {
        "messages": [asks(call(), call(name="g", id="call_2")), tool(), tool("call_2")],
        "tools": tools,
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": only}},
    }
    [notice] = [one for one in to_responses(record).notices if one.code == "odd"]
    assert notice.paths == ["/messages/0/tool_calls/1/function/name"]
    assert notice.detail == "a call to a tool that allowed_tools leaves out"


def test_a_call_that_allowed_tools_leaves_out_is_named_each_time():
    tool = {"type": "function", "name": "f", "parameters": {}, "strict": False}
    only = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "g"}]}
    calls = [function_call(), output(), function_call(id="call_2"), output("call_2")]
    notices = to_chat({"input": calls, "tools": [tool, {**tool, "name": "g"}], "tool_choice": only}).notices
    assert [one.paths for one in notices if one.code == "odd"] == [["/input/0/name", "/input/2/name"]]


def test_an_output_whose_call_is_in_a_history_elsewhere_is_no_orphan():
    record = {"previous_response_id": "resp_1", "input": [output("a"), USER_ITEM]}
    assert to_responses(record).body == record
    with pytest.raises(Refused) as refused:
        to_chat(record)
    assert [reason.code for reason in refused.value.reasons] == ["incomplete_history"]


# ---------------------------------------------------------------- verdicts


def test_verdicts_without_a_schema():
    assert replay_gate(GOOD, None) is Verdict.OK
    assert replay_gate({**GOOD, "arguments": "{"}, None) is Verdict.ARGUMENTS_PARSE
    assert replay_gate({**GOOD, "arguments": {}}, None) is Verdict.ARGUMENTS_TYPE


def test_a_namespace_matters_for_calls_alone():
    assert replay_gate({"type": "message", "namespace": "n"}, None) is Verdict.NOT_FUNCTION_CALL


@pytest.mark.parametrize("item", [{}, {"type": None}, {"type": ["function_call"]}])
def test_an_item_whose_type_is_no_text_cannot_be_replayed_elsewhere(item):
    assert replay_gate(item, None) is Verdict.NAMESPACED


def test_a_schema_that_cannot_be_used_is_an_error():
    with pytest.raises(ValueError, match=r"^the schema cannot be used: the schema "):
        replay_gate(GOOD, {"type": "nonsense"})


# ---------------------------------------------------------------- lone surrogates

LONE = "\\ud83d"


def reasons_of(convert, text):
    return [str(reason) for reason in refused(convert, text)]


ASKED = (
    '[{"role":"assistant","content":null,"tool_calls":[{"id":"%s","type":"function",'
    '"function":{"name":"%s","arguments":"%s"}}]},{"role":"tool","tool_call_id":"%s","content":"%s"}]'
)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            ("c", LONE, "{}", "c", ""),
            "limit at /0/tool_calls/0/function/name: a tool name outside ^[a-zA-Z0-9_-]{1,64}$ "
            "(rename the tool and its calls before converting)",
        ),
        (
            ("c", "f", '{\\"a\\":\\"' + LONE + '\\"}', "c", ""),
            "arguments_parse at /0/tool_calls/0/function/arguments: a lone surrogate, which no JSON text holds but as "
            "an escape (--allow arguments_parse writes it as it is)",
        ),
        ((LONE, "f", "{}", LONE, ""), "limit at /0/tool_calls/0/id: a lone surrogate in a call id"),
        (
            ("c", "f", "{", "c", LONE),
            "arguments_parse at /0/tool_calls/0/function/arguments: not JSON at character 2 "
            "(a cut call? --allow arguments_parse writes it as it is)",
        ),
    ],
    ids=["a name", "arguments", "a call id", "an output, and broken arguments"],
)
def test_a_lone_surrogate_in_a_call(values, sentence):
    assert reasons_of(to_responses, ASKED % values) == [sentence]


@pytest.mark.parametrize("convert", [to_responses, to_chat])
@pytest.mark.parametrize("form", [messages, items])
@pytest.mark.parametrize(("order", "expected"), [("aa", [0, 1]), ("au", [0])])
def test_a_call_whose_id_holds_a_lone_surrogate_waits_for_no_output(convert, form, order, expected):
    """It is refused for its id, and not once more for a second one with that id, or for the output that is missing."""
    record = json.dumps(form(order)).replace('"a"', f'"{LONE}"')
    found = [(reason.code, reason.message, int(reason.path.split("/")[1])) for reason in refused(convert, record)]
    assert found == [("limit", "a lone surrogate in a call id", position) for position in expected]


# ---------------------------------------------------------------- texts as long as the specification lets them be


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize(
    ("part", "limit"),
    [
        ({"type": "text", "text": ""}, 10_485_760),
        ({"type": "image_url", "image_url": {"url": ""}}, 20_971_520),
        ({"type": "file", "file": {"file_data": ""}}, 33_554_432),
    ],
    ids=["text", "image", "file"],
)
def test_the_longest_part(part, limit, more):
    long = "x" * (limit + more)
    kind = part["type"]
    given = {**part, "text": long} if kind == "text" else {**part, kind: dict.fromkeys(part[kind], long)}
    record = [USER, {"role": "user", "content": [given]}]
    assert said_of(to_responses, record) == [("limit", 1)] * more


@pytest.mark.parametrize("more", [0, 1])
def test_the_longest_output(more):
    record = [asks(call()), tool(content="x" * (10_485_760 + more))]
    assert said_of(to_responses, record) == [("limit", 1)] * more


@pytest.mark.parametrize("more", [0, 1])
def test_the_longest_refusal(more):
    record = [USER, {"role": "assistant", "content": None, "refusal": "x" * (10_485_760 + more)}]
    assert said_of(to_responses, record) == [("limit", 1)] * more


def test_the_tools_of_a_request_judge_the_calls_of_its_answer():
    schema = {"type": "object", "required": ["a"]}
    answer = response(function_call())
    asked = {"input": "x", "tools": [{"type": "function", "name": "f", "parameters": schema, "strict": False}]}
    rows, outcome = check.prepare(Options())(1, json.dumps({"request": asked, "response": answer}).encode())
    assert [row.verdict for row in rows if row.type == "function_call"] == ["arguments_schema"]
    assert [reason.code for reason in outcome.reasons] == ["arguments_schema"]


def test_a_legacy_call_has_a_row_as_any_other():
    call_of = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"cit'}}
    schema = {"type": "object", "required": ["a"]}
    gated = check.prepare(Options())
    for arguments, verdict in (('{"cit', "arguments_parse"), ("{}", "arguments_schema"), ('{"a":1}', "ok")):
        call_of["function_call"]["arguments"] = arguments
        record = {"functions": [{"name": "f", "parameters": schema}], "messages": [call_of]}
        rows, _ = gated(1, json.dumps(record).encode())
        assert [(row.type, row.name, row.verdict) for row in rows[1:]] == [("function_call", "f", verdict)]


@pytest.mark.parametrize("name", ["f", "f\\ud800"])
def test_lone_surrogates_are_looked_at_as_they_are_converted(name):
    text = (
        b'{"messages":[{"role":"user","content":"\\ud800"},{"role":"assistant","tool_calls":[{"id":"c","type":"function",'
        b'"function":{"name":"%b","arguments":"{}"}}]}]}' % name.encode()
    )
    rows, outcome = check.prepare(Options())(1, text)
    assert [(row.type, row.name, row.verdict) for row in rows[2:]] == [("function_call", name, "ok")]
    [converted] = convert_lines([text], "to-responses")
    assert type(outcome) is type(converted)
    if name == "f":
        assert outcome.json == text
        assert [(one.code, one.paths) for one in outcome.notices] == [
            ("unchecked", ["/messages/1/tool_calls/0/function/arguments"]),
            ("open_call", ["/messages/1/tool_calls/0"]),
            ("odd", ["/messages/0/content"]),
        ]
    else:
        assert outcome.reasons == converted.reasons
