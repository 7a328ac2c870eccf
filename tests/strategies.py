"""Records for the tests: small pieces by hand, and hypothesis strategies for whole records of both envelopes."""

import copy
import json
from typing import NamedTuple

from hypothesis import strategies as st

USER = {"role": "user", "content": "x"}
USER_ITEM = {"type": "message", "role": "user", "content": "x"}


def call(arguments="{}", id="call_1", name="f", **more):  # noqa: A002
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def asks(*calls, **more):
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def said(text, **more):
    return {"role": "assistant", "content": text, **more}


def tool(id="call_1", content="ok", **more):  # noqa: A002
    return {"role": "tool", "tool_call_id": id, "content": content, **more}


def function_call(arguments="{}", id="call_1", name="f", status="completed", **more):  # noqa: A002
    return {"type": "function_call", "call_id": id, "name": name, "arguments": arguments, "status": status, **more}


def output(id="call_1", output="ok", **more):  # noqa: A002
    return {"type": "function_call_output", "call_id": id, "output": output, **more}


def completion(message, finish_reason="stop", **more):
    choices = [{"index": 0, "message": message, "finish_reason": finish_reason}]
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, **more}


def response(*items, **more):
    base = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m"}
    return {**base, "output": list(items), **more}


# ---------------------------------------------------------------- values

CHARACTERS = st.characters(exclude_categories=("Cs",))
TEXT = st.text(CHARACTERS, max_size=12) | st.sampled_from(
    [
        '"',
        "\\",
        "\0",
        "\n",
        "\u2028",
        "\ufeff",
        "é",
        "e\u0301",
        "😀",
        "\x7f",
        "null",
        "{}",
        "[]",
        "a\\u0041",
        "</script>",
    ]
)
WORDS = st.text(CHARACTERS, min_size=1, max_size=12)
NAMES = st.text("abcXYZ019_-", min_size=1, max_size=8)
CALL_IDS = (st.sampled_from(["call_", "toolu_", "f:"]) | st.text(CHARACTERS, max_size=8)).map(
    lambda prefix: [f"{prefix}{number}" for number in range(15, 0, -1)]
)
"""Ids for the calls of one record, to be taken from the end."""
NUMBERS = st.sampled_from(["0", "-0", "1", "0.10", "1E+2", "1.0e-3", "12345678901234567890", "-7", "3.1400"])


class Number(NamedTuple):
    """A number by its spelling."""

    spelling: str


FRACTIONS = st.sampled_from(["0", "1", "0.10", "1.0e-3", "5E-1"]).map(Number)


@st.composite
def spelled(draw, value):
    """A JSON text of ``value`` with blanks, escapes and an order of keys as some model might write it."""
    blank = draw(st.sampled_from(["", "", " ", "\n", "\t ", "\r\n  "]))
    ascii_only, slash, backwards = draw(st.booleans()), draw(st.sampled_from(["/", "\\/"])), draw(st.booleans())

    def text(one):
        if isinstance(one, str):
            return json.dumps(one, ensure_ascii=ascii_only).replace("/", slash)
        if isinstance(one, dict):
            keys = sorted(one, reverse=backwards)
            return "{" + blank + ",".join(f"{text(key)}{blank}:{blank}{text(one[key])}" for key in keys) + blank + "}"
        if isinstance(one, list):
            return "[" + f"{blank},".join(text(each) + blank for each in one) + "]"
        if isinstance(one, Number):
            return one.spelling
        return json.dumps(one)

    return draw(st.sampled_from(["", " ", "\n"])) + text(value) + blank


def dumps(value):
    """A record's JSON text, its numbers spelled as they are."""
    if isinstance(value, Number):
        return value.spelling
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{dumps(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dumps, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def plain(value):
    """A record as a JSON parser gives it."""
    return json.loads(dumps(value))


# ---------------------------------------------------------------- tools, and arguments that satisfy them

PROPERTIES = {
    "string": ({"type": "string"}, TEXT),
    "integer": ({"type": "integer"}, st.sampled_from(["0", "-3", "123456789012345678901234567890"]).map(Number)),
    "number": ({"type": "number"}, NUMBERS.map(Number)),
    "boolean": ({"type": "boolean"}, st.booleans()),
    "choice": ({"enum": ["a", "b", None]}, st.sampled_from(["a", "b", None])),
    "list": ({"type": "array", "items": {"type": "string"}}, st.lists(TEXT, max_size=3)),
    "object": (
        {"type": "object", "properties": {"p": {"type": "number"}}},
        st.fixed_dictionaries({}, optional={"p": NUMBERS.map(Number)}),
    ),
    "anything": ({}, st.none() | st.booleans() | TEXT),
}


@st.composite
def toolsets(draw):
    """Parameter schemas by the names of tools; some tools take nothing that a schema says."""
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    tools = {}
    for name in names:
        kinds = draw(st.dictionaries(WORDS, st.sampled_from(sorted(PROPERTIES)), max_size=3))
        schema = {"type": "object", "properties": {key: PROPERTIES[kind][0] for key, kind in kinds.items()}}
        if draw(st.booleans()):
            schema["required"] = draw(st.permutations(sorted(kinds)))
        if draw(st.booleans()):
            schema["additionalProperties"] = False
        tools[name] = (kinds, draw(st.sampled_from([schema, schema, None])))
    return tools


@st.composite
def arguments(draw, tool):
    """The text of arguments for a tool of `toolsets`."""
    kinds, _ = tool
    value = {key: draw(PROPERTIES[kind][1]) for key, kind in kinds.items()}
    return draw(spelled(value))


@st.composite
def asked(draw, tools, free_ids):
    """A turn's calls, as (id, name, arguments), and the ids that are answered, in the order of their outputs."""
    calls = []
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(sorted(tools)))
        calls.append((free_ids.pop(), name, draw(arguments(tools[name]))))
    return calls, draw(st.permutations([call_id for call_id, _, _ in calls]))


# ---------------------------------------------------------------- Chat Completions

TEXT_PARTS = st.lists(st.builds(lambda text: {"type": "text", "text": text}, TEXT), min_size=1, max_size=3)
USER_PARTS = st.lists(
    st.builds(lambda text: {"type": "text", "text": text}, TEXT)
    | st.builds(
        lambda url, detail: {"type": "image_url", "image_url": {"url": url, **detail}},
        WORDS,
        st.sampled_from([{}, {"detail": "low"}, {"detail": "auto"}]),
    )
    | st.builds(lambda name, data: {"type": "file", "file": {"filename": name, "file_data": data}}, WORDS, WORDS),
    min_size=1,
    max_size=3,
)
CITATIONS = st.lists(
    st.builds(
        lambda at, url, title: {"start_index": at, "end_index": at + 1, "url": url, "title": title},
        st.integers(0, 9),
        TEXT,
        TEXT,
    ),
    min_size=1,
    max_size=2,
)


@st.composite
def chat_speech(draw):
    """An assistant message without calls."""
    kind = draw(st.sampled_from(["text", "text", "empty", "parts", "refusal", "both", "cited"]))
    text, refusal = draw(WORDS), draw(WORDS)
    return {
        "text": {"content": text},
        "empty": {"content": ""},
        "parts": {"content": draw(TEXT_PARTS)},
        "refusal": {"content": None, "refusal": refusal},
        "both": {"content": [{"type": "text", "text": text}, {"type": "refusal", "refusal": refusal}]},
        "cited": {
            "content": text,
            "annotations": [{"type": "url_citation", "url_citation": one} for one in draw(CITATIONS)],
        },
    }[kind] | {"role": "assistant"}


def chat_calls(calls):
    return [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}
        for call_id, name, text in calls
    ]


@st.composite
def chat_messages(draw, tools):
    """A conversation that may be written: whole turns, each call answered, the last turn perhaps still open."""
    ids = draw(CALL_IDS)
    messages = []
    for _ in range(draw(st.integers(1, 4))):
        turn = draw(st.sampled_from(["user", "system", "speech", "calls", "calls"]))
        if turn == "user":
            messages.append({"role": "user", "content": draw(TEXT | USER_PARTS)})
        elif turn == "system":
            messages.append(
                {"role": draw(st.sampled_from(["system", "developer"])), "content": draw(TEXT | TEXT_PARTS)}
            )
        elif turn == "speech":
            messages.append(draw(chat_speech()))
        else:
            calls, answered = draw(asked(tools, ids))
            if messages and messages[-1]["role"] == "assistant":
                messages.append({"role": "user", "content": draw(TEXT)})
            spoken = draw(st.sampled_from([{"content": None}, {"content": ""}, {}]) | chat_speech())
            messages.append({**spoken, "role": "assistant", "tool_calls": chat_calls(calls)})
            messages += [
                {"role": "tool", "tool_call_id": call_id, "content": draw(TEXT | TEXT_PARTS)} for call_id in answered
            ]
    if draw(st.booleans()) and messages[-1]["role"] != "assistant":
        calls, _ = draw(asked(tools, ids))
        messages.append({"role": "assistant", "content": None, "tool_calls": chat_calls(calls)})
    return messages


def chat_tools(tools, strict):
    made = []
    for at, (name, (_, schema)) in enumerate(tools.items()):
        function = {"name": name, **({} if schema is None else {"parameters": schema}), **strict[at % len(strict)]}
        made.append({"type": "function", "function": function})
    return made


FORMATS = st.sampled_from([{"type": "text"}]) | st.builds(
    lambda name, schema, strict: {"type": "json_schema", "json_schema": {"name": name, "schema": schema, **strict}},
    NAMES,
    st.sampled_from([{}, {"type": "object"}, {"maximum": Number("0.10")}]),
    st.sampled_from([{}, {"strict": True}, {"strict": False}]),
)

SHARED_SETTINGS = {
    "model": WORDS,
    "temperature": FRACTIONS,
    "top_p": FRACTIONS,
    "presence_penalty": FRACTIONS,
    "frequency_penalty": FRACTIONS,
    "stream": st.booleans(),
    "store": st.booleans(),
    "parallel_tool_calls": st.booleans(),
    "metadata": st.dictionaries(TEXT, TEXT, max_size=3),
    "service_tier": st.sampled_from(["auto", "default", "flex", "priority"]),
    "safety_identifier": WORDS,
    "prompt_cache_key": WORDS,
}
CHAT_SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        **SHARED_SETTINGS,
        "max_completion_tokens": st.integers(16, 10**6),
        "n": st.just(1),
        "reasoning_effort": st.sampled_from(["none", "low", "medium", "high", "xhigh"]),
        "verbosity": st.sampled_from(["low", "medium", "high"]),
        "response_format": FORMATS,
        "logprobs": st.just(True),
        "stream_options": st.fixed_dictionaries(
            {}, optional={"include_usage": st.just(True), "include_obfuscation": st.booleans()}
        ),
        "seed": st.none(),
        "stop": st.none(),
        "tool_choice": st.sampled_from(["auto", "none", "required", None]),
    },
)


@st.composite
def chat_requests(draw):
    """Requests whose conversion loses nothing."""
    tools = draw(toolsets())
    record = {"messages": draw(chat_messages(tools)), **draw(CHAT_SETTINGS)}
    record["tools"] = chat_tools(
        tools, draw(st.permutations([{}, {"strict": False}, {"strict": None}, {"strict": True}]))
    )
    if record.get("tool_choice") == "required":
        record["tool_choice"] = draw(
            st.sampled_from(
                [
                    "required",
                    {"type": "function", "function": {"name": min(tools)}},
                    {
                        "type": "allowed_tools",
                        "allowed_tools": {
                            "mode": "required",
                            "tools": [{"type": "function", "function": {"name": name}} for name in tools],
                        },
                    },
                ]
            )
        )
    return record


def counts(*names):
    return st.fixed_dictionaries(dict.fromkeys(names, st.integers(0, 10**6)))


@st.composite
def completions(draw):
    """Completions of one choice whose conversion loses nothing."""
    tools = draw(toolsets())
    message = draw(chat_speech().filter(lambda one: type(one["content"]) is not list))
    finish = draw(st.sampled_from(["stop", "length", "content_filter", "tool_calls"]))
    if finish == "tool_calls":
        calls, _ = draw(asked(tools, draw(CALL_IDS)))
        message["tool_calls"] = chat_calls(calls)
    message.setdefault("refusal", None)
    record = {
        "id": f"chatcmpl-{draw(NAMES)}",
        "object": "chat.completion",
        "created": draw(st.integers(1, 2**33)),
        "model": draw(WORDS),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
    }
    token = {"token": "t", "logprob": Number("-0.10"), "bytes": [116], "top_logprobs": []}
    if message["content"] and draw(st.booleans()):
        record["choices"][0]["logprobs"] = {"content": [token] * draw(st.integers(1, 2)), "refusal": None}
    if draw(st.booleans()):
        record["usage"] = {
            **draw(counts("prompt_tokens", "completion_tokens", "total_tokens")),
            "prompt_tokens_details": draw(counts("cached_tokens")),
            "completion_tokens_details": draw(counts("reasoning_tokens")),
        }
    return record | draw(
        st.fixed_dictionaries(
            {}, optional={"service_tier": SHARED_SETTINGS["service_tier"], "metadata": SHARED_SETTINGS["metadata"]}
        )
    )


@st.composite
def message_lists(draw):
    return draw(chat_messages(draw(toolsets())))


# ---------------------------------------------------------------- Open Responses

INPUT_TEXTS = st.lists(st.builds(lambda text: {"type": "input_text", "text": text}, TEXT), min_size=1, max_size=3)
INPUT_PARTS = st.lists(
    st.builds(lambda text: {"type": "input_text", "text": text}, TEXT)
    | st.builds(
        lambda url, detail: {"type": "input_image", "image_url": url, **detail},
        WORDS,
        st.sampled_from([{}, {"detail": "high"}, {"detail": "auto"}]),
    )
    | st.builds(lambda name, data: {"type": "input_file", "filename": name, "file_data": data}, WORDS, WORDS),
    min_size=1,
    max_size=3,
)


@st.composite
def spoken_parts(draw):
    """The content of an assistant's message, as parts."""
    kind = draw(st.sampled_from(["text", "texts", "refusal", "both", "cited"]))
    text = {"type": "output_text", "text": draw(WORDS)}
    refusal = {"type": "refusal", "refusal": draw(WORDS)}
    return {
        "text": [{**text, "annotations": []}],
        "texts": [text, {"type": "output_text", "text": draw(TEXT)}],
        "refusal": [refusal],
        "both": [text, refusal],
        "cited": [{**text, "annotations": [{"type": "url_citation", **one} for one in draw(CITATIONS)]}],
    }[kind]


ITEM_EXTRAS = st.sampled_from([{}, {"status": "completed"}, {"id": None}, {"status": None}])


def items_of(calls):
    return [
        {
            "type": "function_call",
            "id": f"fc_{at}",
            "call_id": call_id,
            "name": name,
            "arguments": text,
            "status": "completed",
        }
        for at, (call_id, name, text) in enumerate(calls)
    ]


@st.composite
def response_items(draw, tools):
    """A conversation of items that Chat can hold in the same order."""
    ids = draw(CALL_IDS)
    items = []
    for _ in range(draw(st.integers(1, 4))):
        turn = draw(st.sampled_from(["user", "system", "speech", "calls", "calls"]))
        message = {"type": "message", **draw(ITEM_EXTRAS)}
        if turn == "user":
            items.append({**message, "role": "user", "content": draw(TEXT | INPUT_PARTS)})
        elif turn == "system":
            items.append(
                {**message, "role": draw(st.sampled_from(["system", "developer"])), "content": draw(TEXT | INPUT_TEXTS)}
            )
        elif turn == "speech":
            items.append({**message, "role": "assistant", "content": draw(WORDS | spoken_parts())})
        else:
            calls, answered = draw(asked(tools, ids))
            items += items_of(calls)
            items += [
                {"type": "function_call_output", "call_id": call_id, "output": draw(TEXT | INPUT_TEXTS)}
                for call_id in answered
            ]
    if draw(st.booleans()):
        calls, _ = draw(asked(tools, ids))
        items += items_of(calls)
    return items


@st.composite
def item_lists(draw):
    return draw(response_items(draw(toolsets())))


RESPONSES_SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        **SHARED_SETTINGS,
        "instructions": WORDS | st.none(),
        "max_output_tokens": st.integers(16, 10**6),
        "reasoning": st.fixed_dictionaries({}, optional={"effort": st.sampled_from(["none", "low", "high", None])}),
        "text": st.fixed_dictionaries(
            {},
            optional={
                "verbosity": st.sampled_from(["low", "high"]),
                "format": FORMATS.map(lambda one: {"type": one["type"], **one.get("json_schema", {})}),
            },
        ),
        "include": st.just(["message.output_text.logprobs"]),
        "truncation": st.just("disabled"),
        "background": st.just(False),
        "previous_response_id": st.none(),
        "tool_choice": st.sampled_from(["auto", "none", "required", None]),
        "stream_options": st.fixed_dictionaries({}, optional={"include_obfuscation": st.booleans()}),
    },
)


@st.composite
def responses_requests(draw):
    """Requests whose conversion loses nothing."""
    tools = draw(toolsets())
    record = {"input": draw(TEXT.filter(bool) | response_items(tools)), **draw(RESPONSES_SETTINGS)}
    made = []
    for at, (name, (_, schema)) in enumerate(tools.items()):
        strict = draw(st.sampled_from([{"strict": False}, {"strict": True}, {}])) if at else {"strict": False}
        made.append({"type": "function", "name": name, **({} if schema is None else {"parameters": schema}), **strict})
    record["tools"] = made
    if record.get("tool_choice") == "required":
        named = [{"type": "function", "name": name} for name in tools]
        record["tool_choice"] = draw(
            st.sampled_from(["required", named[0], {"type": "allowed_tools", "mode": "auto", "tools": named}])
        )
    return record


@st.composite
def resources(draw):
    """Response resources of one answer whose conversion loses nothing."""
    tools = draw(toolsets())
    items = []
    status = draw(st.sampled_from(["completed", "completed", "incomplete"]))
    if draw(st.booleans()):
        parts = draw(spoken_parts().filter(lambda parts: len(parts) == 1))
        if parts[0]["type"] == "output_text" and draw(st.booleans()):
            parts[0]["logprobs"] = [{"token": "t", "logprob": Number("-1.50"), "bytes": [116], "top_logprobs": []}]
        items.append({"type": "message", "id": "msg_1", "status": status, "role": "assistant", "content": parts})
    if status == "completed":
        calls, _ = draw(asked(tools, draw(CALL_IDS)))
        items += items_of(calls)
    record = {
        "id": f"resp_{draw(NAMES)}",
        "object": "response",
        "created_at": draw(st.integers(1, 2**33)),
        "status": status,
        "incomplete_details": {"reason": draw(st.sampled_from(["max_output_tokens", "content_filter"]))}
        if status == "incomplete"
        else None,
        "model": draw(WORDS),
        "output": items,
        "usage": draw(
            st.none()
            | st.fixed_dictionaries(
                {
                    "input_tokens": st.integers(0, 10**6),
                    "input_tokens_details": counts("cached_tokens"),
                    "output_tokens": st.integers(0, 10**6),
                    "output_tokens_details": counts("reasoning_tokens"),
                    "total_tokens": st.integers(0, 10**6),
                }
            )
        ),
    }
    echo = {
        "instructions": st.none() | TEXT,
        "temperature": FRACTIONS,
        "tool_choice": st.just("auto"),
        "tools": st.just([]),
        "service_tier": SHARED_SETTINGS["service_tier"],
        "metadata": SHARED_SETTINGS["metadata"],
        "error": st.none(),
    }
    return record | draw(st.fixed_dictionaries({}, optional=echo))


CHAT_RECORDS = chat_requests() | message_lists() | completions()
RESPONSES_RECORDS = responses_requests() | item_lists() | resources()


# ---------------------------------------------------------------- what no schema knows

OPAQUE = frozenset(
    {"parameters", "metadata", "schema", "arguments", "logprobs", "tool_choice", "incomplete_details", "usage"}
)
"""Fields whose value is passed on, or left out, as a whole: what stands in them is not the converter's to know."""

VALUES = st.recursive(
    st.booleans() | st.integers(-9, 9).map(lambda one: Number(str(one))) | WORDS | NUMBERS.map(Number),
    lambda inner: st.lists(inner, min_size=1, max_size=2) | st.dictionaries(NAMES, inner, min_size=1, max_size=2),
    max_leaves=3,
)


def objects_of(value, path=""):
    """Every object of a record that belongs to its envelope, with its pointer."""
    if isinstance(value, dict):
        yield path, value
        for key, one in value.items():
            if key not in OPAQUE:
                yield from objects_of(one, f"{path}/{key}")
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from objects_of(one, f"{path}/{at}")


@st.composite
def with_unknown_fields(draw, records):
    """A record, the same with fields that no schema knows, and their pointers."""
    record = draw(records)
    strange = copy.deepcopy(record)
    places = list(objects_of(strange))
    chosen = draw(st.lists(st.sampled_from(range(len(places))), min_size=1, max_size=3, unique=True)) if places else []
    paths = []
    for at in chosen:
        path, target = places[at]
        key = f"zz/{draw(NAMES)}~"
        target[key] = draw(VALUES)
        paths.append(f"{path}/{key.replace('~', '~0').replace('/', '~1')}")
    return record, strange, paths


# ---------------------------------------------------------------- what has no place in the other envelope

CHAT_LOST = st.fixed_dictionaries(
    {},
    optional={
        "seed": st.integers(1, 99),
        "stop": st.lists(WORDS, min_size=1, max_size=2),
        "logit_bias": st.dictionaries(NAMES, st.integers(-100, 100), min_size=1, max_size=2),
        "max_tokens": st.integers(1, 15),
        "n": st.integers(2, 9),
        "user": WORDS,
        "reasoning_effort": st.sampled_from(["minimal", "max", "huge"]),
        "service_tier": st.sampled_from(["scale", "fast"]),
        "response_format": st.just({"type": "json_object"}),
        "prediction": st.fixed_dictionaries({"type": st.just("content"), "content": WORDS}),
    },
)
RESPONSES_LOST = st.fixed_dictionaries(
    {},
    optional={
        "truncation": st.just("auto"),
        "max_tool_calls": st.integers(1, 99),
        "background": st.just(True),
        "context_management": WORDS,
        "reasoning": st.fixed_dictionaries({"effort": st.just("low"), "summary": st.sampled_from(["auto", "concise"])}),
    },
)


@st.composite
def lossy(draw, records):
    """Records with known fields and items that the other envelope does not have."""
    record = copy.deepcopy(draw(records))
    settings = {"messages": CHAT_LOST, "input": RESPONSES_LOST}
    entries = record
    if isinstance(record, dict):
        key = next(key for key in ("messages", "input", "output", "choices") if key in record)
        entries = [choice["message"] for choice in record["choices"]] if key == "choices" else record[key]
        record.update(draw(settings.get(key, st.just({}))))
        if key in ("choices", "output"):
            record.update(draw(st.sampled_from([{}, {"moderation": {"a": "b"}}])))
        if key == "choices":
            record.update(draw(st.sampled_from([{}, {"system_fingerprint": "fp-1"}])))
    entries = [] if isinstance(entries, str) else entries
    for entry in list(entries):
        if entry.get("role") == "assistant":
            more = {"reasoning_content": draw(WORDS)} if "type" not in entry else {"phase": "commentary"}
            entry.update(draw(st.sampled_from([{}, more])))
        if "role" in entry and "type" not in entry:
            entry.update(draw(st.sampled_from([{}, {"name": draw(WORDS)}])))
        if (
            entry.get("type") in ("function_call", "message")
            and entry.get("role", "assistant") == "assistant"
            and draw(st.booleans())
        ):
            thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": draw(WORDS)}]}
            if isinstance(record, dict) and "output" in record:
                thought["id"] = "rs_1"
            entries.insert(next(at for at, one in enumerate(entries) if one is entry), thought)
    return record
