"""The published JSON Schemas (2020-12): of both envelopes, of the rejects and notices rows, of the report.

They are made from the structs and never written by hand. `schema` gives a document as it is shipped;
``python -m converter.published`` writes the documents of a checkout anew, and with ``--check`` only says whether they
are out of step with the structs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from inspect import cleandoc
from pathlib import Path
from typing import Any, Final, TypeAlias, get_args

import msgspec
from msgspec import Struct

from converter import SPECIFICATION, chat, responses
from converter.options import LOOKS, REPAIRS, Verb
from converter.outcome import ALLOWABLE, NOTICES, REASONS
from converter.report import NoticeRow, RejectRow, Report

Schema: TypeAlias = dict[str, Any]

CHAT: Final = "2026-08-21"
"""The day on which the Chat Completions schema was published that the structs follow."""

RELEASES: Final = f"It follows Open Responses, release {SPECIFICATION}, and Chat Completions, as published {CHAT}."
MADE: Final = "Made from the converter's structs by `python -m converter.published`; not to be edited by hand."

ENVELOPE: Final = (
    "The document says what each field holds, with the vendor fields that recorded traffic often has. Unknown keys are "
    "allowed, because the converter reads them too and names them in the notice `dropped`. It also reads some habits "
    "of providers that this document does not allow, and says so in a notice."
)


class Document(Struct, frozen=True, kw_only=True):
    """What goes into one document.

    ``types`` are the structs and unions that get a name under ``$defs``, a union before the unions that hold it;
    ``root`` is what the document itself accepts. ``written`` documents describe the converter's own files, where a
    default is written out and no field is ever absent.
    """

    title: str
    description: str
    types: dict[str, Any]
    root: Schema
    written: bool = False


# ---------------------------------------------------------------- documents


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _has(*names: str) -> Schema:
    return {"required": list(names)}


# Branches are chosen by their keys, as `converter.kinds` chooses, and not by trial: then a validator speaks of the
# fault itself, and an object with a fault in its answer cannot pass as a request with unknown keys.
_CHAT_ROOT: Final[Schema] = {
    "if": {"type": "array"},
    "then": _ref("MessageList"),
    "else": {"if": _has("choices"), "then": _ref("Completion"), "else": _ref("Request")},
}

_RESPONSES_ROOT: Final[Schema] = {
    "if": {"type": "array"},
    "then": _ref("ItemList"),
    "else": {
        "if": {"anyOf": [_has("output"), {"properties": {"object": {"const": "response"}}, **_has("object")}]},
        "then": _ref("Response"),
        "else": {**_ref("Request"), "anyOf": [_has("input"), _has("prompt"), _has("previous_response_id")]},
    },
}

DOCUMENTS: Final[dict[str, Document]] = {
    "chat-completions": Document(
        title="Chat Completions: a request, a message list or a completion",
        description=f"The Chat Completions envelope, as published {CHAT}. {ENVELOPE} {MADE}",
        types={
            "Part": chat.Part,
            "Content": chat.Content,
            "ToolCall": chat.ToolCall,
            "Message": chat.Message,
            "MessageList": list[chat.Message],
            "Tool": chat.Tool,
            "Request": chat.Request,
            "Completion": chat.Completion,
        },
        root=_CHAT_ROOT,
    ),
    "open-responses": Document(
        title="Open Responses: a request, an item list or a response resource",
        description=f"The Open Responses envelope, release {SPECIFICATION}. {ENVELOPE} {MADE}",
        types={
            "Part": responses.Part,
            "Content": responses.Content,
            "Item": responses.Item,
            "ItemList": list[responses.Item],
            "OutputMessage": responses.OutputMessage,
            "OutputFunctionCall": responses.OutputFunctionCall,
            "OutputReasoning": responses.OutputReasoning,
            "Tool": responses.Tool,
            "Request": responses.Request,
            "Response": responses.Response,
        },
        root=_RESPONSES_ROOT,
    ),
    "rejects": Document(
        title="A line of the rejects file",
        description=f"What `converter --rejects FILE` writes, one object a line. {RELEASES} {MADE}",
        types={"RejectRow": RejectRow},
        root=_ref("RejectRow"),
        written=True,
    ),
    "notices": Document(
        title="A line of the notices file",
        description=f"What `converter --notices FILE` writes, one object a line. {RELEASES} {MADE}",
        types={"NoticeRow": NoticeRow},
        root=_ref("NoticeRow"),
        written=True,
    ),
    "report": Document(
        title="The report of a run",
        description=f"What `converter --report FILE` writes, one object. {RELEASES} {MADE}",
        types={"Report": Report},
        root=_ref("Report"),
        written=True,
    ),
}
"""The documents by name."""

_REASON_CODES: Final[Schema] = {"enum": [code for family in REASONS.values() for code in family]}
_NOTICE_CODES: Final[Schema] = {"enum": list(NOTICES)}
_COUNTS: Final[dict[str, Schema]] = {
    "reasons": {"propertyNames": _REASON_CODES},
    "notices": {"propertyNames": _NOTICE_CODES},
    "repaired": {"propertyNames": {"enum": list(REPAIRS)}},
    "allowed": {"propertyNames": {"enum": sorted(ALLOWABLE)}},
}

CLOSED: Final[dict[str, dict[str, Schema]]] = {
    "Reason": {"code": _REASON_CODES},
    "NoticeRow": {"code": _NOTICE_CODES},
    "Report": {"command": {"enum": [*get_args(Verb), *sorted(LOOKS)]}, **_COUNTS},
    "Sums": _COUNTS,
}
"""The closed lists, by struct and field: the structs themselves hold plain strings, which are cheaper to make."""


# ---------------------------------------------------------------- making


def documents() -> dict[str, bytes]:
    """Every document as the structs have it now, by its file name."""
    return {f"{name}.schema.json": _text(_document(name, document)) for name, document in DOCUMENTS.items()}


def _text(document: Schema) -> bytes:
    return json.dumps(document, ensure_ascii=False, indent=2).encode() + b"\n"


def _document(name: str, document: Document) -> Schema:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:open-responses-converter:schema:{name}",
        "title": document.title,
        "description": document.description,
        **document.root,
        "$defs": _definitions(document),
    }


def _definitions(document: Document) -> Schema:
    """The named types and all that they hold, by name in alphabetical order."""
    types = document.types
    inline, structs = msgspec.json.schema_components(types.values(), ref_template="#/$defs/{name}")
    unions: dict[str, Schema] = {}
    named: dict[str, Schema] = {}
    for name, schema in zip(types, inline, strict=True):
        if schema != _ref(name):
            named[name] = _tidy(schema, unions)
            unions[json.dumps(named[name])] = _ref(name)
    named.update((name, _tidy(schema, unions)) for name, schema in structs.items())
    for name in CLOSED.keys() & named:
        for field, keywords in CLOSED[name].items():
            named[name]["properties"][field].update(keywords)
    if document.written:
        for schema in named.values():
            _written(schema)
    return dict(sorted(named.items()))


def _written(schema: Schema) -> None:
    """Every field is required, and none has a default."""
    schema["required"] = list(schema["properties"])
    for field in schema["properties"].values():
        field.pop("default", None)


def _tidy(schema: Schema, unions: dict[str, Schema]) -> Schema:
    """The same schema in fewer words, with a reference where a union has a name (``unions``: by their text).

    Closed objects are opened (see `ENVELOPE`), and the discriminator is left out: it is OpenAPI's own, strict
    validators refuse it, and the constant tag in each branch says the same.
    """
    result: Schema = {}
    for key, value in schema.items():
        if key == "description":
            result[key] = _prose(value)
        elif key == "properties":
            result[key] = {name: _tidy(one, unions) for name, one in value.items()}
        elif key == "enum" and len(value) == 1:
            result["const"] = value[0]
        elif key == "anyOf":
            result |= _either([_tidy(one, unions) for one in value])
        elif isinstance(value, dict) and key in ("items", "additionalProperties"):
            result[key] = _tidy(value, unions)
        elif key not in ("discriminator", "additionalProperties") and value != []:
            result[key] = value
    return unions.get(json.dumps(result), result)


def _either(branches: list[Schema]) -> Schema:
    """``anyOf``, or one ``type`` where the branches are nothing but types; null is last in every release of msgspec."""
    branches.sort(key=lambda branch: branch == {"type": "null"})
    if all(branch.keys() == {"type"} for branch in branches):
        return {"type": [branch["type"] for branch in branches]}
    return {"anyOf": branches}


def _prose(docstring: str) -> str:
    """A docstring without its markup, its indentation and its line ends."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", cleandoc(docstring)).replace("``", "`")


# ---------------------------------------------------------------- finding

_CHECKOUT: Final = Path(__file__).resolve().parent.parent / "schemas"


def folder() -> Traversable:
    """Where the shipped schemas are: inside the package in a wheel, beside it in a checkout or an editable install."""
    packaged = files("converter") / "schemas_data"
    return packaged if packaged.is_dir() else _CHECKOUT


def schema(name: str) -> bytes:
    """The text of a shipped document, by its name in `DOCUMENTS`.

    Raises `ValueError` where there is no document of that name.
    """
    if name not in DOCUMENTS:
        raise ValueError(f"no schema named {name!r}; there are {', '.join(DOCUMENTS)}")
    return (folder() / f"{name}.schema.json").read_bytes()


# ---------------------------------------------------------------- command


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the documents of a checkout, or check those that are shipped; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m converter.published", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 when a document is out of step")
    check: bool = parser.parse_args(arguments).check
    place = folder()
    if not check and place != _CHECKOUT:
        print("the schemas of an installed package are not rewritten; run this in a checkout", file=sys.stderr)
        return 1
    stale = {name: text for name, text in documents().items() if _shipped(place / name) != text}
    for name, text in stale.items():
        if not check:
            _CHECKOUT.mkdir(exist_ok=True)
            (_CHECKOUT / name).write_bytes(text)
        print(f"{name} {'is out of step' if check else 'written'}", file=sys.stderr)
    return 1 if check and stale else 0


def _shipped(file: Traversable) -> bytes | None:
    return file.read_bytes() if file.is_file() else None


if __name__ == "__main__":
    sys.exit(main())
