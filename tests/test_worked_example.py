"""The worked example that the replay gate starts from, through the library and through a real process."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from converter import Options, Refused, Verdict, convert_lines, replay_gate, to_chat, to_responses

TESTS = Path(__file__).parent
LOG = TESTS / "samples" / "worked_example.jsonl"
TOOLS = TESTS.parent / "schemas" / "tools"
TOOL = "get_latest_sales_report"

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"region": {"type": "string", "enum": ["apac", "emea", "amer"]}},
    "required": ["region"],
}
CALL = {
    "type": "function_call",
    "id": "fc_001",
    "call_id": "call_123",
    "name": TOOL,
    "arguments": '{"region":"apac"}',
    "status": "completed",
}
OUTPUT = {"type": "function_call_output", "call_id": "call_123", "output": "sales report for apac"}
WRONG = {
    "type": "function_call",
    "id": "fc_009",
    "call_id": "call_129",
    "name": TOOL,
    "arguments": '{"region":"global"}',
    "status": "completed",
}
SEARCH = {"type": "openai:web_search_call", "id": "ws_003", "status": "completed"}
OPTIONS = Options(tools={TOOL: SCHEMA})

VERDICTS = [
    (1, 0, "not_function_call"),
    (1, 1, "ok"),
    (1, 2, "not_function_call"),
    (2, 0, "arguments_schema"),
    (3, 0, "namespaced"),
    (4, 0, "status"),
    (5, 0, "arguments_type"),
]
REASONS = {2: "arguments_schema", 3: "namespaced", 4: "status", 5: "arguments_type"}
MESSAGES = [
    {"role": "user", "content": "Sales of APAC, please."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_123", "type": "function", "function": {"name": TOOL, "arguments": '{"region":"apac"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "call_123", "content": "sales report for apac"},
]


# ---------------------------------------------------------------- the library


def test_the_verdicts():
    assert replay_gate(CALL, SCHEMA) is Verdict.OK
    assert replay_gate(WRONG, SCHEMA) is Verdict.ARGUMENTS_SCHEMA
    assert replay_gate(SEARCH, SCHEMA) is Verdict.NAMESPACED
    assert replay_gate(OUTPUT, SCHEMA) is Verdict.NOT_FUNCTION_CALL


def test_the_schema_in_the_repository_is_that_of_the_example():
    schema = json.loads((TOOLS / f"{TOOL}.json").read_text("utf-8"))
    assert (
        schema.pop("$schema", "https://json-schema.org/draft/2020-12/schema")
        == "https://json-schema.org/draft/2020-12/schema"
    )
    assert {key: schema[key] for key in ("type", "additionalProperties", "required")} == {
        key: SCHEMA[key] for key in ("type", "additionalProperties", "required")
    }
    assert schema["properties"]["region"]["enum"] == ["apac", "emea", "amer"]


def test_only_a_call_that_is_ok_may_be_followed_by_its_output():
    assert to_chat([CALL, OUTPUT], OPTIONS).body == MESSAGES[1:]
    with pytest.raises(Refused, match=r"^arguments_schema at /0/arguments: "):
        to_chat([WRONG, {**OUTPUT, "call_id": "call_129"}], OPTIONS)
    with pytest.raises(Refused, match=r"^orphan_output at /1: "):
        to_chat([CALL, {**OUTPUT, "call_id": "call_129"}], OPTIONS)
    with pytest.raises(Refused, match=r"^namespaced at /0: "):
        to_chat([SEARCH, CALL, OUTPUT], OPTIONS)


def test_the_example_goes_there_and_back():
    items = to_responses(MESSAGES, OPTIONS).body
    assert items[1] == {**CALL, "id": items[1]["id"]}
    assert re.fullmatch(r"fc_[A-Za-z0-9_-]{1,61}", items[1]["id"])
    assert items[2] == OUTPUT
    assert to_chat(items, OPTIONS).body == MESSAGES


@pytest.mark.parametrize("verb", ["to-responses", "to-chat"])
def test_the_log(verb):
    outcomes = list(convert_lines(LOG.read_bytes().splitlines(), verb, OPTIONS))
    assert [outcome.line for outcome in outcomes] == [1, 2, 3, 4, 5]
    assert {outcome.line: outcome.reasons[0].code for outcome in outcomes[1:]} == REASONS
    assert all(len(outcome.reasons) == 1 for outcome in outcomes[1:])
    assert outcomes[0].notices == []
    if verb == "to-chat":
        assert outcomes[0].body == MESSAGES
    else:
        assert outcomes[0].json == LOG.read_bytes().splitlines()[0]


# ---------------------------------------------------------------- the command


def run(*arguments, status, cwd):
    done = subprocess.run(
        [sys.executable, "-m", "converter", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done


def test_check(tmp_path):
    done = run("check", "--tools", TOOLS, LOG, status=3, cwd=tmp_path)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert [(int(row[0]), int(row[1]), row[6]) for row in rows] == VERDICTS
    assert rows[1] == ["1", "1", "function_call", TOOL, "call_123", "completed", "ok"]
    for line, code in REASONS.items():
        assert f"{LOG}:{line}: {code} at " in done.stderr


def test_to_chat(tmp_path):
    done = run(
        "to-chat", "--tools", TOOLS, LOG, "-o", "out.jsonl", "--rejects", "rejects.jsonl", status=3, cwd=tmp_path
    )
    assert done.stdout == ""
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == [MESSAGES]
    rejects = [json.loads(line) for line in (tmp_path / "rejects.jsonl").read_text().splitlines()]
    assert {reject["line"]: [reason["code"] for reason in reject["reasons"]] for reject in rejects} == {
        line: [code] for line, code in REASONS.items()
    }
    log = [json.loads(line) for line in LOG.read_text().splitlines()]
    assert [reject["record"] for reject in rejects] == log[1:]


def test_a_repair_makes_the_last_line_whole(tmp_path):
    done = run("to-chat", "--tools", TOOLS, "--repair", "stringify-arguments", "-q", LOG, status=3, cwd=tmp_path)
    last = json.loads(done.stdout.splitlines()[-1])
    assert last[0]["tool_calls"][0]["function"] == {"name": TOOL, "arguments": '{"region":"amer"}'}
