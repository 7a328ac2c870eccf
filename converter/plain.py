"""The plainest records of both envelopes: what nearly all recorded traffic holds, and nothing else.

These are structs of `converter.chat` and `converter.responses` with fewer fields, and text where those may hold parts.
Decoding them takes less time, and what they hold needs fewer questions: see `converter.shortcut`.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import astuple

from converter.chat import Array, Base, CallId, Flag, Function, Integer, Number, Object, Text


class ToolCall(Base, tag="function", tag_field="type"):
    """`converter.chat.FunctionToolCall` with no vendor's field."""

    id: CallId
    function: Function


class SystemMessage(Base, tag="system", tag_field="role"):
    """`converter.chat.SystemMessage`, a text."""

    content: str


class DeveloperMessage(Base, tag="developer", tag_field="role"):
    """`converter.chat.DeveloperMessage`, a text."""

    content: str


class UserMessage(Base, tag="user", tag_field="role"):
    """`converter.chat.UserMessage`, a text."""

    content: str


class AssistantMessage(Base, tag="assistant", tag_field="role"):
    """`converter.chat.AssistantMessage`, a text, calls or both. OpenAI sends a null refusal along."""

    content: str | None = None
    tool_calls: list[ToolCall] | None = None
    refusal: None = None


class ToolMessage(Base, tag="tool", tag_field="role"):
    """`converter.chat.ToolMessage`, a text."""

    content: str
    tool_call_id: CallId


Message: TypeAlias = SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage


class MessageItem(Base, tag="message", tag_field="type"):
    """`converter.responses.Message`, a text."""

    role: Literal["user", "system", "developer", "assistant"]
    content: str


class CallItem(Base, tag="function_call", tag_field="type", kw_only=True):
    """`converter.responses.FunctionCall`, completed or of no status."""

    id: str | None = None
    name: str
    call_id: CallId
    status: Literal["completed"] | None = None
    arguments: str


class OutputItem(Base, tag="function_call_output", tag_field="type"):
    """`converter.responses.FunctionCallOutput`, a text."""

    call_id: CallId
    output: str


Item: TypeAlias = MessageItem | CallItem | OutputItem


NOTHING: Final = Raw(b"")
"""In place of a setting that is not there: no JSON text is empty."""


class Request(Base, kw_only=True):
    """`converter.chat.Request` with the settings that many requests have."""

    messages: list[Message]
    tools: Array | UnsetType = UNSET

    model: Text = NOTHING
    temperature: Number = NOTHING
    max_tokens: Integer = NOTHING
    max_completion_tokens: Integer = NOTHING
    stream: Flag = NOTHING
    stream_options: Object = NOTHING
    parallel_tool_calls: Flag = NOTHING
    response_format: Object = NOTHING
    top_p: Number = NOTHING

    # What the fuller struct may hold, and this one never does.
    functions = tool_choice = UNSET


class ResponsesRequest(Base, kw_only=True):
    """`converter.responses.Request` with the settings that many requests have."""

    input: list[Item]
    tools: Array | UnsetType = UNSET

    model: Text = NOTHING
    parallel_tool_calls: Flag = NOTHING
    temperature: Number = NOTHING
    max_output_tokens: Integer = NOTHING
    store: Flag = NOTHING
    stream: Flag = NOTHING
    reasoning: Object = NOTHING
    text: Object = NOTHING
    top_p: Number = NOTHING

    # What the fuller struct may hold, and this one never does.
    instructions = tool_choice = UNSET


SETTINGS: Final = 2
"""How many fields of a plain request stand before its settings."""


def settings_key(body: Request | ResponsesRequest) -> bytes:
    """All settings of a request as they stand: the same bytes mean the same settings."""
    return b"\0".join(astuple(body)[SETTINGS:])


def settings_of(body: Request | ResponsesRequest) -> dict[str, Raw]:
    """The settings that a request has, by name."""
    named = zip(body.__struct_fields__[SETTINGS:], astuple(body)[SETTINGS:], strict=True)
    return {name: value for name, value in named if value is not NOTHING}
