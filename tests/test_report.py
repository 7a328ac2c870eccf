"""Rows, sums, the report and standard error."""

import io
import json

import msgspec
import pytest

import converter
from converter.files import from_bytes
from converter.outcome import NOTICES, Converted, Notice, Reason, Rejected
from converter.report import (
    DISTINCT,
    Ledger,
    NoticeRow,
    RefusalLimitError,
    RejectRow,
    Report,
    Speaker,
    Sums,
    notice_row,
    pattern,
    printable,
    reject_row,
    summary,
)


@pytest.fixture(autouse=True)
def _versions(monkeypatch):
    monkeypatch.setattr(converter, "__version__", "9.9.9", raising=False)
    monkeypatch.setattr(converter, "SPECIFICATION", "2026-04-24", raising=False)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def ledger(stream=None, quiet=False, refusals=True, **rest):
    return Ledger(
        Speaker(quiet, refusals, stream or io.StringIO()),
        rest.get("rejects"),
        rest.get("notices"),
        rest.get("max_rejects"),
    )


def rejected(line, *codes, text=b"{}"):
    return Rejected(line, [Reason(code, f"/{code}", "a sentence") for code in codes], text)


# ---------------------------------------------------------------- rows


@pytest.mark.parametrize(
    ("text", "record"),
    [(b'{"n":  0.10}', b'{"n":  0.10}'), (b'{\n"a": 1\n}', b'{"a": 1}'), (b"{cut", b'"{cut"'), (b"", b'""')],
)
def test_a_rejects_row_holds_the_record_as_it_stood(text, record):
    row = reject_row("log.jsonl", rejected(7, "status", text=text))
    reasons = b'[{"code":"status","path":"/status","message":"a sentence"}]'
    assert row == b'{"source":"log.jsonl","line":7,"reasons":' + reasons + b',"record":' + record + b"}\n"


def test_a_notices_row():
    row = json.loads(notice_row("log.jsonl", 7, Notice("dropped", ["/a", "/b"], "why")))
    assert row == {"source": "log.jsonl", "line": 7, "code": "dropped", "paths": ["/a", "/b"], "detail": "why"}


@pytest.mark.parametrize("text", [b'{"messages": [ 0.10 ]}', b"{", b'{"a": "\\ud800"}', b'{\n"a":\n1}'])
def test_what_is_refused_again_keeps_the_name_and_the_line_of_its_first_log(text):
    first = reject_row("log.jsonl", rejected(7, "status", text=text))
    reasons = [Reason("limit", "/record/messages/0", "x"), Reason("status", "", "y")]
    again = reject_row("refused.jsonl", Rejected(1, reasons, first))
    one, other = json.loads(first), json.loads(again)
    assert [each["path"] for each in other["reasons"]] == ["/messages/0", ""]
    assert {**other, "reasons": []} == {**one, "reasons": []}
    assert first.split(b'"record":')[1] == again.split(b'"record":')[1]


def test_a_key_that_no_text_can_hold():
    row = json.loads(reject_row("a", Rejected(1, [Reason("limit", "/\ud800", "\ud800")], b'{"\\ud800":1}')))
    assert row["reasons"] == [{"code": "limit", "path": "/\\ud800", "message": "\\ud800"}]
    assert json.loads(notice_row("a", 1, Notice("odd", ["/\ud800"], "\ud800")))["paths"] == ["/\\ud800"]


@pytest.mark.parametrize("name", ["C:\\udemy\\log.jsonl", "😀.jsonl", "\\ud83d"])
def test_what_is_refused_again_keeps_any_name_to_the_letter(name):
    first = reject_row(name, rejected(7, "status", text=b"{}"))
    for spelled in (first, json.dumps(json.loads(first)).encode()):
        assert json.loads(reject_row("refused.jsonl", rejected(1, "status", text=spelled)))["source"] == name


@pytest.mark.parametrize("reasons", ["[]", '"why"', '[{"code": "status"}]'])
def test_a_record_of_a_log_that_looks_like_a_rejects_row_is_kept_whole(reasons):
    text = f'{{"source": "mine", "line": 5, "reasons": {reasons}, "record": {{}}}}'
    row = json.loads(reject_row("log.jsonl", rejected(7, "status", text=text.encode())))
    assert (row["source"], row["line"], row["record"]) == ("log.jsonl", 7, json.loads(text))


@pytest.mark.parametrize("row", [RejectRow, NoticeRow, Report])
def test_each_file_has_a_schema(row):
    assert msgspec.json.schema(row)["$ref"]


# ---------------------------------------------------------------- sums


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/messages/3/name", "/messages/*/name"),
        ("/messages/3/content/12", "/messages/*/content/*"),
        ("/0/name", "/*/name"),
        ("/gpt4/x2", "/gpt4/x2"),
        ("", ""),
    ],
)
def test_a_pattern_has_no_array_index(path, expected):
    assert pattern(path) == expected


def test_notices_are_counted_with_what_they_speak_of():
    sums = Sums(source="a")
    sums.notice(Notice("dropped", ["/messages/0/name", "/messages/4/name", "/seed"]))
    sums.notice(Notice("unchecked", ["/x"], "lookup; find"))
    sums.notice(Notice("unchecked", ["/x"], "lookup, find"))
    sums.notice(Notice("unchecked", ["/x"], "find"))
    sums.notice(Notice("repaired", ["/x"], "empty-arguments; lift-media"))
    sums.notice(Notice("allowed", ["/x"], "namespaced: left out; not_finished: limit of time"))
    sums.notice(Notice("odd", ["/x"], "whatever"))
    assert sums.notices == {"dropped": 1, "unchecked": 3, "repaired": 1, "allowed": 1, "odd": 1}
    assert sums.dropped == {"/messages/*/name": 2, "/seed": 1}
    assert sums.unchecked == {"lookup": 2, "find": 3}
    assert sums.repaired == {"empty-arguments": 1, "lift-media": 1}
    assert sums.allowed == {"namespaced": 1, "not_finished": 1}


def test_every_notice_can_be_counted():
    sums = Sums(source="a")
    for code in NOTICES:
        sums.notice(Notice(code, []))
    assert set(sums.notices) == set(NOTICES)


def test_keys_that_are_ids_do_not_fill_the_memory():
    sums = Sums(source="a")
    for number in range(DISTINCT + 500):
        sums.notice(Notice("dropped", [f"/metadata/id{number}"]))
    assert len(sums.dropped) == DISTINCT + 1
    assert sum(sums.dropped.values()) == DISTINCT + 500


def test_the_report_adds_the_inputs_up():
    book = ledger()
    first = [Converted(1, b"{}", [Notice("dropped", ["/seed"])]), rejected(2, "status", "limit"), rejected(3, "limit")]
    book.take(from_bytes(b"", "a"), iter(first), len)
    book.take(from_bytes(b"", "b"), iter([Converted(1, b"{}", [Notice("dropped", ["/seed"])])]), len)
    report = json.loads(book.report("to-chat", 1.23456, True, ["c"]).json())
    assert list(report)[:5] == ["command", "version", "specification", "seconds", "complete"]
    assert (report["version"], report["specification"], report["seconds"]) == ("9.9.9", "2026-04-24", 1.235)
    assert (report["read"], report["written"], report["refused"]) == (4, 2, 2)
    assert report["reasons"] == {"status": 1, "limit": 2}
    assert report["dropped"] == {"/seed": 2}
    assert report["skipped"] == ["c"]
    assert [(each["source"], each["read"]) for each in report["files"]] == [("a", 3), ("b", 1)]


def test_a_report_of_nothing():
    report = json.loads(ledger().report("to-chat", 0, True, []).json())
    assert (report["read"], report["reasons"], report["files"]) == (0, {}, [])


def test_outcomes_go_to_their_files():
    output, rejects, notices = io.BytesIO(), io.BytesIO(), io.BytesIO()
    outcomes = [Converted(1, b"{}", []), rejected(2, "status"), Converted(3, b"[]", [Notice("odd", ["/x"])])]
    ledger(rejects=rejects, notices=notices).take(from_bytes(b"", "a"), iter(outcomes), output.write)
    assert output.getvalue() == b"{}\n[]\n"
    assert json.loads(rejects.getvalue())["line"] == 2
    assert json.loads(notices.getvalue())["line"] == 3


def test_more_refusals_than_the_user_bears():
    book = ledger(max_rejects=1)
    book.take(from_bytes(b"", "a"), iter([rejected(1, "limit")]), len)
    with pytest.raises(RefusalLimitError):
        book.take(from_bytes(b"", "b"), iter([rejected(1, "limit"), rejected(2, "limit")]), len)
    assert book.read == 2
    assert [sums.read for sums in book.files] == [1, 1]


# ---------------------------------------------------------------- standard error


def test_the_first_refusals_are_shown_and_the_rest_counted():
    stream = io.StringIO()
    book = ledger(stream)
    book.take(from_bytes(b"", "a"), iter([rejected(line, "status", "limit") for line in range(1, 31)]), len)
    book.speaker.finish(book.report("to-chat", 0, True, []))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "a:1: status at /status: a sentence"
    assert lines[19] == "a:10: limit at /limit: a sentence"
    assert lines[20:] == [
        "… and 20 more refused (--rejects FILE keeps them all)",
        "converter to-chat: 30 read, 0 written, 30 refused (limit 30, status 30) in 0.0 s",
    ]


def test_quiet_says_nothing():
    stream = io.StringIO()
    book = ledger(stream, quiet=True)
    book.take(from_bytes(b"", "a"), iter([rejected(1, "status")]), len)
    book.speaker.finish(book.report("to-chat", 0, True, []))
    assert stream.getvalue() == ""


def test_names_from_a_log_cannot_steer_a_terminal():
    assert printable("\x1b[31m\n\u2028\ud800é…") == "\\x1b[31m\\n\\u2028\\ud800é…"


def test_progress_on_a_terminal(monkeypatch):
    monkeypatch.setattr("converter.report.TICK", -1)
    stream = Terminal()
    book = ledger(stream)
    book.speaker.size = 4_000_000
    source = from_bytes(b"x" * 4_000_000, "a")
    outcomes = [rejected(1, "limit"), *[Converted(line, b"{}", []) for line in range(2, 200)]]
    book.take(source, iter(outcomes), lambda _: source.stream.read(10_000))
    assert stream.getvalue().startswith("\r\x1b[Ka:1: limit at /limit: a sentence\n\r\x1b[Ka: ")
    assert " of 4 MB, 64 records, 1 refused, " in stream.getvalue()
    assert "128 records" in stream.getvalue()


def test_no_progress_elsewhere():
    assert not ledger().speaker.live
    assert not ledger(Terminal(), quiet=True).speaker.live


def test_the_summary():
    book = ledger()
    outcomes = [Converted(line, b"", [Notice("odd", [])]) for line in range(1, 1201)]
    book.take(from_bytes(b"", "a"), iter([*outcomes, rejected(1, "limit")]), len)
    assert summary(book.report("check", 2.04, False, ["x"])) == (
        "converter check: 1,201 read, 1,200 ok, 1 refused (limit 1), notices (odd 1,200), 1 skipped in 2.0 s"
        "; stopped early"
    )
