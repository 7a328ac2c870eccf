"""Token counts, both ways: renamed. Counts that the target requires and the log lacks become 0 and are named."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, UnsetType

from converter import chat, responses
from converter.outcome import Account

_PROMPT_EXTRAS: Final = ("audio_tokens", "cache_write_tokens", "text_tokens", "image_tokens", "video_tokens")
_ANSWER_EXTRAS: Final = (
    "audio_tokens",
    "accepted_prediction_tokens",
    "rejected_prediction_tokens",
    "text_tokens",
    "image_tokens",
)
_INPUT_EXTRAS: Final = ("cache_write_tokens",)


def into_responses(usage: chat.Usage | UnsetType | None, account: Account) -> responses.Usage | None:
    """Renamed. No usage stays null; counts that are required and absent become 0, counts without a place are named."""
    if not usage or not any(isinstance(getattr(usage, name), int) for name in _COUNTS):
        return None
    filled: list[str] = []
    prompt = _count(usage.prompt_tokens, "prompt_tokens", filled)
    answer = _count(usage.completion_tokens, "completion_tokens", filled)
    prompt_details, answer_details = usage.prompt_tokens_details, usage.completion_tokens_details
    cached = prompt_details.cached_tokens if prompt_details else None
    reasoning = answer_details.reasoning_tokens if answer_details else None
    _name_extras(prompt_details, "prompt_tokens_details", _PROMPT_EXTRAS, account)
    _name_extras(answer_details, "completion_tokens_details", _ANSWER_EXTRAS, account)
    for name, value in (("prompt_tokens_details", cached), ("completion_tokens_details", reasoning)):
        if not isinstance(value, int):
            filled.append(name)
    total = usage.total_tokens
    if not isinstance(total, int):
        filled.append("total_tokens")
        total = prompt + answer
    for name in filled:
        account.notice("filled", f"/usage/{name}", "counts that the log lacks")
    return responses.Usage(
        input_tokens=prompt,
        input_tokens_details=responses.InputDetails(cached or 0),
        output_tokens=answer,
        output_tokens_details=responses.OutputDetails(reasoning or 0),
        total_tokens=total,
    )


def _count(value: int | UnsetType | None, name: str, filled: list[str]) -> int:
    if isinstance(value, int):
        return value
    filled.append(name)
    return 0


_COUNTS: Final = ("prompt_tokens", "completion_tokens", "total_tokens")


def _name_extras(details: Any, place: str, extras: tuple[str, ...], account: Account) -> None:
    """Name the counts that the target does not know. One of zero is no loss: OpenAI sends them all, always."""
    for name in extras if details else ():
        value = getattr(details, name)
        if isinstance(value, int):
            account.notice("dropped" if value else "echo", f"/usage/{place}/{name}", "" if value else "counts of zero")


def into_chat(usage: responses.Usage | Any | None, account: Account) -> chat.Usage | Any:
    """Renamed; a completion may lack usage, but not its three counts."""
    if not usage:
        return UNSET
    prompt, answer, total = usage.input_tokens, usage.output_tokens, usage.total_tokens
    for name, value in (("input_tokens", prompt), ("output_tokens", answer), ("total_tokens", total)):
        if not isinstance(value, int):
            account.notice("filled", f"/usage/{name}", "counts that the log lacks")
    prompt, answer = prompt or 0, answer or 0
    inside, outside = usage.input_tokens_details, usage.output_tokens_details
    _name_extras(inside, "input_tokens_details", _INPUT_EXTRAS, account)
    return chat.Usage(
        prompt_tokens=prompt,
        completion_tokens=answer,
        total_tokens=total if isinstance(total, int) else prompt + answer,
        prompt_tokens_details=chat.PromptDetails(
            inside.cached_tokens if isinstance(inside.cached_tokens, int) else UNSET
        )
        if inside
        else UNSET,
        completion_tokens_details=chat.CompletionDetails(
            outside.reasoning_tokens if isinstance(outside.reasoning_tokens, int) else UNSET
        )
        if outside
        else UNSET,
    )
