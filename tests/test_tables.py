"""Tables in and out: rows are lines of JSON, and lines of JSON are rows. Nothing is inferred on either way."""

import io
import json
import math
import subprocess
import sys
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from converter import files, shards
from converter.files import opened, renamed_into
from converter.sources import SOURCES
from converter.targets import written

pa = pytest.importorskip("pyarrow")
from pyarrow import ipc, parquet  # noqa: E402

from converter import tables  # noqa: E402

CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome", "n": 1.50}'}}
MESSAGES = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "sun", "tool_call_id": "call_1"},
]
TOOLS = [
    {"type": "function", "function": {"name": "weather", "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"enum": ["c", "f"]}},
        "required": ["city"],
    }}},
    {"type": "function", "function": {"name": "now", "parameters": {"properties": {"zone": {"type": "string"}}}}},
]  # fmt: skip


def as_json(texts, storage=None):
    return pa.ExtensionArray.from_storage(pa.json_(storage or pa.string()), pa.array(texts, storage or pa.string()))


def saved(path, columns, **how):
    parquet.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path, **how)
    return str(path)


def lines(path):
    with opened(str(path)) as source:
        return source.stream.read().splitlines()


def read(tmp_path, columns):
    return lines(saved(tmp_path / "in.parquet", columns))


def cell(tmp_path, array, name="x"):
    """The text of the member that the first row of one column becomes, beside another column."""
    row = read(tmp_path, {name: array, "beside": pa.array([1] * len(array))})[0]
    return row.removeprefix(f'{{"{name}":'.encode()).removesuffix(b',"beside":1}')


def written_as(path, rows):
    with written(str(path)) as stream:
        stream.write(b"".join(row + b"\n" for row in rows))
    return parquet.read_table(path)


def convert(*arguments, data=None, before=""):
    """A run of the command in a process of its own."""
    program = [sys.executable, "-c", f"{before}\nfrom converter.cli import main\nmain(prog_name='converter')"]
    return subprocess.run(
        [*program, *map(str, arguments)], input=data, capture_output=True, check=False, timeout=60
    )  # fmt: skip


# ---------------------------------------------------------------- values


MOMENT = datetime(2024, 5, 1, 10, 0, 0, 5, UTC)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (pa.array(["a\n\u2028\"é"]), '"a\\n\u2028\\"é"'),
        (pa.array(["a"], pa.large_string()), '"a"'),
        (pa.array(["a"], pa.string_view()), '"a"'),
        (pa.array(["a", "b"]).dictionary_encode(), '"a"'),
        (pa.array([True]), "true"),
        (pa.array([2**63 - 1]), "9223372036854775807"),
        (pa.array([2**64 - 1], pa.uint64()), "18446744073709551615"),
        (pa.array([-3], pa.int8()), "-3"),
        (pa.array([0.1]), "0.1"),
        (pa.array([1e300]), "1e300"),
        (pa.array([0.1], pa.float32()), "0.1"),
        (pa.array([0.5], pa.float16()), "0.5"),
        (pa.array([Decimal("1.10")]), "1.10"),
        (pa.array([Decimal("-0.00000001")], pa.decimal256(40, 8)), "-0.00000001"),
        (pa.array([Decimal("12345678901234567890.12")]), "12345678901234567890.12"),
        (pa.array([MOMENT], pa.timestamp("us", "UTC")), '"2024-05-01T10:00:00.000005Z"'),
        (pa.array([MOMENT], pa.timestamp("us", "Europe/Berlin")), '"2024-05-01T10:00:00.000005Z"'),
        (pa.array([MOMENT.replace(tzinfo=None)], pa.timestamp("us")), '"2024-05-01T10:00:00.000005"'),
        (pa.array([1], pa.timestamp("ns")), '"1970-01-01T00:00:00.000000001"'),
        (pa.array([1], pa.timestamp("ms")), '"1970-01-01T00:00:00.001"'),
        (pa.array([date(2024, 5, 1)]), '"2024-05-01"'),
        (pa.array([time(10, 0, 0, 5)]), '"10:00:00.000005"'),
        (pa.array([b"text \xc3\xa9"]), '"text é"'),
        (pa.array([b"[1]"], pa.large_binary()), '"[1]"'),
        (pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)], pa.binary(16))), f'"{uuid.UUID(int=0)}"'),
        (pa.array([[1, None]]), "[1,null]"),
        (pa.array([[]], pa.list_(pa.int64())), "[]"),
        (pa.array([[1]], pa.large_list(pa.int8())), "[1]"),
        (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), "[1,2]"),
        (pa.array([{"b": 1}], pa.struct([("b", pa.int8()), ("a", pa.string())])), '{"b":1,"a":null}'),
        (pa.array([[{"a": ["x"]}, None]]), '[{"a":["x"]},null]'),
        (pa.array([[("k", 1), ("a", None)]], pa.map_(pa.string(), pa.int64())), '{"k":1,"a":null}'),
        (as_json(['{"a": 1.0,\n "b":"\\ud800"}']), '{"a": 1.0,  "b":"\\ud800"}'),
        (as_json(["1e2"], pa.large_string()), "1e2"),
        (as_json(["null"]), "null"),
        (as_json(["cut {"]), '"cut {"'),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)  # fmt: skip
def test_a_value_is_what_its_type_says(tmp_path, array, text):
    assert cell(tmp_path, array).decode() == text


WORDS = pa.array(["a", "b"], pa.string_view())


@pytest.mark.parametrize(
    ("array", "texts"),
    [
        (pa.array([[1], None, [2, 3]], pa.list_view(pa.int64())), ["[1]", None, "[2,3]"]),
        (pa.array([[1], None, [2, 3]], pa.large_list_view(pa.int64())), ["[1]", None, "[2,3]"]),
        (pa.DictionaryArray.from_arrays(pa.array([1, None, 0]), WORDS), ['"b"', None, '"a"']),
        (pa.array([1], pa.timestamp("s")), ['"1970-01-01T00:00:01"']),
        (pa.array([{}, None], pa.struct([])), ["{}", None]),
    ],
)
def test_types_that_only_arrow_has(tmp_path, array, texts):
    path = tmp_path / "in.arrow"
    table = pa.table({"x": array})
    with ipc.new_file(path, table.schema) as file:
        file.write_table(table)
    assert lines(path) == [b"{}" if text is None else f'{{"x":{text}}}'.encode() for text in texts]


def test_json_inside_lists_and_structs_goes_in_as_it_stands(tmp_path):
    """As Hugging Face `datasets` keeps values whose types differ from row to row."""
    texts = as_json(['{"n": 1.0}', "[1 ]"])
    array = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), pa.StructArray.from_arrays([texts], ["j"]))
    assert cell(tmp_path, array) == b'[{"j":{"n": 1.0}},{"j":[1 ]}]'


NAMED = '[{"role": "user", "content": "1.0 \\u00e9"}]'


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("messages", NAMED, NAMED),
        ("tools", " [ ]", " [ ]"),
        ("metadata", '{"a":\n1.50}', '{"a": 1.50}'),
        ("response", '{"a": "\\ud800"}', '{"a": "\\ud800"}'),
        ("input", "plain words", '"plain words"'),
        ("input", '"a"', '"\\"a\\""'),
        ("tool_choice", "auto", '"auto"'),
        ("stop", "1", '"1"'),
        ("messages", '[{"cut', '"[{\\"cut"'),
        ("messages", '[{"a":NaN}]', '"[{\\"a\\":NaN}]"'),
        ("messages", "", '""'),
        ("comment", "[1]", '"[1]"'),
        ("instructions", "[1]", '"[1]"'),
        ("model", "{}", '"{}"'),
    ],
)
def test_text_is_json_where_its_column_can_be_nothing_else(tmp_path, name, text, expected):
    for array in (pa.array([text]), pa.array([text.encode()]), pa.array([text]).dictionary_encode()):
        row = read(tmp_path, {name: array, "beside": pa.array([1])})[0].decode()
        assert row == f'{{"{name}":{expected},"beside":1}}'


def test_what_logs_call_their_bodies_is_known():
    """A source whose bodies stand under a name that is missing here would be read as a string."""
    pointers = [p for one in SOURCES.values() for p in (one.request, one.response, *one.parts.values()) if p]
    assert {pointer.split("/")[1] for pointer in pointers} - {"model"} <= tables.NESTED
    assert not {"model", "id", "user", "content", "name", "instructions"} & tables.NESTED


def test_a_null_column_is_left_out_and_a_null_inside_stays(tmp_path):
    rows = read(tmp_path, {"a": [None, 1], "b": [{"c": None}, None], "messages": [None, "[]"]})
    assert rows == [b'{"b":{"c":null}}', b'{"a":1,"messages":[]}']


def test_a_row_of_nulls_is_a_line(tmp_path):
    assert read(tmp_path, {"a": [None, 1]}) == [b"{}", b'{"a":1}']
    assert lines(saved(tmp_path / "none.parquet", pa.table({"a": pa.array([], pa.string())}))) == []


@pytest.mark.parametrize("make", [as_json, pa.array], ids=["json", "text"])
def test_the_one_column_record_holds_the_records_themselves(tmp_path, make):
    texts = ['{"messages": []}', "[\n1]", '{"cut', None, "", "17", "data: x", '{"a":NaN}']
    expected = [b'{"messages": []}', b"[ 1]", b'{"cut', b"null", b'""', b"17", b'"data: x"', b'{"a":NaN}']
    assert read(tmp_path, {"record": make(texts)}) == expected
    assert read(tmp_path, {"record": make(texts[:1]), "x": [1]}) == [b'{"record":{"messages": []},"x":1}']


@pytest.mark.parametrize("sizes", [1, 100, 300, 1000, 5000])
def test_every_row_in_its_order_whatever_the_groups(tmp_path, sizes):
    count = 1000
    table = pa.table({
        "n": range(count),
        "s": [{"l": [n] * (n % 3) if n % 5 else None} if n % 7 else None for n in range(count)],
        "m": pa.array([[("k", n)] if n % 2 else None for n in range(count)], pa.map_(pa.string(), pa.int64())),
    })  # fmt: skip
    expected = [
        {
            "n": n,
            **({"s": {"l": [n] * (n % 3) if n % 5 else None}} if n % 7 else {}),
            **({"m": {"k": n}} if n % 2 else {}),
        }
        for n in range(count)
    ]
    saved(tmp_path / "t.parquet", table, row_group_size=sizes)
    with ipc.new_file(tmp_path / "f.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=sizes)
    with ipc.new_stream(tmp_path / "s.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=sizes)
    for name in ("t.parquet", "f.arrow", "s.arrow"):
        assert [json.loads(line) for line in lines(tmp_path / name)] == expected, name


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (pa.array([b"\xff\xfe"]), 'the column "x" holds bytes that are no text (leave it out of the table)'),
        (pa.array([{"bytes": b"\xff"}]), 'the column "x" holds bytes that are no text'),
        (pa.array([b"abcd"], pa.binary(4)), 'the column "x" is of the type fixed_size_binary[4], which has no form'),
        (pa.array([1], pa.duration("s")), 'the column "x" is of the type duration[s], which has no form in JSON'),
        (pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64())), 'the column "x" has keys of the type int64'),
    ],
)
def test_a_column_without_a_form_in_json_is_named(tmp_path, array, why):
    with pytest.raises(OSError, match="column") as caught:
        read(tmp_path, {"x": array})
    assert caught.value.filename == str(tmp_path / "in.parquet")
    assert caught.value.strerror.startswith(why)


def test_two_columns_of_one_name(tmp_path):
    with pytest.raises(OSError, match="two columns of one name"):
        read(tmp_path, pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]))


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("type_", [pa.float64(), pa.float32()])
def test_a_number_that_json_has_not_costs_its_row_alone(tmp_path, number, type_):
    path = saved(tmp_path / "in.parquet", {"messages": [NAMED] * 2, "top_p": pa.array([number, 1.0], type_)})
    done = convert("to-responses", path)
    assert done.returncode == 3
    assert b"in.parquet:1: invalid_json at the top: " in done.stderr
    assert b"is not JSON, expected a number or null" in done.stderr
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_cut_table_is_an_error(tmp_path, share):
    table = pa.table({"messages": [NAMED] * 5000, "n": range(5000)})
    saved(tmp_path / "t.parquet", table)
    with ipc.new_file(tmp_path / "f.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=100)
    for name in ("t.parquet", "f.arrow"):
        path = tmp_path / name
        path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
        with pytest.raises(OSError, match=r"damaged or cut table|the name says"):
            lines(path)


def test_a_damaged_page_is_an_error_with_the_name_of_the_file(tmp_path):
    path = tmp_path / "t.parquet"
    saved(path, {"messages": [NAMED] * 5000, "n": range(5000)}, compression="zstd")
    data = bytearray(path.read_bytes())
    data[60:400] = bytes(340)
    path.write_bytes(data)
    done = convert("to-responses", path, "-o", tmp_path / "out.jsonl")
    assert done.returncode == 1
    assert done.stderr.decode().startswith(f"converter: {path}: damaged or cut table (")
    assert not (tmp_path / "out.jsonl").exists()


def test_a_length_beyond_all_memory_is_an_error():
    class Full(io.BytesIO):
        name = "t.arrow"

        def read(self, size=-1):
            raise MemoryError

    with pytest.raises(OSError, match="more memory than there is") as caught, tables.rows_of_arrow(Full(b"")):
        pass
    assert caught.value.filename == "t.arrow"


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_a_name_that_promises_a_table(tmp_path, name):
    (tmp_path / name).write_bytes(b'{"messages":[]}\n')
    with pytest.raises(OSError, match="the name says"):
        lines(tmp_path / name)


WITHOUT = "import sys; sys.modules['pyarrow'] = None"


def test_without_the_extra_says_what_to_install(tmp_path):
    path = saved(tmp_path / "in.parquet", {"messages": [NAMED]})
    for arguments in ([path], ["-o", tmp_path / "out.parquet"]):
        done = convert("to-responses", *arguments, data=b"", before=WITHOUT)
        assert done.returncode == 1
        assert b"pip install 'open-responses-converter[parquet]'" in done.stderr
    assert not (tmp_path / "out.parquet").exists()
    assert convert("to-responses", data=b'{"messages":[{"role":"user","content":"x"}]}', before=WITHOUT).returncode == 0


# ---------------------------------------------------------------- writing


def test_each_member_is_a_column_of_json_text(tmp_path):
    rows = [b'{"b": 1.0,"a":"x"}', b'{"a":null,"c":{"d": [1e2]}}']
    table = written_as(tmp_path / "out.parquet", rows)
    assert table.schema.names == ["b", "a", "c"]
    assert {field.type for field in table.schema} == {pa.json_()}
    assert [column.to_pylist() for column in table.columns] == [["1.0", None], ['"x"', "null"], [None, '{"d": [1e2]}']]
    kinds = parquet.ParquetFile(tmp_path / "out.parquet").schema
    assert {str(kinds.column(number).logical_type) for number in range(3)} == {"JSON"}


@pytest.mark.parametrize(
    "rows",
    [
        [b"[1, 2]"],
        [b'{"a":1}', b"[]"],
        [b'{"a":1}', b'"text"'],
        [b'{"record":{"a":1}}'],
        [b"{}"],
        [b'{"a":1}', b'{"\\ud800":1}'],
        [b'{"a":1}', b"no JSON"],
        [b'{"a%d":1}' % n for n in range(tables.DISTINCT + 1)],
    ],
    ids=["arrays", "both", "a string", "one member of that name", "no member", "a name", "no JSON", "too many names"],
)
def test_what_has_no_columns_goes_into_one(tmp_path, rows):
    table = written_as(tmp_path / "out.parquet", rows)
    assert table.schema.names == ["record"]
    assert [text.encode() for text in table.column(0).to_pylist()] == rows


def test_a_table_without_rows(tmp_path):
    assert written_as(tmp_path / "out.parquet", []).num_rows == 0
    assert lines(tmp_path / "out.parquet") == []


def test_row_groups_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "GROUP", 100)
    rows = [b'{"n":%d}' % n for n in range(1000)]
    written_as(tmp_path / "out.parquet", rows)
    assert parquet.read_metadata(tmp_path / "out.parquet").num_row_groups > 50
    assert lines(tmp_path / "out.parquet") == rows


def test_the_same_lines_give_the_same_bytes(tmp_path):
    rows = [b'{"a":%d,"b":[%d]}' % (n, n) for n in range(3000)]
    for name in ("a.parquet", "b.parquet"):
        written_as(tmp_path / name, rows)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_a_table_stands_when_it_is_whole_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "out.parquet"
    path.write_bytes(b"before")
    with pytest.raises(ZeroDivisionError), written(str(path)) as stream:
        stream.write(b'{"a":1}\n' * (1 // 0 if stream.write(b"{}\n") else 1))
    assert path.read_bytes() == b"before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.parquet"]
    written_as(path, [b"{}"])
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.parquet"]


def test_a_line_that_is_no_text_is_an_error_and_no_table(tmp_path):
    with pytest.raises(OSError, match="the table cannot be written"):
        written_as(tmp_path / "out.parquet", [b'{"a":"\xff"}'])
    assert list(tmp_path.iterdir()) == []


def test_an_error_that_is_not_the_tables_stays_what_it_is(tmp_path):
    with pytest.raises(OSError, match=r"^of another file$"), written(str(tmp_path / "out.parquet")):
        raise OSError("of another file")


# ---------------------------------------------------------------- there and back

NUMBERS = st.sampled_from(["0", "-0", "1.0", "1e2", "1E+400", "12345678901234567890", "0.10"])
STRINGS = st.one_of(st.text().map(json.dumps), st.sampled_from(['"\\ud800"', '"\\u00e9"', '"\\/"', '"\u2028"']))
VALUES = st.recursive(
    st.one_of(NUMBERS, STRINGS, st.sampled_from(["null", "true", "false"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda each: f"[{' , '.join(each)}]"),
        st.dictionaries(STRINGS, inner, max_size=3).map(
            lambda each: "{" + ", ".join(f"{key} : {value}" for key, value in each.items()) + "}"
        ),
    ),
    max_leaves=6,
)
NAMES = st.sampled_from(['"messages"', '"record"', '"input"', '""', '"a.b"', '"é"', '"a b"', '"x"'])
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4).map(
    lambda each: "{" + ",".join(f"{key}:{value}" for key, value in each.items()) + "}"
)


def through_a_table(rows):
    """What is read of a table that was made of these lines. In memory: `written` and `opened` only name a file."""
    made = io.BytesIO()
    made.name = "t.parquet"
    with tables.made(made) as spool:
        spool.write(b"".join(row + b"\n" for row in rows))
    made.seek(0)
    with tables.rows_of_parquet(made) as text:
        return text.read().splitlines()


@given(st.lists(OBJECTS.map(str.encode), max_size=5))
def test_members_come_back_to_the_byte(rows):
    """Those of an object in the order of the columns, which are in the order in which they were first seen."""
    order = {}
    for row in rows:
        order.update(dict.fromkeys(tables._members(row)))
    expected = [
        b"{" + b",".join(msgspec.json.encode(name) + b":" + members[name] for name in order if name in members) + b"}"
        for members in map(tables._members, rows)
    ]
    whole = not order or list(order) == ["record"]
    assert through_a_table(rows) == (rows if whole else expected)


@given(st.lists(VALUES.map(str.encode), min_size=1, max_size=5))
def test_records_that_are_no_objects_come_back_to_the_byte(rows):
    rows = [b"[]", *rows]
    assert through_a_table(rows) == rows


# ---------------------------------------------------------------- the command


def test_there_and_back_by_the_command(tmp_path):
    log = b"".join(
        b'{"model":"m","messages":[{"role":"user","content":"%d"}],"temperature":0.%d0}\n' % (n, n) for n in range(4)
    )
    plain = convert("to-responses", data=log).stdout
    assert convert("to-responses", "-o", tmp_path / "items.parquet", data=log).returncode == 0
    back = convert("to-chat", tmp_path / "items.parquet")
    assert back.returncode == 0
    assert back.stdout == convert("to-chat", data=plain).stdout
    assert b'"temperature":0.10' in back.stdout


ENDING = """
import atexit, sys
from converter.__main__ import main
atexit.register(print, "late")
sys.argv = ["converter", "to-responses", "-q", *sys.argv[1:]]
main()
"""


def test_the_command_does_not_wait_for_the_threads_of_a_library_to_end(tmp_path):
    """Once in some thousand runs one of them aborted the process, when all was written."""
    table = saved(tmp_path / "in.parquet", pa.table({"messages": [NAMED]}))
    log = tmp_path / "log.jsonl"
    log.write_bytes(b'{"messages":%s}\n{}\n' % NAMED.encode())
    command = [sys.executable, "-c", ENDING]
    for inputs, status, late in (((table,), 0, False), ((log,), 3, True), ((log, table), 3, False)):
        done = subprocess.run([*command, *inputs], capture_output=True, check=False)
        assert (done.returncode, b"late" in done.stdout) == (status, late)
        assert done.stdout.count(b"input") == len(inputs)


@pytest.mark.parametrize("write", [ipc.new_file, ipc.new_stream], ids=["file", "stream"])
def test_standard_input_may_be_a_table(tmp_path, write):
    table = pa.table({"messages": [NAMED]})
    path = saved(tmp_path / "in.parquet", table)
    sink = io.BytesIO()
    with write(sink, table.schema) as file:
        file.write_table(table)
    expected = convert("to-responses", data=b'{"messages":%s}' % NAMED.encode()).stdout
    for data in (sink.getvalue(), (tmp_path / "in.parquet").read_bytes()):
        done = convert("to-responses", data=data)
        assert (done.returncode, done.stdout) == (0, expected)
    assert convert("to-responses", path).stdout == expected
    with open(path, "rb") as redirected:
        done = subprocess.run(
            [sys.executable, "-m", "converter", "to-responses"], stdin=redirected, capture_output=True, check=True
        )
    assert done.stdout == expected


def test_rejects_and_notices_may_be_tables(tmp_path):
    log = tmp_path / "log.jsonl"
    broken = b'{"messages":[{"role":"tool","content":"x","tool_call_id":"call_9"}]}\n'
    log.write_bytes(b'{"messages":[{"role":"user","content":"x"}],"seed":1.0}\n' + broken)
    kept = {name: tmp_path / f"{name}.parquet" for name in ("rejects", "notices")}
    done = convert("to-responses", log, "--rejects", kept["rejects"], "--notices", kept["notices"])
    assert done.returncode == 3
    assert parquet.read_schema(kept["rejects"]).names == ["source", "line", "reasons", "record"]
    assert [json.loads(line)["code"] for line in lines(kept["notices"])] == ["dropped"]
    again = convert("to-responses", "--repair", "drop-orphans", kept["rejects"])
    assert b"orphan_output" not in again.stderr


def test_what_cannot_be_a_table_is_said_first(tmp_path):
    table = tmp_path / "x.parquet"
    for arguments in (["to-chat", "--report", table], ["check", "-o", table], ["inspect", "-o", table]):
        done = convert(*arguments, data=b"")
        assert done.returncode == 2
        assert b"x.parquet is a table, and" in done.stderr
    done = convert("to-chat", "-o", tmp_path / "x.arrow", data=b"")
    assert (done.returncode, list(tmp_path.iterdir())) == (1, [])
    assert b".arrow) are read and not written" in done.stderr


def test_an_output_for_each_table(tmp_path):
    assert list(renamed_into("out", ["a/x.parquet", "a/y.arrow", "a/z.jsonl"])) == [
        "out/x.parquet", "out/y.parquet", "out/z.jsonl",
    ]  # fmt: skip
    table = pa.table({"messages": [NAMED]})
    saved(tmp_path / "x.parquet", table)
    with ipc.new_stream(tmp_path / "y.arrow", table.schema) as file:
        file.write_table(table)
    inputs = [tmp_path / "x.parquet", tmp_path / "y.arrow"]
    done = convert("to-responses", *inputs, "--out-dir", tmp_path / "out")
    assert done.returncode == 0
    assert lines(tmp_path / "out/x.parquet") == lines(tmp_path / "out/y.parquet")
    again = convert("to-responses", *inputs, "--out-dir", tmp_path / "out", "--skip-existing")
    assert b"2 skipped" in again.stderr


def test_a_table_is_read_by_one_process_and_made_alike_by_several(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "LEAST", 1)
    table = str(saved(tmp_path / "in.parquet", {"messages": [NAMED] * 9}))
    [piece] = shards.pieces(table, "lines", 1 << 20, lambda: None)
    assert isinstance(piece, shards.Whole)
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"".join(b'{"messages":[{"role":"user","content":"%d"}]}\n' % n for n in range(500)))
    small = "from converter import shards; shards.LEAST = 1; shards.SHARD = 5000"
    for jobs in (1, 3):
        out = tmp_path / f"out{jobs}.parquet"
        inputs = [tmp_path / "in.parquet", log]
        assert convert("to-responses", "--jobs", jobs, *inputs, "-o", out, before=small).returncode == 0
    assert (tmp_path / "out1.parquet").read_bytes() == (tmp_path / "out3.parquet").read_bytes()


def test_rows_of_a_long_table_are_not_held(tmp_path):
    texts = [json.dumps([{"role": "user", "content": f"{n} " + "x" * 2000}]) for n in range(15_000)]
    path = saved(tmp_path / "long.parquet", {"messages": texts}, row_group_size=1 << 20, use_dictionary=False)
    del texts
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        with opened(path) as source:
            while source.stream.read(1 << 20):
                pass
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() < 8 << 20


# ---------------------------------------------------------------- rows as data sets have them


def padded(arguments=None):
    """A table whose columns are structs: Arrow puts null into every member that another row or element has."""
    call = {**CALL, "function": {**CALL["function"], "arguments": arguments or CALL["function"]["arguments"]}}
    other = {**call, "function": {"name": "weather", "arguments": {"unit": "c"}}} if arguments else call
    rows = [{"messages": [{**MESSAGES[0]}, {**MESSAGES[1], "tool_calls": [one]}, MESSAGES[2]]} for one in (call, other)]
    return pa.Table.from_pylist([{**row, "tools": TOOLS, "source": "a set"} for row in rows])


def test_padded_tools_are_written_with_the_repair_that_is_named_without_it(tmp_path):
    path = saved(tmp_path / "in.parquet", padded())
    assert b'"zone":null' in lines(path)[0]
    bare = convert("to-responses", path)
    assert bare.returncode == 3
    assert b"invalid_tool_schema" in bare.stderr
    assert b"--repair null-padding" in bare.stderr
    mended = convert("to-responses", path, "--repair", "null-padding")
    assert mended.returncode == 0
    first = json.loads(mended.stdout.splitlines()[0])
    assert first["input"][1]["arguments"] == CALL["function"]["arguments"]
    assert [tool["parameters"] for tool in first["tools"]] == [tool["function"]["parameters"] for tool in TOOLS]


def test_padded_arguments_name_both_repairs(tmp_path):
    path = saved(tmp_path / "in.parquet", padded({"city": "Rome"}))
    bare = convert("to-responses", path)
    assert bare.returncode == 3
    assert (
        b"--repair stringify-arguments writes it as one, with null-padding without the nulls of a table" in bare.stderr
    )
    mended = convert(
        "to-responses", path, "--repair", "stringify-arguments", "--repair", "null-padding",
        "--allow", "arguments_schema",
    )  # fmt: skip
    assert mended.returncode == 0
    calls = [json.loads(line)["input"][1]["arguments"] for line in mended.stdout.splitlines()]
    assert calls == ['{"city":"Rome"}', '{"unit":"c"}']


@pytest.mark.parametrize("make", [pa.array, as_json], ids=["text", "json"])
def test_columns_of_json_text_need_no_repair(tmp_path, make):
    columns = {"messages": make([json.dumps(MESSAGES)]), "tools": make([json.dumps(TOOLS)])}
    done = convert("to-responses", saved(tmp_path / "in.parquet", columns))
    assert done.returncode == 0
    assert json.loads(done.stdout)["input"][1]["arguments"] == CALL["function"]["arguments"]


def test_every_suffix_of_a_table_is_one_that_is_opened():
    assert set(files.TABLES) <= files.CODECS.keys()
