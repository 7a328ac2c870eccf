"""Tool definitions: from one envelope to the other, and the schemas that the gate needs.

A log repeats the same ``tools`` in every request, so what was made of the same bytes is found again (bounded).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from converter import chat, habits, responses
from converter.memo import Memo
from converter.options import Options, Verb
from converter.outcome import Account, Notice, Reason, Refused, Verdict
from converter.reading import (
    Reading,
    Tables,
    elements_of,
    encode,
    escape,
    kind,
    members_of,
    says_nothing,
    text_of,
    tidy,
    without_nulls,
)
from converter.schemas import SCHEMA_BYTES, SERIALS, ToolSchema, defines, strict_qualifies, tool_schema
from converter.settings import BAD_NAME, TOOL_NAME
from converter.text import utf8


class EverySchema:
    """A name that a record defines more than once: which one ran is not known, so a call must satisfy them all."""

    def __init__(self, schemas: tuple[ToolSchema, ...]) -> None:
        self.schemas = schemas
        self.problem = next((schema.problem for schema in schemas if schema.problem), None)
        self.serial = next(SERIALS)
        self.known: dict[str, Verdict] = {}  # every one of them is asked, every time

    def verdict(self, arguments: str) -> Verdict:
        """The first verdict that is not ok."""
        return next((v for s in self.schemas if (v := s.verdict(arguments)) is not Verdict.OK), Verdict.OK)

    def fault(self, arguments: str) -> str:
        """The sentence to the first verdict that is not ok."""
        return next(s.fault(arguments) for s in self.schemas if s.verdict(arguments) is not Verdict.OK)


Schemas: TypeAlias = dict[str, ToolSchema | EverySchema]
"""A tool's schema by its name."""


class Tools(Struct, frozen=True):
    """What one ``tools`` array becomes: the target's array, the schemas to judge by, and what is to be said of it."""

    written: Raw | UnsetType
    schemas: Schemas
    notices: list[Notice]
    reasons: list[Reason]
    certain: bool = True
    """Whether no other format's tools look like these."""
    settings: Memo[bytes, Any] = field(default_factory=lambda: Memo(ROOM_BESIDE))
    """What the settings of requests with these tools became."""
    serial: int = field(default_factory=SERIALS.__next__)


_ESCAPED: Final = re.compile(rb"\\u00[567]")


def plainly_ours(tools: bytes) -> bool:
    """Whether a ``tools`` array has nothing of an Anthropic request's, by any spelling of its key."""
    return b'"input_schema"' not in tools and _ESCAPED.search(tools) is None


def joined(first: Tools, second: Tools) -> Tools:
    """Both arrays of a record that has ``tools`` and the legacy ``functions``."""
    both = [bytes(one.written)[1:-1] for one in (first, second) if one.written is not UNSET]
    schemas = every(first.schemas, second.schemas)
    return Tools(
        Raw(b"[" + b",".join(both) + b"]") if both else UNSET,
        schemas,
        [*first.notices, *second.notices],
        [*first.reasons, *second.reasons],
    )


def every(first: Schemas, second: Schemas) -> Schemas:
    """The schemas of both: where both have a name, a call must satisfy both."""
    schemas = dict(first)
    for name, schema in second.items():
        _add(schemas, name, schema)
    return schemas


class Toolbox:
    """Converts ``tools`` arrays in one direction, and remembers them by their bytes."""

    def __init__(self, verb: Verb, options: Options) -> None:
        self.options = options
        self.given = given(options.tools)
        self.none = Tools(UNSET, self.given, [], [], settings=Memo(ROOM))
        self.convert = _CONVERT[verb]
        self.remembered: Memo[bytes, Tools] = Memo(SCHEMA_BYTES)
        self.last = (b"", self.none)  # most often the next record has the same tools, which costs no hash to see

    def of(self, raw: Raw | UnsetType, name: str = "tools") -> Tools:
        """What the array under this name (``tools`` or the legacy ``functions``) becomes."""
        if raw is UNSET:
            return self.none
        key = bytes(raw) if name == "tools" else name.encode() + bytes(raw)
        if key == self.last[0]:
            return self.last[1]
        tools = self.remembered.get(key)
        if tools is None:
            tools = self._made(raw, name)
            self.remembered.keep(key, tools, len(key) + BESIDE * (1 + len(tools.schemas)))
        self.last = (key, tools)
        return tools

    def _made(self, raw: Raw, name: str) -> Tools:
        if kind(raw) == "null":
            return self.none
        account = Account(self.options.allow)
        utf8(bytes(raw))
        try:
            written, schemas = self.convert(raw, f"/{name}", account, self.options)
        except Refused:
            written, schemas = [], schemas_of(raw, name)  # the calls of the other tools are judged all the same
        return Tools(
            Raw(encode(written)) if written else UNSET,
            {**schemas, **self.given},
            account.notices(),
            list(account.reasons),
            plainly_ours(bytes(raw)),
        )


BESIDE: Final = 16 << 10
"""What an array takes beside its text, and again for each of its schemas."""

ROOM: Final = 2 << 20
"""How many bytes of settings are remembered for requests without tools."""

ROOM_BESIDE: Final = 128 << 10
"""How many bytes of settings are remembered for each array of tools."""


def given(tools: Any) -> Schemas:
    """The schemas that the user gave: definitions of either envelope in a list, or ``{name: schema}``.

    Raises `ValueError` where a definition has no name or a schema is no usable JSON Schema.
    """
    if tools is None:
        return {}
    pairs: list[tuple[str, Any]] = []
    if isinstance(tools, dict) and not isinstance(tools.get("tools"), list):
        pairs = list(tools.items())
    else:
        for definition in tools["tools"] if isinstance(tools, dict) else tools:
            body = definition.get("function", definition) if isinstance(definition, dict) else {}
            if isinstance(body, dict) and isinstance(body.get("name"), str):
                pairs.append((body["name"], body.get("parameters")))
            elif not isinstance(definition, dict) or definition.get("type", "function") in _NO_OTHER_TOOL:
                raise ValueError("a tool definition without a name; expected function tools of either envelope")
    schemas: Schemas = {}
    for name, schema in pairs:
        if schema is None:
            continue
        if not isinstance(schema, (dict, bool)):
            raise ValueError(f"the schema of tool {name} is neither an object nor a boolean")
        if defines(schema):
            raise ValueError(
                f"tool {name} has a definition in place of its JSON Schema (a list of definitions will do)"
            )
        made = tool_schema(msgspec.json.encode(schema))
        if made.problem:
            raise ValueError(f"the schema of tool {name} cannot be used: {made.problem}")
        if not TOOL_NAME.fullmatch(name):
            raise ValueError("a tool name outside ^[a-zA-Z0-9_-]{1,64}$, which no call can bear")
        schemas[name] = made
    return schemas


_NO_OTHER_TOOL: Final = ("function", "object", "array", "string", "number", "integer", "boolean", "null")
"""The type of a function, and those of a JSON Schema that stands where its tool should."""


def schemas_of(raw: Raw | UnsetType, name: str = "tools") -> Schemas:
    """The schemas in a ``tools`` array of either envelope (or in the legacy ``functions``), whatever else it holds."""
    schemas: Schemas = {}
    if raw is UNSET or kind(raw) != "an array":
        return schemas
    for element in elements_of(raw):
        members = members_of(element) if kind(element) == "an object" else {}
        if name == "tools" and text_of(members.get("type")) == "custom":
            continue  # it takes a text, whatever else stands in it
        body = members.get("function")
        if body is not None and kind(body) == "an object":
            inner = members_of(body)
            _remember(schemas, text_of(inner.get("name")), inner.get("parameters", UNSET))
        _remember(schemas, text_of(members.get("name")), members.get("parameters", UNSET))
    return schemas


def declared(tools: Raw | UnsetType, functions: Raw | UnsetType) -> Schemas:
    """The schemas that a body brings: in its ``tools``, and in its legacy ``functions``."""
    return every(schemas_of(tools), schemas_of(functions, "functions"))


def _remember(schemas: Schemas, name: str | None, parameters: Raw | UnsetType) -> ToolSchema | None:
    if name is None or parameters is UNSET or kind(parameters) not in ("an object", "a boolean"):
        return None
    made = tool_schema(bytes(parameters))
    _add(schemas, name, made)
    return made


def _add(schemas: Schemas, name: str, schema: ToolSchema | EverySchema) -> None:
    before = schemas.get(name)
    if before is None or before is schema:
        schemas[name] = schema
    else:
        schemas[name] = EverySchema((*getattr(before, "schemas", (before,)), *getattr(schema, "schemas", (schema,))))


def _decoded(raw: Raw, type_: Any, tables: Tables, path: str, account: Account, options: Options) -> list[Any]:
    """The definitions as structs; what the strict decoder refuses is read with an account of what is left out."""
    try:
        decoded: list[Any] = msgspec.json.decode(raw, type=type_)
    except msgspec.DecodeError:
        reading = Reading(account, options, tables)
        text = tidy(raw, type_, path, reading)
        if account.reasons or text is None:
            raise Refused(list(account.reasons)) from None
        account.layers = (reading.shifts,)
        decoded = msgspec.json.decode(text, type=type_)
    return decoded


def _usable_name(name: str, path: str, account: Account) -> None:
    if not TOOL_NAME.fullmatch(name):
        account.refuse("limit", path, BAD_NAME)


def _schema(schemas: Schemas, name: str, parameters: Raw | UnsetType, path: str, account: Account) -> None:
    made = _remember(schemas, name, parameters)
    if made is not None and made.problem:
        account.notice("odd", path, f"no usable JSON Schema: {made.problem}")


def _parameters(raw: Raw | UnsetType, path: str, account: Account, options: Options) -> Raw | UnsetType:
    if raw is UNSET or kind(raw) == "null":
        return UNSET
    if kind(raw) != "an object":
        account.refuse("wrong_type", path, f"{kind(raw)}, expected a JSON Schema object")
    elif "null-padding" in options.repair and (plain := encode(without_nulls(raw))) != bytes(raw):
        account.notice("repaired", path, "null-padding: null members left out")
        return Raw(plain)
    return raw


def _text(value: str | UnsetType | None) -> str | UnsetType:
    return UNSET if value is None else value


def _from_chat(raw: Raw, path: str, account: Account, options: Options) -> tuple[Any, Schemas]:
    legacy = path == "/functions"
    type_ = list[chat.FunctionDefinition] if legacy else list[chat.Tool]
    written: list[Any] = []
    schemas: Schemas = {}
    for position, tool in enumerate(_decoded(raw, type_, habits.CHAT, path, account, options)):
        place = f"{path}/{position}"
        if isinstance(tool, chat.CustomTool):
            if options.target == "openai":
                custom = tool.custom
                written.append(
                    responses.CustomTool(custom.name, _text(custom.description), _flat_format(custom.format))
                )
            else:
                account.refuse(
                    "unsupported_tool",
                    place,
                    "a custom tool, which Open Responses does not have (--target openai keeps it)",
                )
            continue
        body = tool if legacy else tool.function
        inner = place if legacy else f"{place}/function"
        _usable_name(body.name, f"{inner}/name", account)
        parameters = _parameters(body.parameters, f"{inner}/parameters", account, options)
        _schema(schemas, body.name, parameters, f"{inner}/parameters", account)
        strict = body.strict if isinstance(body.strict, bool) else False
        written.append(responses.FunctionTool(body.name, _text(body.description), parameters, strict))
    return written, schemas


def _from_responses(raw: Raw, path: str, account: Account, options: Options) -> tuple[Any, Schemas]:
    written: list[Any] = []
    schemas: Schemas = {}
    for position, tool in enumerate(_decoded(raw, list[responses.Tool], habits.RESPONSES, path, account, options)):
        place = f"{path}/{position}"
        if isinstance(tool, responses.CustomTool):
            nested = _nested_format(tool.format, f"{place}/format", account)
            written.append(chat.CustomTool(chat.CustomDefinition(tool.name, _text(tool.description), nested)))
            continue
        _usable_name(tool.name, f"{place}/name", account)
        parameters = _parameters(tool.parameters, f"{place}/parameters", account, options)
        _schema(schemas, tool.name, parameters, f"{place}/parameters", account)
        strict = _chat_strict(tool.strict, parameters, place, account)
        written.append(
            chat.FunctionTool(chat.FunctionDefinition(tool.name, _text(tool.description), parameters, strict))
        )
    return written, schemas


def _chat_strict(
    strict: bool | UnsetType | None, parameters: Raw | UnsetType, path: str, account: Account
) -> bool | UnsetType:
    """Chat's default is false. Here, absent means strict wherever the schema qualifies."""
    if isinstance(strict, bool):
        return strict or UNSET
    if parameters is not UNSET and strict_qualifies(bytes(parameters)):
        account.notice("filled", path, "strict: absent means strict in Responses where the schema qualifies")
        return True
    return UNSET


def _flat_format(raw: Raw | UnsetType) -> Raw | UnsetType:
    """Chat nests a grammar (``{"type", "grammar": {"definition", "syntax"}}``), Responses does not."""
    if raw is UNSET or kind(raw) != "an object":
        return UNSET
    members = members_of(raw)
    grammar = members.pop("grammar", None)
    if grammar is None or kind(grammar) != "an object":
        return raw
    return Raw(encode({**members, **members_of(grammar)}))


def _nested_format(raw: Raw | UnsetType, path: str, account: Account) -> Raw | UnsetType:
    if raw is UNSET or says_nothing(raw):
        return UNSET
    members = members_of(raw) if kind(raw) == "an object" else {}
    name = text_of(members.pop("type", None))
    grammar = {key: members.pop(key) for key in ("definition", "syntax") if name == "grammar" and key in members}
    if name == "text":
        made: dict[str, Any] = {"type": name}
    elif text_of(grammar.get("definition")) is not None and text_of(grammar.get("syntax")) in ("lark", "regex"):
        made = {"type": name, "grammar": grammar}
    else:
        account.notice("dropped", path, "neither text nor a grammar with its syntax")
        return UNSET
    for key, value in members.items():
        if not says_nothing(value):
            account.notice("dropped", f"{path}/{escape(key)}")
    return Raw(encode(made))


_CONVERT: Final[dict[str, Callable[[Raw, str, Account, Options], tuple[Any, Schemas]]]] = {
    "to-responses": _from_chat,
    "to-chat": _from_responses,
}
