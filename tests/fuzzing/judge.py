"""Judge what became of a record, from outside: what must hold of every refusal, and of every record that is written.

Nothing of `converter.gate` is used here, on purpose: verdicts and pairing are said again, in other words. Each function
gives faults, as short texts that name a kind of fault and nothing of the record.
"""

import json
import os
import re
from collections import Counter
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import jsonschema
import jsonschema_rs
from fuzzing.structs import PRIVATE

from converter import published
from converter.outcome import NOTICES, REASONS

CODES = frozenset(code for family in REASONS.values() for code in family)
LONGEST = 2000
"""A sentence for people is no longer than this many characters."""

CHANGING = frozenset({"stringify-arguments", "empty-arguments", "fill-call-ids", "rename-call-ids"})
"""Repairs after which ids or arguments are others than those in the log."""


class Body(NamedTuple):
    """A body of a record, before and after: its JSON text, and the kind that the converter took it for, if known."""

    kind: str | None
    source: bytes
    written: bytes


# ---------------------------------------------------------------- JSON, read strictly


class KeyTwiceError(ValueError):
    """A key stands twice in one object."""


def _once(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise KeyTwiceError
    return found


def _constant(word):
    raise ValueError(f"{word} is no JSON")


def _integer(text):
    return int(text[:999])  # Python reads no more than some thousand digits


_quick = json.JSONDecoder(parse_constant=_constant).decode
_strict = json.JSONDecoder(parse_constant=_constant, parse_int=_integer).decode
_strictest = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_constant, parse_int=_integer).decode


def repeats(text):
    """Whether a key stands twice in an object of a JSON text."""
    try:
        _strictest(text.decode().lstrip("\ufeff"))
    except KeyTwiceError:
        return True
    return False


@lru_cache(64)
def read(text):
    """The value of a JSON text, which nobody may change: both directions have the same source."""
    text = text.decode()
    try:
        return _quick(text)
    except ValueError:
        return _strict(text)  # a number may have more digits than `int` takes


# ---------------------------------------------------------------- refusals and notices


def sentences(outcome, texts):
    """Faults of what is told a reader."""
    for text in texts:
        if f"{PRIVATE} " in text:  # the word alone may have come into a key, and keys are told
            yield f"{outcome} tells what the record holds"
        if len(text) > LONGEST:
            yield f"{outcome} of {LONGEST} characters or more"
        try:
            text.encode()
        except UnicodeEncodeError:
            yield f"{outcome} with a lone surrogate"


def refusal(reasons, verified=False):
    """Faults of a refusal. Only who asked for it is told that something does not lead back."""
    if not reasons:
        yield "a refusal without a reason"
    for reason in reasons:
        if reason.code not in CODES:
            yield f"the unknown reason {reason.code}"
        if reason.code == "verify" and not verified:
            yield "a verify refusal that nobody asked for"
        if not reason.message:
            yield f"{reason.code} without a sentence"
        yield from pointer(reason.path, reason.code)
        yield from sentences(f"the reason {reason.code}", [reason.message])


def pointer(path, code):
    if path and not path.startswith("/"):
        yield f"{code} at what is no pointer"
    try:
        path.encode()
    except UnicodeEncodeError:
        yield f"{code} at a lone surrogate"


def noticed(notices):
    """Faults of the notices."""
    codes = [notice.code for notice in notices]
    if len(set(codes)) < len(codes):
        yield "two notices of one code"
    for notice in notices:
        if notice.code not in NOTICES:
            yield f"the unknown notice {notice.code}"
        if not notice.paths:
            yield f"{notice.code} without a pointer"
        for path in notice.paths:
            yield from pointer(path, notice.code)
        yield from sentences(f"the notice {notice.code}", [notice.detail])


# ---------------------------------------------------------------- what is written


def line(written, found):
    """Faults of the bytes of a written record: one line of JSON. A body that is the whole record is read there."""
    if b"\n" in written:
        yield "written over several lines"
    if any(body.written is written for body in found):
        return
    try:
        read(written)
    except UnicodeDecodeError:
        yield "written bytes that are no UTF-8"
    except (ValueError, RecursionError):
        yield "written text that is no JSON"


KEYS = (("choices", "completion"), ("output", "response"), ("messages", "chat-request"))
ENVELOPES = {"completion": "chat", "message-list": "chat", "chat-request": "chat"}
ANSWERS = ("completion", "response")


def kind_of(value):
    """Which of the six bodies a value is, by its keys."""
    if isinstance(value, list):
        types = [one.get("type") for one in value if isinstance(one, dict)]
        items = any(isinstance(one, str) and (":" in one or one in ITEMS or one.endswith(SUFFIXES)) for one in types)
        return "item-list" if items else "message-list"
    return next((kind for key, kind in KEYS if isinstance(value.get(key), list)), "responses-request")


ITEMS = ("message", "reasoning", "item_reference", "compaction")
SUFFIXES = ("_call", "_output")


def bodies(verb, options, found):
    """Faults of the bodies of one written record."""
    schemas = {}
    for body in found:
        try:
            value, source = read(body.written), read(body.source)
        except (ValueError, RecursionError):
            yield "a body that is no JSON"
            return
        before = body.kind or kind_of(source)
        standing = (ENVELOPES.get(before, "responses") == "chat") == (verb == "to-chat")
        after = before if standing else COUNTERPARTS[before]
        schemas |= declared(after, value)
        if before in ANSWERS:
            schemas |= declared(before, source)
        if not standing:
            yield from form(after, value, options)
        written = list(events(after, value, standing))
        yield from gate(after, value, written, schemas, options)
        if body.source != body.written and not options.repair & CHANGING:
            yield from exact(safe(before, source), written, options)


COUNTERPARTS = {
    "completion": "response",
    "response": "completion",
    "message-list": "item-list",
    "item-list": "message-list",
    "chat-request": "responses-request",
    "responses-request": "chat-request",
}


# ---------------------------------------------------------------- the published schemas


@cache
def shipped(envelope):
    """The repository's own schema of an envelope."""
    name = {"chat": "chat-completions", "responses": "open-responses"}[envelope]
    return jsonschema_rs.Draft202012Validator(json.loads(published.schema(name)))


COMPONENTS = {
    "chat-request": ("chat-completions", "CreateChatCompletionRequest"),
    "completion": ("chat-completions", "CreateChatCompletionResponse"),
    "responses-request": ("open-responses", "CreateResponseBody"),
    "response": ("open-responses", "ResponseResource"),
}


@cache
def released(kind):
    """The published OpenAPI schema of a body, where ``CONVERTER_SCHEMAS`` names the folder that holds it."""
    folder = os.environ.get("CONVERTER_SCHEMAS")
    if not folder:
        return None
    prefix, name = COMPONENTS[kind]
    [path] = Path(folder).glob(f"{prefix}*.json")
    components = json.loads(path.read_text("utf-8"))["components"]
    return jsonschema_rs.Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": components})


def form(kind, value, options):
    """Faults of form: what is written anew is valid under its schema."""
    envelope = ENVELOPES.get(kind, "responses")
    yield from invalid(shipped(envelope), value, kind, "shipped")
    if options.target == "openai" or (options.reasoning != "drop" and kind in ("responses-request", "item-list")):
        return  # beyond the released schema, as it was asked for
    if kind == "message-list":
        kind, value = "chat-request", {"messages": value}
    elif kind == "item-list":
        kind, value = "responses-request", {"input": value}
    if kind == "chat-request":
        value = {"model": "m", **value}
    if (schema := released(kind)) is not None:
        yield from invalid(schema, value, kind, "released")


def invalid(schema, value, kind, name):
    try:
        if schema.is_valid(value):
            return
        errors = {
            "/".join("*" if type(step) is int else str(step)[:40] for step in error.instance_path)
            for error in schema.iter_errors(value)
        }
    except (ValueError, OverflowError):
        return  # a number that the validator does not take
    yield f"a {kind} that fails the {name} schema at /{min(errors)}"


# ---------------------------------------------------------------- calls, outputs and turns


class Event(NamedTuple):
    """A call, an output, or what a user or assistant said, as it stands in a written body."""

    what: str
    at: int
    id: object = None
    name: object = None
    arguments: object = None
    status: object = "completed"
    output: object = None
    judged: bool = False


def events(kind, value, standing):
    """What stands in a body, in order; and faults of its structure."""
    if ENVELOPES.get(kind) == "chat":
        yield from spoken(kind, value)
        return
    items = value if isinstance(value, list) else value.get("output" if kind == "response" else "input")
    for at, item in enumerate(items if isinstance(items, list) else ()):
        yield from CASES.get(type_of(item), other)(item, at, standing)


def type_of(item):
    """The type of an item; without one, its role or output tells what it is."""
    if item.get("type") is not None:
        return item["type"]
    return "message" if "role" in item else "function_call_output" if "output" in item else "item_reference"


def spoken(kind, value):
    messages = value if isinstance(value, list) else value.get("messages")
    if kind == "completion":
        messages = [choice["message"] for choice in value["choices"]]
    for at, message in enumerate(messages):
        role = "assistant" if kind == "completion" else message.get("role")
        if role in ("user", "assistant"):
            yield Event(role, at)
        for call in message.get("tool_calls") or () if role == "assistant" else ():
            function, custom = call.get("function"), call.get("custom")
            if call.get("type") != "custom" and isinstance(function, dict):
                yield Event("call", at, call.get("id"), function.get("name"), function.get("arguments"), judged=True)
            else:
                yield Event("call", at, call.get("id"), custom.get("name") if isinstance(custom, dict) else None)
        if role == "assistant" and message.get("function_call"):
            call = message["function_call"]
            yield Event("call", at, (call.get("name"),), call.get("name"), call.get("arguments"), judged=True)
        if role in ("tool", "function"):
            called = message.get("tool_call_id") if role == "tool" else (message.get("name"),)
            yield Event("output", at, called, output=blank(message.get("content")))


def called(item, at, standing):
    status = (item.get("status") or "completed") if standing else item.get("status")
    yield Event("call", at, item.get("call_id"), item.get("name"), item.get("arguments"), status, judged=True)


def customized(item, at, standing):
    yield Event("call", at, item.get("call_id"), item.get("name"))


def answered(item, at, standing):
    yield Event("output", at, item.get("call_id"), output=blank(item.get("output")))


def blank(content):
    """No parts, and no content at all, are an empty text."""
    return "" if content is None or content == [] else content


def said(item, at, standing):
    yield Event("message" if item.get("role") not in ("user", "assistant") else item["role"], at)


def other(item, at, standing):
    if isinstance(item.get("type"), str) and ":" in item["type"]:
        yield Event("namespaced", at)


CASES = {
    "function_call": called,
    "custom_tool_call": customized,
    "function_call_output": answered,
    "custom_tool_call_output": answered,
    "message": said,
}


def gate(kind, value, found, schemas, options):
    """Faults that the replay gate must not have let through."""
    if any(event.what == "namespaced" for event in found):
        yield "a namespaced item"
    if kind == "completion":
        groups = {}
        for event in found:
            groups.setdefault(event.at, []).append(event)
        for group in groups.values():
            yield from paired(group, kind, value)
    else:
        yield from paired(found, kind, value)
    for event in found:
        if event.judged:
            yield from verdict(event, schemas, options)


def paired(found, kind, value):
    """Pairing: every output answers the one open call with its id, and no call is left open where the talk goes on."""
    opened, done = {}, set()
    elsewhere = kind == "responses-request" and leans(value)
    for number, event in enumerate(found):
        if event.what == "call":
            if event.id in opened:
                yield "two open calls with one id"
            opened[event.id] = number
        elif event.what == "output":
            if opened.pop(event.id, None) is not None:
                done.add(event.id)
            elif not elsewhere or event.id in done:
                yield "an output without an open call"
    if kind in ANSWERS:
        return
    for number in opened.values():
        if goes_on(found, number, chat=ENVELOPES.get(kind) == "chat"):
            yield "a call that is never answered"


def goes_on(found, number, chat):
    """Whether a later turn follows a call: a user's, or an assistant's."""
    behind = [event for event in found[number:] if event.at > found[number].at]
    if chat:
        return any(event.what in ("user", "assistant") for event in behind)
    whats = [event.what for event in behind]
    if "user" in whats:
        return True
    later = whats[whats.index("output") :] if "output" in whats else []
    return "assistant" in later or "call" in later


def leans(value):
    """A request that continues what is not in it."""
    if any(value.get(name) is not None for name in ("previous_response_id", "conversation")):
        return True
    items = value.get("input")
    return isinstance(items, list) and any(type_of(item) == "item_reference" for item in items)


def verdict(event, schemas, options):
    """A call that may not be run, and was not allowed."""
    allow = options.allow
    if event.status != "completed" and "status" not in allow:
        yield "a call that is not completed"
    if not isinstance(event.arguments, str):
        yield "arguments that are no string"
        return
    if "status" in allow:
        return  # a call that is not completed has no whole arguments
    if not parses(event.arguments):
        if "arguments_parse" not in allow:
            yield "arguments that are no JSON text"
        return
    given = options.tools if isinstance(options.tools, dict) else {}
    known = [given[event.name]] if event.name in given else schemas.get(event.name, ())
    if not known and options.require_schema and "schema_missing" not in allow:
        yield "a call of a tool without a schema"
    for schema in known:
        found = judged(json.dumps(schema), event.arguments)
        if found == "no" and "arguments_schema" not in allow:
            yield "arguments that do not satisfy the schema of their tool"
        if found == "unusable" and "invalid_tool_schema" not in allow:
            yield "a call of a tool whose schema cannot be used"


STAND_IN = re.compile("lone-surrogate-[0-9a-f]{16}-[0-9a-fA-F]{4}")


@lru_cache(4096)
def parses(arguments):
    """Whether arguments are one JSON text, with no key twice, that nests no deeper than the converter reads.

    A text holds a lone surrogate as its escape, and nowhere itself, nor what stands for it while a record is converted.
    """
    if STAND_IN.search(arguments):
        return False
    try:
        arguments.encode()
        return nesting(_strictest(arguments)) <= DEEPEST
    except (ValueError, RecursionError):
        return False


DEEPEST = 128


def nesting(value):
    """How deep arrays and objects stand in each other."""
    depth, inside = 0, [value]
    while inside := [one for one in inside if isinstance(one, (dict, list))]:
        depth += 1
        inside = [part for one in inside for part in (one.values() if isinstance(one, dict) else one)]
    return depth


DECLARING = {"chat-request": ("tools", "functions"), "responses-request": ("tools",), "response": ("tools",)}
"""Where the kinds of bodies declare tools. What stands under these names in another kind declares none."""


def declared(kind, value):
    """The schemas of the tools that a body declares, by name: all that stand for a name."""
    found = {}
    for key in DECLARING.get(kind, ()):
        entries = value.get(key)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and entry.get("type") != "custom":
                tool = entry["function"] if isinstance(entry.get("function"), dict) else entry
                name, schema = tool.get("name"), tool.get("parameters")
                if isinstance(name, str) and isinstance(schema, (dict, bool)):
                    found.setdefault(name, []).append(schema)
    return found


DRAFTS = {"04": "Draft4Validator", "06": "Draft6Validator", "07": "Draft7Validator", "2019-09": "Draft201909Validator"}


@lru_cache(4096)
def judged(schema, arguments):
    """``yes``, ``no``, ``unusable``, or ``unknown`` where two engines are not of one mind, or cannot say.

    The arguments parse.
    """
    engine = validators(schema)
    if isinstance(engine, str):
        return engine
    value = _strictest(arguments)
    if "Infinity" in json.dumps(value):
        return "unknown"  # no float holds the number that stands there
    try:
        if engine[0].is_valid(value):
            return "yes"
        return "unknown" if engine[1].is_valid(value) else "no"
    except (ValueError, OverflowError, RecursionError, TypeError):
        return "unknown"


@lru_cache(1024)
def validators(schema):
    value = json.loads(schema)
    name = value.get("$schema") if isinstance(value, dict) else None
    draft = next(
        (cls for part, cls in DRAFTS.items() if isinstance(name, str) and part in name), "Draft202012Validator"
    )
    slow = getattr(jsonschema, draft)
    try:
        fast = getattr(jsonschema_rs, draft)(value, validate_formats=False, retriever=_nothing)
    except Exception:
        try:
            slow.check_schema(value)
        except jsonschema.SchemaError:
            return "unusable"
        return "unknown"
    return fast, slow(value)


def _nothing(uri):
    raise ValueError("nothing is fetched")


# ---------------------------------------------------------------- exactness


def exact(source, written, options):
    """Faults of exactness: each call and each output that is written stands so in the source, no more often."""
    (calls, outputs), (written, answers) = told(source), told(written)
    if any(type(key[0]) is tuple for key in (*calls, *outputs)):
        # A legacy call has no id of its own: all but the made id must be the same.
        calls, outputs, written, answers = map(nameless, (calls, outputs, written, answers))
    if written - calls:
        yield "a call that is not so in the source"
    moved = "lift-media" in options.repair or "unsupported_content" in options.allow
    if answers - outputs and not moved:
        yield "an output that is not so in the source"


def told(found):
    """Of events, calls as (id, name, arguments) and outputs as (id, text), each as often as it stands there."""
    calls, outputs = Counter(), Counter()
    for event in found:
        if event.what == "call" and event.judged:
            calls[hashable(event.id), hashable(event.name), hashable(event.arguments)] += 1
        elif event.what == "output" and isinstance(event.output, str):
            outputs[hashable(event.id), event.output] += 1
    return calls, outputs


def nameless(counted):
    """The same without ids."""
    return Counter(key[1:] for key in counted.elements())


def hashable(value):
    return value if isinstance(value, (str, tuple)) else repr(value)


def safe(kind, value):
    """The events of a source, which may be of any form."""
    try:
        yield from events(kind, value, True)
    except (AttributeError, KeyError, TypeError):
        return
