"""Request parameters, both ways: what the rows of the two tables share.

A row takes the value as it stands and writes what the target has for it. What has no row, or a value outside the
target's range, is left out and named in a notice: a setting is never a reason to refuse a record. The ranges are those
of the published schemas (Open Responses 2026-04-24, Chat Completions 2026-08-21).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from msgspec import Raw

from converter.options import Options
from converter.outcome import Account
from converter.reading import Members, elements_of, escape, kind, members_of, says_nothing, text_of

TRUE: Final = Raw(b"true")
FALSE: Final = Raw(b"false")

EFFORTS: Final = frozenset({"none", "low", "medium", "high", "xhigh"})
CHAT_EFFORTS: Final = EFFORTS | {"minimal", "max"}
VERBOSITIES: Final = frozenset({"low", "medium", "high"})
TIERS: Final = frozenset({"auto", "default", "flex", "priority"})
CHAT_TIERS: Final = TIERS | {"scale", "fast"}
CHOICES: Final = frozenset({"none", "auto", "required"})
TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")

BAD_NAME: Final = "a tool name outside ^[a-zA-Z0-9_-]{1,64}$ (rename the tool and its calls before converting)"

INFINITY: Final = float("inf")

LEAST_OUTPUT_TOKENS: Final = 16
LOGPROBS: Final = "message.output_text.logprobs"


class Draft:
    """The settings of the target, being filled in."""

    __slots__ = ("account", "fields", "openai", "source", "tools")

    def __init__(self, source: dict[str, Raw], account: Account, options: Options, *, tools: bool = False) -> None:
        self.tools = tools
        self.source = source
        self.account = account
        self.openai = options.target == "openai"
        self.fields: dict[str, Any] = {}

    def drop(self, path: str, detail: str = "") -> None:
        """The target has no place for this, or not for its value."""
        self.account.notice("dropped", path, detail)

    def inner(self, name: str) -> dict[str, Any]:
        """The members of an object-valued setting of the target."""
        inner: dict[str, Any] = self.fields.setdefault(name, {})
        return inner


Row: TypeAlias = Callable[[str, Raw, Draft], None]


def convert(source: dict[str, Raw], rows: dict[str, Row], draft: Draft) -> None:
    """Put each setting of ``source`` through its row; name those that have none."""
    for name, raw in source.items():
        if (text := bytes(raw)) == b"null":
            continue
        row = rows.get(name)
        if row is not None:
            row(name, raw, draft)
        elif text not in (b'""', b"[]", b"{}"):
            draft.drop(f"/{escape(name)}")


# ---------------------------------------------------------------- rows that both directions share


def is_integer(raw: Raw, least: int | None = None, most: int | None = None) -> bool:
    """Whether a JSON text is a whole number within these bounds."""
    text = bytes(raw)
    if not text.lstrip(b"-").isdigit() or len(text) > 20:
        return False
    return (least is None or int(text) >= least) and (most is None or int(text) <= most)


def same(expected: str, name: str | None = None) -> Row:
    """Passed on as it stands, when it is of the expected kind: ``text``, ``number`` or ``flag``."""
    fits = _FITS[expected]

    def row(source: str, raw: Raw, draft: Draft) -> None:
        text = bytes(raw)
        if fits(text):
            draft.fields[name or source] = raw
        else:
            draft.drop(f"/{source}", f"{kind(raw)}, expected a {expected}")

    return row


def number(name: str | None = None, least: float = -INFINITY, most: float = INFINITY) -> Row:
    """A number within these bounds, passed on as it is spelled.

    No float holds 1e999: a target that reads it gets an infinity, so it is no setting but a fault in the text.
    """
    passed_on = same("number", name)

    def row(source: str, raw: Raw, draft: Draft) -> None:
        text = bytes(raw)
        value = float(text) if _FITS["number"](text) else 0.0
        if value in (INFINITY, -INFINITY):
            sentence = "a number beyond any float, expected a finite one"
            draft.account.refuse("invalid_json", f"/{source}", sentence)
        elif least <= value <= most:
            passed_on(source, raw, draft)
        else:
            draft.drop(f"/{source}")

    return row


_FITS: Final[dict[str, Callable[[bytes], bool]]] = {
    "text": lambda text: text[:1] == b'"',
    "number": lambda text: text[0] in b"-0123456789",
    "flag": lambda text: text in (b"true", b"false"),
}


def short_text(limit: int) -> Row:
    """Passed on, when it is no longer than the target allows."""

    def row(source: str, raw: Raw, draft: Draft) -> None:
        text = text_of(raw)
        if text is not None and len(text) <= limit:
            draft.fields[source] = raw
        else:
            draft.drop(f"/{source}")

    return row


def one_of(values: Iterable[str], openai: Iterable[str] = ()) -> Row:
    """Passed on, when it is one of the target's words (or of OpenAI's own, where these are asked for)."""
    core, own = frozenset(values), frozenset(openai)

    def row(source: str, raw: Raw, draft: Draft) -> None:
        text = text_of(raw)
        if text in core or (draft.openai and text in own):
            draft.fields[source] = raw
        elif text != "":
            draft.drop(f"/{source}")

    return row


def nothing(source: str, raw: Raw, draft: Draft) -> None:
    """Says nothing, or is taken care of by another row."""


def metadata(source: str, raw: Raw, draft: Draft) -> None:
    """At most 16 entries, values texts of at most 512 characters."""
    if kind(raw) != "an object":
        return draft.drop(f"/{source}")
    entries = members_of(raw)
    kept = {key: value for key, value in entries.items() if (text := text_of(value)) is not None and len(text) <= 512}
    if len(kept) > 16:
        return draft.drop(f"/{source}")
    for key, value in entries.items():
        if key not in kept and not says_nothing(value):
            draft.drop(f"/{source}/{escape(key)}")
    if kept or not entries:
        draft.fields[source] = raw if len(kept) == len(entries) else kept
    return None


def with_tools(row: Row) -> Row:
    """Has no effect where there are no tools: left out, with a notice only where a tool was named."""

    def guarded(source: str, raw: Raw, draft: Draft) -> None:
        if draft.tools:
            row(source, raw, draft)
        elif kind(raw) != "a boolean" and text_of(raw) not in CHOICES:
            draft.drop(f"/{source}", "no effect without tools")

    return guarded


def object_members(source: str, raw: Raw, draft: Draft) -> Members:
    """The members of an object-valued setting; one of another kind is left out whole."""
    if kind(raw) == "an object":
        return {key: value for key, value in members_of(raw).items() if kind(value) != "null"}
    draft.drop(f"/{source}")
    return {}


def leave(members: Members, known: Iterable[str], path: str, draft: Draft) -> None:
    """Name the members that the target does not know."""
    familiar = set(known)
    for key in [each for each in members if each not in familiar]:  # not as a set, whose order differs from run to run
        if not says_nothing(members[key]):
            draft.drop(f"{path}/{escape(key)}")


def obfuscation(source: str, raw: Raw, draft: Draft) -> dict[str, Any]:
    """The one stream option that both sides know; usage is asked for here and always told there."""
    members = object_members(source, raw, draft)
    leave(members, ("include_obfuscation", "include_usage"), f"/{source}", draft)
    asked = members.get("include_obfuscation")
    if asked is None or kind(asked) == "a boolean":
        return {} if asked is None else {"include_obfuscation": asked}
    draft.drop(f"/{source}/include_obfuscation", f"{kind(asked)}, expected a boolean")
    return {}


FORMAT_FIELDS: Final = {"name": "a string", "description": "a string", "schema": "an object", "strict": "a boolean"}


def format_fields(members: Members, path: str, draft: Draft) -> dict[str, Any]:
    """The fields of a JSON Schema format, which both sides know; one of the wrong type is left out."""
    leave(members, FORMAT_FIELDS, path, draft)
    kept = {}
    for name, expected in FORMAT_FIELDS.items():
        raw = members.get(name)
        if raw is None or kind(raw) == "null":
            continue
        if kind(raw) == expected:
            kept[name] = raw
        else:
            draft.drop(f"{path}/{name}", f"{kind(raw)}, expected {expected}")
    return kept


def names_of(tool_choice: Raw) -> frozenset[str] | None:
    """The tools that a `tool_choice` of either envelope allows, or None where it allows all."""
    members = members_of(tool_choice) if kind(tool_choice) == "an object" else {}
    if text_of(members.get("type")) != "allowed_tools":
        return None
    inner = members.get("allowed_tools")
    tools = (members_of(inner) if inner is not None and kind(inner) == "an object" else members).get("tools")
    if tools is None or kind(tools) != "an array":
        return None
    named = (members_of(tool) for tool in elements_of(tools) if kind(tool) == "an object")
    return frozenset(name for tool in named if (name := _tool_name(tool)) is not None)


def _tool_name(tool: Members) -> str | None:
    function = tool.get("function")
    inner = members_of(function) if function is not None and kind(function) == "an object" else {}
    return text_of(tool.get("name")) or text_of(inner.get("name"))
