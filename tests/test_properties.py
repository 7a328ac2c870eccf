"""What holds for every record: exactness, conservation, the way back, determinism, and that nothing raises.

The strategies give records whose conversion loses nothing, and unknown fields are put into them at every depth.
``HYPOTHESIS_PROFILE=thorough`` looks for longer.
"""

import copy
import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import (
    CHAT_RECORDS,
    RESPONSES_RECORDS,
    USER,
    USER_ITEM,
    VALUES,
    WORDS,
    Number,
    asks,
    call,
    chat_requests,
    completions,
    dumps,
    function_call,
    lossy,
    output,
    plain,
    resources,
    response,
    responses_requests,
    said,
    tool,
    with_unknown_fields,
)

from converter import Converted, Options, Refused, Rejected, convert_lines, to_chat, to_responses
from converter.convert import Session
from converter.options import REPAIRS
from converter.outcome import ALLOWABLE, NOTICES, REASONS

BOTH = [
    pytest.param(to_responses, CHAT_RECORDS, to_chat, id="to-responses"),
    pytest.param(to_chat, RESPONSES_RECORDS, to_responses, id="to-chat"),
]
WAYS = pytest.mark.parametrize(("convert", "records", "back"), BOTH)
VERB = {to_responses: "to-responses", to_chat: "to-chat"}
LOSSY = {"dropped", "joined", "moved", "repaired", "allowed"}
CLOSED = {code for family in REASONS.values() for code in family}


def codes(result):
    return {notice.code for notice in result.notices}


# ---------------------------------------------------------------- exactness


def calls_and_outputs(record):
    """The calls as (call id, name, arguments), and the outputs as (call id, texts), each in their order."""
    calls, outputs = [], []
    entries = record
    if isinstance(record, dict):
        choices = [choice["message"] for choice in record.get("choices", [])]
        entries = next((record[key] for key in ("messages", "input", "output") if key in record), choices)
    for entry in entries if isinstance(entries, list) else []:
        for one in entry.get("tool_calls") or []:
            calls.append((one["id"], one["function"]["name"], one["function"]["arguments"]))
        if entry.get("type") == "function_call":
            calls.append((entry["call_id"], entry["name"], entry["arguments"]))
        if entry.get("role") == "tool" or entry.get("type") == "function_call_output":
            content = entry.get("content", entry.get("output"))
            texts = content if isinstance(content, str) else [part["text"] for part in content]
            outputs.append((entry.get("tool_call_id", entry.get("call_id")), texts))
    return calls, outputs


@WAYS
@given(data=st.data())
def test_arguments_ids_and_outputs_are_exact_and_in_order(convert, records, back, data):
    record = data.draw(records)
    result = convert(dumps(record))
    assert calls_and_outputs(result.body) == calls_and_outputs(plain(record))
    assert "moved" not in codes(result)


def leaves(value, path=""):
    """Every text and number of a record with its pointer; what only names the kind of a thing is none."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, f"{path}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from leaves(one, f"{path}/{at}")
    elif isinstance(value, (str, Number)) or type(value) in (int, float):
        yield path, value


KINDS = (
    "/type",
    "/role",
    "/object",
    "/status",
    "/finish_reason",
    "/index",
    "/reason",
    "/truncation",
    "/n",
    "/mode",
    "/id",
    "/include/0",
)
"""Ends of pointers to what the other envelope says in its own words, or not at all: kinds, positions, item ids."""


def spelled(text):
    return json.loads(text, parse_int=Number, parse_float=Number)


@WAYS
@given(data=st.data())
def test_every_text_and_number_is_written_or_named(convert, records, back, data):
    _, record, _ = data.draw(with_unknown_fields(lossy(records)))
    text = dumps(record)
    result = convert(text)
    written = {value for _, value in leaves(spelled(result.json))}
    named = [path for notice in result.notices for path in notice.paths]
    for path, value in leaves(spelled(text)):
        if value == "" or value in written or path.endswith(KINDS):
            continue
        assert any(path == name or path.startswith(f"{name}/") for name in named), (path, value)


# ---------------------------------------------------------------- there and back

# The normal form of a Chat document:
# - null, absent and empty say the same, but for contents: "" and null are one beside calls and in an answer;
# - `n: 1`, `store: false`, `strict: false`, `include_usage`, `service_tier: default` of an answer are the defaults;
# - token counts of zero say nothing;
# - tool_choice and parallel_tool_calls need tools.
#
# The normal form of an Open Responses document:
# - the same, and `truncation: disabled`, `background: false`, `status: completed`;
# - a string input is one user message, and instructions are a system message before it;
# - ids of items are made, and so is what a response repeats of its request.


def without(record, *names, empty=(None,)):
    """The members of a record but for these, and for those that say nothing."""
    return {
        key: value
        for key, value in record.items()
        if key not in names and not any(value is one or value == one for one in empty)
    }


EMPTY = (None, "", [], {})


def normal_chat(record):
    if isinstance(record, list):
        return [normal_message(message) for message in record]
    if "choices" in record:
        [choice] = record["choices"]
        kept = without(record, "choices", "usage", empty=EMPTY)
        if kept.get("service_tier") == "default":
            del kept["service_tier"]
        message = normal_message(choice["message"])
        message["content"] = message.get("content") or None
        choice = without(choice, "message", empty=EMPTY)
        if "logprobs" in choice:
            choice["logprobs"] = without(choice["logprobs"], empty=EMPTY)
        return {**kept, "message": message, "choice": choice, "usage": normal_counts(record.get("usage"))}
    kept = normal_settings(without(record, "messages", "stream_options"))
    if kept.get("n") == 1:
        del kept["n"]
    obfuscation = without(record.get("stream_options") or {}, "include_usage", empty=EMPTY)
    tools = [{**tool, "function": normal_tool(tool["function"])} for tool in record.get("tools") or []]
    return {**kept, "messages": normal_chat(record["messages"]), "tools": tools, "stream_options": obfuscation}


def normal_message(message):
    kept = without(message, "content", empty=EMPTY)
    content = message.get("content")
    return {
        **kept,
        "content": None
        if content in ("", None) and (message.get("tool_calls") or message.get("refusal"))
        else content or "",
    }


def normal_settings(settings):
    kept = without(settings, "tools", empty=EMPTY)
    if kept.get("store") is False:
        del kept["store"]
    if not settings.get("tools"):
        kept = without(kept, "tool_choice", "parallel_tool_calls")
    return kept


def normal_tool(tool):
    return without(tool, empty=(None, False, "")) | (
        {"parameters": tool["parameters"]} if tool.get("parameters") is not None else {}
    )


def normal_counts(usage):
    """The counts by their pointers; those of zero say nothing."""
    return {path: count for path, count in leaves(usage or {}) if count}


def normal_responses(record):
    if isinstance(record, list):
        return [normal_item(item) for item in record]
    if "output" in record:
        kept = {
            key: record.get(key)
            for key in ("id", "created_at", "status", "incomplete_details", "model", "metadata", "service_tier")
        }
        kept = without(kept, empty=EMPTY)
        if kept.get("service_tier") == "default":
            del kept["service_tier"]
        return {**kept, "output": normal_responses(record["output"]), "usage": normal_counts(record.get("usage"))}
    kept = normal_settings(without(record, "input", "instructions"))
    kept = {
        key: normal_part(value) if key in ("reasoning", "text", "stream_options") else value
        for key, value in kept.items()
    }
    kept = without(kept, empty=EMPTY)
    for name, value in (("truncation", "disabled"), ("background", False)):
        if kept.get(name) == value:
            del kept[name]
    given = record["input"]
    items = [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given
    if record.get("instructions"):
        items = [{"type": "message", "role": "system", "content": record["instructions"]}, *items]
    tools = [normal_tool(tool) for tool in record.get("tools") or []]
    return {**kept, "input": normal_responses(items), "tools": tools}


def normal_part(part):
    return without(part, empty=EMPTY)


def normal_item(item):
    kept = without(item, "id", empty=(None,))
    if kept.get("status") == "completed":
        del kept["status"]
    if isinstance(kept.get("content"), list):
        kept["content"] = [without(part, empty=(None, [])) for part in kept["content"]]
    return kept


NORMAL = {to_responses: normal_chat, to_chat: normal_responses}


@WAYS
@given(data=st.data())
def test_there_and_back(convert, records, back, data):
    record = data.draw(records)
    there = convert(dumps(record))
    assume("filled" not in codes(there) or convert is to_responses)
    assert not codes(there) & LOSSY
    again = back(there.json)
    assert not codes(again) & LOSSY
    normal = NORMAL[convert]
    assert normal(spelled_all(again.json)) == normal(spelled_all(dumps(record)))


def spelled_all(text):
    """Numbers that are not whole by their spelling, whole ones as such."""
    return json.loads(
        text, parse_float=Number, parse_int=lambda digits: Number(digits) if digits == "-0" else int(digits)
    )


# ---------------------------------------------------------------- determinism


@WAYS
@given(data=st.data())
def test_the_same_bytes_every_time(convert, records, back, data):
    texts = [dumps(data.draw(records)).encode() for _ in range(3)]
    fresh = [convert(text) for text in texts]
    shared = Session(VERB[convert], Options())
    for _ in range(2):
        for text, expected in zip(texts, fresh, strict=True):
            assert shared.convert(text) == (expected.json, expected.notices)
    backwards = [shared.convert(text) for text in reversed(texts)]
    assert [written for written, _ in reversed(backwards)] == [result.json for result in fresh]


@WAYS
@given(data=st.data())
def test_parsed_json_is_as_good_as_its_text_and_is_not_changed(convert, records, back, data):
    record = plain(data.draw(records))
    before = copy.deepcopy(record)
    result = convert(record)
    assert record == before
    assert result.json == convert(json.dumps(record)).json
    assert result.body == convert(json.dumps(record, ensure_ascii=False, indent=1).encode()).body
    assert record == before


@WAYS
@given(data=st.data())
def test_unknown_fields_change_nothing_but_the_notice(convert, records, back, data):
    record, strange, paths = data.draw(with_unknown_fields(records))
    known, result = convert(dumps(record)), convert(dumps(strange))
    assert result.json == known.json
    found = {notice.code: notice for notice in result.notices}
    assert set(paths) <= set(found.pop("dropped").paths if paths else [])
    assert found == {notice.code: notice for notice in known.notices if notice.code != "dropped"}


@WAYS
@given(data=st.data())
def test_a_second_pass_changes_nothing(convert, records, back, data):
    _, record, _ = data.draw(with_unknown_fields(lossy(records)))
    once = convert(dumps(record))
    twice = convert(once.json)
    assert twice.json == once.json
    assert not codes(twice) & {*LOSSY, "filled", "echo"}


# ---------------------------------------------------------------- nothing raises

JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=8,
)
WORDS_OF_THE_FORMATS = (
    "messages input output choices role type content tool_calls function arguments name call_id tool_call_id id status",
    "tools text summary model usage object function_call parameters refusal annotations metadata image_url",
    "user assistant system tool message function_call_output reasoning input_text output_text custom",
    "chat.completion response completed incomplete acme:thing",
)
KEYS = st.sampled_from(" ".join(WORDS_OF_THE_FORMATS[:2]).split())
KINDS_OF_THINGS = st.sampled_from(" ".join(WORDS_OF_THE_FORMATS).split())
LIKELY = st.recursive(
    st.none() | st.booleans() | st.integers() | KINDS_OF_THINGS | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


def whole(outcomes, texts):
    outcomes = list(outcomes)
    lines = [number for number, text in enumerate(texts, 1) if text.strip(b" \t\r\n")]
    assert [outcome.line for outcome in outcomes] == lines
    for outcome in outcomes:
        if isinstance(outcome, Converted):
            assert isinstance(json.loads(outcome.json), (dict, list))
            assert codes(outcome) <= set(NOTICES)
            assert len(codes(outcome)) == len(outcome.notices)
        else:
            assert isinstance(outcome, Rejected)
            assert outcome.reasons
            assert {reason.code for reason in outcome.reasons} <= CLOSED
            assert len(set(outcome.reasons)) == len(outcome.reasons)
            json.loads(bytes(outcome.raw()))
            assert b"\n" not in bytes(outcome.raw())


@pytest.mark.parametrize("verb", ["to-responses", "to-chat"])
@given(st.lists(st.binary(max_size=30) | st.sampled_from([b"", b" ", b"\r\n", b"{", b"[]", b"null"]), max_size=5))
def test_arbitrary_bytes(verb, texts):
    whole(convert_lines(texts, verb), texts)


@pytest.mark.parametrize("verb", ["to-responses", "to-chat"])
@given(st.lists(JSON | LIKELY | st.lists(LIKELY, max_size=3), min_size=1, max_size=3))
def test_arbitrary_json(verb, values):
    texts = [json.dumps(value).encode() for value in values]
    whole(convert_lines(texts, verb), texts)


EVERYTHING = Options(allow=ALLOWABLE, repair=REPAIRS, reasoning="keep", target="openai", choice=0)


@WAYS
@given(data=st.data())
def test_damaged_records(convert, records, back, data):
    """One value of a good record is replaced by any other: a result, or reasons that name a place in the record."""
    record = plain(data.draw(records))
    places = list(containers(record))
    target, key = data.draw(st.sampled_from(places))
    target[key] = data.draw(LIKELY | VALUES.map(plain) | st.sampled_from(["", "x" * 65]))
    text = json.dumps(record).encode()
    for options in (Options(), EVERYTHING):
        whole(convert_lines([text], VERB[convert], options), [text])
    try:
        convert(record)
    except Refused as refused:
        for reason in refused.reasons:
            value = record
            for part in reason.path.split("/")[1:]:
                part = part.replace("~1", "/").replace("~0", "~")
                value = value[int(part)] if isinstance(value, list) else value[part]


def containers(value):
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from containers(value[key])


@WAYS
@given(data=st.data())
def test_cut_records(convert, records, back, data):
    text = dumps(data.draw(records)).encode()
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    [outcome] = convert_lines([cut], VERB[convert])
    assert isinstance(outcome, Rejected)
    assert outcome.reasons[0].code in ("invalid_json", "invalid_utf8")
    assert outcome.text.strip() == cut.strip()


# ---------------------------------------------------------------- pairs

PAIRS = [
    (to_responses, to_chat, chat_requests(), completions()),
    (to_chat, to_responses, responses_requests(), resources()),
]


@pytest.mark.parametrize(("convert", "back", "requests", "answers"), PAIRS, ids=["to-responses", "to-chat"])
@given(data=st.data())
def test_a_pair_goes_there_and_back_as_its_halves_do(convert, back, requests, answers, data):
    record = {"request": data.draw(requests), "time": 1.50, "response": data.draw(answers)}
    [there] = convert_lines([dumps(record)], VERB[convert])
    if isinstance(there, Rejected):
        # The request's schemas judge the answer's calls, which were drawn without them.
        assert {reason.code for reason in there.reasons} <= {"arguments_schema", "invalid_tool_schema"}
        return
    assume(not codes(there) & LOSSY and "filled" not in codes(there))
    again = back(there.json)
    assume(not codes(again) & LOSSY)
    normal = NORMAL[convert]
    for half in ("request", "response"):
        wanted, got = normal(spelled_all(dumps(record[half]))), normal(spelled_all(again.json)[half])
        # An answer echoes its request: it may say more than was logged.
        assert {key: got.get(key) for key in wanted} == wanted
    assert again.body["time"] == 1.5


ACTS = ["user", "developer", "text", "nothing", "calls", "text and calls", "output", "output"]


@st.composite
def tangled(draw, verb):
    """Histories in which turns go on, overlap, and are answered late: each output behind its call, somewhere."""
    chat, history, opened, made = verb == "to-responses", [], [], 0
    for _ in range(draw(st.integers(1, 9))):
        act = draw(st.sampled_from(ACTS))
        if act in ("user", "developer"):
            history.append({"role": act, "content": "x"})
        elif act == "output" and opened:
            at = draw(st.integers(0, len(opened) - 1))
            history.append((tool if chat else output)(opened.pop(at)))
        elif act in ("text", "nothing"):
            history.append(said("y" if act == "text" else ""))
        elif act != "output":
            ids = [f"c{made + number}" for number in range(draw(st.integers(1, 2)))]
            made += len(ids)
            opened += ids
            if chat:
                history.append({**asks(*(call(id=one) for one in ids)), "content": "z" if "text" in act else None})
            else:
                history += [*([said("z")] if "text" in act else []), *(function_call(id=one) for one in ids)]
    if not chat:
        history = [{"type": "message", **one} if "role" in one else one for one in history]
    return [USER if chat else USER_ITEM, *history]


@pytest.mark.parametrize("verb", ["to-responses", "to-chat"])
@given(data=st.data())
def test_what_a_tangled_history_changes_on_the_way_back_is_told(verb, data):
    record = data.draw(tangled(verb))
    options = {"tools": {"f": True}, "verify": True}
    [outcome] = convert_lines([json.dumps(record)], verb, Options(**options))
    assert "verify" not in [reason.code for reason in getattr(outcome, "reasons", [])]


@pytest.mark.parametrize("status", ["completed", "incomplete", None])
def test_an_answer_that_was_cut_off_leads_back_whatever_its_message_says(status):
    words = [{"type": "output_text", "text": "so", "annotations": []}]
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": words, "status": status}
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    made = to_chat({**response(message), **cut}, Options(verify=True))
    assert made.body["choices"][0]["finish_reason"] == "length"
