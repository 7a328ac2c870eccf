"""A schema as a document: its draft, the schemas inside it, and what they refer to. Nothing is ever fetched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from converter.arguments import frozen, load
from converter.patterns import UnusableError

MOST_APPLIED, LONGEST_CHAIN = 10_000, 64
"""Subschemas that may apply to one value; references and combinators that may follow each other."""

MOST_FOLLOWED: Final = 20_000
"""Subschemas of a schema whose references are followed: some ten microseconds each."""

SAME_VALUE: Final = frozenset(
    {"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}
)
_SINGLE: Final = frozenset({"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if"}) | {
    *("items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties")
}
_LISTED: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
_NAMED: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)


class Draft(NamedTuple):
    """A draft of JSON Schema, by what must be known of it here."""

    validator: str
    """The name of its class, the same in both engines."""
    references: tuple[str, ...]
    ignored: tuple[str, ...]
    """Keywords that one engine asserts although the draft, or the other engine, does not."""


_ENCODED: Final = ("$schema", "contentEncoding", "contentMediaType")
_NEWEST: Final = "json-schema.org/draft/2020-12/schema"
_DRAFTS: Final = {
    "json-schema.org/draft-04/schema": Draft("Draft4Validator", ("$ref",), _ENCODED),
    "json-schema.org/draft-06/schema": Draft("Draft6Validator", ("$ref",), _ENCODED),
    "json-schema.org/draft-07/schema": Draft("Draft7Validator", ("$ref",), _ENCODED),
    "json-schema.org/draft/2019-09/schema": Draft(
        "Draft201909Validator", ("$ref", "$recursiveRef"), (*_ENCODED, "dependencies")
    ),
    _NEWEST: Draft("Draft202012Validator", ("$ref", "$dynamicRef"), (*_ENCODED, "dependencies")),
}
"""The drafts that both engines know, by ``$schema`` without scheme and empty fragment. Draft 3 is not among them."""


def read_schema(text: bytes) -> tuple[Any, bool]:
    """The schema as parsed JSON, and whether it is plain (see `load`)."""
    try:
        schema, plain = load(text.decode())
    except ValueError as error:
        reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise UnusableError(f"is not one JSON text: {reason}") from None
    if not isinstance(schema, (dict, bool)):
        raise UnusableError("is neither an object nor a boolean")
    return schema, plain


def dialect(node: dict[str, Any], default: Draft = _DRAFTS[_NEWEST]) -> Draft:
    """The draft that a schema names."""
    if "$schema" not in node:
        return default
    name = node["$schema"]
    known = _DRAFTS.get(re.sub(r"^https?://|#$", "", name)) if isinstance(name, str) else None
    if known is None:
        raise UnusableError("names a $schema that is none of the drafts 4, 6, 7, 2019-09 and 2020-12")
    return known


def _subschemas(node: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The subschemas of a schema, with their keyword; what has not the form of a schema is passed over."""
    for key, value in node.items():
        several: Any = ()
        if key in _NAMED and isinstance(value, dict):
            several = value.values()
        elif key in _LISTED and isinstance(value, list):
            several = value
        elif key in _SINGLE:
            several = (value,)
        for each in several:
            if isinstance(each, dict):
                yield key, each


def every_node(root: Any) -> Iterator[dict[str, Any]]:
    """The schema, all schemas inside it, and those at other places of it to which a JSON Pointer of its own leads."""
    left = [root] if isinstance(root, dict) else []
    seen: set[int] = set()
    while left:
        node = left.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node.get("$ref"), str) and isinstance(target := pointed(root, node["$ref"]), dict):
            left.append(target)
        left += [each for _, each in _subschemas(node)]
        yield node


def pointed(root: Any, reference: str) -> Any:
    """What stands where ``#/a/b`` points to, or None."""
    place = root if reference.startswith("#/") else None
    for step in unquote(reference).split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(place, list):
            place = place[int(key)] if key.isdecimal() and len(key) < 9 and int(key) < len(place) else None
        else:
            place = place.get(key) if isinstance(place, dict) else None
    return place


def settle(root: Any) -> Draft:
    """The draft of a schema. Takes out, in place, what only one engine would assert, and ``$schema``, now known."""
    if not isinstance(root, dict):
        return _DRAFTS[_NEWEST]
    draft = dialect(root)
    for node in every_node(root):
        if dialect(node, draft) is not draft:
            raise UnusableError("mixes drafts")
        for keyword in draft.ignored:
            node.pop(keyword, None)
        if isinstance(needs := node.get("dependencies"), dict):  # both forms in one object are not for `referencing`
            needs.update({name: {"required": names} for name, names in needs.items() if isinstance(names, list)})
        # Draft 4 wants a choice of values that differ; jsonschema-rs does not look at that.
        choice = node.get("enum") if draft.validator == "Draft4Validator" else None
        if isinstance(choice, list) and len(set(map(frozen, choice))) < max(1, len(choice)):
            raise UnusableError("is invalid under the metaschema of Draft4")
    return draft


def follow(root: dict[str, Any], draft: Draft, is_schema: Callable[[Any], bool]) -> int:
    """How many subschemas may apply to one value.

    Refuses references that lead outside, nowhere, to no schema, or round in a circle on one and the same value.
    """
    import referencing

    specification = _specification(draft)
    identifier = "id" if draft.validator == "Draft4Validator" else "$id"
    known = {id(node) for node in islice(every_node(root), MOST_FOLLOWED + 1)}
    if len(known) > MOST_FOLLOWED:
        raise UnusableError(f"has more than {MOST_FOLLOWED:,} subschemas, and references between them")
    # A registry without a way to retrieve: what is not in this document cannot be found.
    document = specification.create_resource(root)
    whole = referencing.Registry().resolver_with_root(document)
    checked = _declared(document)
    beside: dict[Any, list[Any]] = {}  # by identity: the schemas that apply to the same value as this one
    left: list[tuple[Any, Any]] = [(root, whole)]
    while left:
        node, resolver = left.pop()
        if not isinstance(node, dict) or id(node) in beside:
            continue
        same = beside[id(node)] = []
        for keyword, each in _subschemas(node):
            named = isinstance(each.get(identifier, ""), str)  # it may be anything where the draft knows no schema
            left.append((each, resolver.in_subresource(specification.create_resource(each)) if named else resolver))
            if keyword in SAME_VALUE:
                same.append(id(each))
        for keyword in draft.references:
            if isinstance(reference := node.get(keyword), str):  # it too may be anything there
                target = _target(resolver, reference)
                if id(target.contents) not in checked and not is_schema(target.contents):
                    raise UnusableError("holds a reference to what is no schema")
                if isinstance(target.contents, dict) and id(target.contents) not in known:
                    raise UnusableError(
                        "holds a reference to where no schema is declared, by another way than from the top"
                    )
                left.append((target.contents, target.resolver))
                same += [id(target.contents), keyword] if keyword != "$ref" else [id(target.contents)]
        for keyword, anchor in (("$dynamicRef", "$dynamicAnchor"), ("$recursiveRef", "$recursiveAnchor")):
            if node.get(anchor):  # may be the target of any dynamic reference, to err towards refusing
                beside.setdefault(keyword, []).append(id(node))
    return bound(beside)


def _declared(document: Any) -> set[int]:
    """The identities of all that the metaschema of this draft has looked at as a schema."""
    seen: set[int] = set()
    left = [document]
    while left:
        resource = left.pop()
        seen.add(id(resource.contents))
        left += resource.subresources()
    return seen


def _target(resolver: Any, reference: str) -> Any:
    from referencing.exceptions import Unresolvable

    try:
        return resolver.lookup(reference)
    except (Unresolvable, ValueError, TypeError, AttributeError):  # the last two: on the way through what is no object
        nowhere = reference.startswith("#")
        raise UnusableError(
            "holds a reference that leads nowhere" if nowhere else "refers to something outside itself"
        ) from None


def bound(beside: dict[Any, list[Any]]) -> int:
    """Refuse circles (they never end) and graphs whose check would take more than a stated number of steps."""
    steps: dict[Any, int] = {}
    chain: dict[Any, int] = {}
    try:
        for node in TopologicalSorter(beside).static_order():
            below = beside.get(node, [])
            steps[node] = 1 + sum(steps[each] for each in below)
            chain[node] = 1 + max((chain[each] for each in below), default=0)
            if steps[node] > MOST_APPLIED or chain[node] > LONGEST_CHAIN:
                raise UnusableError("has more references and combinators on one value than can be checked")
    except CycleError:
        raise UnusableError("holds a reference that leads back to itself without an end") from None
    return max(steps.values(), default=1)


def _specification(draft: Draft) -> Any:
    import jsonschema  # type: ignore[import-untyped]
    from referencing.jsonschema import specification_with

    meta_schema = getattr(jsonschema, draft.validator).META_SCHEMA
    return specification_with(meta_schema.get("$id") or meta_schema["id"])
