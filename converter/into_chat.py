"""Open Responses structs become Chat Completions structs: one function an item type or part, in tables at the end.

Items are single; a Chat message is a whole turn. Grouping them is the one stateful step, and it stands in `Turns`.
Nothing here looks at arguments: they are carried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import UNSET, Raw

from converter import chat, responses
from converter import reasoning as thoughts
from converter.reading import kind, members_of, says_nothing, text_of
from converter.turns import COMPLETED, Context, Turns


def _text(part: Any, path: str, context: Context) -> Any:
    for name in ("annotations", "logprobs", "prompt_cache_breakpoint"):
        value = getattr(part, name, UNSET)
        if value and not (isinstance(value, Raw) and says_nothing(value)):
            context.account.notice("dropped", f"{path}/{name}")
    return chat.TextPart(part.text)


def _image(part: responses.InputImage, path: str, context: Context) -> Any:
    if part.file_id or not part.image_url:
        if part.file_id and part.image_url:
            context.account.notice("dropped", f"{path}/file_id")
        else:
            context.account.refuse(
                "unsupported_content",
                path,
                "an image without a URL or data, which a Chat image part needs "
                "(--allow unsupported_content leaves it out)",
            )
            return None
    assert isinstance(part.image_url, str)
    detail = part.detail or UNSET
    if detail not in DETAILS:
        context.account.notice("dropped", f"{path}/detail")
        detail = UNSET
    return chat.ImagePart(chat.ImageUrl(part.image_url, detail))


DETAILS: Final = ("auto", "low", "high", UNSET)


def _file(part: responses.InputFile, path: str, context: Context) -> Any:
    if part.file_url and part.file_data:
        context.account.notice("dropped", f"{path}/file_url")
    elif part.file_url or not (part.file_data or part.file_id):
        context.account.refuse(
            "unsupported_content",
            path,
            "a file without data, and Chat file parts hold no URL (--allow unsupported_content leaves it out)",
        )
        return None
    return chat.FilePart(chat.File(part.file_data or UNSET, part.file_id or UNSET, part.filename or UNSET))


def _audio(part: responses.InputAudio, path: str, context: Context) -> Any:
    held = members_of(part.input_audio) if kind(part.input_audio) == "an object" else {}
    if text_of(held.get("data")) is None or text_of(held.get("format")) not in AUDIO_FORMATS:
        context.account.refuse(
            "unsupported_content",
            path,
            f"audio without data in {' or '.join(AUDIO_FORMATS)} (--allow unsupported_content leaves it out)",
        )
        return None
    return chat.AudioPart(part.input_audio)


AUDIO_FORMATS: Final = ("wav", "mp3")


def _refusal(part: responses.Refusal, path: str, context: Context) -> Any:
    return chat.RefusalPart(part.refusal)


def misplaced(part: Any, path: str, context: Context) -> Any:
    """A part that has no place where it stands."""
    context.account.refuse(
        "unsupported_content",
        path,
        "a part that a Chat message of this role cannot hold (--allow unsupported_content leaves it out)",
    )
    return None


def _media(part: Any, path: str, context: Context) -> Any:
    """Chat tool messages hold text alone."""
    if "lift-media" in context.options.repair:
        table = {**USER_PARTS, responses.InputVideo: misplaced}
        context.account.notice("repaired", path, "lift-media: media put into a user message behind the outputs")
        return table[type(part)](part, path, context)
    context.account.refuse(
        "unsupported_content",
        path,
        "media in an output, which a Chat tool message cannot hold (--repair lift-media puts it into a user message)",
    )
    return None


PartTable = dict[type, Callable[[Any, str, Context], Any]]

USER_PARTS: Final[PartTable] = {
    responses.InputText: _text,
    responses.OutputText: _text,
    responses.PlainText: _text,
    responses.InputImage: _image,
    responses.InputFile: _file,
    responses.InputAudio: _audio,
    responses.Refusal: misplaced,
    responses.InputVideo: misplaced,
    responses.SummaryText: misplaced,
    responses.ReasoningText: misplaced,
}
TEXTS: Final[PartTable] = dict.fromkeys((responses.InputText, responses.OutputText, responses.PlainText), _text)
SYSTEM_PARTS: Final[PartTable] = {**dict.fromkeys(USER_PARTS, misplaced), **TEXTS}
ASSISTANT_PARTS: Final[PartTable] = {**SYSTEM_PARTS, responses.Refusal: _refusal}
OUTPUT_PARTS: Final[PartTable] = {
    **SYSTEM_PARTS,
    **dict.fromkeys((responses.InputImage, responses.InputFile, responses.InputVideo, responses.InputAudio), _media),
}


def _content(content: Any, table: PartTable, path: str, context: Context) -> Any:
    """Parts stay parts; no parts at all become an empty text, since Chat wants one."""
    converted = (table[type(part)](part, f"{path}/{n}", context) for n, part in enumerate(content))
    return [part for part in converted if part is not None] or ""


_MESSAGE_CLASS: Final[dict[str, tuple[Any, PartTable]]] = {
    "user": (chat.UserMessage, USER_PARTS),
    "system": (chat.SystemMessage, SYSTEM_PARTS),
    "developer": (chat.DeveloperMessage, SYSTEM_PARTS),
}


def message(item: responses.Message, at: int, turns: Turns, context: Context) -> None:
    """A message of any role. Chat has no ``phase``, and no ``status``."""
    if item.phase or item.status not in COMPLETED:
        for name in ("phase", "status"):
            if getattr(item, name) not in COMPLETED:
                context.account.notice("dropped", context.path(at, f"/{name}"))
    if item.role == "assistant":
        turns.answer(_assistant(item, at, context), at)
        return
    cls, table = _MESSAGE_CLASS[item.role]
    content = item.content
    if type(content) is not str:
        content = _content(content, table, context.path(at, "/content"), context)
    turns.say(cls(content), at)


def _assistant(item: responses.Message, at: int, context: Context) -> chat.AssistantMessage:
    """Text and a refusal together stay parts; a refusal alone goes into its field; citations go beside their text."""
    content = item.content
    if type(content) is str:
        return chat.AssistantMessage(content)
    path = context.path(at, "/content")
    if len(content) == 1:
        part = content[0]
        if type(part) is responses.Refusal:
            return chat.AssistantMessage(None, part.refusal)
        if type(part) is responses.OutputText and part.annotations:
            annotations = [citation(one, 0) for one in part.annotations]
            if part.logprobs is not UNSET and not says_nothing(part.logprobs):
                context.account.notice("dropped", f"{path}/0/logprobs")
            return chat.AssistantMessage(part.text, annotations=annotations)
    return chat.AssistantMessage(_content(content, ASSISTANT_PARTS, path, context))


def citation(one: responses.UrlCitation, offset: int) -> chat.Annotation:
    """A citation, its indices moved by the length of the texts joined before its own."""
    return chat.Annotation(chat.UrlCitation(one.start_index + offset, one.end_index + offset, one.url, one.title))


def function_call(item: responses.FunctionCall, at: int, turns: Turns, context: Context) -> None:
    """A call. Chat has no status, so one that is not completed would look as if it were: it is refused here."""
    if item.status not in COMPLETED:
        context.account.refuse(
            "status",
            context.path(at, "/status"),
            "the call is not completed, and Chat could not say so (--allow status writes it all the same)",
        )
    if item.namespace:
        context.account.refuse(
            "unsupported_item",
            context.path(at),
            "a call with a namespace: it changes which tool was called, and Chat has no place for it "
            "(--allow unsupported_item leaves it out)",
        )
        context.left_out.add(item.call_id)
        return
    call = chat.FunctionToolCall(item.call_id, chat.Function(item.name, item.arguments))
    if item.status not in COMPLETED:
        turns.unfinished.add(id(call))  # its status is the first thing to say of it, and the only one
    turns.call(call, at)


def custom_tool_call(item: responses.CustomToolCall, at: int, turns: Turns, context: Context) -> None:
    """OpenAI's own; Chat has an exact counterpart."""
    if context.options.target != "openai":
        context.account.notice("odd", context.path(at), "OpenAI's own item; the way back needs --target openai")
    if item.status not in COMPLETED:
        context.account.refuse(
            "status",
            context.path(at, "/status"),
            "the call is not completed (--allow status writes it all the same)",
        )
    if item.namespace:
        context.account.refuse("unsupported_item", context.path(at, "/namespace"), "a call with a namespace")
    turns.call(chat.CustomToolCall(item.call_id, chat.Custom(item.name, item.input)), at)


def function_call_output(item: responses.FunctionCallOutput, at: int, turns: Turns, context: Context) -> None:
    """An output: text stays text, text parts stay parts; media is refused, or lifted where that is asked for."""
    if item.call_id in context.left_out and item.call_id not in turns.asked:
        context.account.notice("allowed", context.path(at), "the output of a call that was left out")
        return
    if item.status not in COMPLETED:
        context.account.notice("dropped", context.path(at, "/status"))
    content: Any = item.output
    lifted = None
    if type(content) is not str:
        path = context.path(at, "/output")
        parts = [OUTPUT_PARTS[type(part)](part, f"{path}/{n}", context) for n, part in enumerate(content)]
        texts = [part for part in parts if type(part) is chat.TextPart]
        media = [part for part in parts if part is not None and type(part) is not chat.TextPart]
        lifted = chat.UserMessage(media) if media else None
        if not content:
            context.account.notice("joined", path, "an empty list of parts becomes an empty text")
        content = texts or ""
    turns.output(chat.ToolMessage(content, item.call_id), at, lifted)


def reasoning(item: responses.Reasoning, at: int, turns: Turns, context: Context) -> None:
    """Chat has no place for reasoning; servers that do read it want ``reasoning_content`` on the message it led to."""
    text, lost = thoughts.spoken(item, context.options)
    if text:
        turns.thoughts.append((text, at))
        for name in lost:
            context.account.notice("dropped", context.path(at, f"/{name}"), "reasoning")
    else:
        context.account.notice("dropped", context.path(at), "reasoning (--reasoning keep carries it)")


def _unsupported(what: str) -> Callable[[Any, int, Turns, Context], None]:
    def refuse(item: Any, at: int, turns: Turns, context: Context) -> None:
        context.account.refuse("unsupported_item", context.path(at), what)

    return refuse


ITEM_BY_TYPE: Final[dict[type, Callable[[Any, int, Turns, Context], None]]] = {
    responses.Message: message,
    responses.FunctionCall: function_call,
    responses.FunctionCallOutput: function_call_output,
    responses.Reasoning: reasoning,
    responses.CustomToolCall: custom_tool_call,
    responses.CustomToolCallOutput: function_call_output,
    responses.Compaction: _unsupported(
        "a compaction item: its content is opaque and has no Chat form (--allow unsupported_item leaves it out)"
    ),
    responses.ItemReference: _unsupported(
        "an item_reference, which only its provider can resolve (--allow unsupported_item leaves it out)"
    ),
}


def items(body: list[Any], context: Context, turns: Turns) -> list[Any]:
    """An item list becomes a message list."""
    table = ITEM_BY_TYPE
    for at, item in enumerate(body):
        table[type(item)](item, at, turns, context)
    turns.end_batch()
    turns.forget()
    return turns.messages


def conversation(body: responses.Request, context: Context, turns: Turns) -> None:
    """``instructions`` become a leading system message, a string ``input`` one user message."""
    if isinstance(body.instructions, str):
        turns.say(chat.SystemMessage(body.instructions), -1)
    if isinstance(body.input, str):
        turns.say(chat.UserMessage(body.input), -1)
    elif body.input:
        items(body.input, context, turns)
    empty = not turns.messages or not (body.input or body.instructions)
    if empty and not context.account.reasons:
        context.account.refuse("limit", "/input", "an empty conversation; Chat wants at least one message")
