"""What is written, held against validators that others made: two packages of types, and the published schemas.

The types of ``openresponses-types`` are too kind (they take null for keys that may only be absent, and any object as
``tool_choice``), so they say no only where something is really wrong. Those of ``openai`` want of an assistant's
message in a request what the published schema does not; they judge Chat Completions alone, and OpenAI's own dialect.
Set ``CONVERTER_SCHEMAS`` to a folder with both published OpenAPI files (``open-responses*.json``,
``chat-completions*.json``) to hold the same against them.
"""

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from strategies import CHAT_RECORDS, RESPONSES_RECORDS, dumps, lossy, with_unknown_fields
from test_cases import PATHS, VERBS, load, options_of

from converter import to_chat, to_responses

pydantic = pytest.importorskip("pydantic")


def envelope_of(record):
    """What a written record is: its envelope, and which of the three bodies."""
    if isinstance(record, dict):
        for key, names in {
            "messages": ("chat", "request"),
            "choices": ("chat", "answer"),
            "input": ("responses", "request"),
            "output": ("responses", "answer"),
        }.items():
            if key in record:
                return names
    chat = all(
        "role" in entry and entry.get("type", "message") == "message" and "type" not in entry for entry in record
    )
    return ("chat" if chat else "responses"), "list"


def as_request(record, envelope, body):
    """What the validators take: a list in the request that it would stand in. Chat wants a model."""
    if body == "list":
        record = {"messages" if envelope == "chat" else "input": record}
    return record if body == "answer" or envelope == "responses" else {"model": "m", **record}


# ---------------------------------------------------------------- the two packages


@cache
def open_responses():
    types = pytest.importorskip("openresponses_types")
    return {"request": types.CreateResponseBody.model_validate, "answer": types.ResponseResource.model_validate}


@cache
def openai_chat():
    chat = pytest.importorskip("openai.types.chat")
    params = pytest.importorskip("openai.types.chat.completion_create_params")
    request = pydantic.TypeAdapter(params.CompletionCreateParams)
    return {
        "request": lambda record: exhausted(request.validate_python(record)),
        "answer": lambda record: chat.ChatCompletion.model_validate(record, strict=True),
    }


def exhausted(value):
    """Iterables of typed dicts are checked as they are read."""
    if isinstance(value, dict):
        for one in value.values():
            exhausted(one)
    elif isinstance(value, (list, Iterator)) and not isinstance(value, str):
        for one in value:
            exhausted(one)


def hold(record, validators):
    envelope, body = envelope_of(record)
    validators[envelope]()["answer" if body == "answer" else "request"](as_request(record, envelope, body))


PACKAGES = {"responses": open_responses, "chat": openai_chat}


# ---------------------------------------------------------------- the published schemas


@cache
def published(envelope, name):
    folder = os.environ.get("CONVERTER_SCHEMAS")
    if not folder:
        pytest.skip("CONVERTER_SCHEMAS names no folder with the published OpenAPI files")
    from jsonschema import Draft202012Validator

    prefix = {"responses": "open-responses", "chat": "chat-completions"}[envelope]
    [path] = Path(folder).glob(f"{prefix}*.json")
    components = json.loads(path.read_text("utf-8"))["components"]
    return Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": components})


def schema_validators(envelope, request, answer):
    def check(name):
        def validate(record):
            errors = [
                f"/{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}"
                for error in published(envelope, name).iter_errors(record)
            ]
            assert not errors, errors

        return validate

    return lambda: {"request": check(request), "answer": check(answer)}


SCHEMAS = {
    "responses": schema_validators("responses", "CreateResponseBody", "ResponseResource"),
    "chat": schema_validators("chat", "CreateChatCompletionRequest", "CreateChatCompletionResponse"),
}


# ---------------------------------------------------------------- all cases

CASES = {path.stem: load(path) for path in PATHS}
WRITTEN = {
    name: case
    for name, case in CASES.items()
    if case.result is not UNSET and not name.startswith("standing_") and case.options.get("target") != "openai"
}
REASONING_KEPT = {"reasoning_kept", "dialect_thinking_parts"}
"""The released schema has no place for raw reasoning in a request; it is written where the user asks for it."""


@pytest.mark.parametrize("name", WRITTEN)
def test_case_against_the_packages(name):
    if name in REASONING_KEPT:
        pytest.skip("raw reasoning in a request is outside the released schema, and asked for")
    case = WRITTEN[name]
    hold(VERBS[case.verb](bytes(case.source), options_of(case)).body, PACKAGES)


@pytest.mark.parametrize("name", WRITTEN)
def test_case_against_the_published_schema(name):
    if name in REASONING_KEPT:
        pytest.skip("raw reasoning in a request is outside the released schema, and asked for")
    case = WRITTEN[name]
    hold(VERBS[case.verb](bytes(case.source), options_of(case)).body, SCHEMAS)


# ---------------------------------------------------------------- all kinds of records


@given(st.data())
def test_responses_against_the_package(data):
    _, record, _ = data.draw(with_unknown_fields(lossy(CHAT_RECORDS)))
    hold(to_responses(dumps(record)).body, PACKAGES)


@given(st.data())
def test_chat_against_the_package(data):
    _, record, _ = data.draw(with_unknown_fields(lossy(RESPONSES_RECORDS)))
    hold(to_chat(dumps(record)).body, PACKAGES)


@given(st.data())
def test_responses_against_the_published_schema(data):
    published("responses", "CreateResponseBody")
    _, record, _ = data.draw(with_unknown_fields(lossy(CHAT_RECORDS)))
    hold(to_responses(dumps(record)).body, SCHEMAS)


@given(st.data())
def test_chat_against_the_published_schema(data):
    published("chat", "CreateChatCompletionRequest")
    _, record, _ = data.draw(with_unknown_fields(lossy(RESPONSES_RECORDS)))
    hold(to_chat(dumps(record)).body, SCHEMAS)


# ---------------------------------------------------------------- the validators do say no

BROKEN = [
    {"input": [{"type": "message", "role": "user"}]},
    {"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]},
    {"input": [{"type": "function_call", "name": "f", "call_id": "c", "arguments": {}}]},
    {"messages": [{"role": "tool", "content": "x"}]},
    {"messages": [{"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f"}}]}]},
    {"output": [], "id": "resp_1"},
    {"choices": [], "id": "chatcmpl-1"},
]


@pytest.mark.parametrize("record", BROKEN, ids=range(len(BROKEN)))
def test_what_is_broken_is_seen(record):
    with pytest.raises((pydantic.ValidationError, AssertionError)):
        hold(record, PACKAGES)
