"""Chat Completions structs become Open Responses structs: one function a message role or part, in tables at the end.

The mapping follows the two published schemas; where they leave a choice open, the docstring of the function says which
one was made. Nothing here looks at arguments: they are carried.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from msgspec import UNSET, Raw, UnsetType

from converter import chat, ids, reasoning, responses
from converter.options import Options
from converter.outcome import Account
from converter.reading import kind, says_nothing, text_of

NULL: Final = Raw(b"null")
OPENAI_KEEPS: Final = "--target openai keeps it"


class Context:
    """What the functions of one record share: the account, the options, where the messages stand, ids in use.

    ``turns`` are the positions of items at which a turn began though the items do not show it; ``places`` the pointers
    to where the items stood, found only when they are asked for. ``left_out`` grows; what it held before the first
    message is ``left_out_before``. ``batch`` holds the ids of the calls of the last turn, as the way back will see it;
    ``open`` says that it may still get calls and words.
    """

    turns: tuple[int, ...] = ()
    open: bool = False
    places: list[str] | None = None
    legacy: int = 0
    looked: int = 0
    unlisted: int = 0  # items whose ids are not among `item_ids`

    def __init__(self, account: Account, options: Options, root: str, left_out: set[str]) -> None:
        self.account = account
        self.options = options
        self.root = root
        self.left_out = left_out
        self.left_out_before = frozenset(left_out)
        self.item_ids: set[str] = set()
        self.calls: dict[str, Any] = {}
        self.batch: set[str] = set()

    def path(self, at: int, rest: str = "") -> str:
        """The pointer to the message at this position, or to a part of it."""
        return f"{self.root}/{at}{rest}" if at >= 0 else f"{self.root}{rest}"

    def call_of(self, call_id: str, items: Items) -> Any:
        """The nearest earlier call with this id, or None. Each item is looked at once, however often this is asked."""
        for item in items[self.looked :]:
            if item.__class__ in CALLS:
                self.calls[item.call_id] = item
        self.looked = len(items)
        return self.calls.get(call_id)

    def item_id(self, call_id: str) -> str:
        """The id of the next item with this call id. A call id may come again in one record; an item id never does."""
        made = item_id(call_id)
        number = len(self.item_ids) + self.unlisted
        while made in self.item_ids:
            made = f"fc_{ids.digest(call_id, str(number))}"
            number += 1
        self.item_ids.add(made)
        return made

    def drop(self, message: Any, names: tuple[str, ...], values: tuple[Any, ...], at: int) -> None:
        """Name the fields of a message that have no place in an item."""
        for name, value in zip(names, values, strict=True):
            if value is not UNSET and not says_nothing(value):
                self.account.notice("dropped", self.path(at, f"/{name}"))


def item_id(call_id: str) -> str:
    """The id of the first item with this call id."""
    return f"fc_{call_id}" if _fits(call_id) is not None else f"fc_{ids.digest(call_id)}"


Items = list[Any]
_fits: Final = ids.PLAIN.fullmatch
CALLS: Final = frozenset({responses.OutputFunctionCall, responses.CustomToolCall})

# Looked up once, not once a message.
Message: Final = responses.Message
Call: Final = responses.OutputFunctionCall
Output: Final = responses.FunctionCallOutput


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
    file_id, file_url = file.file_id or UNSET, _url(file.file_url, path, context)
    if not (file.file_data or file_id or file_url):
        context.account.refuse(
            "unsupported_content",
            path,
            "a file without data, id or URL, so there is nothing in it (--allow unsupported_content leaves it out)",
        )
        return None
    if file_id and context.options.target != "openai":
        if not (file.file_data or file_url):
            context.account.refuse(
                "unsupported_content",
                f"{path}/file/file_id",
                "a file known by its id alone stands at its provider (--target openai keeps the id)",
            )
            return None
        context.account.notice("dropped", f"{path}/file/file_id", OPENAI_KEEPS)
        file_id = UNSET
    return responses.InputFile(
        file.filename or UNSET, file_url, UNSET if file.file_data is None else file.file_data, file_id
    )


def _url(value: Raw | UnsetType, path: str, context: Context) -> str | UnsetType:
    """The URL of a file, which no envelope but that of some gateways has."""
    if value is UNSET or says_nothing(value):
        return UNSET
    if (url := text_of(value)) is None:
        context.account.notice("dropped", f"{path}/file/file_url")
        return UNSET
    context.account.notice("odd", f"{path}/file/file_url", "a file's URL, for which there is no way back")
    return url


def _document(part: chat.DocumentPart, path: str, context: Context) -> Any:
    _part_extras(part, path, context)
    context.account.notice("odd", path, "Mistral's document_url: the way back gives a file part, where it can")
    data = part.document_url.startswith("data:")
    return responses.InputFile(
        part.document_name or UNSET,
        UNSET if data else part.document_url,
        part.document_url if data else UNSET,
    )


def _audio(part: chat.AudioPart, path: str, context: Context) -> Any:
    if context.options.target == "openai":
        _part_extras(part, path, context)
        if (found := kind(part.input_audio)) != "an object":
            context.account.refuse("wrong_type", f"{path}/input_audio", f"{found}, expected an object")
            return None
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
    chat.DocumentPart: _document,
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
    """A list of parts: parts stay parts."""
    converted = (table[type(part)](part, f"{path}/{n}", context) for n, part in enumerate(content))
    return [part for part in converted if part is not None]


_MESSAGE_EXTRAS: Final = ("name", "cache_control")
_message_extras: Final = attrgetter(*_MESSAGE_EXTRAS)

ASSISTANT_EXTRAS: Final = ("audio", "name", "prefix", "cache_control", "weight")
assistant_extras: Final = attrgetter(*ASSISTANT_EXTRAS, *reasoning.FIELDS, "annotations", "refusal", "function_call")
NO_ASSISTANT_EXTRAS: Final = (UNSET,) * 11


def system(message: chat.SystemMessage, at: int, items: Items, context: Context) -> None:
    """A system message stays an item at its own place."""
    items.append(Message("system", _plain(message, SYSTEM_PARTS, at, context)))


def developer(message: chat.DeveloperMessage, at: int, items: Items, context: Context) -> None:
    """A developer message stays one: models weigh the two roles differently."""
    items.append(Message("developer", _plain(message, SYSTEM_PARTS, at, context)))


def user(message: chat.UserMessage, at: int, items: Items, context: Context) -> None:
    """A user message."""
    items.append(Message("user", _plain(message, USER_PARTS, at, context)))


def _plain(message: Any, table: PartTable, at: int, context: Context) -> Any:
    content = message.content
    context.open = False
    context.batch.clear()
    if message.name is not UNSET or message.cache_control is not UNSET:
        context.drop(message, _MESSAGE_EXTRAS, _message_extras(message), at)
    return content if content.__class__ is str else _content(content, table, context.path(at, "/content"), context)


def assistant(message: chat.AssistantMessage, at: int, items: Items, context: Context) -> None:
    """One turn: reasoning, then the message where there is text or a refusal, then the calls.

    An assistant message without text or calls becomes an empty message, so that the turn stays a turn; but not between
    a call and its output.
    """
    if context.open and context.batch:
        if not _goes_on(message, at, context):
            return
        context.turns += (len(items),)  # items alone cannot tell this from text behind calls of one turn
    elif message.content or message.refusal or not context.open:
        context.batch.clear()
    context.open = True
    content, calls = message.content, message.tool_calls
    if assistant_extras(message) != NO_ASSISTANT_EXTRAS:
        _rich_assistant(message, at, items, context)
    elif content:
        if content.__class__ is not str:
            content = _content(content, ASSISTANT_PARTS, context.path(at, "/content"), context)
        items.append(Message("assistant", content))
    else:
        _wordless(message, at, items, context)
    if calls:
        for number, one in enumerate(calls):
            TOOL_CALL_BY_TYPE[one.__class__](one, number, at, items, context)
    if message.function_call:
        legacy_call(message.function_call, at, items, context)


def _rich_assistant(message: chat.AssistantMessage, at: int, items: Items, context: Context) -> None:
    """A message that holds more than text and calls."""
    drop_extras(message, at, context)
    items += reasoning.in_history(message, context.path(at), context.account, context.options)
    refusal, annotations = message.refusal or None, message.annotations or None
    if message.content or refusal is not None:
        items.append(_assistant_item(message.content, refusal, annotations, at, context))
    else:
        _wordless(message, at, items, context)


def _goes_on(message: chat.AssistantMessage, at: int, context: Context) -> bool:
    """A message behind calls without outputs: items alone tell no turn of its own from it. Whether it says anything."""
    if message.content or message.refusal:
        context.account.notice("moved", context.path(at), "on the way back, text behind calls stands before them")
    elif message.tool_calls or message.function_call:
        context.account.notice("joined", context.path(at), "the calls follow calls and become one turn with them")
    else:
        context.account.notice("dropped", context.path(at), "an empty assistant message")
        return False
    return True


def drop_extras(message: chat.AssistantMessage, at: int, context: Context) -> None:
    """Name what has no place beside the words and calls of a message. An answer that is audio alone is content."""
    extras = assistant_extras(message)[:5]
    worded = message.content or message.refusal or message.tool_calls or message.function_call
    if not worded and extras[0] is not UNSET and not says_nothing(extras[0]):
        sentence = "an answer that is audio alone, which has no place here (--allow unsupported_content leaves it out)"
        context.account.refuse("unsupported_content", context.path(at, "/audio"), sentence)
        extras = (UNSET, *extras[1:])
    context.drop(message, ASSISTANT_EXTRAS, extras, at)


def _wordless(message: chat.AssistantMessage, at: int, items: Items, context: Context) -> None:
    if not message.tool_calls and not message.function_call:
        items.append(Message("assistant", "" if type(message.content) is not list else []))
    elif items and type(items[-1]) is Message and items[-1].role == "assistant":
        context.account.notice(
            "joined", context.path(at), "the calls follow an assistant message and become one turn with it"
        )


def _assistant_item(content: Any, refusal: str | None, annotations: Any, at: int, context: Context) -> Any:
    if refusal is None and annotations is None:
        if type(content) is not str:
            content = _content(content, ASSISTANT_PARTS, context.path(at, "/content"), context)
        return Message("assistant", content)
    parts = spoken_parts(content, annotations, at, context)
    if refusal is not None:
        parts.append(responses.Refusal(refusal))
    return Message("assistant", parts)


def spoken_parts(content: Any, annotations: Any, at: int, context: Context) -> list[Any]:
    """Texts as output parts; annotations go to the text that they index, which must be the only one."""
    if isinstance(content, str):
        parts: list[Any] = [responses.OutputText(content)] if content else []
    else:
        parts = _content(content or [], ASSISTANT_PARTS, context.path(at, "/content"), context)
    texts = [part for part in parts if type(part) is responses.OutputText]
    if annotations and len(texts) == 1:
        texts[0].annotations = [_citation(one) for one in _indexing(annotations, at, context)]
    elif annotations:
        context.account.notice("dropped", context.path(at, "/annotations"), "no single text that they could index")
    return parts


def _indexing(annotations: list[chat.Annotation], at: int, context: Context) -> list[chat.Annotation]:
    """Those whose indices can be: some servers write -1 where they know none."""
    kept = []
    for number, one in enumerate(annotations):
        if min(one.url_citation.start_index, one.url_citation.end_index) >= 0:
            kept.append(one)
        else:
            context.account.notice("dropped", context.path(at, f"/annotations/{number}"), "an index below zero")
    return kept


def _citation(annotation: chat.Annotation) -> responses.UrlCitation:
    one = annotation.url_citation
    return responses.UrlCitation(one.start_index, one.end_index, one.url, one.title)


def function_call(call: chat.FunctionToolCall, number: int, at: int, items: Items, context: Context) -> None:
    """A call: its id becomes ``call_id``, its arguments are carried."""
    if call.extra_content is not UNSET or call.cache_control is not UNSET:
        for name in ("extra_content", "cache_control"):
            if (value := getattr(call, name)) is not UNSET and not says_nothing(value):
                context.account.notice("dropped", context.path(at, f"/tool_calls/{number}/{name}"))
    function, call_id = call.function, call.id
    context.batch.add(call_id)
    items.append(Call(context.item_id(call_id), function.name, call_id, "completed", function.arguments))


def custom_call(call: chat.CustomToolCall, number: int, at: int, items: Items, context: Context) -> None:
    """A custom tool call is OpenAI's own item; the core has no place for it."""
    if context.options.target == "openai":
        context.batch.add(call.id)
        items.append(
            responses.CustomToolCall(
                call.custom.name, call.id, call.custom.input, context.item_id(call.id), "completed"
            )
        )
    else:
        context.account.refuse(
            "unsupported_item",
            context.path(at, f"/tool_calls/{number}"),
            "a custom tool call, which is outside the portable set (--target openai keeps it)",
        )
        context.left_out.add(call.id)


def legacy_call(call: chat.Function, at: int, items: Items, context: Context) -> None:
    """A legacy ``function_call``, which has no id: one is made from the record."""
    call_id = ids.legacy_call_id(call.name, context.legacy)
    context.legacy += 1
    context.account.notice("filled", context.path(at, "/function_call"), "call_id: a legacy function_call has none")
    context.batch.add(call_id)
    items.append(Call(context.item_id(call_id), call.name, call_id, "completed", call.arguments))


def tool(message: chat.ToolMessage, at: int, items: Items, context: Context) -> None:
    """The output of a call: text stays text, parts stay parts."""
    call_id, content = message.tool_call_id, message.content
    if context.left_out and call_id in context.left_out and context.call_of(call_id, items) is None:
        context.account.notice("allowed", context.path(at), "the output of a call that was left out")
        return
    _answers(call_id, at, items, context)
    if content.__class__ is not str:
        content = _content(content, TOOL_PARTS, context.path(at, "/content"), context)
    if message.name is not UNSET or message.cache_control is not UNSET:
        _tool_extras(message, at, items, context)
    if context.options.target == "openai" and type(context.call_of(call_id, items)) is responses.CustomToolCall:
        items.append(responses.CustomToolCallOutput(call_id, content))
    else:
        items.append(Output(call_id, content))


def _answers(call_id: str, at: int, items: Items, context: Context) -> None:
    """An output ends its turn. That of an earlier turn does not stay where it is."""
    context.open = False
    if call_id not in context.batch and context.call_of(call_id, items) is not None:
        context.account.notice("moved", context.path(at), "on the way back, an output stands directly behind its call")


def _tool_extras(message: chat.ToolMessage, at: int, items: Items, context: Context) -> None:
    extras = _message_extras(message)
    call = context.call_of(message.tool_call_id, items)
    if call is not None and extras[0] is not UNSET and text_of(extras[0]) == call.name:
        context.account.notice("echo", context.path(at, "/name"), "the name of the call that it answers")
        extras = (UNSET, extras[1])
    context.drop(message, _MESSAGE_EXTRAS, extras, at)


def function(message: chat.FunctionMessage, at: int, items: Items, context: Context) -> None:
    """The output of a legacy call: of the nearest earlier unanswered call of that name."""
    answered = {item.call_id for item in items if type(item) is Output}
    call_id = next(
        (
            item.call_id
            for item in reversed(items)
            if type(item) is Call and item.name == message.name and item.call_id not in answered
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
    _answers(call_id, at, items, context)
    items.append(Output(call_id, content))


TOOL_CALL_BY_TYPE: Final[dict[type, Callable[[Any, int, int, Items, Context], None]]] = {
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
    table = ITEM_BY_ROLE
    for at, message in enumerate(body):
        table[message.__class__](message, at, items, context)
    return items


CHAT_FIELDS: Final = {"arguments": "/function/arguments", "name": "/function/name", "call_id": "/id"}
LEGACY_FIELDS: Final = {"arguments": "/arguments", "name": "/name"}


def place(body: list[Any], context: Context, key: int, field: str) -> str:
    """The pointer to where an item of `messages` stood. Asked for only when the gate has something to say."""
    if context.places is None:
        context.places = []
        again = Context(Account(context.account.allow), context.options, context.root, set(context.left_out_before))
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
    return [next(calls, f"{place}/function_call") if type(item) is Call else place for item in made]
