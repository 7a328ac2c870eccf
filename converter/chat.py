"""Structs of the Chat Completions envelope, and nothing else.

They say what is read and what is written: the fields of the published schema (OpenAI, 2026-08-21), and beside them the
vendor fields that recorded traffic is full of, so that a log with them is still decoded in one step. A field that is
only passed on is `msgspec.Raw`: it keeps its spelling. Unknown fields make the decoder fail; `converter.reading` then
finds them one by one.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import astuple


def _schema(**keywords: Any) -> Meta:
    return Meta(extra_json_schema=keywords)


# Passed on as they stand; the JSON Schema made from the structs still says what they are.
Number: TypeAlias = Annotated[Raw, _schema(type=["number", "null"])]
Integer: TypeAlias = Annotated[Raw, _schema(type=["integer", "null"])]
Text: TypeAlias = Annotated[Raw, _schema(type=["string", "null"])]
Flag: TypeAlias = Annotated[Raw, _schema(type=["boolean", "null"])]
Object: TypeAlias = Annotated[Raw, _schema(type=["object", "null"])]
Array: TypeAlias = Annotated[Raw, _schema(type=["array", "null"])]
Value: TypeAlias = Annotated[Raw, _schema()]

CallId: TypeAlias = Annotated[str, Meta(min_length=1)]

MISSING_ID: Final = "\0"
"""What stands for a call id that a log lacks, until ``--repair fill-call-ids`` puts one there."""

OptionalText: TypeAlias = str | UnsetType | None


class Base(Struct, forbid_unknown_fields=True, gc=False):
    """What all structs here share: unknown fields are an error, and no cycles to collect."""


def present(body: Struct, first: str, rare: str | None = None) -> dict[str, Any]:
    """The fields of a request that are there, by name: ``model``, and those from ``first`` on.

    Of some forty settings a request has three, and this runs once a record: where none of the fields from ``rare`` on
    is there, they are passed over in one comparison.
    """
    values, names = astuple(body), body.__struct_fields__
    end = len(names)
    if rare is not None and values[(middle := _place(names, rare)) :] == _ABSENT[: end - middle]:
        end = middle
    found = {} if values[0] is UNSET else {"model": values[0]}
    for number in range(_place(names, first), end):
        if values[number] is not UNSET:
            found[names[number]] = values[number]
    return found


@cache
def _place(names: tuple[str, ...], name: str) -> int:
    return names.index(name)


_ABSENT: Final = (UNSET,) * 64


# ---------------------------------------------------------------- content parts


class TextPart(Base, tag="text", tag_field="type"):
    """``{"type": "text", "text"}``."""

    text: str
    cache_control: Value | UnsetType = UNSET
    prompt_cache_breakpoint: Value | UnsetType = UNSET


class ImageUrl(Base):
    """Where an image is: a URL or a data URL, and how closely it is looked at."""

    url: str
    detail: OptionalText = UNSET


class ImagePart(Base, tag="image_url", tag_field="type"):
    """``{"type": "image_url", "image_url": {"url", "detail"}}``."""

    image_url: ImageUrl
    cache_control: Value | UnsetType = UNSET
    prompt_cache_breakpoint: Value | UnsetType = UNSET


class AudioPart(Base, tag="input_audio", tag_field="type"):
    """``{"type": "input_audio", "input_audio": {"data", "format"}}``."""

    input_audio: Object
    cache_control: Value | UnsetType = UNSET
    prompt_cache_breakpoint: Value | UnsetType = UNSET


class File(Base):
    """A file by its data (base64 or a data URL) or by an id that only its provider can resolve.

    Some gateways take a ``file_url`` too.
    """

    file_data: OptionalText = UNSET
    file_id: OptionalText = UNSET
    filename: OptionalText = UNSET
    file_url: Value | UnsetType = UNSET


class FilePart(Base, tag="file", tag_field="type"):
    """``{"type": "file", "file": {"file_data", "file_id", "filename"}}``."""

    file: File
    cache_control: Value | UnsetType = UNSET
    prompt_cache_breakpoint: Value | UnsetType = UNSET


class RefusalPart(Base, tag="refusal", tag_field="type"):
    """``{"type": "refusal", "refusal"}``, of assistant messages."""

    refusal: str


class DocumentPart(Base, tag="document_url", tag_field="type"):
    """Mistral's own: ``{"type": "document_url", "document_url", "document_name"}``, a file by its URL or data URL."""

    document_url: str
    document_name: OptionalText = UNSET
    cache_control: Value | UnsetType = UNSET
    prompt_cache_breakpoint: Value | UnsetType = UNSET


Part: TypeAlias = TextPart | ImagePart | AudioPart | FilePart | RefusalPart | DocumentPart
Content: TypeAlias = str | list[Part]


# ---------------------------------------------------------------- calls and messages


class Function(Base):
    """The function of a call: its name, and the arguments as the JSON text that the model wrote."""

    name: str
    arguments: str


class FunctionToolCall(Base, tag="function", tag_field="type"):
    """``{"id", "type": "function", "function": {"name", "arguments"}}``."""

    id: CallId
    function: Function
    index: Integer | UnsetType = UNSET
    extra_content: Value | UnsetType = UNSET
    cache_control: Value | UnsetType = UNSET


class Custom(Base):
    """The body of a custom tool call: its input is free text."""

    name: str
    input: str


class CustomToolCall(Base, tag="custom", tag_field="type"):
    """``{"id", "type": "custom", "custom": {"name", "input"}}``."""

    id: CallId
    custom: Custom
    index: Integer | UnsetType = UNSET


ToolCall: TypeAlias = FunctionToolCall | CustomToolCall


class UrlCitation(Base):
    """Indices are characters of the message's text."""

    start_index: int
    end_index: int
    url: str
    title: str


class Annotation(Base, tag="url_citation", tag_field="type"):
    """``{"type": "url_citation", "url_citation": {…}}``."""

    url_citation: UrlCitation


class SystemMessage(Base, tag="system", tag_field="role"):
    """Instructions of the developer, by their older name."""

    content: Content
    name: Text | UnsetType = UNSET
    cache_control: Value | UnsetType = UNSET


class DeveloperMessage(Base, tag="developer", tag_field="role"):
    """Instructions of the developer."""

    content: Content
    name: Text | UnsetType = UNSET
    cache_control: Value | UnsetType = UNSET


class UserMessage(Base, tag="user", tag_field="role"):
    """What the user said."""

    content: Content
    name: Text | UnsetType = UNSET
    cache_control: Value | UnsetType = UNSET


class AssistantMessage(Base, tag="assistant", tag_field="role"):
    """What the model said: text or a refusal, calls, or both; one message is one turn."""

    content: Content | UnsetType | None = UNSET
    refusal: OptionalText = UNSET
    tool_calls: list[ToolCall] | UnsetType | None = UNSET
    function_call: Function | UnsetType | None = UNSET
    annotations: list[Annotation] | UnsetType | None = UNSET
    audio: Value | UnsetType = UNSET
    name: Text | UnsetType = UNSET
    reasoning_content: Value | UnsetType = UNSET
    reasoning: Value | UnsetType = UNSET
    reasoning_details: Value | UnsetType = UNSET
    prefix: Flag | UnsetType = UNSET
    cache_control: Value | UnsetType = UNSET
    weight: Number | UnsetType = UNSET


class ToolMessage(Base, tag="tool", tag_field="role"):
    """The output of a call. The published schema allows text parts only; recorded traffic holds images too."""

    content: Content
    tool_call_id: CallId
    name: Text | UnsetType = UNSET
    cache_control: Value | UnsetType = UNSET


class FunctionMessage(Base, tag="function", tag_field="role"):
    """The output of a legacy ``function_call``."""

    name: str
    content: Content | None = None


Message: TypeAlias = SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage | FunctionMessage


# ---------------------------------------------------------------- tools


class FunctionDefinition(Base):
    """A function that may be called; absent ``parameters`` mean that it takes none, absent ``strict`` means false."""

    name: str
    description: OptionalText = UNSET
    parameters: Object | UnsetType = UNSET
    strict: bool | UnsetType | None = UNSET


class FunctionTool(Base, tag="function", tag_field="type"):
    """``{"type": "function", "function": {…}}``."""

    function: FunctionDefinition


class CustomDefinition(Base):
    """A tool that takes free text; ``format`` is text or a grammar."""

    name: str
    description: OptionalText = UNSET
    format: Object | UnsetType = UNSET


class CustomTool(Base, tag="custom", tag_field="type"):
    """``{"type": "custom", "custom": {…}}``."""

    custom: CustomDefinition


Tool: TypeAlias = FunctionTool | CustomTool


# ---------------------------------------------------------------- requests


class Request(Base, kw_only=True):
    """A request body. ``messages`` is converted; each other field is a setting, passed on or named in a notice.

    The settings stand in the order in which `settings_of` looks at them: those that many requests have come first.
    """

    model: Text | UnsetType = UNSET
    messages: list[Message]
    tools: Array | UnsetType = UNSET
    functions: Array | UnsetType = UNSET

    temperature: Number | UnsetType = UNSET
    max_tokens: Integer | UnsetType = UNSET
    max_completion_tokens: Integer | UnsetType = UNSET
    stream: Flag | UnsetType = UNSET
    stream_options: Object | UnsetType = UNSET
    tool_choice: Value | UnsetType = UNSET
    parallel_tool_calls: Flag | UnsetType = UNSET
    response_format: Object | UnsetType = UNSET
    top_p: Number | UnsetType = UNSET
    n: Integer | UnsetType = UNSET
    stop: Value | UnsetType = UNSET

    seed: Integer | UnsetType = UNSET
    store: Flag | UnsetType = UNSET
    reasoning_effort: Text | UnsetType = UNSET
    metadata: Object | UnsetType = UNSET
    function_call: Value | UnsetType = UNSET
    presence_penalty: Number | UnsetType = UNSET
    frequency_penalty: Number | UnsetType = UNSET
    logit_bias: Object | UnsetType = UNSET
    logprobs: Flag | UnsetType = UNSET
    top_logprobs: Integer | UnsetType = UNSET
    verbosity: Text | UnsetType = UNSET
    modalities: Array | UnsetType = UNSET
    audio: Object | UnsetType = UNSET
    prediction: Object | UnsetType = UNSET
    web_search_options: Object | UnsetType = UNSET
    service_tier: Text | UnsetType = UNSET
    user: Text | UnsetType = UNSET
    safety_identifier: Text | UnsetType = UNSET
    prompt_cache_key: Text | UnsetType = UNSET
    prompt_cache_retention: Text | UnsetType = UNSET
    prompt_cache_options: Object | UnsetType = UNSET
    moderation: Object | UnsetType = UNSET
    # Vendor settings that are common enough to decode in one step: OpenRouter, DeepSeek, Z.ai, vLLM.
    provider: Value | UnsetType = UNSET
    thinking: Value | UnsetType = UNSET
    reasoning: Value | UnsetType = UNSET
    usage: Value | UnsetType = UNSET
    include_reasoning: Value | UnsetType = UNSET
    extra_body: Value | UnsetType = UNSET


RARE_SETTINGS: Final = "seed"
"""The first of the settings that few requests have."""


def settings_of(body: Request) -> dict[str, Raw]:
    """The settings that a request has, as they stand."""
    return present(body, "temperature", RARE_SETTINGS)


# ---------------------------------------------------------------- completions


class PromptDetails(Base):
    """Parts of the prompt's token count."""

    cached_tokens: int | UnsetType | None = UNSET
    audio_tokens: int | UnsetType | None = UNSET
    cache_write_tokens: int | UnsetType | None = UNSET
    text_tokens: int | UnsetType | None = UNSET
    image_tokens: int | UnsetType | None = UNSET
    video_tokens: int | UnsetType | None = UNSET


class CompletionDetails(Base):
    """Parts of the answer's token count."""

    reasoning_tokens: int | UnsetType | None = UNSET
    audio_tokens: int | UnsetType | None = UNSET
    accepted_prediction_tokens: int | UnsetType | None = UNSET
    rejected_prediction_tokens: int | UnsetType | None = UNSET
    text_tokens: int | UnsetType | None = UNSET
    image_tokens: int | UnsetType | None = UNSET


class Usage(Base, kw_only=True):
    """Token counts."""

    prompt_tokens: int | UnsetType | None = UNSET
    completion_tokens: int | UnsetType | None = UNSET
    total_tokens: int | UnsetType | None = UNSET
    prompt_tokens_details: PromptDetails | UnsetType | None = UNSET
    completion_tokens_details: CompletionDetails | UnsetType | None = UNSET


class ChoiceLogprobs(Base):
    """Log probabilities of the tokens of a message; entries are passed on."""

    content: Array | UnsetType = UNSET
    refusal: Array | UnsetType = UNSET


class Choice(Base, kw_only=True):
    """One answer. ``finish_reason`` is read as any string: clones have their own words."""

    index: int | UnsetType | None = UNSET
    message: AssistantMessage
    logprobs: ChoiceLogprobs | UnsetType | None = UNSET
    finish_reason: OptionalText = UNSET


class Completion(Base, kw_only=True):
    """An answer: one or more choices, token counts, and what the server says of itself."""

    id: OptionalText = UNSET
    object: Literal["chat.completion"] | UnsetType = UNSET
    created: Number | UnsetType = UNSET
    model: OptionalText = UNSET
    choices: list[Choice]
    usage: Usage | UnsetType | None = UNSET
    service_tier: Text | UnsetType = UNSET
    system_fingerprint: Text | UnsetType = UNSET
    metadata: Object | UnsetType = UNSET
    moderation: Value | UnsetType = UNSET
    provider: Value | UnsetType = UNSET
    prompt_filter_results: Value | UnsetType = UNSET
