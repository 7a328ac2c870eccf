"""A history that begins as another one is read from where it goes on; what comes out is what came out without."""

import json
from unittest.mock import patch

import msgspec
import pytest
from msgspec import Raw, Struct
from strategies import asks, call, dumps, function_call, output, said, tool
from ways import CHAT, RESPONSES, rooms, short_enough

from converter import Converted, Options
from converter.beginnings import LEAST, PROBE, Beginnings
from converter.convert import Session
from converter.recall import Recall

USER = {"role": "user", "content": "where is the north?"}
ITEM = {"type": "message", **USER}
HISTORIES = {
    CHAT: [USER, said("there"), USER, asks(call()), tool(), said("so"), {**USER, "content": "and the \N{SNOWMAN}?"}],
    RESPONSES: [
        ITEM,
        {**ITEM, "role": "assistant"},
        ITEM,
        function_call(),
        output(),
        {**ITEM, "content": "\N{SNOWMAN}?"},
    ],
}
KEYS = {CHAT: "messages", RESPONSES: "input"}


def text(verb, history, before=(), behind=(), spaced=False, key=None):
    """A request with these fields before and behind its history, the names and values of which are JSON texts."""
    comma, colon = (", ", ": ") if spaced else (",", ":")
    fields = [*before, (json.dumps(key or KEYS[verb]), "[" + comma.join(map(dumps, history)) + "]"), *behind]
    return ("{" + comma.join(f"{name}{colon}{value}" for name, value in fields) + "}").encode()


MODEL = ('"model"', '"m"')
STREAM = ('"stream"', "false")


def last(verb):
    return dumps(HISTORIES[verb][-1])


def second(spell):
    """Variants that have a second history behind the first one, under a name that is spelled so."""
    return {
        value: lambda verb, history, value=value: text(
            verb, history, [MODEL], [(spell(KEYS[verb]), value.replace("last", last(verb)))]
        )
        for value in ("[]", "[last]", "[last,last]", "null", '"x"', "{}")
    }


def escaped(name):
    """A name whose first letter is spelled as an escape."""
    return f'"\\u{ord(name[0]):04x}{name[1:]}"'


def uppercase(name):
    """A name whose last letter is spelled as an escape with large letters."""
    return f'"{name[:-1]}\\u{ord(name[-1]):04X}"'


VARIANTS = {
    **{f"a second history: {value}": made for value, made in second(json.dumps).items()},
    **{f"a second history behind an escape: {value}": made for value, made in second(escaped).items()},
    **{f"a second history behind a large escape: {value}": made for value, made in second(uppercase).items()},
    "a second history behind a number that stands twice": lambda verb, history: text(
        verb,
        history,
        [MODEL],
        [('"temperature"', "1.5"), (json.dumps(KEYS[verb]), f"[{last(verb)}]"), ('"temperature"', "1")],
    ),
    "a comma behind the last message and a number that stands twice": lambda verb, history: text(
        verb,
        history,
        [MODEL],
        [('"temperature"', "1.5"), (json.dumps(KEYS[verb]), "[]"), ('"temperature"', "1")],
    ).replace(b"}]", b"},]"),
    "a comma behind the last message": lambda verb, history: text(verb, history, [MODEL]).replace(b"}]", b"},]"),
    "no message behind the comma": lambda verb, history: text(verb, [*history[:-1]], [MODEL]).replace(b"}]", b"},]"),
    "two commas": lambda verb, history: text(verb, history, [MODEL])[:-2] + b",," + dumps(USER).encode() + b"]}",
    "a blank before a comma": lambda verb, history: text(verb, [*history, *history[-1:]], [MODEL]).replace(
        b"},{", b"} ,{"
    ),
    "the last message otherwise": lambda verb, history: text(verb, [*history[:-1], {**history[-1], "zz": 1}], [MODEL]),
    "a message less": lambda verb, history: text(verb, history[:-1], [MODEL]),
    "the first message otherwise": lambda verb, history: text(verb, [{**history[0], "content": "y"}, *history[1:]]),
    "another model": lambda verb, history: text(verb, history, [('"model"', '"n"')], [STREAM]),
    "a field that no envelope has": lambda verb, history: text(verb, history, [MODEL], [('"zz"', "1")]),
    "a name of the history in a field": lambda verb, history: text(
        verb, history, [MODEL], [('"metadata"', f'{{"{KEYS[verb]}":"x"}}')]
    ),
    "an escaped letter": lambda verb, history: text(verb, history, [MODEL], [('"user"', '"\\u0061"')]),
    "bytes that are not UTF-8": lambda verb, history: text(verb, history, [MODEL], [('"user"', '"x"')]).replace(
        b'"x"', b'"\xff"'
    ),
    "bytes in a second history": lambda verb, history: text(
        verb, history, [MODEL], [(json.dumps(KEYS[verb]), "[1]")]
    ).replace(b"[1]", b'["\xff\xff"]'),
    "a lone surrogate": lambda verb, history: text(verb, history, [MODEL], [('"user"', '"\\ud800"')]),
    "cut": lambda verb, history: text(verb, history, [MODEL])[:-2],
    "text behind": lambda verb, history: text(verb, history, [MODEL]) + b"]",
    "another shape": lambda verb, history: text(verb, history, [MODEL], [('"system"', '"x"')]),
}


@pytest.mark.parametrize("options", [{}, {"strict": True}, {"verify": True}], ids=["", "strict", "verify"])
@pytest.mark.parametrize("verb", [CHAT, RESPONSES])
@pytest.mark.parametrize("name", VARIANTS)
def test_what_follows_a_known_beginning_is_read_as_if_it_were_not_known(name, verb, options):
    history, session = HISTORIES[verb], Session(verb, Options(**options))
    variant = VARIANTS[name](verb, history)
    with short_enough():
        for record in [*[text(verb, history, [MODEL])] * 3, variant, variant, text(verb, history, [MODEL]), variant]:
            assert session.outcome(1, record) == rooms(verb, **options).outcome(1, record)


@pytest.mark.parametrize("verb", [CHAT, RESPONSES])
@pytest.mark.parametrize("where", ["before", "behind"])
def test_a_copy_of_the_history_in_another_field_is_not_taken_for_it(where, verb):
    history = HISTORIES[verb]
    copy = [('"metadata"', f'{{"{KEYS[verb]}":[{",".join(map(dumps, history))}]}}')]
    session = Session(verb, Options())
    with short_enough():
        for size in (5, 5, 5, 6, len(history), 5, len(history)):
            record = text(verb, history[:size], **{where: copy})
            assert session.outcome(1, record) == rooms(verb).outcome(1, record)


# ---------------------------------------------------------------- that it is known


@pytest.mark.parametrize("verb", [CHAT, RESPONSES])
@pytest.mark.parametrize("spaced", [False, True], ids=["", "spaced"])
@pytest.mark.parametrize("bare", [False, True], ids=["request", "list"])
def test_of_a_conversation_that_goes_on_only_the_end_is_decoded(bare, spaced, verb):
    history, session, read = HISTORIES[verb], Session(verb, Options()), []

    def outline(recall, given, strangers, original=Recall._outline):
        read.append(given)
        return original(recall, given, strangers)

    def record(size):
        parts = history[:size]
        if bare:
            return (json.dumps if spaced else dumps)(parts).encode()
        return text(verb, parts, [MODEL], [STREAM], spaced)

    with short_enough(), patch.object(Recall, "_outline", outline):
        for size in (2, 2, 2, 5):
            session.outcome(1, record(size))
        read.clear()
        outcome = session.outcome(1, record(len(history)))
    assert isinstance(outcome, Converted)
    [short] = read
    assert len(json.loads(short) if bare else json.loads(short)[KEYS[verb]]) == len(history) - 3


def test_conversations_that_part_are_all_known():
    history = HISTORIES[CHAT]
    branches = [[*history, {**USER, "content": f"{way} {'x' * PROBE}"}, *history, USER] for way in ("up", "down", "on")]
    session, gone = Session(CHAT, Options()), []

    def going_on(recall, *given, original=Recall._going_on):
        gone.append(original(recall, *given))
        return gone[-1]

    records = [dumps({"messages": branch}).encode() for branch in branches]
    with short_enough(probe=PROBE), patch.object(Recall, "_going_on", going_on):
        for record in records * 3:
            session.outcome(1, record)
        gone.clear()
        for record in records:
            assert session.outcome(1, record) == rooms(CHAT).outcome(1, record)
    assert len(gone) == len(records)
    assert None not in gone


def test_what_is_known_of_beginnings_takes_no_more_room_than_it_may(monkeypatch):
    monkeypatch.setattr("converter.beginnings.ROOM", 300_000)
    session = Session(CHAT, Options())
    for number in range(60):
        history = [USER, {**USER, "content": f"{number} {'x' * 8_000}"}, *HISTORIES[CHAT], USER]
        for record in [dumps(history).encode()] * 3:
            session.outcome(1, record)
    known = session.recalls["message-list"].beginnings.known
    held = sum(len(each.head) for branches in known.values() for each in branches)
    assert 8_000 < held < 300_000


class Body(Struct):
    messages: list[Raw]


decode = msgspec.json.Decoder(Body).decode


def test_a_beginning_is_told_by_all_its_bytes():
    beginnings = Beginnings()
    texts = [dumps({**USER, "content": letter * (LEAST // 4)}).encode() for letter in "abcd"]
    record = b'{"messages":[' + b",".join(texts) + b"]}"
    beginnings.learn(record, texts, lambda short: [bytes(one) for one in decode(short).messages])
    assert beginnings.of(record) is not None
    for at in range(record.index(texts[-1])):
        assert beginnings.of(record[:at] + b"~" + record[at + 1 :]) is None


def test_what_is_no_longer_decoded_is_not_too_deep_elsewhere():
    nest = "[" * 300 + "]" * 300
    deep = f'{{"role":"user","content":"{"x" * LEAST}","zz":{nest}}}'
    history = [*(dumps({**USER, "content": f"{number} {'x' * PROBE}"}) for number in range(5)), deep]

    def record(size):
        return f'{{"messages":[{",".join([*history, *history, *history][:size])}]}}'.encode()

    def further_down(frames, function):
        return function() if frames == 0 else further_down(frames - 1, function)

    session = Session(CHAT, Options())
    for size in (8, 8, 8, 13):
        session.outcome(1, record(size))
    for frames in range(0, 700, 50):
        alone = further_down(frames, lambda: Session(CHAT, Options()).outcome(1, record(14)))
        assert further_down(frames, lambda: session.outcome(1, record(14))) == alone


def test_a_conversation_that_is_refused_takes_no_place():
    texts = [dumps({**USER, "content": f"{number} {'x' * LEAST}"}).encode() for number in range(6)]
    session = Session(CHAT, Options())
    good = b'{"messages":[' + b",".join(texts) + b"]}"
    for _ in range(3):
        session.outcome(1, good)
    beginnings = session.recalls["chat-request"].beginnings
    [before] = [each for branches in beginnings.known.values() for each in branches]
    bad = good.replace(b"]}", b"," + b",".join([b"10"] * 20_000) + b"]}")
    assert not isinstance(session.outcome(1, bad), Converted)
    assert [each for branches in beginnings.known.values() for each in branches] == [before]
