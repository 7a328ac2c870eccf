"""Tables in and out: a row of a Parquet or Arrow file is a line of JSON, and lines of JSON make a Parquet file.

Nothing is inferred. On the way in, a column's type says what its values are; only where a column of text has the name
of what is an array or an object (`NESTED`), one that stands there is taken for what it is. On the way out each member
of the records is a column of JSON text.
"""

from __future__ import annotations

import io
import math
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Final

import msgspec
import msgspec.inspect as inspect
from msgspec import Raw

from converter import chat, responses
from converter.text import shield

try:
    import pyarrow as pa
    from pyarrow import ipc, parquet, types
except ImportError as missing:
    raise OSError(
        "tables (.parquet, .arrow) need an extra package: pip install 'open-responses-converter[parquet]'"
    ) from missing

RECORD: Final = "record"
"""The one column of a table whose rows are the records themselves."""

ROWS: Final = 256
"""Rows that are held as values at a time, at most."""

HELD: Final = 8 << 20
"""Bytes of a row group that are held as values at a time, as far as rows are no longer than that."""

BUFFER: Final = 1 << 18

encode: Final = msgspec.json.Encoder().encode


DAMAGED: Final = "damaged or cut table"


@contextmanager
def _naming(name: str, what: str) -> Iterator[None]:
    """The faults of the Arrow library as sentences about this file, that begin with ``what``."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as fault:
        if isinstance(fault, OSError) and (fault.errno or fault.filename):
            raise
        # A length that was overwritten asks for more memory than there is.
        cause = str(fault).partition("\n")[0] or "it asks for more memory than there is"
        raise OSError(None, f"{what} ({cause})", name) from fault


# ---------------------------------------------------------------- the columns that hold JSON as text

_NESTED: Final = """
    record reasons request response body request_body response_body RequestMessages ResponseMessages inputs outputs
    output call chunks events traj model_parameters kwargs responses_create_params span_attributes data spans trace
"""


def _kinds(info: inspect.Type) -> set[str]:
    """What a field may hold, in the words of JSON Schema."""
    if isinstance(info, inspect.Metadata):
        return {*(info.extra_json_schema or {}).get("type", _kinds(info.type))}
    if isinstance(info, inspect.UnionType):
        return set().union(*map(_kinds, info.types))
    named = {inspect.ListType: "array", inspect.StructType: "object", inspect.RawType: "object"}
    return {named.get(type(info), "")}


def _nested_fields() -> Iterator[str]:
    """The fields of the bodies that may be an array or an object in every body that has them."""
    may: dict[str, bool] = {}
    for body in (chat.Request, chat.Completion, responses.Request, responses.Response):
        info = inspect.type_info(body)
        assert isinstance(info, inspect.StructType)
        for field in info.fields:
            may[field.encode_name] = may.get(field.encode_name, True) and bool(_kinds(field.type) & {"array", "object"})
    return (name for name, nested in may.items() if nested)


NESTED: Final = frozenset({*_NESTED.split(), *_nested_fields()})
"""Columns of text that are JSON where they hold one array or object: fields of the bodies, and what logs call bodies.

Tables have no type for a value whose members differ from row to row, so it is kept as text.
"""


def _is_json(text: bytes) -> bool:
    shielded = shield(text)
    try:
        msgspec.json.decode(shielded.text if shielded else text, type=Raw)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _json(text: str) -> Raw | str:
    """JSON text as it stands, on one line; a text that is none is a string."""
    data = text.encode()
    # Between the tokens of a JSON text one blank is as good as another, and a record is a line.
    return Raw(data.replace(b"\n", b" ")) if _is_json(data) else text


def _nested(text: str) -> Raw | str:
    """The array or object that a text is, else the string."""
    return _json(text) if text.lstrip()[:1] in ("{", "[") else text


def _meant(text: str) -> Raw | str:
    """A whole record: a text that begins as JSON is a line, even where it is cut, so that it is refused for that."""
    return Raw(text.encode().replace(b"\n", b" ")) if text.lstrip()[:1] in ("{", "[") else _json(text)


# ---------------------------------------------------------------- values of a column

Plan = Callable[[Any], list[Any]]
"""From an Arrow array to values that can be encoded as JSON, an element each."""


class _NoJSONError(Exception):
    """A column that has no form in JSON: why, as the end of a sentence about it."""


def _each(change: Callable[[Any], Any]) -> Callable[[Any], Plan]:
    """A plan that changes each value but null."""

    def plan(type_: Any) -> Plan:
        return lambda array: [None if value is None else change(value) for value in array.to_pylist()]

    return plan


def _plain(type_: Any) -> Plan:
    return lambda array: array.to_pylist()


def _number(value: float) -> Any:
    """NaN and the infinities stay what they are, so that the row is refused: null would be another value."""
    return value if math.isfinite(value) else Raw(_NOT_FINITE[str(value)])


_NOT_FINITE: Final = {"nan": b"NaN", "inf": b"Infinity", "-inf": b"-Infinity"}


def _short(type_: Any) -> Plan:
    """Of the shorter floats the digits that they have, not those of the longer float that Python makes of them."""

    def plan(array: Any) -> list[Any]:
        texts = array.cast(pa.float32()).cast(pa.string()).to_pylist()
        return [None if text is None else Raw(_NOT_FINITE.get(text, text.encode())) for text in texts]

    return plan


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise _NoJSONError("holds bytes that are no text") from None


def _moment(type_: Any) -> Plan:
    """ISO 8601, with the digits that the type has; a moment with a time zone is given in UTC."""
    zone = "Z" if type_.tz else ""
    bare = pa.timestamp(type_.unit)

    def plan(array: Any) -> list[Any]:
        texts = array.view(bare).cast(pa.string()).to_pylist()
        return [None if text is None else text.replace(" ", "T") + zone for text in texts]

    return plan


def _cast(type_: Any) -> Plan:
    return lambda array: array.cast(pa.string()).to_pylist()


def _list(type_: Any) -> Plan:
    inner = plan_of(type_.value_type)
    fixed = type_.list_size if types.is_fixed_size_list(type_) else None

    def plan(array: Any) -> list[Any]:
        there = array.is_valid().to_pylist()
        lengths = [fixed] * len(array) if fixed is not None else array.value_lengths().to_pylist()
        values = iter(inner(array.flatten()))  # without those of nulls
        return [
            [next(values) for _ in range(length)] if valid else None
            for valid, length in zip(there, lengths, strict=True)
        ]

    return plan


def _struct(type_: Any) -> Plan:
    names = [type_.field(number).name for number in range(type_.num_fields)]
    _once(names, "members")
    inner = [plan_of(type_.field(number).type) for number in range(type_.num_fields)]

    def plan(array: Any) -> list[Any]:
        members = [plan(array.field(number)) for number, plan in enumerate(inner)]
        rows = zip(*members, strict=True) if members else ((),) * len(array)
        return [
            dict(zip(names, values, strict=True)) if valid else None
            for valid, values in zip(array.is_valid().to_pylist(), rows, strict=True)
        ]

    return plan


def _map(type_: Any) -> Plan:
    if not any(holds(type_.key_type) for holds in (types.is_string, types.is_large_string, types.is_string_view)):
        raise _NoJSONError(f"has keys of the type {type_.key_type}, and those of an object are strings")
    entry = pa.struct([pa.field("key", type_.key_type, False), pa.field("value", type_.item_type)])
    inner = _list(pa.list_(entry))

    def plan(array: Any) -> list[Any]:
        rows = inner(array.cast(pa.list_(entry)))
        return [None if row is None else {one["key"]: one["value"] for one in row} for row in rows]

    return plan


def _dictionary(type_: Any) -> Plan:
    value = type_.value_type
    inner = plan_of(value)
    if types.is_string_view(value) or types.is_binary_view(value):  # which Arrow cannot decode
        return lambda array: inner(pa.array(array.to_pylist(), value))
    return lambda array: inner(array.dictionary_decode())


def _extension(type_: Any) -> Plan:
    """The two types that have a form of their own in JSON; of others, the values that they are stored as."""
    known = {"arrow.json": _each(_json), "arrow.uuid": _each(lambda value: str(uuid.UUID(bytes=value)))}
    inner = known.get(type_.extension_name, plan_of)(type_.storage_type)
    return lambda array: inner(array.storage)


PLANS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], Plan]], ...]] = (
    (lambda type_: isinstance(type_, pa.BaseExtensionType), _extension),
    (types.is_string, _plain),
    (types.is_large_string, _plain),
    (types.is_string_view, _plain),
    (types.is_null, _plain),
    (types.is_boolean, _plain),
    (types.is_integer, _plain),
    (types.is_float64, _each(_number)),
    (types.is_floating, _short),
    (types.is_decimal, _each(lambda value: Raw(f"{value:f}".encode()))),
    (types.is_struct, _struct),
    (types.is_map, _map),
    (types.is_list, _list),
    (types.is_large_list, _list),
    (types.is_list_view, _list),
    (types.is_large_list_view, _list),
    (types.is_fixed_size_list, _list),
    (types.is_dictionary, _dictionary),
    (types.is_timestamp, _moment),
    (types.is_date, _cast),
    (types.is_time, _cast),
    (types.is_binary, _each(_text)),
    (types.is_large_binary, _each(_text)),
    (types.is_binary_view, _each(_text)),
)
"""For each type that has a form in JSON: what tells it, and the plan for its values."""


def plan_of(type_: Any) -> Plan:
    """How to read the values of this Arrow type. Raises `_NoJSONError` where JSON has no form for them."""
    for fits, made in PLANS:
        if fits(type_):
            return made(type_)
    raise _NoJSONError(f"is of the type {type_}, which has no form in JSON")


def _once(names: list[str], what: str) -> None:
    if len(set(names)) < len(names):
        raise _NoJSONError(f"has two {what} of one name")


# ---------------------------------------------------------------- rows as lines


class Column:
    """One column of a table: its name, and how its values become those of a JSON object."""

    def __init__(self, field: Any, alone: bool, table: str) -> None:
        self.name = field.name
        self.table = table
        self.change: Callable[[str], Any] | None = None
        if alone:
            self.change = _meant
        elif self.name in NESTED:
            self.change = _nested
        with self._named():
            self.plan = plan_of(field.type)

    def values(self, array: Any) -> list[Any]:
        """What stands in these rows; None for null."""
        with self._named():
            values = self.plan(array)
        if self.change is None:
            return values
        return [self.change(value) if isinstance(value, str) else value for value in values]

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except _NoJSONError as fault:
            sentence = f"the column {encode(self.name).decode()} {fault} (leave it out of the table)"
            raise OSError(None, sentence, self.table) from None


def _lines(schema: Any, batches: Iterable[Any], name: str) -> Iterator[bytes]:
    """A line of JSON for each row, a batch at a time. A column that is null in a row is left out of it."""
    with _naming(name, DAMAGED):
        if len(set(schema.names)) < len(schema.names):
            raise OSError(None, "two columns of one name, and an object has one member of a name", name)
        alone = schema.names == [RECORD]
        columns = [Column(field, alone, name) for field in schema]
        for batch in batches:
            cells = [column.values(batch.column(number)) for number, column in enumerate(columns)]
            if alone:
                yield b"".join(encode(value) + b"\n" for value in cells[0])
            else:
                rows = zip(*cells, strict=True) if cells else ((),) * batch.num_rows
                yield b"".join(
                    encode({key: value for key, value in zip(schema.names, row, strict=True) if value is not None})
                    + b"\n"
                    for row in rows
                )


class Text(io.RawIOBase):
    """Pieces of text as a byte stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.pieces = pieces
        self.left = memoryview(b"")

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """What is left of a piece, as far as there is room."""
        while not self.left and (piece := next(self.pieces, None)) is not None:
            self.left = memoryview(piece)
        count = min(len(buffer), len(self.left))
        buffer[:count] = self.left[:count]
        self.left = self.left[count:]
        return count


def _of_parquet(stream: BinaryIO) -> tuple[Any, Iterator[Any]]:
    # No threads: a process that has some cannot be forked for other inputs. No reading ahead: it would be held.
    file = parquet.ParquetFile(stream, pre_buffer=False, buffer_size=BUFFER, arrow_extensions_enabled=True)

    def batches() -> Iterator[Any]:
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            rows = HELD * group.num_rows // max(group.total_byte_size, 1)
            yield from file.iter_batches(max(1, min(rows, ROWS)), row_groups=[number], use_threads=False)

    return file.schema_arrow, batches()


def _of_arrow(stream: BinaryIO) -> tuple[Any, Iterator[Any]]:
    start = stream.read(6)
    stream.seek(0)
    reader = ipc.open_file(stream) if start == b"ARROW1" else ipc.open_stream(stream)

    def batches() -> Iterator[Any]:
        whole = map(reader.get_batch, range(reader.num_record_batches)) if start == b"ARROW1" else reader
        for batch in whole:
            batch.validate(full=True)  # the format has no checksums, and offsets are followed without a look
            for first in range(0, batch.num_rows, ROWS):
                yield batch.slice(first, ROWS)

    return reader.schema, batches()


@contextmanager
def _read(stream: Any, reader: Callable[[Any], tuple[Any, Iterator[Any]]]) -> Iterator[Text]:
    with ExitStack() as stack:
        with _naming(stream.name, DAMAGED):
            if not stream.seekable():
                # Its description stands at the end of a table.
                spool = stack.enter_context(TemporaryFile())
                copyfileobj(stream, spool, BUFFER)
                spool.seek(0)
                stream, name = spool, stream.name
            else:
                name = stream.name
            schema, batches = reader(stream)
        yield Text(_lines(schema, batches, name))


def rows_of_parquet(stream: Any) -> Any:
    """The rows of a Parquet file as a stream of lines. ``stream`` has a name; where it cannot be sought, it is spooled.

    Raises `OSError`, then and while it is read: for a damaged table, and for a column that has no form in JSON.
    """
    return _read(stream, _of_parquet)


def rows_of_arrow(stream: Any) -> Any:
    """The same for an Arrow file, or an Arrow stream as `datasets` saves it."""
    return _read(stream, _of_arrow)


# ---------------------------------------------------------------- lines as rows

GROUP: Final = 8 << 20
"""Bytes of JSON in a row group, after which the next one begins."""

GROUP_ROWS: Final = 1 << 14

DISTINCT: Final = 1000
"""How many columns a table may have: keys can be ids, and then a record goes into one column as a whole."""

JSON: Final = pa.json_()


class Spool(io.RawIOBase):
    """Takes bytes for a file that is not closed with it."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, data: Any) -> int:
        """Into the file."""
        count: int = self.file.write(data)
        return count


@contextmanager
def made(stream: BinaryIO) -> Iterator[Spool]:
    """Takes lines of JSON, and writes a Parquet file to ``stream`` when the block ends without an exception.

    Which columns there are is known when all lines are: until then they wait in a file beside the target, where there
    is room for them, that has no name and goes whatever happens.
    """
    with TemporaryFile(dir=os.path.dirname(stream.name) or ".") as spool:
        yield Spool(spool)
        with _naming(stream.name, "the table cannot be written"):
            _write(spool, stream)


def _write(lines: BinaryIO, stream: BinaryIO) -> None:
    lines.seek(0)
    names = _columns(lines)
    lines.seek(0)
    schema = pa.schema([(name, JSON) for name in names or (RECORD,)])
    # No statistics: the least and the greatest of long texts help nobody.
    with parquet.ParquetWriter(stream, schema, compression="zstd", write_statistics=False) as writer:
        for group in _groups(lines, names):
            columns = [pa.ExtensionArray.from_storage(JSON, pa.array(column, pa.string())) for column in group]
            writer.write_batch(pa.record_batch(columns, schema=schema))


def _columns(lines: Iterable[bytes]) -> list[str]:
    """The members of all objects in the order in which they are first seen; none where a record is one value.

    That is so where a line is no object, and where a table of its members would be read as something else.
    """
    names: dict[str, None] = {}
    for line in lines:
        members = _members(line)
        if members is None:
            return []
        names.update(dict.fromkeys(members))
        if len(names) > DISTINCT:
            return []
    return [] if list(names) == [RECORD] else list(names)


def _members(line: bytes) -> dict[str, bytes] | None:
    """The members of an object, as they are spelled; None for any other line."""
    shielded = shield(line)
    try:
        found = msgspec.json.decode(shielded.text if shielded else line, type=dict[str, Raw])
    except (msgspec.MsgspecError, RecursionError):
        return None
    if shielded is None:
        return {key: bytes(value) for key, value in found.items()}
    if any(shielded.mark.decode() in key for key in found):
        return None  # a lone surrogate in the name of a column
    return {key: shielded.restored(bytes(value)) for key, value in found.items()}


def _groups(lines: Iterable[bytes], names: list[str]) -> Iterator[list[list[bytes | None]]]:
    """Row groups: the values of each column, None where a record has no such member."""
    columns: list[list[bytes | None]] = [[] for _ in names or (RECORD,)]
    size = 0
    for line in lines:
        members = (_members(line) or {}) if names else {RECORD: line.rstrip(b"\n")}
        for name, column in zip(names or (RECORD,), columns, strict=True):
            column.append(members.get(name))
        size += len(line)
        if size >= GROUP or len(columns[0]) >= GROUP_ROWS:
            yield columns
            columns, size = [[] for _ in columns], 0
    if columns[0]:
        yield columns
