"""Several workers on one file: nothing that is written tells how many there were, and none outlives the run."""

import bz2
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import converter
from converter import crew, job, report, shards, targets, task
from converter.cli import main
from converter.outcome import Notice, Reason, Rejected
from converter.report import DISTINCT, Ledger, Listener, Speaker, Sums

ASK = json.dumps({"messages": [{"role": "user", "content": "hi \u2028"}]}, ensure_ascii=False).encode()
NOTED = json.dumps({"messages": [{"role": "user", "content": "hi", "weight": 1}], "seed": 1, "n": 1}).encode()
ORPHAN = json.dumps({"messages": [{"role": "tool", "tool_call_id": "call_1", "content": "x"}]}).encode()
LONG = json.dumps({"messages": [{"role": "user", "content": "x" * 5000}]}).encode()
ROOM = json.dumps({"messages": [{"role": "user", "content": "x" * 2900}]}).encode()
BOM = b"\xef\xbb\xbf"
LINES = (
    BOM + ASK,
    b"",
    *(ASK, NOTED, ORPHAN, b"\r", ROOM, b"not JSON", BOM + ASK, BOM + b"not JSON", LONG, b"  ", ASK + b"\r") * 6,
    b"[1, 2]",
    b"\xff",
    LONG,
    LONG,
    ORPHAN,
)
MIXED = b"\n".join(LINES)
LIMIT = 3000

FILES = ("out", "rejects", "notices", "report")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run in a folder of its own, that cuts files of any size; what it wrote and said, without the seconds."""
    monkeypatch.setattr(shards, "LEAST", 1)

    def run(*arguments, jobs, data=MIXED, name="log.jsonl", status=3):
        folder = tmp_path / str(jobs)
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        for left in folder.iterdir():
            left.unlink()
        Path(name).write_bytes(data)
        given = [str(each) for each in (*arguments, "--jobs", jobs, "--max-line-bytes", LIMIT)]
        result = CliRunner().invoke(main, given, prog_name="converter")
        assert result.exit_code == status, result.output
        written = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != name}
        if "report" in written:
            written["report"] = re.sub(rb'"seconds": [\d.e-]+', b"", written["report"])
        return written, result.stdout, re.sub(r" in [\d.]+ s", "", result.stderr)

    return run


@pytest.fixture
def started(monkeypatch):
    """How many workers were started, in each run that started any."""
    numbers = []

    def start(crew):
        real(crew)
        numbers.append(len(crew.workers))

    real = crew.Crew._start
    monkeypatch.setattr(crew.Crew, "_start", start)
    return numbers


def all_files(command):
    return [command, "log.jsonl", *(part for name in FILES[1:] for part in (f"--{name}", name)), "-o", "out"]


# ---------------------------------------------------------------- the same bytes


@pytest.mark.parametrize("size", [1, 100, 3001, 20_000, 1 << 20])
@pytest.mark.parametrize("command", ["to-responses", "to-chat", "check", "inspect"])
def test_what_is_written_does_not_tell_how_many_workers_there_were(run, started, monkeypatch, command, size):
    monkeypatch.setattr(shards, "SHARD", size)
    alone = run(*all_files(command), jobs=1)
    assert started == []
    assert run(*all_files(command), jobs=2) == alone
    assert started == [2]
    assert sorted(alone[0]) == sorted(FILES)
    assert b"too_long" in alone[0]["rejects"]


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_blocks_do_not_matter(run, monkeypatch, block):
    monkeypatch.setattr(shards, "SHARD", 100)
    alone = run(*all_files("to-responses"), jobs=1)
    monkeypatch.setattr(shards, "BLOCK", block)
    assert run(*all_files("to-responses"), jobs=3) == alone


@pytest.mark.parametrize(
    "arguments",
    [
        ["-o", "out"],
        ["-o", "out", "-q"],
        [],
        ["-o", "out", "--dry-run", "--notices", "notices"],
        ["log.jsonl", "-o", "out.gz"],
        ["--out-dir", "BELOW"],
        ["-o", "out", "--fail-fast", "--rejects", "rejects", "--report", "report"],
        ["--fail-fast", "--rejects", "rejects"],
        ["-o", "out", "--max-rejects", 10, "--report", "report", "--notices", "notices"],
        ["log.jsonl", "-o", "out", "--max-rejects", 40, "--rejects", "rejects", "--report", "report"],
        ["-o", "out", "--max-rejects", 1000, "--report", "report"],
        ["-o", "out", "--tools", "TOOLS", "--require-schema", "--strict", "--verify"],
    ],
)
def test_options_mean_the_same(run, monkeypatch, tmp_path, arguments):
    monkeypatch.setattr(shards, "SHARD", 1000)
    (tmp_path / "tools").write_text("[]")
    arguments = [{"TOOLS": "../tools", "BELOW": tmp_path / "below"}.get(part, part) for part in arguments]
    runs = []
    for jobs in (1, 2):
        runs.append(run("to-responses", "log.jsonl", *arguments, jobs=jobs))
        below = tmp_path / "below" / "log.jsonl"
        runs[-1] = (*runs[-1], below.read_bytes() if below.exists() else None)
    assert runs[0] == runs[1]


# ---------------------------------------------------------------- several inputs

SEVERAL = {
    "cut.jsonl": MIXED,
    "packed.jsonl.gz": gzip.compress(MIXED * 3),
    "pretty.json": json.dumps(json.loads(NOTED), indent=1).encode() + b"\n" + NOTED,
    "array.json": b"[" + ASK + b",\n" + ORPHAN + b",\n" + NOTED + b"]\n",
    "empty.jsonl": b"",
    "stream.sse": b'data: {"id":"1","object":"chat.completion.chunk","choices":[]}\n\ndata: [DONE]\n',
    "sub/frames.jsonl": b'{"id":"1","object":"chat.completion.chunk","choices":[]}\n' * 9,
    "sub/more.jsonl.bz2": bz2.compress(MIXED),
    "z.jsonl": (ORPHAN + b"\n") * 30,
}
ROWS = [part for name in FILES[1:] for part in (f"--{name}", name)]


@pytest.fixture
def several(tmp_path, monkeypatch):
    """A run over files of all kinds: all that stands when it has ended, and what it said."""
    monkeypatch.setattr(shards, "LEAST", 500)
    monkeypatch.setattr(shards, "SHARD", 700)

    def several(*arguments, jobs, files=SEVERAL, status=3, stdin=b""):
        folder = tmp_path / str(jobs)
        shutil.rmtree(folder, ignore_errors=True)
        for name, data in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        monkeypatch.chdir(folder)
        given = [str(each) for each in (*arguments, "--jobs", jobs, "--max-line-bytes", LIMIT)]
        result = CliRunner().invoke(main, given, input=stdin, prog_name="converter")
        assert result.exit_code == status, result.output
        standing = {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}
        if "report" in standing:
            standing["report"] = re.sub(rb'"seconds": [\d.e-]+', b"", standing["report"])
        return standing, result.stdout, re.sub(r" in [\d.]+ s", "", result.stderr)

    return several


@pytest.mark.parametrize("records", [1, 5, 4096])
@pytest.mark.parametrize(
    "arguments",
    [
        ["-o", "out", *ROWS],
        ["-o", "out.xz", *ROWS],
        ["--out-dir", "new", *ROWS],
        ["--out-dir", "new"],
        ["-q"],
        ["--out-dir", "new", "--dry-run", *ROWS],
    ],
)
def test_files_of_all_kinds_are_shared_out(several, started, monkeypatch, arguments, records):
    alone = several("to-responses", *SEVERAL, *arguments, jobs=1)
    assert started == []
    monkeypatch.setattr(task, "RECORDS", records)
    assert several("to-responses", *SEVERAL, *arguments, jobs=2) == alone
    assert started == [2]


def test_the_gate_alone_over_several_files(several):
    assert several("check", *SEVERAL, *ROWS, jobs=3) == several("check", *SEVERAL, *ROWS, jobs=1)


@pytest.mark.parametrize("most", [0, 1, 3, 6, 12, 20, 35, 60, 64, 90])
@pytest.mark.parametrize("output", [["-o", "out"], ["--out-dir", "new"], []])
def test_several_files_stop_where_one_worker_does(several, monkeypatch, most, output):
    arguments = ["to-responses", *SEVERAL, *output, "--max-rejects", most, *ROWS]
    monkeypatch.setattr(task, "RECORDS", 7)
    assert several(*arguments, jobs=2) == several(*arguments, jobs=1)


@pytest.mark.parametrize("output", [["-o", "out"], ["--out-dir", "new"]])
@pytest.mark.parametrize("damaged", ["packed.jsonl.gz", "sub/more.jsonl.bz2", "z.jsonl.gz"])
@pytest.mark.parametrize("rows", [[], ROWS])
def test_a_damaged_archive_breaks_off_in_its_turn(several, output, damaged, rows):
    data = SEVERAL.get(damaged, b"no archive")
    files = {**SEVERAL, damaged: data[: len(data) // 2]}
    arguments = ["to-responses", *files, *output, *rows]
    alone = several(*arguments, jobs=1, files=files, status=1)
    assert several(*arguments, jobs=2, files=files, status=1) == alone
    assert f"converter: {damaged}: " in alone[2]
    assert [name for name in alone[0] if name in FILES or name.endswith(".part")] == []


def test_an_input_that_is_no_file_is_read_by_the_parent(several):
    arguments = ["to-responses", "z.jsonl", "-", "packed.jsonl.gz", "-o", "out", *ROWS]
    alone = several(*arguments, jobs=1, stdin=NOTED)
    assert several(*arguments, jobs=2, stdin=NOTED) == alone


def test_the_same_input_twice(several):
    arguments = ["to-responses", "cut.jsonl", "packed.jsonl.gz", "cut.jsonl", "-o", "out", *ROWS]
    assert several(*arguments, jobs=2) == several(*arguments, jobs=1)


def test_existing_outputs_can_be_left(several):
    files = {**SEVERAL, "new/packed.jsonl.gz": b"before", "new/z.jsonl": b"before"}
    arguments = ["to-responses", *SEVERAL, "--out-dir", "new", "--skip-existing", "--report", "report"]
    alone = several(*arguments, jobs=1, files=files)
    assert several(*arguments, jobs=2, files=files) == alone
    assert alone[0]["new/z.jsonl"] == b"before"


def test_what_comes_too_early_does_not_wait_in_memory(several, monkeypatch):
    """One file takes long; all the others are done before it, in parts of many records."""

    def last(piece, task, step):
        for part in PARTS(piece, task, step):
            while piece.name == "a.gz" and not Path("done").exists():
                time.sleep(0.01)
            yield part
        if piece.name == "y.gz":
            Path("done").touch()

    big = gzip.compress((ASK + b"\n") * 5000)
    files = {"a.gz": big, **{f"{letter}.gz": big for letter in "bcxy"}}
    alone = several("to-responses", *files, "-o", "out", jobs=1, files=files, status=0)
    monkeypatch.setattr(crew, "parts", last)
    spooled, real = [], tempfile.SpooledTemporaryFile
    monkeypatch.setattr(
        crew.tempfile, "SpooledTemporaryFile", lambda *a, **k: spooled.append(real(*a, **k)) or spooled[-1]
    )
    found = several("to-responses", *files, "-o", "out", jobs=2, files=files, status=0)
    del found[0]["done"]
    assert found == alone
    assert len(spooled) == 4
    assert all(file._rolled for file in spooled)


def test_rejects_stand_before_the_output_does(several, monkeypatch):
    placed = []
    real = targets.Aside.place
    monkeypatch.setattr(targets.Aside, "place", lambda aside: placed.append(aside.name) or real(aside))
    for jobs in (1, 2):
        several("to-responses", *SEVERAL, "-o", "out", *ROWS, jobs=jobs)
        assert set(placed[:3]) == {"rejects", "notices", "report"}
        assert placed[3:] == ["out"]
        placed.clear()
        several("to-responses", *SEVERAL, "--out-dir", "new", *ROWS, jobs=jobs)
        assert set(placed[:3]) == {"rejects", "notices", "report"}
        assert len(placed) == 3 + len(SEVERAL)
        placed.clear()
        several("to-responses", *SEVERAL, "--out-dir", "new", "--report", "report", jobs=jobs)
        assert placed[-1] == "report"  # outputs stand as they are complete, where nothing is lost with them
        placed.clear()


def test_a_file_of_which_all_is_written(run, started, monkeypatch):
    monkeypatch.setattr(shards, "SHARD", 1000)
    data = (ASK + b"\n") * 100
    assert run(*all_files("to-responses"), jobs=2, data=data, status=0) == run(
        *all_files("to-responses"), jobs=1, data=data, status=0
    )
    assert started == [2]


def test_the_first_names_of_the_whole_file_are_told_apart():
    names = [f"/{number}x" for number in range(DISTINCT - 300)]
    later = [*names[100:200], *(f"/{number}y" for number in range(500)), *names[:5]]
    whole, merged = Sums(source="a"), Sums(source="a")
    for path in (*names, *later):
        whole.notice(Notice("dropped", [path]))
    for paths in (names, later):
        part = Sums(source="a")
        for path in paths:
            part.notice(Notice("dropped", [path]), sys.maxsize)
        merged.add(part)
    assert "…" in whole.dropped
    assert list(whole.dropped.items()) == list(merged.dropped.items())


@pytest.mark.parametrize("reasons", [1, 3, 7, 30])
def test_as_many_refusals_are_shown(reasons, capsys):
    refused = [Rejected(line, [Reason("limit", f"/{n}", "") for n in range(reasons)], b"") for line in range(40)]
    alone, parent = Speaker(False, True), Speaker(False, True)
    for each in refused:
        alone.refused("a", each)
    said = capsys.readouterr().err
    for start in (0, 5, 10):
        listener = Listener(True)
        for each in refused[start : start + (5 if start < 10 else 30)]:
            listener.refused("a", each)
        for each in listener.kept:
            parent.refused("a", each)
        parent.omitted += listener.omitted
    assert capsys.readouterr().err == said
    assert parent.omitted == alone.omitted


def test_progress_counts_the_whole_run(monkeypatch, capsys):
    speaker = Speaker(False, True, size=4_000_000)
    speaker.live, speaker.behind = True, 1_000_000
    speaker.began -= 10
    monkeypatch.setattr(report, "TICK", -1)
    ledger = Ledger(speaker, None, None, None)
    ledger.files += [Sums(source="a", written=2), Sums(source="b", refused=1)]
    speaker.tick("b", 1_000_000, ledger)
    assert "b: 2 of 4 MB, 3 records, 1 refused, 0.2 MB/s, 0:10 left" in capsys.readouterr().err


# ---------------------------------------------------------------- what one worker does


@pytest.mark.parametrize(
    ("data", "name", "arguments"),
    [
        ((ASK + b"\n") * 9, "log.jsonl", ["--limit", "5"]),
        (gzip.compress((ASK + b"\n") * 9), "log.jsonl.gz", []),
        (b"[" + ASK + b",\n" + ASK + b"]\n", "log.json", []),
        (json.dumps(json.loads(ASK), indent=1).encode(), "log.json", []),
        (b'data: {"id":"1","object":"chat.completion.chunk","choices":[]}\n\ndata: [DONE]\n', "log.sse", []),
        (b'{"type":"session_meta","payload":{}}\n' * 9, "log.jsonl", []),
        (b'{"id":"1","object":"chat.completion.chunk","choices":[]}\n' * 9, "log.jsonl", []),
        (b"", "log.jsonl", []),
    ],
)
def test_some_inputs_are_not_cut(run, started, monkeypatch, data, name, arguments):
    monkeypatch.setattr(shards, "SHARD", 1)
    status = {True: 0, False: 3}[
        ASK in data or not data or name == "log.jsonl.gz" or b"\n {" in data or b'\n "' in data
    ]
    runs = [run("to-responses", name, *arguments, jobs=n, data=data, name=name, status=status) for n in (1, 2)]
    assert runs[0] == runs[1]
    assert started == []


def test_small_files_are_not_cut(run, started, monkeypatch):
    monkeypatch.setattr(shards, "LEAST", 1 << 20)
    run("to-responses", "log.jsonl", jobs=2)
    assert started == []


def test_standard_input_is_not_cut(started, monkeypatch):
    monkeypatch.setattr(shards, "LEAST", 1)
    assert CliRunner().invoke(main, ["to-responses", "--jobs", "2"], input=ASK + b"\n").exit_code == 0
    assert started == []


def test_all_processors_are_the_default(tmp_path, started, monkeypatch):
    monkeypatch.setattr(job, "cores", lambda: 3)
    monkeypatch.setattr(shards, "LEAST", 1)
    (tmp_path / "a").write_bytes(ASK + b"\n")
    assert CliRunner().invoke(main, ["to-responses", str(tmp_path / "a")]).exit_code == 0
    assert started == [3]


def test_processors():
    assert 1 <= crew.cores() <= (os.cpu_count() or 1)


# ---------------------------------------------------------------- what breaks a run off


def killed(shard, task, step):
    if shard.start:
        os.kill(os.getpid(), signal.SIGKILL)
    return PARTS(shard, task, step)


def unread(shard, task, step):
    if shard.start:
        raise OSError(5, "Input/output error", shard.name)
    return PARTS(shard, task, step)


PARTS = crew.parts


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (killed, "converter: a worker process ended before its work was done (killed by signal 9)"),
        (unread, "converter: log.jsonl: Input/output error\n"),
    ],
)
def test_a_worker_that_fails_leaves_no_partial_target(run, monkeypatch, part, said):
    monkeypatch.setattr(shards, "SHARD", 1000)
    monkeypatch.setattr(crew, "parts", part)
    written, _, stderr = run(*all_files("to-responses"), jobs=2, status=1)
    assert written == {}
    assert stderr.startswith(said)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda path: path.write_bytes(b"short"), "cut short while it was read"),
        (lambda path: (path.rename("old"), path.write_bytes(b"other")), "replaced by another file while it was read"),
    ],
)
def test_a_file_that_changes_is_no_short_result(tmp_path, monkeypatch, change, sentence):
    monkeypatch.chdir(tmp_path)
    path = Path("a")
    path.write_bytes(b"{}\n" * 100)
    (shard,) = shards.shards("a")
    change(path)
    with pytest.raises(OSError, match=sentence), shard.opened(100) as (_, lines):
        list(lines)


DRIVER = """
import sys, time
from converter import crew, shards
shards.LEAST, shards.SHARD, real = 1, 1000, crew.parts
PAUSE = float(sys.argv.pop(1))
def slow(*given):
    time.sleep(PAUSE)
    return real(*given)
crew.parts = slow
from converter.cli import main
main(prog_name="converter")
"""


def driven(folder, pause, *arguments):
    """A process that cuts small files, and whose workers take so long for a part."""
    (folder / "a").write_bytes((ASK + b"\n") * 5000)
    # A signal may come between the opening of a file and the block that closes it.
    python = [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", "-c", DRIVER, str(pause)]
    command = [*python, "to-responses", "a", "--jobs", "2", *arguments]
    return subprocess.Popen(
        command,
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": f"{Path(converter.__file__).parents[1]}{os.pathsep}{os.environ['PYTHONPATH']}",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def workers(running):
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    deadline = time.monotonic() + 20
    while len(found := children.read_text().split()) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    return [int(each) for each in found]


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the workers by /proc")


@linux
@pytest.mark.parametrize(
    ("number", "status", "said"),
    [
        (signal.SIGINT, 130, b"converter: interrupted: the files that were being written are left as they were\n"),
        (signal.SIGTERM, 143, b"converter: terminated: the files that were being written are left as they were\n"),
    ],
)
def test_a_signal_ends_all_processes(tmp_path, number, status, said):
    with driven(tmp_path, 60, "-o", "out") as running:
        workers(running)
        time.sleep(0.1)
        if number == signal.SIGINT:
            os.killpg(running.pid, number)  # as a terminal does
        else:
            running.send_signal(number)
        assert running.wait(30) == status
        assert running.stderr.read() == said  # and no process is left that could say more
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@linux
def test_a_worker_that_is_killed_from_outside(tmp_path):
    with driven(tmp_path, 60, "-o", "out") as running:
        os.kill(workers(running)[0], signal.SIGKILL)
        assert running.wait(30) == 1
        assert b"(killed by signal 9)" in running.stderr.read()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@linux
def test_no_worker_outlives_the_parent(tmp_path):
    with driven(tmp_path, 0.05, "-o", "out") as running:
        workers(running)
        running.kill()
        assert running.wait(30) == -signal.SIGKILL
        assert running.stderr.read() == b""  # returns when the last worker has ended


def test_a_closed_pipe_ends_quietly(tmp_path):
    with driven(tmp_path, 0) as running:
        running.stdout.readline()
        running.stdout.close()
        assert running.wait(30) == 141
        assert running.stderr.read() == b""


@pytest.mark.parametrize(
    "lengths", [[0], [20], [300], [5000], [20] * 50 + [9000] * 3 + [0] * 200, [9000] * 5 + [1] * 99]
)
def test_each_shard_knows_how_many_lines_stand_before_it(monkeypatch, tmp_path, lengths):
    monkeypatch.setattr(shards, "SHARD", 10_000)
    monkeypatch.setattr(shards, "BLOCK", 16_384)
    data = b"".join(b"x" * length + b"\n" for length in lengths * (1 + 100_000 // (sum(lengths) + len(lengths))))
    path = tmp_path / "log.jsonl"
    path.write_bytes(data + b"the last")
    found = list(shards.shards(str(path)))
    assert len(found) > 3
    assert [shard.before for shard in found] == [data[: shard.start].count(b"\n") for shard in found]
    assert [shard.start for shard in found[1:]] == [shard.end for shard in found[:-1]]
