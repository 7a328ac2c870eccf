"""Chat Completions structs become Open Responses structs: one function a message role or part, in tables at the end.

The mapping follows the two published schemas; where they leave a choice open, the docstring of the function says which
one was made. Nothing here looks at arguments: they are carried.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from msgspec import UNSET, Raw

from converter import chat, ids, reasoning, responses, settings
from converter.options import Options
from converter.outcome import Account
from converter.reading import kind, says_nothing, text_of
from converter.tools import Tools

NULL: Final = Raw(b"null")


class Context:
    """What the functions of one record share: the account, the options, where the messages stand, ids in use."""

    __slots__ = ("account", "call_ids", "left_out", "legacy", "options", "places", "root", "turns")

    def __init__(self, account: Account, options: Options, root: str, left_out: set[str]) -> None:
        self.turns: list[int] = []
        self.places: list[str] | None = None
        self.account = account
        self.options = options
        self.root = root
        self.left_out = left_out
        self.call_ids = ids.CallIds()
        self.legacy = 0

    def path(self, at: int, rest: str = "") -> str:
        """The pointer to the message at this position, or to a part of it."""
        return f"{self.root}/{at}{rest}" if at >= 0 else f"{self.root}{rest}"

    def drop(self, message: Any, names: tuple[str, ...], values: tuple[Any, ...], at: int) -> None:
        """Name the fields of a message that have no place in an item."""
        for name, value in zip(names, values, strict=True):
            if value is UNSET:
                continue
            # A training weight of 0 says "not this one"; elsewhere a zero says nothing.
            if not says_nothing(value) or (name == "weight" and kind(value) == "a number"):
                self.account.notice("dropped", self.path(at, f"/{name}"))


Items = list[Any]
CALLS: Final = (responses.FunctionCall, responses.CustomToolCall)


def _text(part: chat.TextPart, path: str, context: Context) -> Any:
    _part_extras(part, path, context)
    return responses.InputText(part.text)


def _image(part: chat.ImagePart, path: str, context: Context) -> Any:
    _part_extras(part, path, context)
    detail = part.image_url.detail
    if detail not in ("low", "high", "auto", None, UNSET) and context.options.target != "openai":
        context.account.notice("dropped", f"{path}/image_url/detail")
        detail = UNSET
    return responses.InputImage(part.image_url.url, UNSET if detail is None else detail)


def _file(part: chat.FilePart, path: str, context: Context) -> Any:
    _part_extras(part, path, context)
    file = part.file
    openai = context.options.target == "openai"
    if file.file_id and not openai:
        if not context.account.refuse(
            "unsupported_content",
            f"{path}/file/file_id",
            "a file known by its id alone stands at its provider (--target openai keeps the id)",
        ):
            return None
        return responses.InputFile(file.filename or UNSET, UNSET, file.file_data or UNSET) if file.file_data else None
    return responses.InputFile(
        file.filename or UNSET, UNSET, UNSET if file.file_data is None else file.file_data, file.file_id or UNSET
    )


def _audio(part: chat.AudioPart, path: str, context: Context) -> Any:
    if context.options.target == "openai":
        _part_extras(part, path, context)
        return responses.InputAudio(part.input_audio)
    context.account.refuse(
        "unsupported_content",
        path,
        "an audio part, which Open Responses does not have (--target openai keeps it, "
        "--allow unsupported_content leaves it out)",
    )
    return None


def _refusal(part: chat.RefusalPart, path: str, context: Context) -> Any:
    return responses.Refusal(part.refusal)


def _said(part: chat.TextPart, path: str, context: Context) -> Any:
    _part_extras(part, path, context)
    return responses.OutputText(part.text)


def _misplaced(part: Any, path: str, context: Context) -> Any:
    context.account.refuse(
        "unsupported_content",
        path,
        "a part that a message of this role cannot hold (--allow unsupported_content leaves it out)",
    )
    return None


def _part_extras(part: Any, path: str, context: Context) -> None:
    for name in ("cache_control", "prompt_cache_breakpoint"):
        value = getattr(part, name)
        if value is not UNSET and not says_nothing(value):
            context.account.notice("dropped", f"{path}/{name}")


def _shown(part: chat.ImagePart, path: str, context: Context) -> Any:
    context.account.notice("odd", path, "an image in a Chat tool message")
    return _image(part, path, context)


PartTable = dict[type, Callable[[Any, str, Context], Any]]

USER_PARTS: Final[PartTable] = {
    chat.TextPart: _text,
    chat.ImagePart: _image,
    chat.FilePart: _file,
    chat.AudioPart: _audio,
    chat.RefusalPart: _misplaced,
}
SYSTEM_PARTS: Final[PartTable] = {**dict.fromkeys(USER_PARTS, _misplaced), chat.TextPart: _text}
ASSISTANT_PARTS: Final[PartTable] = {
    **dict.fromkeys(USER_PARTS, _misplaced),
    chat.TextPart: _said,
    chat.RefusalPart: _refusal,
}
TOOL_PARTS: Final[PartTable] = {**USER_PARTS, chat.ImagePart: _shown}


def _content(content: Any, table: PartTable, path: str, context: Context) -> Any:
    """A string stays a string, parts stay parts."""
    if type(content) is str:
        return content
    converted = (table[type(part)](part, f"{path}/{n}", context) for n, part in enumerate(content))
    return [part for part in converted if part is not None]


_MESSAGE_EXTRAS: Final = ("name", "cache_control")
_message_extras: Final = attrgetter(*_MESSAGE_EXTRAS)
_NO_MESSAGE_EXTRAS: Final = (UNSET, UNSET)

ASSISTANT_EXTRAS: Final = ("audio", "name", "prefix", "cache_control", "weight")
assistant_extras: Final = attrgetter(*ASSISTANT_EXTRAS, *reasoning.FIELDS, "annotations", "refusal", "function_call")
_NO_ASSISTANT_EXTRAS: Final = (UNSET,) * 11


def system(message: chat.SystemMessage, at: int, items: Items, context: Context) -> None:
    """A system message stays an item at its own place."""
    _plain("system", message, SYSTEM_PARTS, at, items, context)


def developer(message: chat.DeveloperMessage, at: int, items: Items, context: Context) -> None:
    """A developer message stays one: models weigh the two roles differently."""
    _plain("developer", message, SYSTEM_PARTS, at, items, context)


def user(message: chat.UserMessage, at: int, items: Items, context: Context) -> None:
    """A user message."""
    _plain("user", message, USER_PARTS, at, items, context)


def _plain(role: Any, message: Any, table: PartTable, at: int, items: Items, context: Context) -> None:
    content = message.content
    if type(content) is not str:
        content = _content(content, table, context.path(at, "/content"), context)
    extras = _message_extras(message)
    if extras != _NO_MESSAGE_EXTRAS:
        context.drop(message, _MESSAGE_EXTRAS, extras, at)
    items.append(responses.Message(role, content))


def assistant(message: chat.AssistantMessage, at: int, items: Items, context: Context) -> None:
    """One turn: reasoning, then the message where there is text or a refusal, then the calls.

    An assistant message without text or calls becomes an empty message, so that the turn stays a turn.
    """
    refusal = annotations = None
    call = message.function_call
    if items and type(items[-1]) in CALLS:
        context.turns.append(len(items))  # items alone cannot tell this from text behind calls of one turn
    extras = assistant_extras(message)
    if extras != _NO_ASSISTANT_EXTRAS:
        context.drop(message, ASSISTANT_EXTRAS, extras[:5], at)
        items += reasoning.in_history(message, context.path(at), context.account, context.options)
        refusal, annotations = message.refusal or None, message.annotations or None
    content = message.content
    calls = message.tool_calls
    if content or refusal is not None:
        items.append(_assistant_item(content, refusal, annotations, at, context))
    elif not calls and not call:
        items.append(responses.Message("assistant", "" if type(content) is not list else []))
    elif items and type(items[-1]) is responses.Message and items[-1].role == "assistant":
        context.account.notice(
            "joined", context.path(at), "the calls follow an assistant message and become one turn with it"
        )
    if calls:
        for number, one in enumerate(calls):
            TOOL_CALL_BY_TYPE[type(one)](one, f"/tool_calls/{number}", at, items, context)
    if call:
        legacy_call(call, at, items, context)


def _assistant_item(content: Any, refusal: str | None, annotations: Any, at: int, context: Context) -> Any:
    if refusal is None and annotations is None:
        if type(content) is not str:
            content = _content(content, ASSISTANT_PARTS, context.path(at, "/content"), context)
        return responses.Message("assistant", content)
    parts = spoken_parts(content, annotations, at, context)
    if refusal is not None:
        parts.append(responses.Refusal(refusal))
    return responses.Message("assistant", parts)


def spoken_parts(content: Any, annotations: Any, at: int, context: Context) -> list[Any]:
    """Texts as output parts; annotations go to the text that they index, which must be the only one."""
    if isinstance(content, str):
        parts: list[Any] = [responses.OutputText(content)] if content else []
    else:
        parts = _content(content or [], ASSISTANT_PARTS, context.path(at, "/content"), context)
    texts = [part for part in parts if type(part) is responses.OutputText]
    if annotations and len(texts) == 1:
        texts[0].annotations = [_citation(one) for one in annotations]
    elif annotations:
        context.account.notice("dropped", context.path(at, "/annotations"), "no single text that they could index")
    return parts


def _citation(annotation: chat.Annotation) -> responses.UrlCitation:
    one = annotation.url_citation
    return responses.UrlCitation(one.start_index, one.end_index, one.url, one.title)


def function_call(call: chat.FunctionToolCall, place: str, at: int, items: Items, context: Context) -> None:
    """A call: its id becomes ``call_id``, its arguments are carried."""
    if call.extra_content is not UNSET or call.cache_control is not UNSET:
        for name in ("extra_content", "cache_control"):
            if (value := getattr(call, name)) is not UNSET and not says_nothing(value):
                context.account.notice("dropped", context.path(at, f"{place}/{name}"))
    function = call.function
    items.append(
        responses.FunctionCall(
            id=context.call_ids.item(call.id),
            name=function.name,
            call_id=call.id,
            status="completed",
            arguments=function.arguments,
        )
    )


def custom_call(call: chat.CustomToolCall, place: str, at: int, items: Items, context: Context) -> None:
    """A custom tool call is OpenAI's own item; the core has no place for it."""
    if context.options.target == "openai":
        items.append(
            responses.CustomToolCall(
                call.custom.name, call.id, call.custom.input, context.call_ids.item(call.id), "completed"
            )
        )
    elif context.account.refuse(
        "unsupported_item",
        context.path(at, place),
        "a custom tool call, which is outside the portable set (--target openai keeps it)",
    ):
        context.left_out.add(call.id)


def legacy_call(call: chat.Function, at: int, items: Items, context: Context) -> None:
    """A legacy ``function_call``, which has no id: one is made from the record."""
    call_id = ids.legacy_call_id(call.name, context.legacy)
    context.legacy += 1
    context.account.notice("filled", context.path(at, "/function_call"), "call_id: a legacy function_call has none")
    items.append(
        responses.FunctionCall(
            id=context.call_ids.item(call_id),
            name=call.name,
            call_id=call_id,
            status="completed",
            arguments=call.arguments,
        )
    )


def tool(message: chat.ToolMessage, at: int, items: Items, context: Context) -> None:
    """The output of a call: text stays text, parts stay parts."""
    call_id = message.tool_call_id
    if call_id in context.left_out and _name_of(call_id, items) is None:
        context.account.notice("allowed", context.path(at), "the output of a call that was left out")
        return
    content = message.content
    custom = context.options.target == "openai" and _is_custom(call_id, items)
    if type(content) is not str:
        content = _content(content, TOOL_PARTS, context.path(at, "/content"), context)
    extras = _message_extras(message)
    if extras != _NO_MESSAGE_EXTRAS:
        if extras[0] is not UNSET and (name := text_of(extras[0])) is not None and name == _name_of(call_id, items):
            context.account.notice("echo", context.path(at, "/name"), "the name of the call that it answers")
            extras = (UNSET, extras[1])
        context.drop(message, _MESSAGE_EXTRAS, extras, at)
    items.append(
        responses.CustomToolCallOutput(call_id, content) if custom else responses.FunctionCallOutput(call_id, content)
    )


def _name_of(call_id: str, items: Items) -> str | None:
    """The name of the nearest earlier call with this id."""
    for item in reversed(items):
        if type(item) in CALLS and item.call_id == call_id:
            name: str = item.name
            return name
    return None


def _is_custom(call_id: str, items: Items) -> bool:
    for item in reversed(items):
        if type(item) in CALLS and item.call_id == call_id:
            return type(item) is responses.CustomToolCall
    return False


def function(message: chat.FunctionMessage, at: int, items: Items, context: Context) -> None:
    """The output of a legacy call: of the nearest earlier unanswered call of that name."""
    answered = {item.call_id for item in items if type(item) is responses.FunctionCallOutput}
    call_id = next(
        (
            item.call_id
            for item in reversed(items)
            if type(item) is responses.FunctionCall and item.name == message.name and item.call_id not in answered
        ),
        None,
    )
    if call_id is None:
        context.account.refuse(
            "orphan_output", context.path(at), "a function message whose name no earlier unanswered call bears"
        )
        return
    content = message.content
    if content is None:
        content = ""
    elif type(content) is not str:
        content = _content(content, TOOL_PARTS, context.path(at, "/content"), context)
    items.append(responses.FunctionCallOutput(call_id, content))


TOOL_CALL_BY_TYPE: Final[dict[type, Callable[[Any, str, int, Items, Context], None]]] = {
    chat.FunctionToolCall: function_call,
    chat.CustomToolCall: custom_call,
}

ITEM_BY_ROLE: Final[dict[type, Callable[[Any, int, Items, Context], None]]] = {
    chat.SystemMessage: system,
    chat.DeveloperMessage: developer,
    chat.UserMessage: user,
    chat.AssistantMessage: assistant,
    chat.ToolMessage: tool,
    chat.FunctionMessage: function,
}


def messages(body: list[Any], context: Context) -> Items:
    """A message list becomes an item list."""
    items: Items = []
    for at, message in enumerate(body):
        ITEM_BY_ROLE[type(message)](message, at, items, context)
    return items


_NOT_SETTINGS: Final = frozenset({"messages", "tools", "functions"})
_SETTINGS: Final = tuple(name for name in chat.Request.__struct_fields__ if name not in _NOT_SETTINGS)
_settings: Final = attrgetter(*_SETTINGS)


def request(body: chat.Request, tools: Tools, context: Context) -> responses.Request:
    """A request body. An absent ``store`` means false here and true there, so it is written."""
    items = messages(body.messages, context)
    source = {name: value for name, value in zip(_SETTINGS, _settings(body), strict=True) if value is not UNSET}
    draft = settings.Draft(source, context.account, context.options, tools=tools.written is not UNSET)
    settings.convert(source, settings.TO_RESPONSES, draft)
    fields = draft.fields
    fields.setdefault("store", settings.FALSE)
    return responses.Request(input=items, tools=tools.written, **fields)


CHAT_FIELDS: Final = {"arguments": "/function/arguments", "name": "/function/name", "call_id": "/id"}
LEGACY_FIELDS: Final = {"arguments": "/arguments", "name": "/name"}


def place(body: list[Any], context: Context, key: int, field: str) -> str:
    """The pointer to where an item of `messages` stood. Asked for only when the gate has something to say."""
    if context.places is None:
        context.places = []
        again = Context(Account(context.account.allow), context.options, context.root, set(context.left_out))
        items: Items = []
        for at, message in enumerate(body):
            before = len(items)
            ITEM_BY_ROLE[type(message)](message, at, items, again)
            context.places += item_places(message, context.path(at), items[before:])
    return field_of(context.places[key], field)


def field_of(place: str, field: str) -> str:
    """A call's field, by the name it has in an item, as a pointer into a Chat message."""
    return place + (LEGACY_FIELDS if place.endswith("/function_call") else CHAT_FIELDS).get(field, "")


def item_places(message: Any, place: str, made: Items) -> list[str]:
    """Where each of the items stood that one message became."""
    calls = iter(
        [
            f"{place}/tool_calls/{number}"
            for number, call in enumerate(getattr(message, "tool_calls", None) or [])
            if type(call) is chat.FunctionToolCall
        ]
    )
    return [next(calls, f"{place}/function_call") if type(item) is responses.FunctionCall else place for item in made]
