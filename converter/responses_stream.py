"""Fold the events of a streamed Responses answer into the response resource that they spell."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from converter.chat_stream import FILLER, Json, Where, error_of, nothing, word
from converter.outcome import Account

SILENT: Final = frozenset({"keepalive", "ping", "heartbeat", "response.heartbeat"})
"""Events that only keep the connection open."""

ROUTING: Final = frozenset(
    {
        *("type", "sequence_number", "event_id", "response_id", "item_id", "output_index", "content_index"),
        *("summary_index", "annotation_index", "delta", "text", "refusal", "arguments", "input", "code", "name"),
        *("part", "item", "annotation", "response", "logprobs"),
    }
)
"""The fields of events that are read; any other is named in a notice."""

EXACT: Final = ("type", "call_id", "name", "arguments", "input", "text", "refusal")
"""What two tellings of one item may not tell differently. Ids are not among them: Copilot makes new ones each time."""


FILLED: Final = frozenset({*EXACT, "id", "content", "summary", "encrypted_content", "annotations", "logprobs"})
"""What an earlier telling gives where the last one is empty."""


class Slot(Struct, frozen=True):
    """Where a kind of text stands: the type of its item, the list and the part type, the field."""

    item: str
    field: str
    list: str = ""
    part: str = ""

    def index(self, event: Json) -> int:
        """The place of the part in its list."""
        found = event.get("summary_index" if self.list == "summary" else "content_index")
        return found if isinstance(found, int) and 0 <= found < 10_000 else 0


SLOTS: Final = MappingProxyType(
    {
        "response.output_text": Slot("message", "text", "content", "output_text"),
        "response.refusal": Slot("message", "refusal", "content", "refusal"),
        "response.reasoning": Slot("reasoning", "text", "content", "reasoning_text"),
        "response.reasoning_text": Slot("reasoning", "text", "content", "reasoning_text"),  # OpenAI, vLLM, xAI
        "response.reasoning_summary_text": Slot("reasoning", "text", "summary", "summary_text"),
        "response.function_call_arguments": Slot("function_call", "arguments"),
        "response.custom_tool_call_input": Slot("custom_tool_call", "input"),
        "response.mcp_call_arguments": Slot("mcp_call", "arguments"),
        "response.code_interpreter_call_code": Slot("code_interpreter_call", "code"),
    }
)
"""The texts that are spelled in pieces, by the event type without `.delta` or `.done`."""

Key = tuple[str, int, str]


def text_of(value: Json, key: str) -> str:
    """A string field; empty where there is none."""
    found = value.get(key)
    return found if isinstance(found, str) else ""


def list_of(value: Json, key: str) -> list[Any]:
    """A copy of an array field; empty where there is none."""
    found = value.get(key)
    return list(found) if isinstance(found, list) else []


class Item:
    """One output item while it is told."""

    __slots__ = ("closed", "ids", "index", "pieces", "shared", "value")

    def __init__(self, value: Json, index: int | None) -> None:
        self.value = value
        self.index = index
        self.ids: set[str] = set()
        self.called(value.get("id"))
        self.closed = False
        self.shared = False
        self.pieces: dict[Key, list[str]] = {}

    def called(self, name: Any) -> None:
        """Take an id by which events may speak of the item."""
        if isinstance(name, str) and name:
            self.ids.add(name)

    def is_a(self, kind: str) -> bool:
        """Whether the item is of this type; an empty kind fits all."""
        return not kind or self.value.get("type") == kind

    def part(self, name: str, index: int) -> Json:
        """A part of `content` or `summary`, made where no event announced it."""
        parts = self.value.get(name)
        if not isinstance(parts, list):
            parts = self.value[name] = []
        parts.extend({} for _ in range(index + 1 - len(parts)))
        if not isinstance(parts[index], dict):
            parts[index] = {}
        found: Json = parts[index]
        return found

    def holder(self, key: Key) -> Json:
        """The object in which a text stands."""
        return self.part(key[0], key[1]) if key[0] else self.value


class Response:
    """A response while it is told."""

    def __init__(self, where: Where, account: Account) -> None:
        self.where = where
        self.account = account
        self.number = 0
        self.envelope: Json = {}
        self.items: list[Item] = []
        self.last: Json | None = None
        self.last_type = ""

    @property
    def here(self) -> str:
        """The pointer of the event at hand."""
        return self.where(self.number)

    def conflict(self, path: str, message: str) -> None:
        """Refuse two tellings of one thing that differ."""
        self.account.refuse("stream_conflict", path, message)

    def find(self, event: Json, kind: str, open_only: bool = False) -> Item | None:
        """The item that an event speaks of: by id and place, else by id, else by place, else the last of its kind."""
        name, index = text_of(event, "item_id"), event.get("output_index")
        fits = [item for item in reversed(self.items) if item.is_a(kind) and not (open_only and item.closed)]
        named = [item for item in fits if name in item.ids] if name else []
        placed = [item for item in fits if item.index == index] if index is not None else []
        both = [item for item in named if item in placed]
        bare = fits if not name and index is None else []
        return next(iter((*both, *named, *placed, *bare)), None)

    def open(self, value: Json, index: Any) -> Item:
        """Begin an item."""
        item = Item(value, index if isinstance(index, int) else None)
        item.shared = index is not None and any(other.index == index for other in self.items)
        self.items.append(item)
        return item

    def item_of(self, event: Json, kind: str) -> Item:
        """The item that an event speaks of, begun where no event announced it."""
        found = self.find(event, kind)
        if found is None:
            name = text_of(event, "item_id")
            found = self.open({"type": kind, **({"id": name} if name else {})}, event.get("output_index"))
        return found

    def in_order(self) -> list[Item]:
        """The items by their place, not by their arrival."""
        if all(item.index is not None for item in self.items):
            return sorted(self.items, key=lambda item: item.index or 0)
        return self.items

    def path(self, item: Item) -> str:
        """The pointer of an item in the folded value."""
        return f"/output/{self.in_order().index(item)}"


# ---------------------------------------------------------------- two tellings of one item


def differ(field: str) -> str:
    """The sentence for two tellings of one field."""
    return f"the stream tells two different values of {field} (record the answer again, or keep it aside)"


def text_path(fold: Response, item: Item, key: Key) -> str:
    """The pointer of a text in the folded value."""
    return f"{fold.path(item)}/{key[0]}/{key[1]}/{key[2]}" if key[0] else f"{fold.path(item)}/{key[2]}"


def agree(fold: Response, final: Json, told: Json, path: str) -> Json:
    """A later telling, with what only an earlier one had; a difference in what matters is a conflict."""
    kept = {key for key in FILLED & final.keys() if nothing(final[key]) and not nothing(told.get(key))}
    result = {**told, **{key: value for key, value in final.items() if key not in kept}}
    for key, before in told.items():
        after = final.get(key)
        if key in ("content", "summary") and isinstance(before, list) and isinstance(after, list) and after:
            result[key] = _parts(fold, after, before, f"{path}/{key}")
        elif key in EXACT and not nothing(before) and after is not None and after != before:
            fold.conflict(f"{path}/{key}", differ(key))
    return result


def _parts(fold: Response, after: list[Any], before: list[Any], path: str) -> list[Any]:
    if len(before) > len(after):
        fold.conflict(path, f"parts told by the events: {len(before)}, held by the finished item: {len(after)}")
    pairs = zip(after, before, strict=False)
    both = [
        agree(fold, new, old, f"{path}/{number}") if isinstance(new, dict) and isinstance(old, dict) else new
        for number, (new, old) in enumerate(pairs)
    ]
    return [*both, *after[len(both) :]]


def settle(fold: Response, item: Item) -> None:
    """Put the spelled texts into the item."""
    for key, pieces in item.pieces.items():
        holder, text = item.holder(key), "".join(pieces)
        if item.closed and holder.get(key[2]) != text:
            fold.conflict(text_path(fold, item, key), differ(key[2]))
        holder[key[2]] = text
    item.pieces.clear()
    for name in ("content", "summary"):  # vLLM counts content from 1: what no event told is no part
        if isinstance(item.value.get(name), list):
            item.value[name] = [part for part in item.value[name] if part != {}]


# ---------------------------------------------------------------- events


def _opening(fold: Response, event: Json) -> None:
    response = event.get("response")
    if isinstance(response, dict):
        fold.envelope.update({key: value for key, value in response.items() if value is not None})


def _ending(fold: Response, event: Json) -> None:
    response = event.get("response")
    fold.last = dict(response) if isinstance(response, dict) else {}
    fold.last_type = event["type"].removeprefix("response.")
    for key, value in event.items():  # Copilot counts beside the response
        if key not in ROUTING and not nothing(value):
            fold.last.setdefault(key, value)
    if fold.last_type in ("failed", "cancelled"):
        _failed(fold, fold.last)


def _failed(fold: Response, value: Json) -> None:
    ending = "an error" if fold.last is None else f"response.{fold.last_type}"
    message = f"event {fold.number + 1} is {ending}{error_of(value) or ''}: the answer was never finished"
    fold.account.refuse("not_finished", fold.here, message)


def _error(fold: Response, event: Json) -> None:
    _failed(fold, event)


def _item_added(fold: Response, event: Json) -> None:
    value = event.get("item")
    if not isinstance(value, dict):
        return  # the schema lets it be null
    known = fold.find({**event, "item_id": value.get("id")}, str(value.get("type")), open_only=True)
    if known is None or text_of(value, "id") not in known.ids:
        fold.open(value, event.get("output_index"))
    else:
        known.value = agree(fold, known.value, value, fold.path(known))


def _item_done(fold: Response, event: Json) -> None:
    value = event.get("item")
    if not isinstance(value, dict):
        return
    route = {**event, "item_id": value.get("id")}
    item = fold.find(route, str(value.get("type")), open_only=True) or fold.open(value, event.get("output_index"))
    settle(fold, item)
    item.value = value if item.value is value else agree(fold, value, item.value, fold.path(item))
    item.called(value.get("id"))
    item.closed = True


def _part(fold: Response, event: Json, list_: str, kind: str = "") -> None:
    part = event.get("part")
    if not isinstance(part, dict):
        return
    item = fold.find(event, kind) or fold.item_of(event, kind or "message")
    if item.closed:
        return
    index = Slot("", "", list_).index(event)
    known = item.part(list_, index)
    for field in ("text", "refusal"):
        if text := text_of(part, field):
            _say(fold, item, (list_, index, field), text)
    known.update({key: value for key, value in part.items() if not nothing(value) or key not in known})


def _delta(fold: Response, event: Json, slot: Slot) -> None:
    delta = event.get("delta")
    if not isinstance(delta, str):
        fold.account.refuse("wrong_type", fold.here, f"event {fold.number + 1}: the delta of a text must be a string")
        return
    item = fold.item_of(event, slot.item)
    key = (slot.list, slot.index(event), slot.field)
    item.pieces.setdefault(key, []).append(delta)
    if slot.list and not item.closed:
        part = item.part(slot.list, key[1])
        part.setdefault("type", slot.part)
        if isinstance(event.get("logprobs"), list) and event["logprobs"]:
            part["logprobs"] = [*list_of(part, "logprobs"), *event["logprobs"]]


def _done(fold: Response, event: Json, slot: Slot) -> None:
    item = fold.item_of(event, slot.item)
    key = (slot.list, slot.index(event), slot.field)
    if slot.list and not item.closed:
        item.part(slot.list, key[1]).setdefault("type", slot.part)
    if isinstance(event.get(slot.field), str):
        _say(fold, item, key, event[slot.field])
    if text_of(event, "name") and not item.value.get("name"):
        item.value["name"] = event["name"]


def _say(fold: Response, item: Item, key: Key, text: str) -> None:
    """Take a finished text, which must be the one that its deltas spell."""
    if key in item.pieces and "".join(item.pieces[key]) != text:
        fold.conflict(text_path(fold, item, key), differ(key[2]))
    item.pieces[key] = [text]


def _annotation(fold: Response, event: Json) -> None:
    item = fold.item_of(event, "message")
    if item.closed or not event.get("annotation"):
        return
    part = item.part("content", SLOTS["response.output_text"].index(event))
    notes = part["annotations"] = list_of(part, "annotations")
    if event["annotation"] not in notes:
        notes.append(event["annotation"])


def _audio(fold: Response, event: Json) -> None:
    message = f"event {fold.number + 1}: spoken answers have no counterpart"
    fold.account.refuse("unsupported_content", fold.here, message)


EVENTS: Final[MappingProxyType[str, Callable[[Response, Json], None]]] = MappingProxyType(
    {
        "response.created": _opening,
        "response.queued": _opening,
        "response.in_progress": _opening,
        "response.completed": _ending,
        "response.incomplete": _ending,
        "response.failed": _ending,
        "response.cancelled": _ending,
        "response.done": _ending,  # OpenRouter
        "error": _error,
        "response.output_item.added": _item_added,
        "response.output_item.done": _item_done,
        "response.content_part.added": partial(_part, list_="content"),
        "response.content_part.done": partial(_part, list_="content"),
        "response.reasoning_part.added": partial(_part, list_="content", kind="reasoning"),  # vLLM
        "response.reasoning_part.done": partial(_part, list_="content", kind="reasoning"),
        "response.reasoning_summary_part.added": partial(_part, list_="summary", kind="reasoning"),
        "response.reasoning_summary_part.done": partial(_part, list_="summary", kind="reasoning"),
        "response.output_text.annotation.added": _annotation,
        "response.audio.delta": _audio,
        "response.audio.transcript.delta": _audio,
        **{f"{name}.delta": partial(_delta, slot=slot) for name, slot in SLOTS.items()},
        **{f"{name}.done": partial(_done, slot=slot) for name, slot in SLOTS.items()},
    }
)
"""What is done with each type of event."""


def _event(fold: Response, event: Json) -> None:
    kind = text_of(event, "type")
    if kind in SILENT:
        return
    if kind not in EVENTS:
        _unknown(fold, event)
        return
    if fold.last is not None and kind != "error":
        fold.conflict(fold.here, f"event {fold.number + 1} follows the end of the response (give each stream a record)")
        return
    EVENTS[kind](fold, event)
    if EVENTS[kind] is not _ending:
        for key, value in event.items():
            if key not in ROUTING and key not in FILLER and key != "error" and not nothing(value):
                fold.account.notice("dropped", _at(fold, key), f"{word(key)} of event {kind}")


def _at(fold: Response, key: str) -> str:
    return f"{fold.here}/{key.replace('~', '~0').replace('/', '~1')}" if fold.where(0) != fold.where(1) else fold.here


def _unknown(fold: Response, event: Json) -> None:
    """An event outside the table: how a hosted tool goes on says nothing, for the item that follows tells it all."""
    kind = text_of(event, "type")
    if event.get("error"):
        _error(fold, event)
    elif not kind or ":" in kind or "item_id" not in event:
        fold.account.notice("dropped", fold.here, f"event {word(kind) if kind else 'without type'} skipped")


# ---------------------------------------------------------------- the whole


def fold_events(events: list[Json], where: Where, account: Account) -> Json | None:
    """The response resource that the events spell."""
    fold = Response(where, account)
    before = len(account.reasons)
    for fold.number, event in enumerate(events):
        _event(fold, event)
        if any(reason.code == "not_finished" for reason in list(account.reasons)[before:]):
            return None  # an error and the failed response after it are one fault
    if fold.last is None:
        kind = word(str(events[-1].get("type")))
        message = (
            f"the stream ends after event {len(events)} ({kind}) without response.completed: the answer was cut off"
        )
        if not account.refuse("not_finished", fold.here, message):
            return None
    return {**_envelope(fold), "output": _output(fold)}


def _envelope(fold: Response) -> Json:
    """The terminal response, with what only the opening events said of it."""
    result = {"object": "response", **fold.envelope, **(fold.last or {})}
    if fold.last is not None and not fold.last.get("status"):
        result["status"] = fold.last_type.replace("done", "completed")
    return result


def _output(fold: Response) -> list[Any]:
    final = (fold.last or {}).get("output")
    items = fold.in_order()
    for item in items:
        settle(fold, item)
        if not item.closed:
            _close(fold, item)
    if not isinstance(final, list) or not final:
        for item in items:
            _tell(fold, item)
        return [item.value for item in items]
    if not items:
        return final
    if len(items) != len(final):
        fold.conflict(
            "/output", f"items told by the events: {len(items)}, held by response.{fold.last_type}: {len(final)}"
        )
        return final
    pairs = zip(final, items, strict=True)
    return [
        agree(fold, new, item.value, f"/output/{number}") if isinstance(new, dict) else new
        for number, (new, item) in enumerate(pairs)
    ]


def _close(fold: Response, item: Item) -> None:
    """End an item that no event ended, as the response ended."""
    if item.value.get("type") != "reasoning" and fold.last is not None:
        item.value["status"] = "incomplete" if fold.last_type == "incomplete" else "completed"


def _tell(fold: Response, item: Item) -> None:
    path = fold.path(item)
    if not item.closed:
        fold.account.notice("odd", path, "no event ended this item: it is put together from its pieces")
    if item.shared:
        fold.account.notice("odd", path, f"two items share output_index {item.index}")
