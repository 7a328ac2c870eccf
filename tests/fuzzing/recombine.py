"""Structured inputs: records of the pool, put together anew.

Hypothesis makes some hundred records a second; this makes many thousand from what it made. A value is never changed in
place: the way to what changes is copied, all else is shared with the pool.
"""

import msgspec
from fuzzing import structs
from fuzzing.pool import small_first
from msgspec import Raw

VENDOR = "zz_vendor"
TWICE = "\0again"
"""Behind a key: it shall stand twice in its object, which no dict can hold."""
LONE = "<lone>"
"""In a text: a lone surrogate's escape."""

BLANKS = [b" ", b"\n", b"  ", b"\r\n", b"\t \n"]
"""What may stand between a key and its colon."""

JUNK = [None, True, False, 0, 1, -1, 5.5, "", "x", "null", [], {}, [[]], [None], [{}], {"a": 1}, {"type": "text"}]
JUNK += [Raw(one) for one in (b"0.10", b"1e999", b"-0", b"123456789012345678901234567890", b"0", b"1E400")]
TYPES = [
    *("openai:web_search_call", "acme:x", "function_call", "function_call_output", "message", "reasoning", "text"),
    *("input_text", "output_text", "image_url", "input_image", "refusal", "function", "custom", "item_reference"),
    *("web_search_call", "mcp_call", "compaction", "custom_tool_call", "custom_tool_call_output", "tool_use", "a b"),
    *("summary_text", "reasoning_text", "input_file", "file", "input_audio", "allowed_tools", "computer_call", ":"),
]
ROLES = ["user", "assistant", "tool", "system", "developer", "function", "model", "", "critic"]
KINDS = {"type": TYPES, "role": ROLES, "object": ["response", "chat.completion", "chat.completion.chunk", "list"]}
IDS = ("id", "call_id", "tool_call_id")
VENDOR_FIELDS = ["name", "index", "weight", "cache_control", "phase", "namespace", "extra", "native_finish_reason"]


class Recombiner:
    """Records from one pool, by one stream of random numbers."""

    def __init__(self, pool, rng):
        self.pool = pool
        self.rng = rng
        self.random = rng.random
        self.choice = rng.choice
        self.names = sorted(pool.members)
        self.weights = small_first(map(len, map(msgspec.json.encode, pool.records)))
        self.base = self.some()

    def some(self):
        """Some record of the pool."""
        return self.rng.choices(self.pool.records, cum_weights=self.weights)[0]

    def record(self):
        """The next input: JSON text. Several in a row are made from one record, since the lines of a log are alike."""
        if self.random() < 0.05:
            self.base = self.some()
        value = self.base
        while self.random() < 0.7:
            value = self.changed(value, "")
        if self.random() < 0.03:
            value = self.choice([[value], {"body": value}, {"request": value, "response": value}, {"record": value}])
        try:
            text = msgspec.json.encode(value)
        except RecursionError:
            return b"[" * 2000
        if b"\\u0000again" in text:
            text = text.replace(b'\\u0000again"', b'"')
        if self.random() < 0.05:
            text = text.replace(b'":', b'"%b:' % self.choice(BLANKS), self.rng.randrange(1, 9))
        return text.replace(b"<lone>", b"\\ud83d") if b"<lone>" in text else text

    # ------------------------------------------------------------ the way down

    def changed(self, value, name):
        """The value with one change somewhere in it."""
        kind = type(value)
        if kind is dict and value:
            if self.random() < 0.25:
                return self.choice(OBJECT_CHANGES)(self, value)
            key = self.choice(list(value))
            one = value[key]
            if type(one) not in (dict, list) and self.random() < 0.5:
                key = self.choice(list(value))
                one = value[key]
            return {**value, key: self.changed(one, key)}
        if kind is list:
            if not value or self.random() < 0.3:
                return self.choice(LIST_CHANGES)(self, value, name)
            at = int(self.random() * len(value))
            return [*value[:at], self.changed(value[at], name), *value[at + 1 :]]
        return self.other(value, name)

    # ------------------------------------------------------------ values

    def other(self, value, name):
        """Another value in the place of one."""
        chance = self.random()
        if name in KINDS and chance < 0.6:
            return self.choice(KINDS[name])
        if name in IDS and chance < 0.5:
            return self.choice(structs.IDS)
        if name == "arguments" and chance < 0.6:
            return self.choice(structs.ARGUMENTS)
        if type(value) is str and chance < 0.75:
            return self.choice(TEXT_CHANGES)(value)
        if chance < 0.9 and name in self.pool.members:
            return self.choice(self.pool.members[name])
        return self.choice(JUNK)

    def same_name(self, name):
        return self.choice(self.pool.members[name]) if name in self.pool.members else self.choice(JUNK)

    # ------------------------------------------------------------ objects

    def replace(self, value):
        key = self.choice(list(value))
        return {**value, key: self.same_name(key)}

    def delete(self, value):
        key = self.choice(list(value))
        return {name: one for name, one in value.items() if name != key}

    def junk(self, value):
        return {**value, self.choice(list(value)): self.choice(JUNK)}

    def add(self, value):
        key = self.choice(self.names)
        return {**value, key: self.choice(self.pool.members[key])}

    def vendor(self, value):
        key = VENDOR if self.random() < 0.5 else self.choice(VENDOR_FIELDS)
        return {**value, key: self.choice(JUNK)}

    def twice(self, value):
        key = self.choice(list(value))
        return {**value, key + TWICE: self.same_name(key) if self.random() < 0.5 else value[key]}

    def rename(self, value):
        old, new = self.choice(list(value)), self.choice(self.names)
        return {new if name == old else name: one for name, one in value.items()}

    def backwards(self, value):
        return dict(reversed(value.items()))

    def nulls(self, value):
        """What a table format does: null in fields of other rows."""
        return {**{self.choice(self.names): None for _ in range(3)}, **value}

    def as_text(self, value):
        key = self.choice(list(value))
        return {**value, key: msgspec.json.encode(value[key]).decode()}

    def as_list(self, value):
        key = self.choice(list(value))
        return {**value, key: [value[key]]}

    # ------------------------------------------------------------ lists

    def element(self, name):
        """What might stand in a list of this name."""
        known = self.pool.elements.get(name)
        return self.choice(known) if known and self.random() < 0.9 else self.choice(JUNK)

    def insert(self, value, name):
        at = int(self.random() * (len(value) + 1))
        return [*value[:at], self.element(name), *value[at:]]

    def remove(self, value, name):
        at = int(self.random() * len(value)) if value else 0
        return [*value[:at], *value[at + 1 :]]

    def again(self, value, name):
        at = int(self.random() * len(value)) if value else 0
        return [*value[: at + 1], *value[at:]]

    def swap(self, value, name):
        at = int(self.random() * len(value)) if value else 0
        return [*value[:at], *value[at : at + 2][::-1], *value[at + 2 :]]

    def splice(self, value, name):
        other = self.same_name(name) if name else self.choice(self.pool.records)
        cut = int(self.random() * (len(value) + 1))
        return [*value[:cut], *(other[cut:] if type(other) is list else [])]

    def empty(self, value, name):
        return []


OBJECT_CHANGES = [
    *[Recombiner.replace] * 4,
    *[Recombiner.delete] * 3,
    *[Recombiner.junk] * 2,
    *[Recombiner.add] * 2,
    *(Recombiner.vendor, Recombiner.twice, Recombiner.rename, Recombiner.backwards, Recombiner.nulls),
    *(Recombiner.as_text, Recombiner.as_list),
]
LIST_CHANGES = [
    *[Recombiner.insert] * 3,
    *[Recombiner.remove] * 3,
    *[Recombiner.swap] * 3,
    *(Recombiner.again, Recombiner.splice, Recombiner.empty),
]
TEXT_CHANGES = [
    lambda text: text[:-1],
    lambda text: text[: len(text) // 2],
    lambda text: text + " ",
    lambda text: text + text,
    lambda text: "",
    lambda text: text.upper(),
    lambda text: "openai:" + text,
    lambda text: text + LONE,
    lambda text: text + "\0\u2028\ufeff",
    lambda text: text[:40] * 12,
    lambda text: text.replace('"', "'"),
    lambda text: text[:-1] + ',"a":1}',
]
