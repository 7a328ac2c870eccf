"""Logs are private: what a record says stands in the output and in the rejects file, and nowhere else.

Every place of some records is filled with junk that holds a secret, one after the other. No sentence may repeat it.
Pointers name the record's own keys, which is what they are for; on standard error they are cut.
"""

import copy
import io
import json
import subprocess
import sys
import traceback

import pytest
from strategies import USER, asks, call, completion, function_call, output, response, said, tool

from converter import Options, Refused, convert_lines, to_responses
from converter.outcome import ALLOWABLE, Reason, Rejected
from converter.report import Speaker, Sums

SECRET = "my secret: 4711\x1b[2J"
JUNK = [SECRET, [SECRET], {SECRET: SECRET}, {"type": SECRET}, {"type": "x:y", "text": SECRET}, 4711.5, True, ""]

CHUNK = {"object": "chat.completion.chunk", "id": "i", "model": "m", "created": 1}
EVENT = {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": SECRET}
CALL = function_call()
RECORDS = {
    "chat request": {
        "messages": [USER, asks(call('{"a":1}')), tool()],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
        "model": "m",
        "user": "u",
        "temperature": 1,
        "stop": ["x"],
    },
    "completion": completion(said("x")),
    "items": [{"type": "message", **USER}, CALL, output()],
    "responses request": {"input": [{"type": "message", **USER}, CALL, output()], "text": {}},
    "response": response(CALL),
    "chunks": [{**CHUNK, "choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}]}],
    "events": [EVENT, {"type": "response.completed", "response": response(CALL)}],
    "pair": {"request": {"messages": [USER]}, "response": completion(said("x"))},
}


def places(value, path=()):
    yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inside in members:
        yield from places(inside, (*path, key))


def filled(record, path, junk):
    """The record with junk in one place."""
    if not path:
        return junk
    made = copy.deepcopy(record)
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = junk
    return made


@pytest.mark.parametrize("options", [{}, {"strict": True}, {"allow": ALLOWABLE, "verify": True}], ids=str)
@pytest.mark.parametrize("name", RECORDS)
def test_no_sentence_repeats_the_record(name, options):
    record = RECORDS[name]
    lines = [json.dumps(filled(record, path, junk)) for path in places(record) for junk in JUNK]
    for verb in ("to-responses", "to-chat"):
        for outcome in convert_lines(lines, verb, Options(**options)):
            said = [one.message for one in getattr(outcome, "reasons", ())]
            told = [one.detail for one in getattr(outcome, "notices", ()) if one.code != "unchecked"]
            for sentence in (*said, *told):
                assert "secret" not in sentence, (outcome, lines[outcome.line - 1])
                assert "4711" not in sentence


BROKEN = [b'{"secret": 4711', b'{"secret": nope}', b'{"secret": "\xff"}', b"secret", b"'secret'"]


@pytest.mark.parametrize("line", BROKEN)
def test_no_text_that_is_no_json_is_repeated(line):
    [outcome] = convert_lines([line], "to-responses")
    assert "secret" not in str(outcome.reasons)


def test_a_traceback_holds_the_reasons_alone():
    with pytest.raises(Refused) as refused:
        to_responses([{"role": "user", "content": {"secret": 4711}}])
    told = "".join(traceback.format_exception_only(refused.value)) + repr(refused.value)
    assert "/0/content" in told
    assert "secret" not in told


def test_standard_error_holds_no_more_than_the_beginning_of_a_key():
    stream = io.StringIO()
    speaker = Speaker(quiet=False, refusals=True, stream=stream)
    speaker.refused("log", Rejected(1, [Reason("loss", "/" + "k" * 5000 + "\x1b[2J\n", "m" * 5000)], b""))
    assert len(stream.getvalue()) < 1500
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue().count("\n") == 1


def test_the_report_holds_no_more_than_the_beginning_of_a_key():
    from converter.outcome import Notice

    sums = Sums(source="log")
    for number in range(3):
        sums.notice(Notice("dropped", [f"/messages/{number}/{'k' * 5000}"], ""))
    [(path, count)] = sums.dropped.items()
    assert count == 3
    assert len(path) <= 201


def test_a_run_says_nothing_of_what_it_refuses(tmp_path):
    log = tmp_path / "log"
    lines = [json.dumps(filled(RECORDS["chat request"], path, SECRET)) for path in places(RECORDS["chat request"])]
    log.write_text("\n".join([*lines, "my secret", '{"my secret":']) + "\n")
    for verb in ("to-responses", "to-chat", "check", "inspect"):
        run = [sys.executable, "-m", "converter", verb, str(log), "-o", str(tmp_path / verb)]
        done = subprocess.run(run, capture_output=True, check=False)
        assert done.returncode == 3
        assert b"secret" not in done.stdout + done.stderr
