"""Turns: the one stateful step on the way to Chat. Items are single; a Chat message is a whole turn."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, Raw

from converter import chat
from converter.options import Options
from converter.outcome import Account
from converter.reading import encode, text_of

COMPLETED: Final = ("completed", None, UNSET)


class Context:
    """What the functions of one record share: the account, the options, where the items stand."""

    __slots__ = ("account", "left_out", "options", "root")

    def __init__(self, account: Account, options: Options, root: str, left_out: set[str]) -> None:
        self.account = account
        self.options = options
        self.root = root
        self.left_out = left_out

    def path(self, at: int, rest: str = "") -> str:
        """The pointer to the item at this position, or to a part of it."""
        return f"{self.root}/{at}{rest}"


class Turns:
    """Messages being made from items: [assistant message?] and the calls behind it are one turn; an output ends it.

    ``places`` runs beside ``messages``: for each, the position of the item it came from, and those of its calls.
    """

    __slots__ = ("asked", "batch", "context", "lifted", "messages", "open", "places", "thoughts", "unfinished")

    def __init__(self, context: Context) -> None:
        self.context = context
        self.messages: list[Any] = []
        self.places: list[tuple[int, list[int]]] = []
        self.open: chat.AssistantMessage | None = None
        self.batch: chat.AssistantMessage | None = None  # the turn behind which nothing stands but its outputs
        self.asked: dict[str, chat.AssistantMessage] = {}
        self.thoughts: list[tuple[str, int]] = []
        self.lifted: list[tuple[Any, int]] = []
        self.unfinished: set[int] = set()

    def say(self, message: Any, at: int) -> None:
        """A message that is no part of an assistant's turn."""
        self.forget()
        self.end_batch()
        self.open = self.batch = None
        self.messages.append(message)
        self.places.append((at, []))

    def answer(self, message: chat.AssistantMessage, at: int) -> None:
        """An assistant message: it begins a turn, or joins the one whose calls stand before it."""
        turn = self.open
        if turn is None or not turn.tool_calls:
            self._begin(message, at)
            return
        if not message.content and not message.refusal:
            self.context.account.notice("dropped", self.context.path(at), "an empty assistant message")
            return
        self._think(turn)
        _join(turn, message)
        self.context.account.notice("moved", self.context.path(at), "text behind calls of its turn")

    def _begin(self, message: chat.AssistantMessage, at: int) -> None:
        self._think(message)
        self.end_batch()
        self.open = self.batch = message
        self.messages.append(message)
        self.places.append((at, []))

    def call(self, call: Any, at: int) -> None:
        """A call: of the turn that is open, or of a new one."""
        if self.open is None:
            self._begin(chat.AssistantMessage(None), at)
        turn = self.open
        assert turn is not None
        self._think(turn)
        if not turn.tool_calls:
            turn.tool_calls = []
            if turn.content is UNSET:
                turn.content = None
        turn.tool_calls.append(call)
        self.places[-1][1].append(at)
        self.asked[call.id] = turn

    def output(self, message: chat.ToolMessage, at: int, lifted: Any = None) -> None:
        """An output: behind the turn that asked for it, however far that lies back."""
        self.open = None
        turn = self.asked.get(message.tool_call_id)
        end = len(self.messages) if turn is None or turn is self.batch else self._behind(turn)
        if end < len(self.messages):
            self.context.account.notice("moved", self.context.path(at), "an output up to its call")
        self.messages.insert(end, message)
        self.places.insert(end, (at, []))
        if lifted is not None:
            self.lifted.append((lifted, at))

    def end_batch(self) -> None:
        """Media lifted out of outputs goes into user messages behind the whole batch of outputs."""
        for message, at in self.lifted:
            self.messages.append(message)
            self.places.append((at, []))
        self.lifted = []

    def _think(self, turn: chat.AssistantMessage) -> None:
        """Reasoning goes to the message that it led to: a message has one text of it, before all else."""
        if not self.thoughts:
            return
        texts = [text for text, _ in self.thoughts]
        several = [at for _, at in self.thoughts[1:]]
        if turn.reasoning_content is not UNSET:
            texts.insert(0, text_of(turn.reasoning_content) or "")
            several.insert(0, self.thoughts[0][1])
        for at in several:
            self.context.account.notice("joined", self.context.path(at), "several reasoning items of one turn")
        if turn.tool_calls:
            self.context.account.notice("moved", self.context.path(self.thoughts[0][1]), "reasoning behind calls")
        turn.reasoning_content = Raw(encode("".join(texts)))
        self.thoughts = []

    def forget(self) -> None:
        """Reasoning that led to nothing is left out."""
        for _, at in self.thoughts:
            self.context.account.notice("dropped", self.context.path(at), "reasoning that no message follows")
        self.thoughts = []

    def _behind(self, turn: chat.AssistantMessage) -> int:
        """The place behind a turn and the outputs that it already has."""
        end = next(n for n in range(len(self.messages) - 1, -1, -1) if self.messages[n] is turn) + 1
        while end < len(self.messages) and type(self.messages[end]) is chat.ToolMessage:
            end += 1
        return end


def _join(turn: chat.AssistantMessage, message: chat.AssistantMessage) -> None:
    for name in ("content", "refusal"):
        before, after = getattr(turn, name), getattr(message, name)
        if after:
            setattr(turn, name, _joined(before, after) if before else after)
    if message.annotations:
        turn.annotations = [*(turn.annotations or []), *message.annotations]


def _joined(before: Any, after: Any) -> Any:
    if isinstance(before, str) and isinstance(after, str):
        return before + after
    return [*_as_parts(before), *_as_parts(after)]


def _as_parts(content: Any) -> list[Any]:
    return [chat.TextPart(content)] if isinstance(content, str) else content
