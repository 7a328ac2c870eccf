"""Other programs' ways between the two formats, as far as they are installed. None of them is needed.

Each is called at the narrowest function that does its conversion, on what msgspec decodes, and what it gives is encoded
by msgspec: the same work as the floor, and the conversion. None of them checks arguments or pairs calls with outputs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

decode: Final = msgspec.json.decode
encode: Final = msgspec.json.encode

Convert = Callable[[bytes], bytes]
Directions = dict[str, Convert]


class Peer(NamedTuple):
    """A program, how to get it, what of it is called, and a function that imports it."""

    name: str
    install: str
    called: str
    load: Callable[[], Directions]


def _mapped(convert: Callable[[dict[str, Any]], Any]) -> Convert:
    return lambda record: encode(convert(decode(record)))


def _split(body: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in keys}


def _litellm() -> Directions:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # otherwise it fetches one when it is imported
    from litellm.completion_extras.litellm_responses_transformation.transformation import (
        LiteLLMResponsesTransformationHandler,
    )
    from litellm.responses.litellm_completion_transformation.transformation import LiteLLMCompletionResponsesConfig

    forth = LiteLLMResponsesTransformationHandler().transform_request
    back = LiteLLMCompletionResponsesConfig.transform_responses_api_request_to_chat_completion_request

    def to_responses(body: dict[str, Any]) -> Any:
        return forth(body["model"], body["messages"], _split(body, "model", "messages"), {}, {}, None)

    def to_chat(body: dict[str, Any]) -> Any:
        return back(body["model"], body["input"], _split(body, "model", "input"), custom_llm_provider="openai")

    return {"to-responses": _mapped(to_responses), "to-chat": _mapped(to_chat)}


def _openai_agents() -> Directions:
    from agents.models.chatcmpl_converter import Converter
    from openai.types.chat import ChatCompletionMessage

    def items(message: dict[str, Any]) -> list[Any]:
        if message["role"] != "assistant":
            return [message]
        made = Converter.message_to_output_items(ChatCompletionMessage.model_validate(message))
        return [item.model_dump(mode="json", exclude_unset=True) for item in made]

    def to_responses(body: dict[str, Any]) -> Any:
        made = [item for message in body["messages"] for item in items(message)]
        return {**_split(body, "messages"), "input": made}

    def to_chat(body: dict[str, Any]) -> Any:
        return {**_split(body, "input"), "messages": Converter.items_to_messages(body["input"])}

    return {"to-responses": _mapped(to_responses), "to-chat": _mapped(to_chat)}


def _llm_rosetta() -> Directions:
    from llm_rosetta import convert

    return {
        "to-responses": _mapped(lambda body: convert(body, "openai_responses", "openai_chat")),
        "to-chat": _mapped(lambda body: convert(body, "openai_chat", "openai_responses")),
    }


def _protocol_converter() -> Directions:
    from protocol_converter import OpenAIResponsesConverter

    return {
        "to-responses": _mapped(OpenAIResponsesConverter.from_openai_chat_request),
        "to-chat": _mapped(OpenAIResponsesConverter.to_openai_chat),
    }


def _langchain_openai() -> Directions:
    from langchain_openai.chat_models import base

    def to_responses(body: dict[str, Any]) -> Any:
        messages = [base._convert_dict_to_message(message) for message in body["messages"]]
        return base._construct_responses_api_payload(messages, _split(body, "messages"))

    return {"to-responses": _mapped(to_responses)}


def _pydantic_ai() -> Directions:
    from pydantic_ai import ModelMessagesTypeAdapter
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(api_key="none", base_url="http://localhost")
    chat, responses = OpenAIChatModel("gpt-4o", provider=provider), OpenAIResponsesModel("gpt-4o", provider=provider)
    parameters = ModelRequestParameters()
    read = ModelMessagesTypeAdapter.validate_python

    def to_responses(record: bytes) -> bytes:
        return encode(_run(responses._map_messages(read(_pydantic_messages(decode(record))), {}, parameters))[1])

    def to_chat(record: bytes) -> bytes:
        return encode(_run(chat._map_messages(read(_pydantic_messages(decode(record))), parameters)))

    return {"to-responses": to_responses, "to-chat": to_chat}


def _pydantic_messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The conversation as pydantic-ai stores it: it has no reader of its own for either format."""
    names: dict[str, str] = {}
    messages = []
    for entry in body.get("messages") or body["input"]:
        role = entry.get("role", entry.get("type"))
        parts: list[dict[str, Any]] = []
        if role in ("system", "user"):
            parts.append({"part_kind": f"{role}-prompt", "content": entry["content"]})
        elif role in ("tool", "function_call_output"):
            call_id = entry.get("tool_call_id") or entry["call_id"]
            output = entry.get("content") or entry["output"]
            named = {"tool_name": names[call_id], "tool_call_id": call_id}
            parts.append({"part_kind": "tool-return", **named, "content": output})
        else:
            if entry.get("content"):
                parts.append({"part_kind": "text", "content": entry["content"]})
            for call in _calls(entry):
                names[call["tool_call_id"]] = call["tool_name"]
                parts.append({"part_kind": "tool-call", **call})
        messages.append({"kind": "response" if role in ("assistant", "function_call") else "request", "parts": parts})
    return messages


def _calls(entry: dict[str, Any]) -> list[dict[str, str]]:
    found = [(call["id"], call["function"]) for call in entry.get("tool_calls") or ()]
    if entry.get("type") == "function_call":
        found = [(entry["call_id"], entry)]
    return [
        {"tool_name": function["name"], "args": function["arguments"], "tool_call_id": call_id}
        for call_id, function in found
    ]


def _run(coroutine: Any) -> Any:
    """The result of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("the coroutine waits for something")


PEERS: Final = (
    Peer(
        "protocol-converter",
        "pip install protocol-converter",
        "OpenAIResponsesConverter.from_openai_chat_request, .to_openai_chat",
        _protocol_converter,
    ),
    Peer(
        "litellm",
        "pip install litellm",
        "LiteLLMResponsesTransformationHandler.transform_request, "
        "LiteLLMCompletionResponsesConfig.transform_responses_api_request_to_chat_completion_request",
        _litellm,
    ),
    Peer(
        "openai-agents",
        "pip install openai-agents",
        "Converter.message_to_output_items (assistant messages; the others and the tools stay as they are), "
        "Converter.items_to_messages (the tools stay as they are)",
        _openai_agents,
    ),
    Peer("llm-rosetta", "pip install llm-rosetta", "convert", _llm_rosetta),
    Peer(
        "langchain-openai",
        "pip install langchain-openai",
        "_convert_dict_to_message and _construct_responses_api_payload; nothing reads items of a history",
        _langchain_openai,
    ),
    Peer(
        "pydantic-ai",
        "pip install 'pydantic-ai-slim[openai]'",
        "ModelMessagesTypeAdapter, then _map_messages of OpenAIResponsesModel and OpenAIChatModel, without tools; "
        "it has no reader of either format, so that a small one stands here",
        _pydantic_ai,
    ),
)
