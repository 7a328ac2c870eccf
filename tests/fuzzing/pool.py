"""The pool of a run: records of every shape, from which the fuzzers make their inputs. The same seed, the same pool."""

import json
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec
import strategies
from fuzzing import structs
from hypothesis import HealthCheck, Phase, given, seed, settings
from msgspec import Raw

TESTS = Path(__file__).resolve().parent.parent
SENSE = strategies.CHAT_RECORDS | strategies.RESPONSES_RECORDS
STRANGE = strategies.lossy(SENSE) | strategies.with_unknown_fields(SENSE).map(lambda drawn: drawn[1])
SMALL = 400
SECRET_FIELDS = ("content", "text", "output", "refusal", "instructions", "input")
"""Fields whose text is private."""


class Pool(NamedTuple):
    """Records as parsed values, the samples' texts, and what stands in records by the name of its field."""

    records: list
    texts: list
    members: dict
    elements: dict


def make(number, size=500):
    """The pool of a seed."""
    rng = Random(f"pool {number}")
    sense = [spoken(plain(one), rng) for one in drawn(SENSE, number, size // 2)]
    sense += [spoken(plain(one), rng) for one in drawn(STRANGE, number, size // 4)]
    records = sense + drawn(structs.BODIES, number, size // 2)
    records += [wrapped(rng, records) for _ in range(size // 2)]
    samples = [value for text in texts() if (value := parsed(text)) is not None]
    members, elements = {}, {}
    for record in [*records, *samples, *samples]:
        collect(record, "", members, elements)
    return Pool([*records, *samples], texts(), members, elements)


def small_first(sizes):
    """Cumulative weights by which to choose: a small input shows as much as a large one, in less time."""
    return [*accumulate(1 / (SMALL + size) for size in sizes)]


def drawn(strategy, number, size):
    """So many values of a strategy, the same for the same number."""
    found = []

    @seed(number)
    @settings(
        max_examples=size,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        derandomize=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def take(value):
        found.append(value)

    take()
    return found


def plain(value):
    """A record of `strategies` as values that msgspec encodes."""
    if isinstance(value, strategies.Number):
        return Raw(value.spelling.encode())
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


def spoken(value, rng, name=""):
    """The record with half of its texts private."""
    if isinstance(value, dict):
        return {key: spoken(one, rng, key) for key, one in value.items()}
    if isinstance(value, list):
        return [spoken(one, rng) for one in value]
    return (
        rng.choice(structs.SECRETS)
        if name in SECRET_FIELDS and isinstance(value, str) and rng.random() < 0.5
        else value
    )


def texts():
    """The samples of the repository, one record each."""
    found = []
    for path in sorted([*TESTS.glob("samples/**/*.jsonl"), *TESTS.glob("benchmarks/*.json")]):
        found += path.read_bytes().splitlines() if path.suffix == ".jsonl" else [path.read_bytes()]
    for path in sorted(TESTS.glob("cases/*.json")):
        found.append(bytes(msgspec.json.decode(path.read_bytes(), type=dict[str, Raw])["source"]))
    return [text for text in found if text.strip()]


def parsed(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def collect(value, name, members, elements):
    """Note what stands in a record, by the name of its field; of lists, by the name of theirs."""
    if isinstance(value, dict):
        for key, one in value.items():
            members.setdefault(key, []).append(one)
            collect(one, key, members, elements)
    elif isinstance(value, list):
        elements.setdefault(name, []).extend(value)
        for one in value:
            collect(one, name, members, elements)


# ---------------------------------------------------------------- wrappers and streams


def wrapped(rng, records):
    """Some record, or two, in a wrapper or as a stream."""
    return rng.choice(WRAPPERS)(rng, records)


def of_keys(*keys):
    return lambda one: isinstance(one, dict) and any(isinstance(one.get(key), list) for key in keys)


def some(rng, records, fits=lambda one: True):
    for _ in range(50):
        if fits(one := rng.choice(records)):
            return one
    return records[0]


def pair(rng, records):
    request = some(rng, records, of_keys("messages", "input"))
    answer = some(rng, records, of_keys("choices", "output"))
    return {**rng.choice([{}, {"time": 5, "user": "u"}]), "request": request, "response": answer}


def batch_input(rng, records):
    url = rng.choice(["/v1/chat/completions", "/v1/responses", "/v1/embeddings"])
    return {"custom_id": "1", "method": "POST", "url": url, "body": some(rng, records, of_keys("messages", "input"))}


def batch_output(rng, records):
    answer = {"status_code": rng.choice([200, 200, 400]), "body": some(rng, records, of_keys("choices", "output"))}
    return {"id": "b", "custom_id": "1", "response": answer, "error": None}


def reject(rng, records):
    return {"source": "a", "line": 1, "reasons": [], "record": rng.choice(records)}


def held(rng, records):
    return {"body": rng.choice(records), "kept": [1, {"a": Raw(b"0.10")}]}


def as_text(rng, records):
    one = pair(rng, records)
    return {key: msgspec.json.encode(value).decode() if type(value) is not str else value for key, value in one.items()}


def cut(rng, text):
    """A text in pieces."""
    places = sorted(rng.randrange(len(text) + 1) for _ in range(rng.randrange(3)))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


def chunks(rng, records):
    """The chunks of a completion, as the server would have sent them."""
    answer = some(rng, records, of_keys("choices"))
    head = {"id": answer.get("id"), "object": "chat.completion.chunk", "created": 1, "model": answer.get("model")}
    made = []
    for choice in answer.get("choices", []):
        message = choice.get("message") or {}
        deltas = [{"role": "assistant"}]
        deltas += [{"content": piece} for piece in cut(rng, message.get("content") or "") if type(piece) is str]
        for index, call in enumerate(message.get("tool_calls") or []):
            function = call.get("function") or call.get("custom") or {}
            first, *rest = cut(rng, function.get("arguments") or function.get("input") or "")
            key, field = ("custom", "input") if "custom" in call else ("function", "arguments")
            deltas.append({"tool_calls": [{**call, "index": index, key: {**function, field: first}}]})
            deltas += [{"tool_calls": [{"index": index, key: {field: piece}}]} for piece in rest]
        end = [None] * len(deltas) + [choice.get("finish_reason")]
        for delta, finish in zip([*deltas, {}], end, strict=True):
            made.append({**head, "choices": [{"index": choice.get("index"), "delta": delta, "finish_reason": finish}]})
    if "usage" in answer:
        made.append({**head, "choices": [], "usage": answer["usage"]})
    return made


def events(rng, records):
    """The events of a response resource, as the server would have sent them."""
    answer = some(rng, records, of_keys("output"))
    empty = {**answer, "output": [], "status": "in_progress"}
    made = [{"type": "response.created", "response": empty}, {"type": "response.in_progress", "response": empty}]
    for at, item in enumerate(answer.get("output", [])):
        made.append(
            {"type": "response.output_item.added", "output_index": at, "item": {**item, "status": "in_progress"}}
        )
        if item.get("type") == "function_call" and isinstance(item.get("arguments"), str):
            name, where = "response.function_call_arguments", {"output_index": at, "item_id": item.get("id")}
            made += [{"type": f"{name}.delta", **where, "delta": piece} for piece in cut(rng, item["arguments"])]
            made.append({"type": f"{name}.done", **where, "arguments": item["arguments"]})
        made.append({"type": "response.output_item.done", "output_index": at, "item": item})
    end = {"incomplete": "incomplete", "failed": "failed"}.get(answer.get("status"), "completed")
    made.append({"type": f"response.{end}", "response": answer})
    return [{**one, "sequence_number": at} for at, one in enumerate(made)]


def spelled(frames):
    lines = [b"data: " + msgspec.json.encode(one) + b"\n\n" for one in frames]
    return (b"".join(lines) + b"data: [DONE]\n\n").decode()


def stream(rng, records):
    made = rng.choice([chunks, events])(rng, records)
    key = "chunks" if made and "choices" in made[0] else "events"
    return rng.choice([made, {key: made}, spelled(made), {"sse": spelled(made)}])


def session(rng, records):
    items = some(rng, records, lambda one: isinstance(one, list))
    return [{"timestamp": "t", "type": "response_item", "payload": one} for one in items]


WRAPPERS = [pair, pair, batch_input, batch_output, reject, held, as_text, stream, stream, stream, stream, session]
