"""Reasoning, both ways. The released schema has a place for its raw text in an answer, none in a request, and Chat has
none at all: so the user says what becomes of it (``--reasoning``), and what is lost is named. The opaque form never
becomes visible text.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, Raw, UnsetType

from converter import chat, responses
from converter.options import Options
from converter.outcome import Account
from converter.reading import elements_of, kind, members_of, says_nothing, text_of

FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_details")


def in_history(message: chat.AssistantMessage, place: str, account: Account, options: Options) -> list[Any]:
    """The reasoning item of a message in a history, where the user asked for one."""
    present = [name for name in FIELDS if _speaks(getattr(message, name))]
    if not present:
        return []
    asked = options.reasoning
    raw, summary, encrypted = _thoughts(message, present)
    carried = {"keep": raw, "summary": raw or summary, "drop": None}[asked]
    if asked == "drop" or not (carried or encrypted or summary):
        for name in present:
            account.notice("dropped", f"{place}/{name}", "reasoning (--reasoning keep carries it)")
        return []
    _name_lost_reasoning(message, present, place, account)
    if asked == "keep":
        item = responses.Reasoning(
            [responses.SummaryText(text) for text in summary],
            [responses.ReasoningText(text) for text in raw] or UNSET,
            encrypted or UNSET,
        )
    else:
        item = responses.Reasoning([responses.SummaryText(text) for text in summary or raw], UNSET, encrypted or UNSET)
    return [item]


def _speaks(value: Raw | UnsetType) -> bool:
    return value is not UNSET and not says_nothing(value)


def _thoughts(message: chat.AssistantMessage, present: list[str]) -> tuple[list[str], list[str], str | None]:
    """Raw texts, summaries and the opaque form. The string fields often hold one text twice: the first one is taken."""
    raw = next((text for name in present[:2] if (text := text_of(getattr(message, name)))), None)
    texts: list[str] = []
    summaries: list[str] = []
    encrypted = None
    for entry in _details(message):
        summaries += [text] if (text := text_of(entry.get("summary"))) else []
        texts += [text] if (text := text_of(entry.get("text"))) else []
        encrypted = encrypted or text_of(entry.get("data"))
    return ([raw] if raw else texts), summaries, encrypted


def _details(message: chat.AssistantMessage) -> list[dict[str, Raw]]:
    details = message.reasoning_details
    if details is UNSET or kind(details) != "an array":
        return []
    return [members_of(one) for one in elements_of(details) if kind(one) == "an object"]


def _name_lost_reasoning(message: chat.AssistantMessage, present: list[str], place: str, account: Account) -> None:
    """What of the carried reasoning has no place: a second text, signatures, formats and indexes of OpenRouter."""
    strings = [name for name in present if name != "reasoning_details"]
    first = strings[0] if strings else None
    for name in strings:
        raw = getattr(message, name)
        if text_of(raw) is None or (name != first and bytes(raw) != bytes(getattr(message, first or name))):
            account.notice("dropped", f"{place}/{name}")
    carried = text_of(getattr(message, first)) if first else None
    seen_data = False
    for number, entry in enumerate(_details(message)):
        for key, value in entry.items():
            text = text_of(value)
            lost = key not in ("type", "text", "summary", "data") or (
                key == "text" and carried is not None and text not in (None, "") and text not in carried
            )
            lost = lost or (key == "data" and seen_data)
            seen_data = seen_data or key == "data"
            if lost and not says_nothing(value):
                account.notice("dropped", f"{place}/reasoning_details/{number}/{key}")


def in_answer(message: chat.AssistantMessage, place: str, made: str, account: Account) -> list[Any]:
    """Reasoning in an answer always has its place: raw text in ``content``, summaries in ``summary``."""
    present = [name for name in FIELDS if _speaks(getattr(message, name))]
    if not present:
        return []
    raw, summary, encrypted = _thoughts(message, present)
    if not (raw or summary or encrypted):
        for name in present:
            account.notice("dropped", f"{place}/{name}")
        return []
    _name_lost_reasoning(message, present, place, account)
    return [
        responses.OutputReasoning(
            f"rs_{made}",
            [responses.SummaryText(text) for text in summary],
            [responses.ReasoningText(text) for text in raw] or UNSET,
            encrypted or UNSET,
        )
    ]


def spoken(item: responses.Reasoning, options: Options) -> tuple[str, list[str]]:
    """The text to carry, and the fields that are lost beside it. The opaque form never becomes visible text."""
    raw = "".join(getattr(part, "text", "") for part in item.content or [])
    summary = "\n\n".join(getattr(part, "text", "") for part in item.summary)
    if options.reasoning == "drop":
        return "", []
    text, other = (raw, "summary") if options.reasoning == "keep" and raw else (summary, "content")
    lost = ["encrypted_content"] if item.encrypted_content else []
    if (raw if other == "content" else summary) and text:
        lost.append(other)
    return text, lost
