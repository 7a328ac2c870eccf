"""What the fuzzer found once, again, and a few hundred fresh inputs of both kinds; ``tests/fuzzing`` has the fuzzer."""

import json
import os
import signal
import subprocess
import sys
from random import Random

import pytest
from fuzzing import judge, keep, pool, run
from fuzzing.trial import SETTINGS, Fault, Trial, options

from converter.outcome import Reason

KEPT = keep.kept()
FRESH = 200


@pytest.fixture
def trial():
    made = Trial(Random(0))
    yield made
    made.untap()


@pytest.mark.parametrize("stem", KEPT)
def test_what_was_found_once_is_found_no_more(stem, trial):
    fault = KEPT[stem]
    faults = trial.again(fault)
    for record in () if fault.whole else fault.records:
        faults += [*trial.record(record, "default"), *trial.record(record, fault.setting)]
    assert faults == []


@pytest.mark.parametrize("way", ["structured", "bytes"])
def test_fresh_inputs_are_written_or_refused_as_they_should_be(way, trial):
    following = run.inputs(way, pool.make(1, size=60), Random(1))
    faults = []
    for _ in range(FRESH):
        data, whole = following()
        faults += trial.file(data) if whole else trial.record(data)
    assert faults == []
    assert trial.counts["written"] > FRESH // 10
    assert sum(trial.counts.values()) > FRESH


def test_the_same_seed_gives_the_same_inputs():
    runs = []
    for _ in range(2):
        following = run.inputs("structured", pool.make(2, size=20), Random("2"))
        runs.append([following() for _ in range(50)])
    assert runs[0] == runs[1]


# ---------------------------------------------------------------- the judge does say no

CALL = {"type": "function_call", "id": "fc_1", "name": "f", "call_id": "c", "status": "completed", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "x"}
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object", "required": ["a"]}, "strict": False}
MESSAGES = [
    {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "x"},
]


def faults_of(items, setting="default", **request):
    """What the judge says where a request became these items."""
    written = json.dumps({"input": items, "store": False, **request}).encode()
    body = judge.Body("chat-request", json.dumps({"messages": MESSAGES}).encode(), written)
    return set(judge.bodies("to-responses", options(setting), [body]))


def test_a_faithful_body_has_no_faults():
    assert faults_of([CALL, OUTPUT]) == set()


@pytest.mark.parametrize(
    ("kind", "key", "held"), [("chat-request", "messages", True), ("completion", "choices", False)]
)
def test_only_a_body_that_has_tools_declares_them(kind, key, held):
    [call, _] = MESSAGES
    history = [call] if held else [{"index": 0, "message": call, "finish_reason": "tool_calls"}]
    written = json.dumps({key: history, "functions": [{"name": "f", "parameters": TOOL["parameters"]}]}).encode()
    faults = set(judge.bodies("to-chat", options("default"), [judge.Body(kind, written, written)]))
    assert ("arguments that do not satisfy the schema of their tool" in faults) is held


@pytest.mark.parametrize(("depth", "parses"), [(128, True), (129, False)])
def test_arguments_nest_as_deep_as_the_converter_reads(depth, parses):
    assert judge.parses("[" * depth + "]" * depth) is parses


def test_a_lone_surrogate_parses_as_its_escape_alone():
    assert judge.parses(r'{"a":"\ud800"}')
    assert not judge.parses('{"a":"\ud800"}')
    assert not judge.parses('{"a":"lone-surrogate-0123456789abcdef-d800"}')


def test_a_key_twice_is_told_wherever_it_stands():
    assert [judge.repeats(text) for text in (b'{"a":{"b":1,"b" :2}}', b'\xef\xbb\xbf{"a":1,"b":{"a":1}}')] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("items", "fault"),
    [
        ([{**CALL, "status": "incomplete"}, OUTPUT], "a call that is not completed"),
        ([{**CALL, "arguments": "{"}, OUTPUT], "arguments that are no JSON text"),
        ([{**CALL, "arguments": '{"a":1,"a":1}'}, OUTPUT], "arguments that are no JSON text"),
        ([{**CALL, "arguments": "{ }"}, OUTPUT], "a call that is not so in the source"),
        ([CALL, {**OUTPUT, "output": "y"}], "an output that is not so in the source"),
        ([CALL, OUTPUT, OUTPUT], "an output without an open call"),
        ([OUTPUT, CALL], "an output without an open call"),
        ([CALL, CALL, OUTPUT], "two open calls with one id"),
        ([CALL, {"type": "message", "role": "user", "content": "x"}], "a call that is never answered"),
        ([{"type": "acme:x"}, CALL, OUTPUT], "a namespaced item"),
        ([{**CALL, "arguments": {}}, OUTPUT], "arguments that are no string"),
        ([{**OUTPUT, "output": 5}], "a responses-request that fails the shipped schema at /input"),
    ],
)
def test_a_faulty_body_is_seen(items, fault):
    assert fault in faults_of(items)


def test_arguments_are_held_against_the_tools_that_are_written():
    assert "arguments that do not satisfy the schema of their tool" in faults_of([CALL, OUTPUT], tools=[TOOL])
    assert faults_of([CALL, OUTPUT], "allow-arguments_schema", tools=[TOOL]) == set()


@pytest.mark.parametrize("written", [b'{"a":\n1}', b'{"a":"\xff"}', b'{"a":NaN}', b"{", b"\xed\xa0\x80"], ids=range(5))
def test_faulty_bytes_are_seen(written):
    assert list(judge.line(written, []))


@pytest.mark.parametrize(
    "reasons",
    [
        [],
        [Reason("because", "", "a sentence")],
        [Reason("status", "", "")],
        [Reason("status", "x", "a sentence")],
        [Reason("status", "", "it says PRIVATE words 1")],
        [Reason("status", "", "\ud800")],
        [Reason("verify", "", "the converter failed")],
        [Reason("status", "", "x" * 5000)],
    ],
    ids=range(8),
)
def test_a_faulty_refusal_is_seen(reasons):
    assert list(judge.refusal(reasons))


def test_an_exception_is_a_fault(trial, monkeypatch):
    def fails(self, record):
        raise ZeroDivisionError

    monkeypatch.setattr("converter.convert.Session.convert", fails)
    assert {fault.kind for fault in trial.record(b"{}")} == {"ZeroDivisionError in test_fuzzing.fails"}


def hangs(data):
    while data:
        pass


def test_a_hang_is_a_fault(trial, monkeypatch):
    monkeypatch.setattr(run, "SECONDS", 0.05)
    monkeypatch.setattr(trial, "record", hangs)
    with run.alarmed():
        [fault] = run.faults_of(trial, b"{}", whole=False)
    assert fault.kind == "more seconds than any input may take"


def test_a_worker_that_was_stopped_is_not_stuck():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with child:
        window = run.Window()
        os.kill(child.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
        assert [window.stands(child.pid) for _ in range(3)] == [0, 0, 0]
        os.kill(child.pid, signal.SIGCONT)
        os.waitid(os.P_PID, child.pid, os.WCONTINUED)
        assert [window.stands(child.pid) for _ in range(3)] == [1, 2, 3]
        window.show(1, b"{}")
        assert window.stands(child.pid) == 0
        child.stdin.close()


def test_an_input_seldom_comes_again():
    following = run.inputs("structured", pool.make(3, size=20), Random("3"))
    assert len({following() for _ in range(200)}) > 180


def test_a_run_counts_all_its_inputs_and_keeps_what_it_finds(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(keep, "FOUND", tmp_path)
    monkeypatch.setattr(judge, "LONGEST", 10)  # so that there is something to find
    assert run.main(["bytes", "--count", "60", "--jobs", "2", "--pool", "20"]) == 1
    out = capsys.readouterr().out
    assert "60 (bytes, seed 0, 2 workers)" in out
    row = json.loads(out.splitlines()[-1])
    assert (row["way"], row["seed"], row["inputs"]) == ("bytes", 0, 60)
    assert row["written"] + row["refused"] >= 60
    assert row["faults"] > 0
    found = keep.kept()
    assert found
    assert all(fault.kind in keep.kinds(fault) for fault in found.values())


def test_a_fault_is_made_small():
    data = json.dumps([{"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "", "content": "x" * 99}])
    kept = keep.fewer_members(json.loads(data), lambda value: "tool_call_id" in json.dumps(value))
    assert kept == [{"tool_call_id": ""}]
    assert keep.fewer_bytes(data.encode(), lambda text: b"tool" in text) == b"tool"


@pytest.mark.parametrize("record", [b"{}", b"\xff"])
def test_a_fault_is_read_as_it_was_kept(record, tmp_path, monkeypatch):
    monkeypatch.setattr(keep, "FOUND", tmp_path)
    fault = Fault("a kind", "to-chat", "default", False, (record,))
    path = keep.save(fault)
    assert keep.kept() == {path.stem: fault}


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_are_options(setting, trial):
    assert list(trial.record(b'[{"role":"user","content":"x"}]', setting)) == []
