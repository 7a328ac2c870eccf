"""The plainest records of both envelopes: what nearly all recorded traffic holds, and nothing else.

These are structs of `converter.chat` and `converter.responses` with fewer fields, and text where those may hold parts.
Decoding them takes less time, and what they hold needs fewer questions: see `converter.shortcut`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from converter.chat import Base, CallId, Function


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


def text_of(entry: Message | Item) -> str:
    """What a message or item says, or with what arguments it calls."""
    if isinstance(entry, AssistantMessage):
        return entry.content or "".join([call.function.arguments for call in entry.tool_calls or ()])
    if isinstance(entry, CallItem):
        return entry.arguments
    return entry.output if isinstance(entry, OutputItem) else entry.content
