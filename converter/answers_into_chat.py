"""A response resource becomes a Chat completion: one choice, with all that the model said in one message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import UNSET, Raw

from converter import chat, ids, into_chat, logprobs, responses, settings, settings_into_chat, usage
from converter.gate import NOT_COMPLETED
from converter.outcome import Account
from converter.reading import elements_of, encode, says_nothing
from converter.turns import COMPLETED, Context, Turns

CALLS: Final = (responses.FunctionCall, responses.CustomToolCall)

FINISH_REASON: Final = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}

ECHO: Final = (
    "previous_response_id",
    "instructions",
    "tools",
    "tool_choice",
    "truncation",
    "parallel_tool_calls",
    "text",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "temperature",
    "reasoning",
    "max_output_tokens",
    "max_tool_calls",
    "store",
    "background",
    "safety_identifier",
    "prompt_cache_key",
    "conversation",
    "prompt",
    "user",
    "prompt_cache_retention",
    "max_messages",
)
"""The fields of a response resource that repeat its request: a completion has no place for them."""


def response(
    body: responses.Response, seed: bytes, context: Context
) -> tuple[chat.Completion, list[int], set[int]] | None:
    """A response resource becomes a completion with one choice. Beside it: where each of its calls stood,
    and which of them were not completed."""
    account = context.account
    if not _finished(body, account):
        return None
    answer = Answer(context)
    for at, item in enumerate(body.output):
        answer.take(item, at)
        if body.status != "incomplete" and type(item) is responses.Message and item.status == "incomplete":
            account.notice("dropped", context.path(at, "/status"), "a message cut off in an answer that is not")
    if body.status == "incomplete" and body.output and isinstance(body.output[-1], CALLS):
        answer.cut()
    elif body.status == "incomplete" and answer.calls:
        sentence = "the answer was cut off behind its calls; in Chat the last of them would look cut off"
        account.refuse("status", "/status", f"{sentence} (--allow status writes it all the same)")
    elif body.status != "incomplete" and body.incomplete_details and body.incomplete_details.reason:
        account.notice("dropped", "/incomplete_details/reason")
    _echo(body, account)
    fields: dict[str, Any] = {}
    source = {name: value for name in ("service_tier", "metadata") if (value := getattr(body, name)) is not UNSET}
    settings.convert(source, settings_into_chat.ROWS, draft := settings.Draft(source, account, context.options))
    fields = {
        name: value for name, value in draft.fields.items() if not (isinstance(value, Raw) and says_nothing(value))
    }
    identity = ids.suffix(body.id, ("resp_", "chatcmpl-")) if body.id else ids.digest(seed.decode("utf-8", "replace"))
    created = ids.seconds(body.created_at, "/created_at", account)
    if not body.model:
        account.notice("filled", "/model", "model: the response names none")
    completion = chat.Completion(
        id=f"chatcmpl-{identity}",
        object="chat.completion",
        created=created,
        model=body.model or "",
        choices=[
            chat.Choice(
                index=0,
                message=answer.message(),
                logprobs=answer.logprobs(),
                finish_reason=_finish_reason(body, answer, account),
            )
        ],
        usage=usage.into_chat(body.usage, account),
        **fields,
    )
    return completion, answer.call_places, answer.unfinished


def _finished(body: responses.Response, account: Account) -> bool:
    if body.error not in (UNSET, FALSE) and not says_nothing(body.error):
        return account.refuse("not_finished", "/error", "the response failed, so there is no whole answer to convert")
    if body.status not in (*COMPLETED, "incomplete"):
        return account.refuse("not_finished", "/status", "the response is neither completed nor incomplete")
    return True


FALSE: Final = Raw(b"false")


def _finish_reason(body: responses.Response, answer: Answer, account: Account) -> str:
    if body.status == "incomplete":
        reason = body.incomplete_details.reason if body.incomplete_details else None
        if reason and reason not in FINISH_REASON:
            account.notice("odd", "/incomplete_details/reason", "an unknown reason, read as length")
        return FINISH_REASON.get(reason or "", "length")
    return "tool_calls" if answer.calls else "stop"


def _echo(body: responses.Response, account: Account) -> None:
    for name in ECHO:
        value = getattr(body, name)
        if value is not UNSET and not says_nothing(value):
            account.notice("echo", f"/{name}")
    for name in ("billing", "moderation"):
        value = getattr(body, name)
        if value is not UNSET and not says_nothing(value):
            account.notice("dropped", f"/{name}")
    if body.completed_at is not UNSET and not says_nothing(body.completed_at):
        account.notice("dropped", "/completed_at")


class Answer:
    """The one message of a completion, being made from the items of a response."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.texts: list[str] = []
        self.refusals: list[str] = []
        self.annotations: list[chat.Annotation] = []
        self.calls: list[Any] = []
        self.call_places: list[int] = []
        self.thoughts: list[str] = []
        self.tokens: list[Raw] = []
        self.several = False
        self.length = 0
        self.unfinished: set[int] = set()

    def take(self, item: Any, at: int) -> None:
        """One item of the output."""
        _ANSWER_BY_TYPE[type(item)](self, item, at)

    def say(self, item: responses.Message, at: int) -> None:
        """A message: its texts and refusals go behind those before it."""
        context = self.context
        path = context.path(at)
        if item.role != "assistant":
            self.trajectory(item, at)
            return
        for name in ("phase", "status"):
            if getattr(item, name) not in (*COMPLETED, "incomplete"):
                context.account.notice("dropped", f"{path}/{name}")
        if self.calls and item.content:
            context.account.notice("moved", path, "text behind calls of its turn")
        parts = [responses.OutputText(item.content)] if isinstance(item.content, str) else item.content
        for number, part in enumerate(parts):
            self._part(part, f"{path}/content/{number}" if parts is item.content else f"{path}/content")

    def _part(self, part: Any, path: str) -> None:
        account = self.context.account
        if type(part) is responses.Refusal:
            if self.refusals:
                account.notice("joined", path, "several refusals of one answer")
            self.refusals.append(part.refusal)
        elif type(part) in into_chat.TEXTS:
            if self.refusals:
                account.notice("moved", path, "text behind a refusal")
            offset = self.length
            self.length += len(part.text)
            if self.texts:
                account.notice("joined", path, "several texts of one answer")
            self.texts.append(part.text)
            if type(part) is responses.OutputText:
                self.annotations += [into_chat.citation(one, offset) for one in part.annotations or []]
                if part.logprobs is not UNSET and not says_nothing(part.logprobs):
                    self._tokens(part.logprobs, f"{path}/logprobs")
        else:
            into_chat.misplaced(part, path, self.context)

    def call(self, item: Any, at: int) -> None:
        """A call, of either kind."""
        context = self.context
        turns = Turns(context)
        into_chat.ITEM_BY_TYPE[type(item)](item, at, turns, context)
        for message in turns.messages:
            self.calls += message.tool_calls
            self.call_places.append(at)
        self.unfinished |= turns.unfinished

    def cut(self) -> None:
        """The answer ended early, in its last call: whatever that says of itself, it is not completed."""
        last = id(self.calls[-1]) if self.calls else None
        if last is not None and last not in self.unfinished:
            self.context.account.refuse("status", "/status", NOT_COMPLETED)
            self.unfinished.add(last)

    def think(self, item: responses.Reasoning, at: int) -> None:
        """Reasoning: as in a history."""
        turns = Turns(self.context)
        into_chat.reasoning(item, at, turns, self.context)
        if turns.thoughts:
            if self.thoughts:
                self.context.account.notice("joined", self.context.path(at), "several reasoning items of one answer")
            if self.texts or self.refusals or self.calls:
                self.context.account.notice("moved", self.context.path(at), "reasoning behind text or calls")
        self.thoughts += [text for text, _ in turns.thoughts]

    def trajectory(self, item: Any, at: int) -> None:
        """A completion is one answer: outputs and other people's messages have no place in it."""
        if self.several:
            return
        self.several = True
        self.context.account.refuse(
            "unsupported_item",
            self.context.path(at),
            "the output holds more than one answer (--at /output converts it as an item list)",
        )

    def opaque(self, item: Any, at: int) -> None:
        """An item that has no counterpart anywhere in Chat."""
        into_chat.ITEM_BY_TYPE[type(item)](item, at, Turns(self.context), self.context)

    def message(self) -> chat.AssistantMessage:
        """The message: OpenAI always sends content and refusal, null or not."""
        return chat.AssistantMessage(
            "".join(self.texts) if self.texts else None,
            "".join(self.refusals) if self.refusals else None,
            self.calls or UNSET,
            annotations=self.annotations or UNSET,
            reasoning_content=Raw(encode("".join(self.thoughts))) if self.thoughts else UNSET,
        )

    def _tokens(self, tokens: Raw, path: str) -> None:
        if logprobs.are_whole(tokens):
            self.tokens += elements_of(tokens)
        else:
            self.context.account.notice("dropped", path, logprobs.NONE)

    def logprobs(self) -> chat.ChoiceLogprobs | None:
        """One list a message: those of its parts, one behind the other."""
        return chat.ChoiceLogprobs(Raw(encode(self.tokens)), Raw(b"null")) if self.tokens else None


_ANSWER_BY_TYPE: Final[dict[type, Callable[[Answer, Any, int], None]]] = {
    responses.Message: Answer.say,
    responses.FunctionCall: Answer.call,
    responses.CustomToolCall: Answer.call,
    responses.Reasoning: Answer.think,
    responses.FunctionCallOutput: Answer.trajectory,
    responses.CustomToolCallOutput: Answer.trajectory,
    responses.Compaction: Answer.opaque,
    responses.ItemReference: Answer.opaque,
}
