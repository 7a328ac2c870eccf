"""Fold the chunks of a streamed Chat completion into the completion that they spell."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

import msgspec

from converter.outcome import Account

Json = dict[str, Any]
Where = Callable[[int], str]

FILLER: Final = frozenset({"obfuscation", "padding", "p"})
"""Random text against traffic analysis (OpenAI, Mistral)."""

KINDS: Final = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
CODE: Final = re.compile(r"[\w.-]{1,64}")
NAME: Final = re.compile(r"[\w.:/-]{1,64}")


def nothing(value: Any) -> bool:
    """Whether a value says nothing."""
    return value is None or value in ("", [], {})


def merge(into: Json, key: str, value: Any) -> None:
    """Set a field of the folded value: objects grow, anything else is replaced, what says nothing is left out."""
    known = into.get(key)
    if isinstance(known, dict) and isinstance(value, dict):
        for name, item in value.items():
            merge(known, name, item)
    elif isinstance(value, dict):
        into[key] = {}
        merge(into, key, value)
        if not into[key]:
            del into[key]
    elif not nothing(value):
        into[key] = value


def error_of(frame: Json) -> str | None:
    """What can be told of a frame that is an error: its code in brackets; None where it is no error."""
    error = frame.get("error")
    if not error and "error" not in (frame.get("object"), frame.get("type")):
        return None
    holder = error if isinstance(error, dict) else frame
    code = next((holder[key] for key in ("code", "type") if holder.get(key) not in (None, "error")), "")
    # a message may quote the user's text; a code does not
    return f" ({code})" if CODE.fullmatch(str(code)) else ""


# ---------------------------------------------------------------- calls


class Named:
    """What a call says under ``function``, ``custom`` or ``function_call``: a name and a text, both in pieces."""

    __slots__ = ("extras", "field", "joined", "name", "pieces", "whole")

    def __init__(self, field: str) -> None:
        self.field = field
        self.name = ""
        self.joined = False
        self.pieces: list[str] = []
        self.whole: Any = None
        self.extras: Json = {}

    def add(self, delta: Json) -> bool:
        """Take the next pieces; false where the arguments do not fit what came before."""
        for key, value in delta.items():
            if key == "name" and isinstance(value, str):
                self._rename(value)
            elif key != self.field:
                merge(self.extras, key, value)
        return self._continue(delta.get(self.field))

    def _rename(self, piece: str) -> None:
        if piece and piece != self.name:
            self.joined = bool(self.name)
            # some clones send the name so far each time, instead of its next piece
            self.name = piece if piece.startswith(self.name) else self.name + piece

    def _continue(self, piece: Any) -> bool:
        if piece is None:
            return True
        if isinstance(piece, str):
            self.pieces.append(piece)
            return not piece or self.whole is None
        # Mistral, Ollama: the arguments are an object, in one piece
        fits = not self.text() and self.whole in (None, piece)
        self.whole = piece
        return fits

    def text(self) -> str:
        """The arguments so far."""
        return "".join(self.pieces)

    def complete(self) -> bool:
        """Whether the arguments so far are one whole value, so that more of them belong to another call."""
        if self.whole is not None:
            return True
        text = self.text().strip()
        if not text.startswith("{") or not text.endswith("}"):
            return False
        try:
            msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return False
        return True

    def value(self) -> Json:
        """The folded object."""
        result: Json = {"name": self.name} if self.name else {}
        if self.whole is not None:
            result[self.field] = self.whole
        elif self.pieces:
            result[self.field] = self.text()
        return {**result, **self.extras}


class Call:
    """One entry of ``tool_calls`` while it is spelled."""

    __slots__ = ("extras", "guessed", "id", "index", "named", "new_ids", "type")

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id: Any = None
        self.type: Any = None
        self.named: dict[str, Named] = {}
        self.extras: Json = {}
        self.guessed = False
        self.new_ids = False

    def add(self, piece: Json) -> bool:
        """Take a piece; false where its arguments do not fit. Ids, types and names are set once: clones repeat them."""
        fits = True
        for key, value in piece.items():
            if key == "id":
                self.new_ids = self.new_ids or bool(value and self.id and value != self.id)
                self.id = self.id or value
            elif key == "type":
                self.type = self.type or value
            elif key in ("function", "custom") and isinstance(value, dict):
                named = self.named.setdefault(key, Named("arguments" if key == "function" else "input"))
                fits = named.add(value) and fits
            elif key != "index":  # it numbers the pieces of a stream, and has no place in a message
                merge(self.extras, key, value)
        return fits

    def spells(self) -> Named:
        """The name and arguments, whatever the kind of call."""
        return next(iter(self.named.values()), Named("arguments"))

    def value(self) -> Json:
        """The folded call; what was never sent is not made up."""
        head = {key: value for key, value in (("id", self.id), ("type", self.type)) if value}
        return {**head, **{key: named.value() for key, named in self.named.items()}, **self.extras}

    def notices(self, account: Account, path: str) -> None:
        """Say where the pieces had to be put together by guess."""
        if self.guessed:
            account.notice("odd", path, "pieces of a tool call bear no index: they continue the call opened last")
        if self.new_ids:
            account.notice("odd", f"{path}/id", "pieces of one tool call bear different ids: the first is kept")
        if any(named.joined for named in self.named.values()):
            account.notice("odd", path, "a tool name came in several pieces, which were joined")


class Calls:
    """The tool calls of one choice, and the rules by which a piece finds its call."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def add(self, piece: Json) -> bool:
        """Take a piece; false where its arguments do not fit those before."""
        index = piece.get("index") if isinstance(piece.get("index"), int) else None
        call = self._open(index)
        if call is None or self._another(call, index, piece):
            call = Call(index)
            self.calls.append(call)
        elif index is None and not piece.get("id"):
            call.guessed = True
        return call.add(piece)

    def _open(self, index: int | None) -> Call | None:
        if index is None:
            return self.calls[-1] if self.calls else None
        return next((call for call in reversed(self.calls) if call.index == index), None)

    @staticmethod
    def _another(call: Call, index: int | None, piece: Json) -> bool:
        """Whether a piece opens a new call although one is open: Gemini sends no index, Ollama always 0."""
        said: Json = next((piece[key] for key in ("function", "custom") if isinstance(piece.get(key), dict)), {})
        new_id = bool(piece.get("id")) and bool(call.id) and piece["id"] != call.id
        if new_id:
            # old vLLM makes up a new id for each piece of one call: only a name, or whole arguments, tell a new call
            return index is None or bool(said.get("name")) or call.spells().complete()
        open_name, name = call.spells().name, said.get("name")
        if not name or (piece.get("id") and piece["id"] == call.id):
            return False
        if index is None and open_name and name != open_name:
            return True
        return not nothing(said.get("arguments", said.get("input"))) and call.spells().complete()

    def in_order(self) -> list[Call]:
        """The calls by their index, or as they came where one has none."""
        if all(call.index is not None for call in self.calls):
            return sorted(self.calls, key=lambda call: call.index or 0)
        return self.calls


# ---------------------------------------------------------------- choices


class Choice:
    """One choice while it is spelled."""

    __slots__ = (
        "calls",
        "content",
        "copy",
        "extras",
        "finish",
        "finish_id",
        "late",
        "legacy",
        "logprobs",
        "message",
        "role",
        "texts",
    )

    def __init__(self) -> None:
        self.role: Any = None
        self.content: list[str | Json] = []
        self.texts: dict[str, list[str]] = {}
        self.calls = Calls()
        self.legacy: Named | None = None
        self.message: Json = {}
        self.logprobs: Json = {}
        self.finish: Any = None
        self.finish_id: Any = None
        self.late = False
        self.copy: Json = {}
        self.extras: Json = {}

    def spelled(self) -> str:
        """The visible text."""
        return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in self.content)

    def begun(self) -> bool:
        """Whether anything came before the end, were it an empty text."""
        said = (
            self.role,
            self.content,
            self.texts,
            self.calls.calls,
            self.legacy,
            self.message,
            self.copy,
            self.extras,
        )
        return any(one is not None and one not in ([], {}) for one in said)

    def _content(self) -> Any:
        if all(isinstance(part, str) for part in self.content):
            return (
                self.spelled() or (None if self.calls.calls or self.legacy or len(self.texts) else "")
                if self.content
                else None
            )
        parts: list[Json] = []
        for part in self.content:
            if not isinstance(part, str):
                parts.append(part)
            elif parts and parts[-1].keys() == {"type", "text"}:
                parts[-1] = {"type": "text", "text": parts[-1]["text"] + part}
            else:
                parts.append({"type": "text", "text": part})
        return parts

    def value(self, index: int) -> Json:
        """The folded choice."""
        message: Json = {"role": self.role or "assistant", "content": self._content()}
        message.update({key: "".join(pieces) for key, pieces in self.texts.items()})
        if self.calls.calls:
            message["tool_calls"] = [call.value() for call in self.calls.in_order()]
        if self.legacy is not None:
            message["function_call"] = self.legacy.value()
        message.update(self.message)
        head: Json = {"index": index, "message": message, "finish_reason": self.finish}
        return {**head, **({"logprobs": self.logprobs} if self.logprobs else {}), **self.extras}


class Completion:
    """A completion while it is spelled."""

    def __init__(self, where: Where, account: Account) -> None:
        self.where = where
        self.account = account
        self.number = 0
        self.id: Any = None
        self.head: Json = {}
        self.usage: Json = {}
        self.choices: dict[int, Choice] = {}

    def wrong(self, path: str, found: Any, expected: str) -> None:
        """Refuse a value of another type than the format has there."""
        kind = KINDS.get(type(found), "a number")
        message = f"frame {self.number + 1}: {kind} at {path}, expected {expected}"
        self.account.refuse("wrong_type", self.where(self.number), message)


def _role(fold: Completion, choice: Choice, value: Any) -> None:
    choice.role = choice.role or value


def _content(fold: Completion, choice: Choice, value: Any) -> None:
    if isinstance(value, str):
        choice.content.append(value)
    elif isinstance(value, list):
        for part in value:
            _part(fold, choice, part)
    else:
        fold.wrong("delta/content", value, "a string or an array of parts")


def _part(fold: Completion, choice: Choice, part: Any) -> None:
    """Mistral: the text is an array of parts, of which `{"type": "thinking", "thinking": [...]}` is reasoning."""
    if not isinstance(part, dict):
        fold.wrong("delta/content", part, "parts that are objects")
    elif isinstance(part.get("text"), str) and part.get("type", "text") == "text" and part.keys() <= {"type", "text"}:
        choice.content.append(part["text"])
    elif part.get("type") == "thinking" and (thought := _thought(part.get("thinking"))) is not None:
        choice.texts.setdefault("reasoning_content", []).append(thought)
    else:
        choice.content.append(part)


def _thought(thinking: Any) -> str | None:
    parts = [{"text": thinking}] if isinstance(thinking, str) else thinking
    if not isinstance(parts, list) or not all(isinstance(p, dict) and isinstance(p.get("text"), str) for p in parts):
        return None
    return "".join(part["text"] for part in parts)


def _text(key: str) -> Callable[[Completion, Choice, Any], None]:
    def text(fold: Completion, choice: Choice, value: Any) -> None:
        if not isinstance(value, str):
            fold.wrong(f"delta/{key}", value, "a string")
        elif value or key in choice.texts:
            choice.texts.setdefault(key, []).append(value)

    return text


def _tool_calls(fold: Completion, choice: Choice, value: Any) -> None:
    if not isinstance(value, list) or not all(isinstance(piece, dict) for piece in value):
        fold.wrong("delta/tool_calls", value, "an array of objects")
        return
    for piece in value:
        if not choice.calls.add(piece):
            fold.wrong("delta/tool_calls", piece, "arguments in strings, or as one object")


def _function_call(fold: Completion, choice: Choice, value: Any) -> None:
    choice.legacy = choice.legacy or Named("arguments")
    if not isinstance(value, dict) or not choice.legacy.add(value):
        fold.wrong("delta/function_call", value, "a name and pieces of arguments")


def _audio(fold: Completion, choice: Choice, value: Any) -> None:
    audio = choice.message.setdefault("audio", {})
    for key, item in value.items() if isinstance(value, dict) else ():
        if key in ("data", "transcript") and isinstance(item, str):
            audio[key] = str(audio.get(key, "")) + item
        else:
            merge(audio, key, item)


def _other(choice: Choice, key: str, value: Any) -> None:
    """Keep a field of another provider's: a list grows, anything else is as it last stood."""
    if not isinstance(value, list) or not isinstance(choice.message.get(key, []), list):
        merge(choice.message, key, value)
        return
    known = choice.message.setdefault(key, [])
    for item in value:
        old = next((one for one in reversed(known) if _continues(one, item)), None)
        if old is not None:
            _extend(old, item)
        elif item not in known:
            known.append(dict(item) if isinstance(item, dict) else item)


def _continues(old: Any, new: Any) -> bool:
    """Whether an entry goes on with an older one: OpenRouter's pieces of reasoning bear its index and type."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return False
    ids = {one["id"] for one in (old, new) if isinstance(one.get("id"), str)}
    numbered = isinstance(new.get("index"), int) or new.get("type") in ("reasoning.text", "reasoning.summary")
    return numbered and len(ids) < 2 and old.get("index") == new.get("index") and old.get("type") == new.get("type")


def _extend(old: Json, new: Json) -> None:
    for name, value in new.items():
        if name in ("text", "summary", "data") and isinstance(value, str) and isinstance(old.get(name), str):
            old[name] += value
        elif not nothing(value):
            old[name] = value


DELTA: Final = MappingProxyType(
    {
        "role": _role,
        "content": _content,
        "refusal": _text("refusal"),
        "reasoning_content": _text("reasoning_content"),
        "reasoning": _text("reasoning"),
        "reasoning_text": _text("reasoning_text"),
        "thinking": _text("thinking"),
        "tool_calls": _tool_calls,
        "function_call": _function_call,
        "audio": _audio,
    }
)
"""What is done with each field of a delta; any other is kept on the message as it last stood."""

ANSWER: Final = ("content", "refusal", "tool_calls", "function_call")


def _delta(fold: Completion, choice: Choice, value: Any) -> None:
    if not isinstance(value, dict):
        fold.wrong("delta", value, "an object")
        return
    if choice.finish and not all(nothing(value.get(key)) for key in ANSWER):
        _late(fold, choice)
    for key, item in value.items():
        if item is None or key in FILLER:
            continue
        if key in DELTA:
            DELTA[key](fold, choice, item)
        elif not nothing(item):
            _other(choice, key, item)


def _late(fold: Completion, choice: Choice) -> None:
    """More of an answer after its end: another answer, where the chunk bears another id."""
    choice.late = True
    if fold.id and choice.finish_id and fold.id != choice.finish_id:
        message = (
            f"frame {fold.number + 1} begins another answer after the first has finished (give each its own record)"
        )
        fold.account.refuse("stream_conflict", fold.where(fold.number), message)


def _finish(fold: Completion, choice: Choice, value: Any) -> None:
    if value:
        choice.finish, choice.finish_id = value, fold.id


def _logprobs(fold: Completion, choice: Choice, value: Any) -> None:
    for key, item in value.items() if isinstance(value, dict) else ():
        known = choice.logprobs.get(key)
        if isinstance(known, list) and isinstance(item, list):
            known.extend(item)
        elif item is not None:
            choice.logprobs[key] = list(item) if isinstance(item, list) else item


def _usage(fold: Completion, choice: Choice, value: Any) -> None:
    """Moonshot counts in the choice."""
    _count(fold, value)


CHOICE: Final = MappingProxyType({"delta": _delta, "finish_reason": _finish, "logprobs": _logprobs, "usage": _usage})
"""What is done with each field of a choice in a chunk; any other is kept on the choice as it last stood."""


def _choice(fold: Completion, value: Any) -> None:
    if not isinstance(value, dict):
        fold.wrong("choices", value, "an array of objects")
        return
    if "text" in value and "delta" not in value and "message" not in value:
        message = "choices with a text and no delta: chunks of the old text completions"
        fold.account.refuse("unknown_shape", "", message)
        return
    index = value.get("index")
    choice = fold.choices.setdefault(index if isinstance(index, int) else 0, Choice())
    _copies(choice, value)
    for key, item in value.items():
        if item is None or key in ("index", "message", "text"):
            continue
        if key in CHOICE:
            CHOICE[key](fold, choice, item)
        else:
            merge(choice.extras, key, item)


def _copies(choice: Choice, value: Json) -> None:
    """Writer and Perplexity send the delta, or the answer so far, as a message too; Together the text beside it."""
    delta, message, text = value.get("delta"), value.get("message"), value.get("text")
    if isinstance(message, dict) and message != delta:
        choice.copy = message
    if text and (not isinstance(delta, dict) or delta.get("content") != text):
        merge(choice.extras, "text", text)


# ---------------------------------------------------------------- chunks


def _count(fold: Completion, value: Any) -> None:
    """The last count holds: some servers count in each chunk. One of nothing but zeros replaces none."""
    if isinstance(value, dict) and (not fold.usage or any(value.values())):
        fold.usage = value


def _choices(fold: Completion, value: Any) -> None:
    if not isinstance(value, list):
        fold.wrong("choices", value, "an array")
        return
    for item in value:
        _choice(fold, item)


def _chunk(fold: Completion, chunk: Json) -> None:
    fold.id = chunk.get("id")
    for key, value in chunk.items():
        if key == "choices" and value is not None:
            _choices(fold, value)
        elif key == "usage":
            _count(fold, value)
        elif key in ("id", "created", "model", "system_fingerprint", "service_tier"):
            fold.head[key] = fold.head.get(key) or value
        elif key not in FILLER and key not in ("object", "choices"):
            merge(fold.head, key, value)


def _broken(fold: Completion, chunk: Json, total: int) -> None:
    choices = chunk.get("choices")
    inner = [one for one in choices if isinstance(one, dict)] if isinstance(choices, list) else []
    code = next((told for one in (chunk, *inner) if (told := error_of(one)) is not None), None)
    if code is not None:
        message = f"frame {fold.number + 1} of {total} is an error{code}: the answer was never finished"
        fold.account.refuse("not_finished", fold.where(fold.number), message)


def fold_chunks(chunks: list[Json], done: bool, where: Where, account: Account) -> Json | None:
    """The completion that the chunks spell; ``done`` says that the recording holds the end of the stream."""
    fold = Completion(where, account)
    before = len(account.reasons)
    for fold.number, chunk in enumerate(chunks):
        _broken(fold, chunk, len(chunks))
        _chunk(fold, chunk)
    if len(account.reasons) == before:
        _end(fold, done)
    head = {key: value for key, value in fold.head.items() if not nothing(value)}
    groq = fold.head.get("x_groq")  # Groq counted here, before it did at the top
    count = fold.usage or (groq.get("usage") if isinstance(groq, dict) else None)
    choices = [choice.value(index) for index, choice in sorted(fold.choices.items())]
    return {"object": "chat.completion", **head, "choices": choices, **({"usage": count} if count else {})}


ONLY_THE_END: Final = (
    "only the end of an answer, with nothing said before it; are the chunks of several streams mixed in one file "
    "(sort its lines by their id)?"
)


def _end(fold: Completion, done: bool) -> None:
    if not fold.choices:
        fold.account.refuse("not_finished", fold.where(fold.number), "the stream holds no choice at all")
    for position, (_, choice) in enumerate(sorted(fold.choices.items())):
        path = f"/choices/{position}"
        for number, call in enumerate(choice.calls.in_order()):
            call.notices(fold.account, f"{path}/message/tool_calls/{number}")
        if choice.legacy is not None and choice.legacy.joined:
            fold.account.notice("odd", f"{path}/message/function_call", "a function name came in several pieces")
        if choice.late:
            fold.account.notice("odd", f"{path}/message", "the answer goes on after its finish_reason")
        if choice.finish and not choice.begun():
            fold.account.refuse("not_finished", fold.where(fold.number), ONLY_THE_END)
        _settle_copy(fold, choice, path)
        _settle_finish(fold, choice, path, done)


def _settle_copy(fold: Completion, choice: Choice, path: str) -> None:
    """Compare the answer with the message that stood beside the last delta, if one did."""
    text, spelled = choice.copy.get("content"), choice.spelled()
    if not spelled and not choice.texts and not choice.calls.calls and not choice.legacy:
        _delta(fold, choice, choice.copy)
        return
    if isinstance(text, str) and text and text != spelled:
        message = "the message beside the deltas holds another text"
        fold.account.refuse("stream_conflict", f"{path}/message/content", message)
    for key, item in choice.copy.items():
        if key not in DELTA and not nothing(item):
            choice.message.setdefault(key, item)


def _settle_finish(fold: Completion, choice: Choice, path: str, done: bool) -> None:
    if choice.finish:
        return
    if not done:
        message = (
            f"the stream ends after frame {fold.number + 1} without a finish_reason or [DONE]: the answer was cut off"
        )
        fold.account.refuse("not_finished", fold.where(fold.number), message)
        return
    # the server said [DONE], so nothing is missing but the word for it
    choice.finish = "tool_calls" if choice.calls.calls else "function_call" if choice.legacy else "stop"
    fold.account.notice("filled", f"{path}/finish_reason", "the stream ended with [DONE] and without a finish_reason")
