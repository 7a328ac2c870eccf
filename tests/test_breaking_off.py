"""Disks that are full, archives that are cut, terminals that watch: the command as a process of its own."""

import bz2
import errno
import gzip
import json
import lzma
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import converter
from converter import files, targets

SMALL = "from converter import report, shards; shards.LEAST, shards.SHARD, report.TICK = 1, 20_000, -1; "
START = "from converter.cli import main; main(prog_name='converter')"
WHERE = {**os.environ, "PYTHONPATH": str(Path(converter.__file__).parents[1])}

ASK = json.dumps({"messages": [{"role": "user", "content": "hi there " * 20}]}).encode() + b"\n"
NOTED = {
    "messages": [{"role": "user", "content": "hi", "name": "ann"}],
    "seed": 1,
    "tools": [{"type": "function", "function": {"name": "find"}}],
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": {"a": 1}}}
ORPHAN = {"messages": [{"role": "tool", "tool_call_id": "call_1", "content": "x"}]}

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a device or a limit of Linux")


def run(folder, *arguments, status, code=SMALL + START, **how):
    """What a run in this folder says."""
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    done = subprocess.run(command, cwd=folder, env=WHERE, check=False, **how)
    assert done.returncode == status, done.stderr
    return (done.stderr or b"").decode()


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# ---------------------------------------------------------------- full disks


def no_large_files():
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


@linux
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["a.jsonl", "-o", "out"], "out"),
        (["a.jsonl", "b.jsonl.gz", "-o", "out"], "out"),
        (["b.jsonl.gz", "a.jsonl", "--out-dir", "new"], "new/a.jsonl"),
        (["b.jsonl", "c.jsonl.gz", "--out-dir", "new"], "new/b.jsonl"),  # written by a worker where there is one
        (["bad.jsonl", "-o", "out", "--rejects", "rejects"], "rejects"),
        (["noted.jsonl", "-o", "out", "--notices", "notices"], "notices"),
    ],
)
def test_a_full_disk_leaves_no_partial_target(tmp_path, jobs, arguments, named):
    (tmp_path / "a.jsonl").write_bytes(ASK * 1000)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(ASK * 1000))
    (tmp_path / "b.jsonl").write_bytes(gzip.compress(ASK * 1000))
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(ASK * 1000))
    (tmp_path / "bad.jsonl").write_bytes(json.dumps(ORPHAN).encode().join([b"\n"] * 2000))
    strange = {f"of_a_vendor_{number}": 1 for number in range(20)}
    noted = {"messages": [{"role": "user", "content": "x", **strange}]}  # more of notices than of data
    (tmp_path / "noted.jsonl").write_bytes(json.dumps(noted).encode().join([b"\n"] * 400))
    before = set(names(tmp_path))
    said = run(tmp_path, "to-responses", *arguments, "--jobs", jobs, "-q", status=1, preexec_fn=no_large_files)
    assert said == f"converter: {named}: File too large\n"
    assert set(names(tmp_path)) - before <= {"new/b.jsonl.gz"}  # complete before the disk was full


@linux
@pytest.mark.parametrize("output", [[], ["-o", "/dev/full"]])
def test_an_output_that_takes_no_more(tmp_path, output):
    (tmp_path / "a.jsonl").write_bytes(ASK * 10)
    with open("/dev/full", "wb") as full:
        said = run(tmp_path, "to-responses", "a.jsonl", *output, status=1, stdout=full)
    assert re.fullmatch(r"converter: (standard output|/dev/full): No space left on device\n", said)


# ---------------------------------------------------------------- slow disks


@pytest.fixture
def slow(monkeypatch):
    """A disk that takes as long as it is let, and how often it was asked."""
    let, asked = threading.Event(), []
    monkeypatch.setattr(os, "fdatasync", lambda file: asked.append(let.wait(10)), raising=False)
    monkeypatch.setattr(targets, "BEHIND", 10)
    return let, asked


def test_who_breaks_off_does_not_wait_for_the_disk(tmp_path, slow):
    let, asked = slow

    def run():
        with targets.written(str(tmp_path / "out")) as stream:
            for _ in range(10):
                stream.write(b"x" * files.BUFFER * 2)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert asked == []  # the disk is still at it
    assert names(tmp_path) == []
    let.set()


def test_a_slow_disk_is_not_asked_for_each_piece(tmp_path, slow):
    let, asked = slow
    with targets.written(str(tmp_path / "out")) as stream:
        for _ in range(50):
            stream.write(b"x" * files.BUFFER * 2)
        let.set()
    assert len(asked) <= 3
    assert (tmp_path / "out").stat().st_size == 100 * files.BUFFER


def test_a_fault_of_the_disk_is_told_at_the_end(tmp_path, monkeypatch):
    """The thread that sends the data ahead keeps it to itself; the last look at the file hears of it as well."""

    def fails(file):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(targets, "BEHIND", 10)
    monkeypatch.setattr(os, "fdatasync", fails, raising=False)
    with targets.written(str(tmp_path / "out")) as stream:
        stream.write(b"x" * files.BUFFER * 2)
    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="Input/output error"), targets.written(str(tmp_path / "two")) as stream:
        stream.write(b"x" * files.BUFFER * 2)
    assert names(tmp_path) == ["out"]


# ---------------------------------------------------------------- cut archives


def zstandard(data):
    return pytest.importorskip("zstandard").compress(data)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", zstandard)],
)
@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_a_cut_archive_is_no_short_result(tmp_path, jobs, suffix, compress, share):
    lines = (b'{"messages":[{"role":"user","content":"%s"}]}\n' % os.urandom(99).hex().encode() for _ in range(9))
    whole = compress(b"".join(lines))
    (tmp_path / f"cut{suffix}").write_bytes(whole[: int(len(whole) * share)])
    (tmp_path / "a.jsonl").write_bytes(ASK)
    before = names(tmp_path)
    arguments = ("a.jsonl", f"cut{suffix}", "-o", "out", "--rejects", "rejects", "--jobs", jobs)
    said = run(tmp_path, "to-responses", *arguments, status=1)
    assert said.startswith(f"converter: cut{suffix}: damaged or cut compressed data at line ")
    assert names(tmp_path) == before


# ---------------------------------------------------------------- terminals


def on_terminal(folder, *arguments, data=False):
    """What a terminal shows of a run, whose standard output it is too if ``data``."""
    pty = pytest.importorskip("pty")
    near, far = pty.openpty()
    try:
        run(folder, *arguments, status=0, stderr=far, **({"stdout": far} if data else {}))
    finally:
        os.close(far)
    shown = b""
    while True:
        try:
            more = os.read(near, 1 << 16)
        except OSError:  # Linux: nobody has the other end any more
            break
        if not more:
            break
        shown += more
    os.close(near)
    return shown.decode()


PROGRESS = re.compile(r"\r\x1b\[Ka\.jsonl: \d+ of \d+ MB, [\d,]+ records, 0 refused, [\d.,]+ MB/s, \d+:\d\d left")


@linux
@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_on_a_terminal(tmp_path, jobs):
    (tmp_path / "a.jsonl").write_bytes(ASK * 1000)
    arguments = ("to-responses", "a.jsonl", "--jobs", jobs)
    for shown in (on_terminal(tmp_path, *arguments), on_terminal(tmp_path, *arguments, "-o", "out", data=True)):
        assert len(PROGRESS.findall(shown)) > 3
        *_, last, nothing = shown.split("\r\n")
        assert re.search(r"\r\x1b\[Kconverter to-responses: 1,000 read, 1,000 written, 0 refused in ", last)
        assert nothing == ""
    assert "\r\x1b[K" not in on_terminal(tmp_path, *arguments, "--limit", 9, data=True).replace("\x1b[Kconverter", "")
    assert on_terminal(tmp_path, *arguments, "-q") == ""


def test_one_line_where_there_is_no_terminal(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(ASK * 1000)
    said = run(tmp_path, "to-responses", "a.jsonl", status=0)
    assert re.fullmatch(r"converter to-responses: 1,000 read, 1,000 written, 0 refused in [\d.]+ s\n", said)
    assert run(tmp_path, "to-responses", "a.jsonl", "-q", status=0) == ""


# ---------------------------------------------------------------- the report


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_report_has_it_all(tmp_path, jobs):
    mended = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [CALL]}]}
    for name, records in {"a.jsonl": [NOTED, ORPHAN], "b.jsonl": [mended, NOTED]}.items():
        (tmp_path / name).write_text("".join(json.dumps(record) + "\n" for record in records))
    arguments = ("a.jsonl", "b.jsonl", "--report", "report", "--repair", "stringify-arguments", "--jobs", jobs)
    run(tmp_path, "to-responses", *arguments, status=3)
    report = json.loads((tmp_path / "report").read_text())
    assert report.pop("seconds") > 0
    assert report["files"][0]["source"] == "a.jsonl"
    assert report["files"][0]["reasons"] == {"orphan_output": 1}
    assert report["files"][1]["repaired"] == {"stringify-arguments": 1}
    del report["files"]
    assert report == {
        "command": "to-responses",
        "version": converter.__version__,
        "specification": converter.SPECIFICATION,
        "complete": True,
        "read": 4,
        "written": 3,
        "refused": 1,
        "reasons": {"orphan_output": 1},
        "notices": {"dropped": 2, "repaired": 1, "open_call": 1, "unchecked": 1},
        "dropped": {"/messages/*/name": 2, "/seed": 2},
        "unchecked": {"look": 1},
        "repaired": {"stringify-arguments": 1},
        "allowed": {},
        "skipped": [],
    }


# ---------------------------------------------------------------- what is imported


@pytest.mark.parametrize(
    ("arguments", "record", "rooms"),
    [
        (["--version"], None, set()),
        (["--help"], None, set()),
        (["to-responses", "--help"], None, set()),
        (["to-responses", "a.jsonl"], NOTED | {"tools": []}, set()),
        (["to-responses", "a.jsonl"], NOTED, set()),
        (["to-responses", "a.jsonl"], {"messages": [{"role": "assistant", "tool_calls": [CALL]}]}, set()),
        (["check", "a.jsonl"], NOTED, set()),
    ],
)
def test_engines_are_imported_when_a_schema_is_needed(tmp_path, arguments, record, rooms):
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    code = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=open('modules', 'w'))); "
    status = 3 if "tool_calls" in str(record) else 0
    run(tmp_path, *arguments, status=status, code=code + START)
    engines = {"jsonschema", "jsonschema_rs", "referencing", "pyarrow", "xopen"}
    assert engines & set((tmp_path / "modules").read_text().split()) == rooms


@pytest.mark.parametrize("option", ["--rejects", "--notices", "--report"])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_stream_by_its_name_is_written_to_and_not_replaced(tmp_path, option, stream):
    log = tmp_path / "log.jsonl"
    log.write_text('{"messages":[{"role":"user","content":"x"}],"seed":1}\nno json\n')
    redirected = tmp_path / "redirected"
    with redirected.open("w") as file:
        file.write("before\n")
        file.flush()
        where = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: file}
        command = [sys.executable, "-m", "converter", "to-responses", str(log), option, f"/dev/{stream}"]
        out = ["-o", str(tmp_path / "out")] if stream == "stdout" else []
        subprocess.run([*command, *out], check=False, **where)
    text = redirected.read_text()
    assert text.startswith("before\n")
    assert len(text.splitlines()) > 1
