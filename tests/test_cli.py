"""The command line: what goes where, exit statuses, and the ways in which a run can break off."""

import gzip
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from click import Option
from click.testing import CliRunner

import converter
from converter.cli import ends, main
from converter.outcome import ALLOWABLE, Converted, Notice, Reason, Rejected
from converter.verdicts import Row


class Fake:
    """A conversion that writes what it reads; ``refuse`` and ``notice`` in a record ask for the rest."""

    def __init__(self):
        self.asked = []

    def prepare(self, verb, options):
        self.asked.append((verb, options))
        return self.step

    def step(self, line, text):
        try:
            record = msgspec.json.decode(text)
        except msgspec.DecodeError as fault:
            return Rejected(line, [Reason("invalid_json", "", str(fault))], text)
        if not isinstance(record, dict):
            return Converted(line, text, [])
        if reasons := record.get("refuse"):
            return Rejected(line, [Reason(code, f"/{code}", "a sentence") for code in reasons], text)
        return Converted(line, text, [Notice(code, ["/messages/1/name"]) for code in record.get("notice", [])])

    def check(self, options):
        self.asked.append(("check", options))
        cells = {"type": "function_call", "name": "a\tb", "call_id": "call_1", "status": "completed", "verdict": "ok"}
        rows = [{"position": position, **cells} for position in (0, 1)]
        return lambda line, text: ([Row(line=line, **row) for row in rows], self.step(line, text))


@pytest.fixture
def fake(monkeypatch):
    made = Fake()
    for name, prepare in (("convert", made.prepare), ("check", made.check)):
        module = ModuleType(f"converter.{name}")
        module.prepare = prepare
        monkeypatch.setitem(sys.modules, f"converter.{name}", module)
    monkeypatch.setattr(converter, "__version__", "9.9.9", raising=False)
    monkeypatch.setattr(converter, "SPECIFICATION", "2026-04-24", raising=False)
    return made


@pytest.fixture
def run(fake, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments, stdin=b"", status=0):
        result = CliRunner().invoke(main, [str(each) for each in arguments], input=stdin, prog_name="converter")
        assert result.exit_code == status, result.output
        return result

    return run


def log(name, *records):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(record if isinstance(record, str) else json.dumps(record) + "\n" for record in records))
    return name


def lines(name):
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


GOOD, NOTED, BAD = {"n": 1}, {"notice": ["dropped", "odd"]}, {"refuse": ["status", "limit"]}


# ---------------------------------------------------------------- data


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_standard_input_to_standard_output(run, arguments):
    result = run("to-chat", *arguments, stdin=b'{"a":1}\r\n\n{"a":  2}')
    assert result.stdout == '{"a":1}\n{"a":  2}\n'
    assert result.stderr.startswith("converter to-chat: 2 read, 2 written, 0 refused in ")


def test_several_inputs_become_one_output_in_order(run):
    log("b", {"n": 1}, {"n": 2})
    log("a", [{"messages": []}, {"messages": [1]}])
    run("to-responses", "b", "a", "-", "b", "-o", "out", stdin=b"{}")
    expected = [{"n": 1}, {"n": 2}, {"messages": []}, {"messages": [1]}, {}, {"n": 1}, {"n": 2}]
    assert lines("out") == expected


@pytest.mark.parametrize("option", ["-o", "--rejects", "--notices", "--report"])
def test_an_output_never_replaces_an_input(run, option):
    log("a", GOOD, NOTED)
    result = run("to-chat", "a", option, "./a", status=2)
    assert "./a is an input, and what is refused would be lost: give the output another name" in result.stderr
    assert lines("a") == [GOOD, NOTED]


def test_compressed_in_and_out(run):
    Path("a.jsonl").write_bytes(gzip.compress(b"{}\n{}\n"))
    run("to-chat", "a.jsonl", "-o", "b.jsonl.gz")
    assert gzip.decompress(Path("b.jsonl.gz").read_bytes()) == b"{}\n{}\n"


def test_an_output_for_each_input(run):
    log("logs/a.jsonl", {"n": 1})
    log("logs/deep/b.sse", "data: 1\n")
    Path("logs/c.jsonl.gz").write_bytes(gzip.compress(b"{}\n"))
    run("to-chat", "logs/a.jsonl", "logs/deep/b.sse", "logs/c.jsonl.gz", "--out-dir", "new/out")
    assert lines("new/out/a.jsonl") == [{"n": 1}]
    assert lines("new/out/deep/b.jsonl") == ["data: 1\n"]
    assert gzip.decompress(Path("new/out/c.jsonl.gz").read_bytes()) == b"{}\n"


def test_existing_outputs_can_be_left(run):
    log("a", {"n": 1})
    log("b", {"n": 2})
    log("out/a", {"n": 0})
    result = run("to-chat", "a", "b", "--out-dir", "out", "--skip-existing", "--report", "report")
    assert lines("out/a") == [{"n": 0}]
    assert lines("out/b") == [{"n": 2}]
    assert "1 read, 1 written, 0 refused, 1 skipped" in result.stderr
    assert json.loads(Path("report").read_text())["skipped"] == ["a"]
    run("to-chat", "b", "-o", "out/a", "--skip-existing")
    assert lines("out/a") == [{"n": 0}]


@pytest.mark.parametrize("option", ["--rejects", "--notices"])
def test_rows_of_inputs_that_are_skipped_are_not_lost(run, option):
    for name in ("a", "b"):
        log(name, {"n": 1})
    rows = ["--out-dir", "out", "--skip-existing", option]
    run("to-chat", "a", *rows, "rows")
    Path("rows").write_text("kept")
    refused = run("to-chat", "a", "b", *rows, "rows", status=2)
    assert "rows of inputs that --skip-existing leaves out" in refused.stderr
    assert Path("rows").read_text() == "kept"
    run("to-chat", "a", "b", *rows, "others")
    assert lines("out/b") == [{"n": 1}]


def test_a_limit_counts_over_all_inputs(run):
    log("a", *[{"n": n} for n in range(5)])
    assert run("to-chat", "a", "a", "--limit", 7).stdout.count("\n") == 7
    run("to-chat", "a", "--limit", 5, "-o", "out")
    assert len(lines("out")) == 5


def test_a_dry_run_writes_no_output(run):
    log("a", GOOD, BAD, NOTED)
    files = ("--rejects", "rejects", "--notices", "notices", "--report", "report")
    result = run("to-chat", "a", "-o", "out", "--dry-run", *files, status=3)
    assert not Path("out").exists()
    assert result.stdout == ""
    assert (len(lines("rejects")), len(lines("notices"))) == (1, 2)
    assert json.loads(Path("report").read_text())["written"] == 2
    run("to-chat", "a", "--out-dir", "out", "--dry-run", status=3)
    assert not Path("out").exists()


# ---------------------------------------------------------------- refusals


def test_refusals_are_rows_in_a_file(run):
    log("a", GOOD, BAD, "not JSON\n", GOOD)
    result = run("to-chat", "a", "-o", "out", "--rejects", "rejects", status=3)
    first, second = lines("rejects")
    assert (first["source"], first["line"], first["record"]) == ("a", 2, BAD)
    assert [reason["code"] for reason in first["reasons"]] == ["status", "limit"]
    assert second["record"] == "not JSON"
    assert lines("out") == [GOOD, GOOD]
    assert result.stderr.startswith(
        "converter to-chat: 4 read, 2 written, 2 refused (invalid_json 1, limit 1, status 1)"
    )


def test_or_lines_on_standard_error(run):
    log("a", GOOD, *[BAD] * 15)
    shown = run("to-chat", "a", "-o", "out", status=3).stderr.splitlines()
    assert shown[:2] == ["a:2: status at /status: a sentence", "a:2: limit at /limit: a sentence"]
    assert len(shown) == 22
    assert shown[20] == "… and 5 more refused (--rejects FILE keeps them all)"
    assert run("to-chat", "a", "-o", "out", "-q", status=3).stderr == ""


@pytest.mark.parametrize(
    ("arguments", "read"), [(["--fail-fast"], 2), (["--max-rejects", "0"], 2), (["--max-rejects", "2"], 4)]
)
def test_too_many_refusals_stop_the_run(run, arguments, read):
    log("a", GOOD, BAD, BAD, BAD, GOOD)
    log("out", {"n": 0})
    files = ("--rejects", "rejects", "--report", "report")
    result = run("to-chat", "a", "-o", "out", *arguments, *files, status=3)
    assert lines("out") == [{"n": 0}]
    assert len(lines("rejects")) == read - 1
    report = json.loads(Path("report").read_text())
    assert (report["read"], report["complete"]) == (read, False)
    assert result.stderr.rstrip().endswith("; stopped early")
    assert sorted(os.listdir()) == ["a", "out", "rejects", "report"]


def test_as_many_as_the_user_bears_do_not(run):
    log("a", GOOD, BAD, BAD)
    run("to-chat", "a", "-o", "out", "--max-rejects", "2", status=3)
    assert lines("out") == [GOOD]


def test_an_overlong_line_is_refused_without_being_held(run):
    log("a", GOOD, {"long": "x" * 5000}, GOOD)
    run("to-chat", "a", "-o", "out", "--max-line-bytes", 1000, "--rejects", "rejects", status=3)
    assert lines("out") == [GOOD, GOOD]
    (row,) = lines("rejects")
    assert (row["line"], row["record"], row["reasons"][0]["code"]) == (2, "", "too_long")


# ---------------------------------------------------------------- check


def test_check_prints_a_line_an_item(run):
    log("a", GOOD, BAD)
    result = run("check", "a", status=3)
    cells = [line.split("\t") for line in result.stdout.splitlines()]
    assert cells[0] == ["1", "0", "function_call", "a\\tb", "call_1", "completed", "ok"]
    assert [(cell[0], cell[1]) for cell in cells] == [("1", "0"), ("1", "1"), ("2", "0"), ("2", "1")]
    assert result.stderr.splitlines()[0] == "a:2: status at /status: a sentence"
    assert "2 read, 1 ok, 1 refused" in result.stderr
    run("check", stdin=b"{}")


# ---------------------------------------------------------------- inspect


def test_inspect_shows_the_records_of_the_lines_that_are_asked_for(tmp_path):
    records = [b'{"messages":[{"role":"user","content":"x"}]}', b"", b'{"foo":1}', b"{cut"]
    (tmp_path / "log").write_bytes(b"\n".join(records * 2))
    done = process("inspect", "log", "--line", "1", "--line", "4", "--line", "7", cwd=tmp_path, status=3)
    heads = [line for line in done.stdout.decode().splitlines() if line.startswith("log:")]
    assert heads == ["log:1: chat-request, written", "log:4: refused", "log:7: refused"]
    # What a sheet shows is not said once more.
    assert re.fullmatch(r"converter inspect: 3 read, 1 ok, 2 refused .*\n", done.stderr.decode())


def test_a_limit_counts_what_is_looked_at(tmp_path):
    (tmp_path / "log").write_bytes(b'{"messages":[{"role":"user","content":"x"}]}\n' * 9)
    done = process("inspect", "log", "--line", "4", "--line", "7", "--limit", "1", cwd=tmp_path)
    assert done.stdout.startswith(b"log:4: ")
    assert b"log:7" not in done.stdout


def test_a_line_that_is_too_long_has_a_sheet_too(tmp_path):
    (tmp_path / "log").write_bytes(b'{"messages":[{"role":"user","content":"x"}]}\n' + b"x" * 100 + b"\n")
    done = process("inspect", "log", "--max-line-bytes", "50", "-q", cwd=tmp_path, status=3)
    assert b"\nlog:2: refused\n  refused: too_long at the top: a line of more than 50 bytes" in done.stdout


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_line_on_which_no_record_begins(tmp_path, jobs):
    (tmp_path / "log").write_bytes(b'{"messages":[{"role":"user","content":"x"}]}\n\n')
    done = process("inspect", "log", "--line", "2", "--line", "9", "--jobs", jobs, cwd=tmp_path, status=1)
    assert done.stderr == b"converter: no record begins on line 2 or 9 of log\n"


# ---------------------------------------------------------------- options


def test_options_reach_the_conversion(run, fake):
    log("tools.json", {"tools": [{"type": "function"}]})
    arguments = (
        *("--tools", "tools.json", "--require-schema", "--allow", "status", "--allow", "namespaced"),
        *("--repair", "lift-media", "--reasoning", "keep", "--target", "openai", "--strict", "--verify"),
        *("--accept-loss", "/seed", "--accept-loss", "/n", "--at", "/a", "--at", "/b", "--choice", "0"),
    )
    run("to-responses", *arguments, stdin=b"{}")
    ((verb, options),) = fake.asked
    assert verb == "to-responses"
    assert options.tools == [{"type": "function"}]
    assert options.allow == {"status", "namespaced"}
    assert options.repair == {"lift-media"}
    assert (options.reasoning, options.target, options.choice) == ("keep", "openai", 0)
    assert options.require_schema
    assert options.strict
    assert options.verify
    assert (options.accept_loss, options.at) == (("/seed", "/n"), ("/a", "/b"))
    run("check", "--allow", "status", "--tools", "tools.json", stdin=b"{}")
    assert fake.asked[1][1].allow == {"status"}


def test_tools_from_an_array_and_from_a_folder(run, fake):
    log("array.json", "\ufeff", [{"type": "function"}])
    log("folder/find.json", {"type": "object"})
    log("folder/get.it.json", {})
    log("folder/README", "x")
    run("to-chat", "--tools", "array.json", stdin=b"")
    run("to-chat", "--tools", "folder", stdin=b"")
    assert [options.tools for _, options in fake.asked] == [
        [{"type": "function"}],
        {"find": {"type": "object"}, "get.it": {}},
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{}", "neither an array of tool definitions"),
        ('{"tools":{}}', "neither an array of tool definitions"),
        ("{", "is not JSON"),
        (None, "No such file"),
    ],
)
def test_tools_that_are_none(run, content, sentence):
    if content is not None:
        log("tools.json", content)
    assert sentence in run("to-chat", "--tools", "tools.json", status=2).stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--out-dir", "x", "-o", "y", "a"], "exclude each other"),
        (["--out-dir", "x"], "--out-dir needs named inputs"),
        (["--out-dir", "x", "a", "-"], "--out-dir needs named inputs"),
        (["--skip-existing", "a"], "--skip-existing needs"),
        (["a", "-o", "x", "--rejects", "./x"], "would be written twice"),
        (["a", "--report", "-"], "would be written twice"),
        (["a", "a", "--out-dir", "x"], "would be written twice"),
        (["--allow", "limit"], "Invalid value for '--allow'"),
        (["--repair", "limit"], "Invalid value for '--repair'"),
        (["--reasoning", "all"], "Invalid value for '--reasoning'"),
        (["--choice", "-1"], "Invalid value for '--choice'"),
        (["--limit", "0"], "Invalid value for '--limit'"),
        (["--from", "nothing"], "Invalid value for '--from'"),
        (["--nonsense"], "No such option"),
    ],
)
def test_a_wrong_command_line(run, arguments, sentence):
    log("a", GOOD)
    assert sentence in run("to-chat", *arguments, status=2).stderr


def test_what_the_conversion_refuses_to_start_with(run, monkeypatch):
    def prepare(verb, options):
        raise ValueError("--at is not a pointer")

    monkeypatch.setattr(sys.modules["converter.convert"], "prepare", prepare)
    assert "--at is not a pointer" in run("to-chat", status=2).stderr


@pytest.mark.parametrize("name", main.commands)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_every_command_has_help_with_examples(run, name, option):
    shown = run(name, option).stdout
    assert f"Examples:\n    converter {name} " in shown
    assert all(parameter.help for parameter in main.commands[name].params if isinstance(parameter, Option))
    assert all(reason in shown for reason in ALLOWABLE)


def test_versions(run):
    expected = f"converter {version('open-responses-converter')} (Open Responses specification 2026-04-24)\n"
    assert run("--version").stdout == expected
    command = [sys.executable, "-X", "importtime", "-m", "converter", "--version"]
    done = subprocess.run(command, capture_output=True, env=WHERE, check=True)
    assert done.stdout.decode() == expected
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert not {"click", "msgspec", "jsonschema", "converter.cli"} & imported


# ---------------------------------------------------------------- what breaks a run off


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["missing"], "converter: missing: No such file or directory\n"),
        (["a", "missing", "-o", "out"], "converter: missing: No such file or directory\n"),
        (["."], "converter: .: a folder, expected files (./*.jsonl names those in it)\n"),
        (["log.zip", "-o", "out"], "converter: log.zip: an archive of files, expected one log: unpack it first\n"),
        (["log.tar.gz"], "converter: log.tar.gz: an archive of files, expected one log: unpack it first\n"),
        (["a", "-o", "no/out"], "converter: no/out: No such file or directory\n"),
        (["a", "-o", "."], "Is a directory"),
        (["a", "--rejects", "no/rejects"], "converter: no/rejects: No such file or directory\n"),
        (["cut.gz", "-o", "out"], "converter: cut.gz: damaged or cut compressed data"),
        (["a", "cut.gz", "-o", "out", "--report", "report"], "converter: cut.gz: damaged or cut compressed data"),
    ],
)
def test_what_cannot_be_read_or_written(run, arguments, sentence):
    log("a", GOOD)
    with zipfile.ZipFile("log.zip", "w") as archive:
        archive.write("a")
    with tarfile.open("log.tar.gz", "w:gz") as archive:
        archive.add("a")
    Path("cut.gz").write_bytes(gzip.compress(os.urandom(1000).hex().encode() + b"\n")[:500])
    assert sentence in run("to-chat", *arguments, status=1).stderr
    assert sorted(os.listdir()) == ["a", "cut.gz", "log.tar.gz", "log.zip"]


REAL = importlib.util.find_spec("converter.convert") and importlib.util.find_spec("converter.check")
real = pytest.mark.skipif(not REAL, reason="needs the conversion itself")
# A signal may come between the opening of a file and the block that closes it.
COMMAND = [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", "-m", "converter"]
ASK = {"messages": [{"role": "user", "content": "hi"}]}
ORPHAN = {"messages": [{"role": "tool", "tool_call_id": "call_1", "content": "x"}, {"role": "user", "content": "hi"}]}
WHERE = {**os.environ, "PYTHONPATH": f"{Path(converter.__file__).parents[1]}{os.pathsep}{os.environ['PYTHONPATH']}"}


def process(*arguments, cwd, stdin=b"", status=0):
    done = subprocess.run([*COMMAND, *map(str, arguments)], input=stdin, capture_output=True, cwd=cwd, env=WHERE)
    assert done.returncode == status, done.stderr
    return done


@real
def test_a_real_run(tmp_path):
    data = "".join(json.dumps(record) + "\n" for record in (ASK, ORPHAN, ASK)).encode()
    done = process("to-responses", "--rejects", "rejects", cwd=tmp_path, stdin=data, status=3)
    first, second = done.stdout.splitlines()
    assert first == second
    assert json.loads(first)["input"][0]["role"] == "user"
    assert json.loads((tmp_path / "rejects").read_bytes())["reasons"][0]["code"] == "orphan_output"
    assert done.stderr.startswith(b"converter to-responses: 3 read, 2 written, 1 refused (orphan_output 1)")
    (tmp_path / "items").write_bytes(done.stdout)
    back = process("to-chat", "items", cwd=tmp_path)
    assert [json.loads(line) for line in back.stdout.splitlines()] == [ASK, ASK]
    assert process("check", cwd=tmp_path, stdin=data, status=3).stdout


@real
def test_a_closed_pipe_ends_quietly(tmp_path):
    (tmp_path / "a").write_text((json.dumps(ASK) + "\n") * 50_000)
    with subprocess.Popen(
        [*COMMAND, "to-responses", "a"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=WHERE
    ) as running:
        running.stdout.readline()
        running.stdout.close()
        assert running.wait(30) == 141
        assert running.stderr.read() == b""


@real
@pytest.mark.parametrize(
    ("number", "status", "said"),
    [
        (signal.SIGINT, 130, b"converter: interrupted: the files that were being written are left as they were\n"),
        (signal.SIGTERM, 143, b"converter: terminated: the files that were being written are left as they were\n"),
    ],
)
def test_a_signal_leaves_no_partial_target(tmp_path, number, status, said):
    with subprocess.Popen(
        [*COMMAND, "to-responses", "-o", "out"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=WHERE,
    ) as running:
        running.stdin.write(json.dumps(ASK).encode() + b"\n")
        running.stdin.flush()
        deadline = time.monotonic() + 20
        while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.01)
        # One that comes just before Python waits for more input is answered with the next one: it is not heard there.
        while running.poll() is None and time.monotonic() < deadline:
            running.send_signal(number)
            time.sleep(0.2)
        assert running.wait(30) == status
        assert running.stderr.read() == said
    assert list(tmp_path.iterdir()) == []


def test_a_signal_of_which_a_stream_makes_another_fault(capsys):
    def write():
        try:
            signal.raise_signal(signal.SIGINT)
        except BaseException:
            raise ValueError("write to closed file") from None

    with pytest.raises(SystemExit) as caught:
        ends()(write)()
    assert caught.value.code == 130
    assert capsys.readouterr().err.startswith("converter: interrupted: ")


def test_help_and_versions_do_not_wait_for_the_other_rooms():
    folder = str(Path(converter.__file__).parent)
    code = f"""
import sys, types
package = sys.modules["converter"] = types.ModuleType("converter")
package.__path__ = [{folder!r}]
import converter.cli
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    rooms = {name for name in done.stdout.decode().split() if name.startswith("converter.")}
    assert rooms == {
        "converter.cli",
        "converter.files",
        "converter.frames",
        "converter.options",
        "converter.outcome",
        "converter.records",
    }


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_standard_stream_is_taken_for_no_other_file(tmp_path, closed):
    (tmp_path / "a").write_bytes(b'{"messages":[{"role":"user","content":"x"}]}\n{}\n')
    command = f'"{sys.executable}" -m converter to-responses a'
    done = subprocess.run(["sh", "-c", f"{command} -o out {closed}"], cwd=tmp_path, env=WHERE, check=False)
    assert (done.returncode, (tmp_path / "out").read_bytes().count(b"\n")) == (3, 1)
    if ">&-" in closed.split():
        run = ["sh", "-c", f"{command} >&-"]
        done = subprocess.run(run, cwd=tmp_path, env=WHERE, check=False, capture_output=True)
        assert (done.returncode, done.stderr.splitlines()[-1][:26]) == (1, b"converter: standard output")
