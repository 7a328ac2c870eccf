"""Read what the strict decoders would not: find every unknown field, every wrong type, every habit of a provider.

A record that the structs decode in one step never comes here. One that they refuse is walked along the structs' own
types, and leaves as JSON text that they do decode, with an account of what was left out and what is wrong. Values stay
`msgspec.Raw` all the way, so that nothing is respelled. What a provider does differently stands in the tables of
`converter.habits`, not here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, Final, TypeAlias

import msgspec
import msgspec.inspect as types
from msgspec import Raw, Struct

from converter.options import Options
from converter.outcome import Account

Members: TypeAlias = dict[str, Raw]
Habit: TypeAlias = "Callable[[Members, str, Reading], None]"
Stranger: TypeAlias = "Callable[[str, Members, str, Reading], None]"
Plan: TypeAlias = "Callable[[Raw, str, Reading], Any]"

GONE: Final = object()
"""What a plan returns for a value that is left out, or that is at fault."""

members_of: Final = msgspec.json.Decoder(dict[str, Raw]).decode
elements_of: Final = msgspec.json.Decoder(list[Raw]).decode
encode: Final = msgspec.json.Encoder().encode

_KINDS: Final = {
    ord('"'): "a string",
    ord("{"): "an object",
    ord("["): "an array",
    ord("t"): "a boolean",
    ord("f"): "a boolean",
    ord("n"): "null",
    **dict.fromkeys(b"-0123456789", "a number"),
}


def kind(raw: Raw) -> str:
    """What a JSON text is, with its article: ``a string``, ``an object``, …"""
    return _KINDS.get(memoryview(raw)[0], "no JSON value")


def text_of(raw: Raw | None) -> str | None:
    """The string that a JSON text is, or None where it is no string."""
    return msgspec.json.decode(raw, type=str) if raw is not None and kind(raw) == "a string" else None


def says_nothing(raw: Raw) -> bool:
    """Null and empty: losing them loses nothing."""
    text = bytes(raw)
    return text in _NOTHING or (text[0] in b"{[" and not text[1:-1].strip())


_NOTHING: Final = frozenset({b"null", b'""', b"[]", b"{}"})


def without_nulls(raw: Raw) -> Any:
    """A value without its null members, at any depth; null elements of arrays stay."""
    if b"null" not in bytes(raw):
        return raw
    if kind(raw) == "an object":
        return {key: without_nulls(value) for key, value in members_of(raw).items() if kind(value) != "null"}
    return [without_nulls(element) for element in elements_of(raw)] if kind(raw) == "an array" else raw


def has_null_members(text: bytes) -> bool:
    """Whether a JSON text looks as if a table had padded it: enough to name the repair, not to make it."""
    return b"null" in text and _NULL_MEMBER.search(text) is not None


_NULL_MEMBER: Final = re.compile(rb'":\s*null\b')


def escape(key: str) -> str:
    """A key as a part of a JSON Pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1") if "~" in key or "/" in key else key


class Reading:
    """One record being read: its account, and the tables of its envelope.

    ``shifts`` holds, for each list that lost an element, the positions of those that stayed; ``left_out`` the call ids
    of calls that the user allowed to be left out.
    """

    __slots__ = ("account", "habits", "left_out", "options", "settings", "shifts", "strangers")

    def __init__(self, account: Account, options: Options, tables: Tables) -> None:
        self.account = account
        self.options = options
        self.habits, self.strangers, self.settings = tables.habits, tables.strangers, tables.settings
        self.shifts: dict[str, list[int]] = {}
        self.left_out: set[str] = set()

    def unknown(self, raw: Raw, path: str) -> None:
        """A field that the envelope does not have."""
        if not says_nothing(raw):
            self.account.notice("dropped", path)

    def wrong(self, raw: Raw, path: str, expected: str) -> Any:
        """A value of the wrong type where content is expected."""
        self.account.refuse("wrong_type", path, f"{kind(raw)}, expected {expected}")
        return GONE


class Tables(Struct, frozen=True):
    """What an envelope's providers do: ``habits`` mend the members of a struct before they are read, ``strangers``
    say what an unknown ``type`` or ``role`` means, ``settings`` are the structs in which a wrong value is left out.
    """

    habits: dict[type[Struct], Habit]
    strangers: dict[type[Struct], Stranger]
    settings: frozenset[type[Struct]]


def tidy(raw: Raw, type_: Any, path: str, reading: Reading) -> bytes | None:
    """The text of ``raw`` as the strict decoder of ``type_`` takes it, or None where the whole of it is at fault."""
    value = plan_of(type_)(raw, path, reading)
    return None if value is GONE else encode(value)


@cache
def plan_of(type_: Any) -> Plan:
    """How to read a value of this type."""
    return _plan(types.type_info(type_))


def _plan(info: types.Type) -> Plan:
    while isinstance(info, types.Metadata):
        info = info.type
    return _PLANS[type(info)](info)


def _anything(info: types.Type) -> Plan:
    return lambda raw, path, reading: raw


def _leaf(expected: str) -> Callable[[types.Type], Plan]:
    def plan(info: types.Type) -> Plan:
        def read(raw: Raw, path: str, reading: Reading) -> Any:
            return raw if kind(raw) == expected else reading.wrong(raw, path, expected)

        return read

    return plan


def _whole(info: types.Type) -> Plan:
    """Table formats write 12 as 12.0 where a column has gaps; to JSON Schema both are integers."""

    def read(raw: Raw, path: str, reading: Reading) -> Any:
        found = _WHOLE.fullmatch(bytes(raw))
        return Raw(found[1]) if found else reading.wrong(raw, path, "a whole number")

    return read


_WHOLE: Final = re.compile(rb"(-?[0-9]+)(?:\.0+)?")


def _literal(info: Any) -> Plan:
    allowed = frozenset(info.values)  # texts, whose spelling does not count
    expected = " or ".join(map(str, info.values))

    def read(raw: Raw, path: str, reading: Reading) -> Any:
        return raw if text_of(raw) in allowed else reading.wrong(raw, path, expected)

    return read


def _list(info: Any) -> Plan:
    item = _plan(info.item_type)

    def read(raw: Raw, path: str, reading: Reading) -> Any:
        if kind(raw) != "an array":
            return reading.wrong(raw, path, "an array")
        result, kept = [], []
        elements = elements_of(raw)
        for position, element in enumerate(elements):
            value = item(element, f"{path}/{position}", reading)
            if value is not GONE:
                result.append(value)
                kept.append(position)
        if len(kept) < len(elements):
            reading.shifts[path] = kept
        return result

    return read


class _Fields:
    """A struct's fields, ready to read: by name the plan, whether it is required, whether it may be null."""

    def __init__(self, info: types.StructType) -> None:
        self.info = info
        self.cls = info.cls
        self.tag_field = info.tag_field
        self.required = [field.encode_name for field in info.fields if field.required]

    @cached_property
    def fields(self) -> dict[str, tuple[Plan, bool, bool]]:
        """Planned when the first such struct is read: a record holds few of those that its type names."""
        return {
            field.encode_name: (_plan(field.type), field.required, _nullable(field.type)) for field in self.info.fields
        }

    def read(self, members: Members, path: str, reading: Reading) -> Any:
        result: dict[str, Any] = {}
        lenient = self.cls in reading.settings
        for key, raw in members.items():
            if key == self.tag_field:
                result[key] = raw
            elif (field := self.fields.get(key)) is None:
                reading.unknown(raw, f"{path}/{escape(key)}")
            elif (value := self._field(field, raw, f"{path}/{key}", reading, lenient)) is not GONE:
                result[key] = value
        for key in self.required:
            if key not in members:
                reading.account.refuse("missing_field", path, f"no {key}, which is required here")
        return result if all(key in result for key in self.required) else GONE

    @staticmethod
    def _field(field: tuple[Plan, bool, bool], raw: Raw, path: str, reading: Reading, lenient: bool) -> Any:
        plan, required, nullable = field
        if not nullable and not required and kind(raw) == "null":
            return GONE
        if not lenient:
            return plan(raw, path, reading)
        aside, reading.account = reading.account, Account()
        value = plan(raw, path, reading)
        found, reading.account = reading.account, aside
        for details in found.found.values():
            for dropped in details:
                aside.notice("dropped", dropped)
        if found.reasons:
            reading.unknown(raw, path)
            return GONE
        return value


def _nullable(info: types.Type) -> bool:
    while isinstance(info, types.Metadata):
        info = info.type
    if isinstance(info, types.UnionType):
        return any(isinstance(one, types.NoneType) for one in info.types)
    return isinstance(info, (types.RawType, types.NoneType))


def _struct(info: Any) -> Plan:
    fields = _Fields(info)

    def read(raw: Raw, path: str, reading: Reading) -> Any:
        if kind(raw) != "an object":
            return reading.wrong(raw, path, "an object")
        members = members_of(raw)
        if habit := reading.habits.get(fields.cls):
            habit(members, path, reading)
        tag_field = fields.tag_field
        if tag_field and (tag := text_of(members.setdefault(tag_field, Raw(encode(info.tag))))) != info.tag:
            reading.strangers[fields.cls](tag or "", members, path, reading)
            return GONE
        return fields.read(members, path, reading)

    return read


def _tagged(structs: list[Any]) -> Plan:
    by_tag = {info.tag: _Fields(info) for info in structs}
    union, tag_field = structs[0].cls, structs[0].tag_field

    def read(raw: Raw, path: str, reading: Reading) -> Any:
        if kind(raw) != "an object":
            return reading.wrong(raw, path, "an object")
        members = members_of(raw)
        if habit := reading.habits.get(union):
            habit(members, path, reading)
        tag = members.get(tag_field)
        if tag is None or kind(tag) != "a string":
            reading.account.refuse(
                "missing_field" if tag is None else "wrong_type",
                path if tag is None else f"{path}/{tag_field}",
                f"no {tag_field}, which is required here" if tag is None else f"{kind(tag)}, expected a string",
            )
            return GONE
        name = msgspec.json.decode(tag, type=str)
        fields = by_tag.get(name)
        if fields is None:
            reading.strangers[union](name, members, path, reading)
            return GONE
        if (habit := reading.habits.get(fields.cls)) and fields.cls is not union:
            habit(members, path, reading)
        return fields.read(members, path, reading)

    return read


def _union(info: Any) -> Plan:
    structs = [one for one in info.types if isinstance(one, types.StructType)]
    by_kind: dict[str, Plan] = {}
    for one in info.types:
        if isinstance(one, types.StructType):
            if one is structs[0]:
                by_kind["an object"] = _tagged(structs) if len(structs) > 1 else _struct(one)
        elif isinstance(one, (types.IntType, types.FloatType)):
            by_kind["a number"] = _anything(one) if by_kind.get("a number") else _plan(one)
        else:
            by_kind[_KIND_OF[type(one)]] = _plan(one)
    expected = " or ".join(name for name in by_kind if name != "null")

    def read(raw: Raw, path: str, reading: Reading) -> Any:
        plan = by_kind.get(kind(raw))
        return plan(raw, path, reading) if plan else reading.wrong(raw, path, expected)

    return read


_KIND_OF: Final[dict[type[types.Type], str]] = {
    types.StrType: "a string",
    types.BoolType: "a boolean",
    types.ListType: "an array",
    types.NoneType: "null",
}

_PLANS: Final[dict[type[types.Type], Callable[[Any], Plan]]] = {
    types.RawType: _anything,
    types.StrType: _leaf("a string"),
    types.IntType: _whole,
    types.FloatType: _leaf("a number"),
    types.BoolType: _leaf("a boolean"),
    types.NoneType: _anything,
    types.LiteralType: _literal,
    types.ListType: _list,
    types.StructType: _struct,
    types.UnionType: _union,
}
