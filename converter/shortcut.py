"""Conversations of which there is nothing to say: mapped and judged in one pass.

Most histories hold texts, calls that satisfy their schemas, and one output for each call before anything else is said.
For these, the two translators and the gate come to what this module comes to, in several times the time. It gives up
(None) as soon as there would be anything to say. That all ways lead to the same bytes is a test.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET

from converter import chat, ids, plain, responses
from converter.outcome import Verdict
from converter.tools import Schemas

OK: Final = Verdict.OK
Message: Final = responses.Message
Call: Final = responses.OutputFunctionCall
Output: Final = responses.FunctionCallOutput
ASSISTANT: Final = plain.AssistantMessage
TOOL: Final = plain.ToolMessage
ROLES: Final[dict[type, Any]] = {
    plain.SystemMessage: "system",
    plain.DeveloperMessage: "developer",
    plain.UserMessage: "user",
}

_fits: Final = ids.PLAIN.fullmatch


def items_of(messages: list[Any], schemas: Schemas) -> list[Any] | None:
    """The items that these plain messages become, or None where there is anything to say of them."""
    items: list[Any] = []
    add = items.append
    asked: set[str] = set()
    opened: set[str] = set()
    try:
        for message in messages:
            cls = message.__class__
            if cls is TOOL:
                call_id = message.tool_call_id
                opened.remove(call_id)
                add(Output(call_id, message.content))
            elif opened:
                return None
            elif cls is ASSISTANT:
                content, calls = message.content, message.tool_calls
                if content:
                    add(Message("assistant", content))
                elif not calls or (items and items[-1].__class__ is Message and items[-1].role == "assistant"):
                    return None
                for call in calls or ():
                    call_id, function = call.id, call.function
                    name, arguments = function.name, function.arguments
                    schema = schemas[name]
                    if schema.known.get(arguments) is not OK and not _passes(schema, arguments):
                        return None
                    if arguments[0] != "{" or call_id in asked or not _fits(call_id):
                        return None
                    asked.add(call_id)
                    opened.add(call_id)
                    add(Call(f"fc_{call_id}", name, call_id, "completed", arguments))
            else:
                add(Message(ROLES[cls], message.content))
    except KeyError:
        return None  # a call to a tool without a schema, or an output that answers no open call
    return None if opened else items


def _passes(schema: Any, arguments: str) -> bool:
    return schema.problem is None and schema.verdict(arguments) is OK


CALL_ITEM: Final = plain.CallItem
OUTPUT_ITEM: Final = plain.OutputItem
ChatAssistant: Final = chat.AssistantMessage
ChatCall: Final = chat.FunctionToolCall
ChatFunction: Final = chat.Function
ChatTool: Final = chat.ToolMessage
SAID: Final = {"system": chat.SystemMessage, "developer": chat.DeveloperMessage, "user": chat.UserMessage}


def messages_of(items: list[Any], schemas: Schemas) -> list[Any] | None:
    """The messages that these plain items become, or None where there is anything to say of them."""
    messages: list[Any] = []
    add = messages.append
    asked: set[str] = set()
    opened: set[str] = set()
    turn: Any = None
    try:
        for item in items:
            cls = item.__class__
            if cls is OUTPUT_ITEM:
                call_id = item.call_id
                opened.remove(call_id)
                turn = None
                add(ChatTool(item.output, call_id))
            elif cls is CALL_ITEM:
                call_id, name, arguments = item.call_id, item.name, item.arguments
                schema = schemas[name]
                if schema.known.get(arguments) is not OK and not _passes(schema, arguments):
                    return None
                if arguments[0] != "{" or call_id in asked:
                    return None
                call = ChatCall(call_id, ChatFunction(name, arguments))
                asked.add(call_id)
                if turn is None:
                    if opened:
                        return None
                    turn = ChatAssistant(None, UNSET, [call])
                    add(turn)
                elif turn.tool_calls:
                    turn.tool_calls.append(call)
                else:
                    turn.tool_calls = [call]
                opened.add(call_id)
            elif opened:
                return None
            elif item.role == "assistant":
                turn = ChatAssistant(item.content)
                add(turn)
            else:
                turn = None
                add(SAID[item.role](item.content))
    except KeyError:
        return None  # a call to a tool without a schema, or an output that answers no open call
    return None if opened else messages
