"""Faults that were found: made as small as they go, and kept in ``found/``, from where the tests take them."""

import base64
import json
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from random import Random

from fuzzing.trial import Fault, Trial

FOUND = Path(__file__).resolve().parent / "found"


def smaller(fault, seconds=20):
    """The fault with as little of its input as still shows it. One that takes several records stays as it is."""
    if len(fault.records) > 1 or not fault.verb:
        return fault
    end = time.monotonic() + seconds

    def shows(text):
        return time.monotonic() < end and fault.kind in kinds(fault._replace(records=(text,)))

    def shown(value):
        return shows(json.dumps(value).encode())

    [data] = fault.records
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not fault.whole and value is not None and shown(value):
        return fault._replace(records=(json.dumps(fewer_members(value, shown)).encode(),))
    return fault._replace(records=(fewer_bytes(data, shows),))


def kinds(fault):
    """Which faults an input shows by itself, in fresh sessions."""
    trial = Trial(Random(0))
    try:
        return {one.kind for one in trial.again(fault)}
    finally:
        trial.untap()


def fewer_bytes(data: bytes, shows: Callable[[bytes], bool]) -> bytes:
    """The text without all bytes that the fault does not need: halves first, then ever smaller pieces."""
    size = len(data) // 2
    while size:
        at = 0
        while at < len(data):
            candidate = data[:at] + data[at + size :]
            if shows(candidate):
                data = candidate
            else:
                at += size
        size //= 2
    return data


def fewer_members(value, shows):
    """A value without all members and elements that the fault does not need, from the outside in."""
    for key in places(value)[::-1]:
        candidate = value.copy()
        del candidate[key]
        if shows(candidate):
            value = candidate
    for key in places(value):
        value = replaced(value, key, fewer_members(value[key], within(value, key, shows)))
    if isinstance(value, str) and value:
        value = next((one for one in ("", "x", value[:9], value[: len(value) // 2]) if shows(one)), value)
    return value


def places(value):
    return list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []


def within(value, key, shows):
    """The same question of a value that stands inside another."""
    return lambda one: shows(replaced(value, key, one))


def replaced(value, key, one):
    changed = value.copy()
    changed[key] = one
    return changed


# ---------------------------------------------------------------- files


def save(fault):
    """Keep a fault's input: one file a kind, named by a hash of the kind. What was kept of the kind before stays."""
    FOUND.mkdir(exist_ok=True)
    name = sha256(fault.kind.encode()).hexdigest()[:12]
    again = len([*FOUND.glob(f"{name}*.json")])
    path = FOUND / f"{name}{f'-{again + 1}' if again else ''}.json"
    row = {**fault._asdict(), "records": [spelled(record) for record in fault.records]}
    path.write_text(json.dumps(row, indent=1) + "\n", "utf-8")
    return path


def spelled(record):
    """A text, or bytes that are none, for a JSON file."""
    try:
        return record.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(record).decode()}


def read(record):
    return record.encode() if isinstance(record, str) else base64.b64decode(record["base64"])


def kept():
    """All faults that were found, by the names of their files."""
    found = {}
    for path in sorted(FOUND.glob("*.json")):
        row = json.loads(path.read_text("utf-8"))
        found[path.stem] = Fault(**{**row, "records": tuple(map(read, row["records"]))})
    return found
