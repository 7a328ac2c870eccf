"""Hypothesis strategies made from the structs of both envelopes: every field that is read, and a value of its type.

What these draw has the right form and no sense: ids that repeat or find nothing, tools that nobody declared, arguments
that fit no schema. (The records of ``tests/strategies.py`` have sense.) A few fields have words of their own, so that
the pieces of a record do meet now and then. Texts that a log would hold in private bear `PRIVATE`.
"""

from functools import cache

from hypothesis import strategies as st
from msgspec import Raw
from msgspec import inspect as types

from converter import chat, responses

PRIVATE = "PRIVATE"
"""What no sentence about a record may say. Markers hold blanks: no word of the two formats does."""

NAMES = ["f", "g", "get_weather", "sum", "f" * 64]
IDS = ["c", "d", "call_1", "call_2", "toolu_3", "f:0", "i" * 64, "i" * 65]
SECRETS = [f"{PRIVATE} words {number}" for number in range(8)]
ARGUMENTS = [
    *("{}", '{"a":1}', '{"a":"x"}', '{"b":[1,2,{"a":null}]}', ' {"a" : 1.0} ', '{"a":0.10,"b":"\\u00e9"}'),
    *('{"a":"PRIVATE words a"}', '{"a":"PRIVATE words b","b":2}', '{"city":"PRIVATE words c"}', '"PRIVATE words d"'),
    *("", "{", "[]", "null", "5", '{"a":1}{"a":2}', '{"a":1,"a":2}', '{"a":NaN}', '{"a":1e999}', '{"a":"\\ud800"}'),
    *(
        '{"a":123456789012345678901234567890}',
        '{"a":"' + "x" * 300 + '"}',
        "[" * 130 + "]" * 130,
        '{"a":{"a":{"a":{}}}}',
    ),
]
SCHEMAS = [
    {},
    {"type": "object"},
    {"type": "object", "properties": {"a": {"type": "integer"}}},
    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False},
    {"type": "object", "properties": {"a": {"enum": [1, "x", None]}, "b": {"type": "array", "items": {}}}},
    {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}}},
    {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": ["b"]},
    {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"a": {"minimum": 1, "exclusiveMinimum": True}},
    },
    {"properties": {"a": {"multipleOf": Raw(b"0.01")}}, "patternProperties": {"^b": {"type": "integer"}}},
    {"properties": {"a": {"pattern": "^[a-z]+$", "maxLength": 9}}, "minProperties": 1},
    {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "unevaluatedProperties": False},
    {"$ref": "https://example.com/elsewhere.json"},
    {"$schema": "https://example.com/none", "type": "object"},
    {"type": "nothing"},
    {"required": "a"},
    {"properties": {"a": {"pattern": "("}}},
    {"title": "PRIVATE words of a schema", "not": {"required": ["b"]}},
]
NUMBERS = [Raw(one) for one in (b"0", b"1", b"0.10", b"1E+2", b"-7", b"16", b"1700000000", b"12345678901234567890")]

HINTS = {
    **dict.fromkeys(("call_id", "tool_call_id"), st.sampled_from(IDS)),
    "id": st.sampled_from([*IDS, "resp_1", "chatcmpl-1", "msg_1", "fc_c", "rs_1"]),
    "arguments": st.sampled_from(ARGUMENTS),
    "parameters": st.sampled_from(SCHEMAS) | st.none(),
    "status": st.sampled_from(["completed", "completed", "incomplete", "in_progress", "failed", "done"]),
    "finish_reason": st.sampled_from(["stop", "tool_calls", "length", "content_filter", "function_call", "eos"]),
    "detail": st.sampled_from(["low", "high", "auto", "original"]),
    "reason": st.sampled_from(["max_output_tokens", "content_filter", "other"]),
    "tool_choice": st.sampled_from(
        [
            *("auto", "none", "required", "any"),
            {"type": "function", "function": {"name": "f"}},
            {"type": "function", "name": "f"},
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "g"}}]},
            },
        ]
    ),
    "response_format": st.sampled_from(
        [
            {"type": "text"},
            {"type": "json_object"},
            {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}, "strict": True}},
        ]
    ),
    "text_settings": st.sampled_from(
        [
            {"verbosity": "low"},
            {"format": {"type": "json_schema", "name": "a", "schema": {}}},
            {"format": {"type": "text"}},
        ]
    ),
    "reasoning_effort": st.sampled_from(["none", "minimal", "low", "high", "max"]),
    "reasoning": st.sampled_from([{"effort": "low", "summary": "auto"}, {"effort": None}, "PRIVATE words thought"]),
    "reasoning_content": st.sampled_from(SECRETS),
    "service_tier": st.sampled_from(["auto", "default", "flex", "scale", "fast"]),
    "metadata": st.sampled_from([{}, {"a": "b"}, {"a": 1}, {str(at): "x" for at in range(17)}, None]),
    "usage": st.sampled_from([{"include": True}, None]),
    "include": st.sampled_from([[], ["message.output_text.logprobs"], ["reasoning.encrypted_content"]]),
    "logprobs": st.sampled_from([[], [{"token": "t", "logprob": Raw(b"-1.50"), "bytes": [116], "top_logprobs": []}]]),
    "truncation": st.sampled_from(["auto", "disabled"]),
    "verbosity": st.sampled_from(["low", "high", "none"]),
    "name": st.sampled_from(NAMES),
    "phase": st.sampled_from(["commentary", "final_answer"]),
}
"""Fields whose values are words rather than any text. A hint stands for texts and for what is passed on as it is."""

TEXTS = st.sampled_from([*SECRETS, "", "x", "\u2028", '{"a":1}', "😀"])
JUNK = st.sampled_from([None, True, False, 0, 5, "x", "", [], {}, [None], {"a": None}, Raw(b"1e999")])
BY_TYPE = {
    "number": st.sampled_from(NUMBERS),
    "integer": st.sampled_from(NUMBERS),
    "string": TEXTS,
    "boolean": st.booleans(),
    "object": st.sampled_from([{}, {"a": "b"}, {"type": "text"}]),
    "array": st.sampled_from([[], ["x"], [{"type": "function"}]]),
    "null": st.none(),
}


def of(kind, name=""):
    """The strategy for a type as `msgspec.inspect` describes it, in a field of this name."""
    if isinstance(kind, types.Metadata):
        named = (kind.extra_json_schema or {}).get("type")
        if named is None or name in HINTS:
            return of(kind.type, name)
        return st.one_of([BY_TYPE[one] for one in ([named] if isinstance(named, str) else named)])
    return MAKERS[type(kind)](kind, name)


@cache
def of_struct(cls):
    """Records of a struct: all required fields, and a few of the others."""
    described = types.type_info(cls)
    fields = [(field.encode_name, hinted(cls, field), field.required) for field in described.fields]
    needed = {name: value for name, value, required in fields if required}
    rest = {name: value for name, value, required in fields if not required}

    @st.composite
    def draw_one(draw):
        made = {described.tag_field: described.tag} if described.tag_field else {}
        made.update({name: draw(value) for name, value in needed.items()})
        some = draw(st.lists(st.sampled_from(sorted(rest)), max_size=4, unique=True)) if rest else []
        made.update({name: draw(rest[name]) for name in some})
        return made

    return draw_one()


TOOLS = {chat.Request: chat.Tool, chat.FunctionDefinition: None, responses.Request: responses.Tool}
TOOLS[responses.Response] = responses.Tool


def hinted(cls, field):
    name = field.encode_name
    if name == "tools":
        return st.lists(of(types.type_info(TOOLS[cls])), max_size=3)
    if name == "functions":
        return st.lists(of_struct(chat.FunctionDefinition), max_size=2)
    if name == "text" and cls in (responses.Request, responses.Response):
        return HINTS["text_settings"]
    if name == "usage" and isinstance(field.type, types.UnionType):
        return of(field.type)
    return of(field.type, name)


def either(kind, name):
    return st.one_of([of(one, name) for one in kind.types])


MAKERS = {
    types.StructType: lambda kind, name: of_struct(kind.cls),
    types.UnionType: either,
    types.ListType: lambda kind, name: st.lists(of(kind.item_type), max_size=4),
    types.StrType: lambda kind, name: HINTS.get(name, TEXTS),
    types.IntType: lambda kind, name: st.integers(0, 99),
    types.BoolType: lambda kind, name: st.booleans(),
    types.NoneType: lambda kind, name: st.none(),
    types.LiteralType: lambda kind, name: st.sampled_from(kind.values),
    types.RawType: lambda kind, name: HINTS.get(name, JUNK),
    types.AnyType: lambda kind, name: JUNK,
}

BODIES = st.one_of(
    [
        of(types.type_info(one))
        for one in (
            *(chat.Request, list[chat.Message], chat.Completion),
            *(responses.Request, list[responses.Item], responses.Response),
        )
    ]
)
