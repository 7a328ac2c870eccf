"""Byte inputs: texts of the samples and of the pool, with some bytes changed."""

import re

import msgspec
from fuzzing.pool import small_first

SCALAR = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null')
VALUES = [
    *(
        b"null",
        b"true",
        b"0",
        b"-0",
        b"1e999",
        b"0.10",
        b'""',
        b'"x"',
        b"[]",
        b"{}",
        b"[null]",
        b'{"a":1,"a":2}',
        b"[[]]",
    ),
    *(
        b'"openai:x"',
        b'"openai\\u003ax"',
        b'"\\ud800"',
        b'"\\uD83D\\uDE00"',
        b'"\\u0000"',
        b'"\xe2\x80\xa8"',
        b"9" * 40,
    ),
    *(b'"c"', b'"{}"', b'"function_call"', b'"message"', b'"assistant"', b'"tool"', b'"completed"', b'"in_progress"'),
    *(b"9" * 5000, b"1E400", b"[" * 140 + b"]" * 140, b'"' + b"x" * 70 + b'"', b'"\\u00e9"', b'"\xc3\xa9"', b'"\xff"'),
]
MEMBERS = [
    *(
        b'"type":',
        b'"role":',
        b'"content":',
        b'"id":',
        b'"call_id":',
        b'"name":',
        b'"arguments":',
        b'"output":',
        b'"\\u0069d":',
    ),
    *(
        b'"status":',
        b'"tool_calls":',
        b'"tools":',
        b'"function":',
        b'"input":',
        b'"messages":',
        b'"zz":',
        b'"\\ud800":',
        b'"":',
    ),
]

TOKENS = [
    *(b"\\u0000", b"\\ud800", b"\\udc00\\ud800", b"1e999", b"-0", b"-", b"NaN", b"Infinity", b"null", b"true", b"{}"),
    *(
        b'"',
        b"'",
        b"\\",
        b"\\\\",
        b"[",
        b"]",
        b"{",
        b"}",
        b",",
        b":",
        b'""',
        b"\n",
        b"\r\n",
        b"\r",
        b"\t",
        b"\0",
        b"\x7f",
    ),
    *(b"\\u003a", b"openai:x", b'"type":"openai:x",', b'"status":"incomplete",', b'"call_id":"c",', b'"arguments":{},'),
    *(
        b"\xef\xbb\xbf",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xe2\x80\xa8",
        b"\xc2\x85",
        b"\xf0\x9f\x98\x80",
        b"\xff\xfe",
    ),
    *(b"[" * 200, b"[" * 3000, b'{"a":' * 150, b"9" * 40, b"9" * 5000, b"0.1", b"1E400", b"1e-999", b"00", b"\\u00"),
    *(b"data: ", b"data: [DONE]\n\n", b"event: x\n", b'"a":1,"a":2,', b'"type":null,', b'"id":"c","id":"d",', b"\\/"),
    *(b'"tools":[],', b'"input":[],', b'"messages":[],', b'"output":[],', b'"choices":[],', b'"role":"tool",'),
]


class Mutator:
    """Texts from one pool, by one stream of random numbers."""

    def __init__(self, pool, rng):
        self.texts = [*pool.texts * 2, *(msgspec.json.encode(one) for one in pool.records)]
        self.texts = [text for text in self.texts if len(text) < 6000]
        self.weights = small_first(map(len, self.texts))
        self.rng = rng
        self.random = rng.random

    def some(self):
        """Some text of the pool."""
        return self.rng.choices(self.texts, cum_weights=self.weights)[0]

    def record(self):
        """The next input: bytes, which may be anything."""
        text = bytearray(self.some())
        while True:
            self.rng.choice(CHANGES)(self, text)
            if self.random() < 0.45:
                return bytes(text[:20_000])

    def file(self):
        """A whole file of a few records, by lines or otherwise."""
        parts = [self.some() if self.random() < 0.5 else self.record() for _ in range(self.place(4) + 1)]
        begin, between, end = self.rng.choice(FORMS)
        return begin + between.join(parts) + end

    def place(self, size):
        return int(self.random() * size)

    def span(self, text):
        start = self.place(len(text) + 1)
        return start, start + self.place(self.rng.choice((4, 40, 400)))

    # ------------------------------------------------------------ changes

    def flip(self, text):
        if text:
            text[self.place(len(text))] ^= 1 << self.place(8)

    def set(self, text):
        if text:
            text[self.place(len(text))] = self.place(256)

    def delete(self, text):
        start, end = self.span(text)
        del text[start:end]

    def double(self, text):
        start, end = self.span(text)
        text[start:start] = text[start:end]

    def move(self, text):
        start, end = self.span(text)
        taken = text[start:end]
        del text[start:end]
        start = self.place(len(text) + 1)
        text[start:start] = taken

    def token(self, text):
        start = self.place(len(text) + 1)
        text[start:start] = self.rng.choice(TOKENS)

    def over(self, text):
        """A token in the place of a quoted text."""
        start = text.find(b'"', self.place(len(text) + 1))
        end = text.find(b'"', start + 1)
        if 0 <= start < end:
            text[start : end + 1] = self.rng.choice(TOKENS)

    def value(self, text):
        """Another value in the place of a text, a number or a word; the whole stays JSON."""
        if found := SCALAR.search(text, self.place(len(text) + 1)):
            text[found.start() : found.end()] = self.rng.choice(VALUES)

    def other(self, text):
        """A text, number or word of another input in the place of one."""
        source = self.some()
        there = SCALAR.search(source, self.place(len(source) + 1))
        here = SCALAR.search(text, self.place(len(text) + 1))
        if here and there:
            text[here.start() : here.end()] = there[0]

    def member(self, text):
        """One more member at the start of an object."""
        at = text.find(b"{", self.place(len(text) + 1)) + 1
        if at:
            text[at:at] = self.rng.choice(MEMBERS) + self.rng.choice(VALUES) + b","

    def blank(self, text):
        """Blanks where JSON lets them be."""
        if found := re.compile(rb"[,:{[]").search(text, self.place(len(text) + 1)):
            text[found.end() : found.end()] = self.rng.choice((b" ", b"\n", b"\r", b"\t", b"\r\n  "))

    def escape(self, text):
        """A character as its escape: the same text for a reader of JSON."""
        start = self.place(len(text) + 1)
        if start < len(text) and 97 <= text[start] <= 122:
            text[start : start + 1] = b"\\u%04x" % text[start]

    def splice(self, text):
        other = self.some()
        start, cut = self.place(len(text) + 1), self.place(len(other) + 1)
        if self.random() < 0.5:
            text[start:] = other[cut:]
        else:
            text[start:start] = other[cut : cut + 200]

    def truncate(self, text):
        del text[self.place(len(text) + 1) :]


CHANGES = [
    *(Mutator.flip, Mutator.flip, Mutator.set, Mutator.delete, Mutator.double, Mutator.move, Mutator.token),
    *(Mutator.token, Mutator.over, Mutator.escape, Mutator.splice, Mutator.truncate),
    *[Mutator.value] * 4,
    *[Mutator.other] * 4,
    *[Mutator.member] * 4,
    *(Mutator.blank, Mutator.escape, Mutator.escape),
]
FORMS = [
    *[(b"", b"\n", b"\n")] * 6,
    *((b"", b"\r\n", b""), (b"\xef\xbb\xbf", b"\n\n", b"\n"), (b"[", b",\n", b"]\n"), (b"[\n", b"\n,", b"\n]")),
    *((b"data: ", b"\n\ndata: ", b"\n\ndata: [DONE]\n\n"), (b"", b" ", b""), (b'{"data":[', b",", b"]}")),
]
