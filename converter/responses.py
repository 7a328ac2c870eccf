"""Structs of the Open Responses envelope, and nothing else.

The specification is the release of 2026-04-24. The structs are lenient where recorded traffic is (an item without
``id`` or ``status``); what the specification requires is set whenever one is written, and held against the published
schema by the tests. ``OutputMessage``, ``OutputFunctionCall`` and ``OutputReasoning`` are the output forms, which
require more than the input forms. A field that is only passed on is `msgspec.Raw`: it keeps its spelling.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import UNSET, Raw, UnsetType

from converter.chat import Array, Base, CallId, Flag, Integer, Number, Object, OptionalText, Text, Value, present

# ---------------------------------------------------------------- content parts


class InputText(Base, tag="input_text", tag_field="type"):
    """``{"type": "input_text", "text"}``, of user, system and developer messages and of outputs."""

    text: str
    prompt_cache_breakpoint: Value | UnsetType = UNSET


class UrlCitation(Base, tag="url_citation", tag_field="type"):
    """Flat here, nested in Chat. Indices are characters of the part's text."""

    start_index: int
    end_index: int
    url: str
    title: str


class OutputText(Base, tag="output_text", tag_field="type"):
    """``{"type": "output_text", "text", "annotations"}``; ``logprobs`` in the output form alone."""

    text: str
    annotations: list[UrlCitation] | UnsetType | None = UNSET
    logprobs: Array | UnsetType = UNSET


class PlainText(Base, tag="text", tag_field="type"):
    """``{"type": "text", "text"}``, of the output form."""

    text: str


class Refusal(Base, tag="refusal", tag_field="type"):
    """``{"type": "refusal", "refusal"}``."""

    refusal: str


class InputImage(Base, tag="input_image", tag_field="type"):
    """An image by its URL or data URL; a file id is OpenAI's own."""

    image_url: OptionalText = UNSET
    detail: OptionalText = UNSET
    file_id: OptionalText = UNSET
    prompt_cache_breakpoint: Value | UnsetType = UNSET


class InputFile(Base, tag="input_file", tag_field="type"):
    """A file by its data or URL; a file id is OpenAI's own."""

    filename: OptionalText = UNSET
    file_url: OptionalText = UNSET
    file_data: OptionalText = UNSET
    file_id: OptionalText = UNSET
    prompt_cache_breakpoint: Value | UnsetType = UNSET


class InputVideo(Base, tag="input_video", tag_field="type"):
    """A video by its URL or data URL, of outputs."""

    video_url: str


class InputAudio(Base, tag="input_audio", tag_field="type"):
    """OpenAI's own: audio data and its format."""

    input_audio: Object


class SummaryText(Base, tag="summary_text", tag_field="type"):
    """``{"type": "summary_text", "text"}``, of reasoning."""

    text: str


class ReasoningText(Base, tag="reasoning_text", tag_field="type"):
    """``{"type": "reasoning_text", "text"}``, of reasoning."""

    text: str


Part: TypeAlias = (
    InputText
    | OutputText
    | PlainText
    | Refusal
    | InputImage
    | InputFile
    | InputVideo
    | InputAudio
    | SummaryText
    | ReasoningText
)
Content: TypeAlias = str | list[Part]


# ---------------------------------------------------------------- items


class Message(Base, tag="message", tag_field="type"):
    """A message in the input form. ``status`` is a free string there; ``phase`` marks assistant messages."""

    role: Literal["user", "system", "developer", "assistant"]
    content: Content
    id: OptionalText = UNSET
    status: OptionalText = UNSET
    phase: OptionalText = UNSET


class OutputMessage(Base, tag="message", tag_field="type"):
    """A message in the output form: all of it required, the content always parts."""

    id: str
    status: str
    role: Literal["user", "system", "developer", "assistant"]
    content: list[Part]


class FunctionCall(Base, tag="function_call", tag_field="type", kw_only=True):
    """A call, in both forms. ``arguments`` is the JSON text that the model wrote."""

    id: OptionalText = UNSET
    name: str
    call_id: CallId
    status: OptionalText = UNSET
    arguments: str
    namespace: OptionalText = UNSET


class OutputFunctionCall(Base, tag="function_call", tag_field="type"):
    """A call in the output form, which is how calls are written in both forms."""

    id: str
    name: str
    call_id: str
    status: str
    arguments: str


class FunctionCallOutput(Base, tag="function_call_output", tag_field="type"):
    """The output of the call with the same ``call_id``."""

    call_id: CallId
    output: Content
    id: OptionalText = UNSET
    status: OptionalText = UNSET


class Reasoning(Base, tag="reasoning", tag_field="type"):
    """Raw text (``content``), a summary, and an opaque form that only its provider reads."""

    summary: list[Part]
    content: list[Part] | UnsetType | None = UNSET
    encrypted_content: OptionalText = UNSET
    id: OptionalText = UNSET
    status: OptionalText = UNSET


class OutputReasoning(Base, tag="reasoning", tag_field="type"):
    """Reasoning in the output form: the id is required."""

    id: str
    summary: list[Part]
    content: list[Part] | UnsetType = UNSET
    encrypted_content: str | UnsetType = UNSET


class Compaction(Base, tag="compaction", tag_field="type"):
    """An opaque summary of earlier turns."""

    encrypted_content: str
    id: OptionalText = UNSET
    created_by: OptionalText = UNSET


class ItemReference(Base, tag="item_reference", tag_field="type"):
    """An item by its id, which only its provider can resolve."""

    id: str


class CustomToolCall(Base, tag="custom_tool_call", tag_field="type"):
    """OpenAI's own: a call whose input is free text."""

    name: str
    call_id: CallId
    input: str
    id: OptionalText = UNSET
    status: OptionalText = UNSET
    namespace: OptionalText = UNSET


class CustomToolCallOutput(Base, tag="custom_tool_call_output", tag_field="type"):
    """OpenAI's own: the output of a custom tool call."""

    call_id: CallId
    output: Content
    id: OptionalText = UNSET
    status: OptionalText = UNSET


Item: TypeAlias = (
    Message
    | FunctionCall
    | FunctionCallOutput
    | Reasoning
    | Compaction
    | ItemReference
    | CustomToolCall
    | CustomToolCallOutput
)


# ---------------------------------------------------------------- tools


class FunctionTool(Base, tag="function", tag_field="type"):
    """A function that may be called; the name stands beside the type, not below it."""

    name: str
    description: OptionalText = UNSET
    parameters: Object | UnsetType = UNSET
    strict: bool | UnsetType | None = UNSET


class CustomTool(Base, tag="custom", tag_field="type"):
    """OpenAI's own: a tool that takes free text."""

    name: str
    description: OptionalText = UNSET
    format: Object | UnsetType = UNSET


Tool: TypeAlias = FunctionTool | CustomTool


# ---------------------------------------------------------------- requests


class Request(Base, kw_only=True):
    """A request body. ``input`` is converted; each other field is a setting, passed on or named in a notice.

    The settings stand in the order in which `settings_of` looks at them: those that many requests have come first.
    """

    model: Text | UnsetType = UNSET
    input: str | list[Item] | UnsetType | None = UNSET
    instructions: OptionalText = UNSET
    tools: Array | UnsetType = UNSET

    tool_choice: Value | UnsetType = UNSET
    parallel_tool_calls: Flag | UnsetType = UNSET
    temperature: Number | UnsetType = UNSET
    max_output_tokens: Integer | UnsetType = UNSET
    store: Flag | UnsetType = UNSET
    stream: Flag | UnsetType = UNSET
    reasoning: Object | UnsetType = UNSET
    include: Array | UnsetType = UNSET
    text: Object | UnsetType = UNSET
    top_p: Number | UnsetType = UNSET

    stream_options: Object | UnsetType = UNSET
    presence_penalty: Number | UnsetType = UNSET
    frequency_penalty: Number | UnsetType = UNSET
    top_logprobs: Integer | UnsetType = UNSET
    max_tool_calls: Integer | UnsetType = UNSET
    truncation: Text | UnsetType = UNSET
    background: Flag | UnsetType = UNSET
    metadata: Object | UnsetType = UNSET
    service_tier: Text | UnsetType = UNSET
    safety_identifier: Text | UnsetType = UNSET
    prompt_cache_key: Text | UnsetType = UNSET
    # OpenAI's own.
    user: Text | UnsetType = UNSET
    prompt_cache_retention: Text | UnsetType = UNSET
    context_management: Value | UnsetType = UNSET
    # What the record leans on without holding it.
    previous_response_id: Text | UnsetType = UNSET
    conversation: Value | UnsetType = UNSET
    prompt: Value | UnsetType = UNSET


ELSEWHERE: Final = {
    "previous_response_id": "the record continues a response whose content is not in it",
    "conversation": "the record continues a conversation whose content is not in it",
    "prompt": "the record uses a prompt template whose text is not in it",
}
"""What a request may lean on without holding it."""


RARE_SETTINGS: Final = "stream_options"
"""The first of the settings that few requests have."""


def settings_of(body: Request) -> dict[str, Raw]:
    """The settings that a request has, and what it leans on, as they stand."""
    return present(body, "tool_choice", RARE_SETTINGS)


# ---------------------------------------------------------------- responses


class InputDetails(Base):
    """Parts of the input's token count; one count is the core's, the rest OpenAI's own."""

    cached_tokens: int | UnsetType | None = UNSET
    cache_write_tokens: int | UnsetType | None = UNSET


class OutputDetails(Base):
    """Parts of the output's token count."""

    reasoning_tokens: int | UnsetType | None = UNSET


class Usage(Base, kw_only=True):
    """Token counts."""

    input_tokens: int | UnsetType | None = UNSET
    output_tokens: int | UnsetType | None = UNSET
    total_tokens: int | UnsetType | None = UNSET
    input_tokens_details: InputDetails | UnsetType | None = UNSET
    output_tokens_details: OutputDetails | UnsetType | None = UNSET


class IncompleteDetails(Base):
    """Why a response ended early."""

    reason: OptionalText = UNSET


class Response(Base, kw_only=True):
    """A response resource. ``output`` is the answer; most other fields echo the request."""

    id: OptionalText = UNSET
    object: Literal["response"] | UnsetType = UNSET
    created_at: Number | UnsetType = UNSET
    completed_at: Number | UnsetType = UNSET
    status: OptionalText = UNSET
    incomplete_details: IncompleteDetails | UnsetType | None = UNSET
    model: OptionalText = UNSET
    previous_response_id: Text | UnsetType = UNSET
    instructions: Value | UnsetType = UNSET
    output: list[Item]
    error: Value | UnsetType = UNSET
    tools: Array | UnsetType = UNSET
    tool_choice: Value | UnsetType = UNSET
    truncation: Text | UnsetType = UNSET
    parallel_tool_calls: Flag | UnsetType = UNSET
    text: Object | UnsetType = UNSET
    top_p: Number | UnsetType = UNSET
    presence_penalty: Number | UnsetType = UNSET
    frequency_penalty: Number | UnsetType = UNSET
    top_logprobs: Integer | UnsetType = UNSET
    temperature: Number | UnsetType = UNSET
    reasoning: Object | UnsetType = UNSET
    usage: Usage | UnsetType | None = UNSET
    max_output_tokens: Integer | UnsetType = UNSET
    max_tool_calls: Integer | UnsetType = UNSET
    store: Flag | UnsetType = UNSET
    background: Flag | UnsetType = UNSET
    service_tier: Text | UnsetType = UNSET
    metadata: Value | UnsetType = UNSET
    safety_identifier: Text | UnsetType = UNSET
    prompt_cache_key: Text | UnsetType = UNSET
    # OpenAI's own.
    conversation: Value | UnsetType = UNSET
    prompt: Value | UnsetType = UNSET
    user: Text | UnsetType = UNSET
    prompt_cache_retention: Text | UnsetType = UNSET
    billing: Value | UnsetType = UNSET
    moderation: Value | UnsetType = UNSET
    max_messages: Value | UnsetType = UNSET
