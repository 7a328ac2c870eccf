"""Lines in, lines out: forms, limits, compression, writing aside."""

import bz2
import gzip
import json
import lzma
import os
import stat
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from converter.files import from_bytes, opened, renamed_into
from converter.records import records
from converter.targets import written

REQUEST = b'{"messages":[{"role":"user","content":"hi"}]}'
ITEM = b'{"type":"message","role":"user","content":"hi"}'
COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def read(data, name="-", **how):
    return list(records(from_bytes(data, name), **how))


# ---------------------------------------------------------------- lines


def test_only_lf_ends_a_line():
    text = '{"a":"\u2028\u2029\u0085\x0b\x0c"}'.encode()
    assert read(text + b"\n" + text + b"\n") == [(1, text), (2, text)]


def test_crlf_blank_lines_and_a_last_line_without_end():
    assert read(b'{"a":1}\r\n\r\n \t\n{"a":2}\n\n{"a":3}') == [(1, b'{"a":1}'), (4, b'{"a":2}'), (6, b'{"a":3}')]


def test_one_byte_order_mark_at_the_start_is_skipped():
    mark = b"\xef\xbb\xbf"
    assert read(mark + b'{"a":1}\n' + mark + b'{"a":2}\n') == [(1, b'{"a":1}'), (2, mark + b'{"a":2}')]


@pytest.mark.parametrize("data", [b"", b"\n", b" \r\n\n", b"\xef\xbb\xbf"])
def test_nothing_holds_no_record(data):
    assert read(data) == []


def test_an_overlong_line_costs_itself_alone():
    lines = [b"1", b"2" * 10, b"3" * 11, b"4" * 5000, b"5"]
    expected = [(1, b"1"), (2, b"2" * 10), (3, None), (4, None), (5, b"5")]
    assert read(b"\n".join(lines), limit=10) == expected
    assert read(b"\r\n".join(lines) + b"\r\n", limit=10) == expected


def test_an_overlong_first_and_last_line():
    assert read(b"x" * 50 + b"\n{}\n" + b"y" * 50, limit=10) == [(1, None), (2, b"{}"), (3, None)]


@pytest.mark.parametrize(
    "first",
    [
        b'{"messages":[{"role":"us',  # cut inside a string
        b'{"messages":[{"role":',  # cut between tokens
        b'{"messages":[',
        b"not JSON",
        b'{"a":NaN}',
        b'{"a":"\\ud800"}',
        b'"a string"',
        b"17",
        b"[1,2",
        b"}{",
    ],
)
def test_a_broken_first_line_costs_itself_alone(first):
    assert read(first + b"\n" + REQUEST + b"\n" + REQUEST) == [(1, first), (2, REQUEST), (3, REQUEST)]


def test_a_log_is_read_as_it_comes():
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb", buffering=0) as pipe:
        pipe.write(REQUEST + b"\n")
        with opened(f"/dev/fd/{reader}") as source:
            assert next(records(source)) == (1, REQUEST)
    os.close(reader)


# ---------------------------------------------------------------- arrays and pretty-printed records


@pytest.mark.parametrize("element", [b'{"role":"user","content":"hi"}', ITEM, b'{"object":"chat.completion.chunk"}'])
def test_a_line_that_is_a_list_of_messages_items_or_chunks_is_one_record(element):
    line = b"[" + element + b"," + element + b"]"
    assert read(line) == [(1, line)]
    assert read(line + b"\n" + line + b"\n") == [(1, line), (2, line)]


@pytest.mark.parametrize(
    "element",
    [
        REQUEST,
        b'{"input":"hi"}',
        b'{"object":"response","output":[]}',
        b'{"object":"chat.completion","choices":[{"message":{}}]}',
        b'{"type":"llm_call","request":{},"response":{}}',
        b'{"custom_id":"1","body":{}}',
        b"[" + ITEM + b"]",
        b'"data: {}"',
        b'{"trace":{"deep":1}}',
    ],
)
def test_a_file_that_is_one_array_of_records(element):
    assert read(b"[" + element + b", " + element + b"]\n") == [(1, element), (1, element)]
    assert read(b"[\n  " + element + b",\n  " + element + b"\n]\n") == [(2, element), (3, element)]


@pytest.mark.parametrize(
    "element",
    [b'{"choices":[{"delta":{}}]}', b'{"type":"response.created","response":{}}', b'{"id":"x","role":"user"}'],
)
def test_chunks_and_events_over_several_lines_are_one_record(element):
    data = b"[\n" + element + b",\n" + element + b"\n]"
    assert read(data) == [(1, data)]


@pytest.mark.parametrize("indent", [0, 1, 4, "\t"])
def test_pretty_printed_records(indent):
    value = {"messages": [{"role": "user", "content": 'brackets in strings: [{ " \\'}], "n": [1, {}]}
    one = json.dumps(value, indent=indent).encode()
    assert read(one + b"\n") == [(1, one)]
    length = one.count(b"\n") + 1
    assert read(one + b"\n\n" + one) == [(1, one), (length + 2, one)]
    found = read(json.dumps([value, value], indent=indent).encode())
    assert [json.loads(text) for _, text in found] == [value, value]
    assert [line for line, _ in found] == [2, 2 + length]


def test_a_broken_element_of_an_array_costs_itself_alone():
    data = b"[\n" + REQUEST + b',\n{"messages":nonsense},\n' + REQUEST + b"\n]"
    assert read(data) == [(2, REQUEST), (3, b'{"messages":nonsense}'), (4, REQUEST)]


def test_a_cut_array_gives_what_is_whole_and_what_is_not():
    cut = b'{"messages":[{"ro'
    assert read(b"[\n" + REQUEST + b",\n" + cut) == [(2, REQUEST), (3, cut), (3, b"")]
    assert read(b"[\n" + REQUEST + b"\n") == [(2, REQUEST), (3, b"")]
    assert read(b"[" + REQUEST + b",\n" + REQUEST) == [(1, REQUEST), (2, REQUEST), (2, b"")]


def test_what_follows_an_array_is_not_lost():
    found = read(b"[\n" + REQUEST + b"\n] trailing\n" + b'{"input":"x"}')
    assert found == [(2, REQUEST), (3, b"trailing"), (4, b'{"input":"x"}')]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"[" + REQUEST + b",\n" + REQUEST + b"\n]", [1, 2]),
        (b"[" + REQUEST + b"\n," + REQUEST + b"\n]", [1, 2]),
        (b"[" + REQUEST + b"\n]", [1]),
        (b"[\n" + REQUEST + b"\n]", [2]),
        (b"[ " + REQUEST + b", \n " + REQUEST + b"]", [1, 2]),
        (b"\n[\n\n" + REQUEST + b"\n,\n" + REQUEST + b"]\n\n", [4, 6]),
    ],
)
def test_arrays_as_people_print_them(data, lines):
    assert read(data) == [(line, REQUEST) for line in lines]


def test_a_list_with_one_message_on_a_line_of_its_own():
    data = b'{"messages":[\n{"role":"user","content":"hi"}\n]}'
    assert read(data) == [(1, data)]


def test_a_form_can_be_said():
    assert read(b"[" + REQUEST + b"]", form="lines") == [(1, b"[" + REQUEST + b"]")]


def test_an_overlong_line_within_values():
    data = b'{\n"a": 1\n}\n{\n"b": "' + b"x" * 100 + b'"\n}\n'
    assert read(data, limit=20)[:2] == [(1, b'{\n"a": 1\n}'), (4, None)]


# ---------------------------------------------------------------- server-sent events

STREAM = b'data: {"choices":[]}\n\ndata: {"choices":[]}\n\n'


@pytest.mark.parametrize("start", [b"", b": comment\n", b"event: x\n", b"\n\n", b"id: 1\n"])
def test_a_stream_is_one_record_its_text_as_a_json_string(start):
    text = start + STREAM + b"data: [DONE]\n\n"
    ((line, record),) = read(text)
    assert json.loads(record).strip() == (start + STREAM + b"data: [DONE]").decode().strip()
    assert line == 1 + (2 if start == b"\n\n" else 0)


def test_streams_behind_one_another_are_several_records():
    one = STREAM + b"data: [DONE]\n"
    found = read(one + b"\n" + one + b"\r\n\n" + STREAM)
    assert [json.loads(text) for _, text in found] == [one.decode(), one.decode(), STREAM.decode()]
    assert [line for line, _ in found] == [1, 7, 14]


@pytest.mark.parametrize("name", ["a.sse", "a.txt", "a.SSE", "a.sse.gz"])
def test_a_stream_by_name(name):
    assert len(read(b"retry: 3\nfoo\n", name)) == 1
    assert read(REQUEST + b"\n" + REQUEST, name) == [(1, REQUEST), (2, REQUEST)]


def test_a_stream_that_is_not_utf8_is_given_as_it_is():
    assert read(b"data: \xff\n") == [(1, b"data: \xff\n")]


# ---------------------------------------------------------------- session logs


def test_a_session_log_is_one_record_the_array_of_its_lines():
    meta, item = b'{"type":"session_meta","payload":{}}', b'{"type":"response_item","payload":{"type":"message"}}'
    assert read(b"\n" + meta + b"\r\n\n" + item + b"\n") == [(1, b"[" + meta + b",\n" + item + b"]")]
    assert read(item) == [(1, b"[" + item + b"]")]
    assert read(item + b"\n" + b"x" * 99 + b"\n" + item, limit=60) == [(2, None)]


@pytest.mark.parametrize(
    "line", [b'{"type":"response_item"}', b'{"payload":{}}', b'{"type":["event_msg"],"payload":1}']
)
def test_what_only_looks_like_one_is_not(line):
    assert read(line + b"\n" + line) == [(1, line), (2, line)]


# ---------------------------------------------------------------- compression


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_input_by_magic_whatever_the_name(tmp_path, suffix):
    data = b"".join(b'{"n":%d}\n' % n for n in range(3000))
    for name in (f"log.jsonl{suffix}", "log.jsonl"):
        (tmp_path / name).write_bytes(COMPRESS[suffix](data) + COMPRESS[suffix](b'{"second":"member"}\n'))
        with opened(str(tmp_path / name)) as source:
            found = list(records(source))
        assert found[0] == (1, b'{"n":0}')
        assert found[-1] == (3001, b'{"second":"member"}')
        assert source.counted.count == source.size


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_cut_archive_is_an_error(tmp_path, suffix, share):
    whole = COMPRESS[suffix](os.urandom(50_000).hex().encode() + b"\n")
    path = tmp_path / f"cut{suffix}"
    path.write_bytes(whole[: int(len(whole) * share)])
    with opened(str(path)) as source, pytest.raises(OSError, match="damaged or cut compressed data"):
        list(records(source))


@pytest.mark.parametrize("data", [b"", REQUEST])
def test_a_name_that_promises_an_archive(tmp_path, data):
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(data)
    with pytest.raises(OSError, match="the name says"), opened(str(path)):
        pass


@pytest.mark.parametrize("suffix", COMPRESS)
def test_compressed_output_by_name(tmp_path, suffix):
    path = tmp_path / f"out.jsonl{suffix}"
    for _ in range(2):
        with written(str(path)) as stream:
            stream.write(b"a\n" * 100_000)
        with opened(str(path)) as source:
            assert source.stream.read() == b"a\n" * 100_000
    assert len(list(tmp_path.iterdir())) == 1


def test_gzip_output_is_the_same_every_time(tmp_path):
    for name in ("a.gz", "b.gz"):
        with written(str(tmp_path / name)) as stream:
            stream.write(b"a\n")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_zstandard_without_the_extra_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xopen", None)
    (tmp_path / "a.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))
    with pytest.raises(OSError, match=r"open-responses-converter\[compression\]"), opened(str(tmp_path / "a.zst")):
        pass
    with pytest.raises(OSError, match=r"open-responses-converter\[compression\]"), written(str(tmp_path / "b.zst")):
        pass
    assert not (tmp_path / "b.zst").exists()


def test_zstandard(tmp_path):
    pytest.importorskip("xopen")
    path = tmp_path / "a.jsonl.zst"
    with written(str(path)) as stream:
        stream.write(os.urandom(50_000).hex().encode() + b"\n")
    with opened(str(path)) as source:
        assert len(list(records(source))) == 1
    path.write_bytes(path.read_bytes()[:30_000])
    with opened(str(path)) as source, pytest.raises(OSError, match="damaged or cut"):
        list(records(source))


# ---------------------------------------------------------------- writing


def test_a_target_changes_only_when_all_is_written(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_bytes(b"before\n")
    with pytest.raises(ZeroDivisionError), written(str(path)) as stream:
        stream.write(b"partial\n" * (1 // 0 if stream.write(b"begun\n") else 1))
    assert path.read_bytes() == b"before\n"
    with written(str(path)) as stream:
        stream.write(b"after\n")
        assert path.read_bytes() == b"before\n"
    assert path.read_bytes() == b"after\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.jsonl"]


def test_permissions_are_the_umasks(tmp_path):
    previous = os.umask(0o027)
    try:
        with written(str(tmp_path / "out")) as stream:
            stream.write(b"x")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    previous = os.umask(0o022)
    yield
    os.umask(previous)


@pytest.mark.parametrize(
    ("inputs", "before", "expected"),
    [
        ([], None, 0o644),
        ([0o600], None, 0o600),
        ([0o400], None, 0o600),
        ([0o666], None, 0o644),
        ([0o640, 0o604], None, 0o600),
        ([0o640, 0o644], None, 0o640),
        ([], 0o600, 0o600),
        ([0o644], 0o640, 0o640),
        ([0o600], 0o666, 0o600),
    ],
)
def test_an_output_is_never_wider_than_its_inputs_and_what_stood_there(tmp_path, umask, inputs, before, expected):
    names = []
    for number, permissions in enumerate(inputs):
        (tmp_path / str(number)).touch(permissions)
        (tmp_path / str(number)).chmod(permissions)
        names.append(str(tmp_path / str(number)))
    target = tmp_path / "out"
    if before is not None:
        target.touch()
        target.chmod(before)
    with written(str(target), ["-", "no such file", *names]) as stream:
        stream.write(b"x")
        stream.flush()
        [aside] = tmp_path.glob("*.part")
        assert mode(aside) == expected
    assert mode(target) == expected


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_bytes(b"before")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with written(str(tmp_path / "link")) as stream:
        stream.write(b"after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"after"


def test_what_is_no_file_is_written_directly():
    with written(os.devnull) as stream:
        stream.write(b"x")
    assert not Path(os.devnull).is_file()


def test_a_target_that_cannot_be_written_is_named(tmp_path):
    missing = str(tmp_path / "no" / "out")
    with pytest.raises(OSError, match="No such file") as caught, written(missing):
        pass
    assert caught.value.filename == missing


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["logs/a.jsonl"], ["out/a.jsonl"]),
        (["logs/a.jsonl.gz", "logs/b.jsonl"], ["out/a.jsonl.gz", "out/b.jsonl"]),
        (["logs/x/a.jsonl", "logs/y/z/a.jsonl"], ["out/x/a.jsonl", "out/y/z/a.jsonl"]),
        (["a.sse", "b.txt.gz"], ["out/a.jsonl", "out/b.jsonl.gz"]),
        (["../up/a.json"], ["out/a.json"]),
    ],
)
def test_names_below_another_folder(names, expected):
    assert list(renamed_into("out", names)) == expected


def test_records_of_a_long_log_are_not_held(tmp_path):
    import tracemalloc

    path = tmp_path / "long.jsonl"
    path.write_bytes((REQUEST + b"\n") * 60_000)
    tracemalloc.start()
    with opened(str(path)) as source:
        assert sum(1 for _ in records(source)) == 60_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 << 20


PIECES = [
    *(REQUEST, ITEM, b'{"a":"\\ud800"}', b'{"type":"response_item","payload":"\\ud800"}', b'"\xff"', b"[" * 3000),
    *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\n", b"\n", b"\r\n", b" ", b"\xff", b"\x00", b"\xef\xbb\xbf"),
    *(b"NaN", b"null", b"1", b"data: ", b"data: [DONE]"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map(b"".join), st.sampled_from(["-", "a.sse"]))
def test_no_byte_disappears_and_nothing_is_raised(data, name):
    found = read(data, name)
    kept = b"".join(json.loads(text).encode() if quoted(text, data) else text for _, text in found)
    assert essence(kept) == essence(data)
    numbers = [line for line, _ in found]
    assert numbers == sorted(numbers)
    assert all(1 <= line <= data.count(b"\n") + 1 for line in numbers)


def essence(text):
    """All but what stands between records, and byte order marks."""
    return text.replace(b"\xef\xbb\xbf", b"").translate(None, b" \t\r\n\x0b\x0c[],")


def quoted(text, data):
    return text.startswith(b'"') and text not in data


def test_every_element_is_the_text_as_it_stood():
    line = b'{"messages": [ ],  "n": 0.10}'
    assert [text for _, text in read(b"[" + line + b" , " + line + b"]")] == [line, line]
    assert msgspec.json.decode(line) == {"messages": [], "n": 0.1}
