"""What hostile input costs: peak memory and time, each row in a process of its own.

Run it as ``python tests/benchmarks/hostile.py``; ``--quick`` takes a hundredth of the sizes, and words choose the rows
that hold one of them. The first table is of records through the command line, the second of schemas and arguments
through `converter.schemas`, with jsonschema-rs and as if it were not installed. Memory is the peak of the whole
process, Python and all packages included, in MB; time is what the processor took, in seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
REQUEST: Final = b'{"messages":[{"role":"user","content":"x"}],%s}'
WITHOUT_FAST: Final = "import sys; sys.modules['jsonschema_rs'] = None; "


def user(text: bytes) -> bytes:
    return b'{"messages":[{"role":"user","content":"' + text + b'"}]}'


def nested(opening: bytes, inside: bytes, closing: bytes, depth: int) -> bytes:
    return opening * depth + inside + closing * depth


def called(arguments: bytes) -> bytes:
    """A request with one call of a tool that takes any object."""
    function = {"name": "f", "arguments": arguments.decode()}
    turn = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    return json.dumps({"messages": [turn], "tools": tools}).encode()


def with_schema(schema: bytes) -> bytes:
    return REQUEST % (b'"tools":[{"type":"function","function":{"name":"f","parameters":' + schema + b"}}]")


LONG, DEEP, LARGE = 200_000_000, 1_000_000, 10_000_000
"""Bytes of a line, levels of a nesting, bytes of a schema."""


class Line(NamedTuple):
    """A log of one record, made for a share of the sizes, and more options of the command."""

    name: str
    make: Callable[[float], bytes]
    options: tuple[str, ...] = ()


def parted(size: int) -> bytes:
    """A line of about so many bytes in many texts, none of which is over the specification's longest."""
    part = b'{"role":"user","content":"' + b"x" * 1_000_000 + b'"}'
    return b'{"messages":[' + b",".join([part] * max(1, size // 1_000_000)) + b"]}"


LINES: Final = (
    Line("one short record", lambda share: user(b"x")),
    Line("a line of 200 MB, many texts", lambda share: parted(int(LONG * share))),
    Line("a line of 200 MB, one text", lambda share: user(b"x" * int(LONG * share))),
    Line("a line of 200 MB, no JSON", lambda share: b'{"messages":[' + b"x" * int(LONG * share)),
    Line("a line of 200 MB, over the limit", lambda share: parted(int(LONG * share)), ("--max-line-bytes", "1000000")),
    Line("a million arrays", lambda share: nested(b"[", b"", b"]", int(DEEP * share))),
    Line("a million objects", lambda share: nested(b'{"a":', b"1", b"}", int(DEEP * share))),
    Line("a million open arrays", lambda share: nested(b"[", b"", b"", int(DEEP * share))),
    Line("a million arrays in metadata", lambda s: REQUEST % (b'"metadata":' + nested(b"[", b"", b"]", int(DEEP * s)))),
    Line("a million arrays in arguments", lambda share: called(nested(b"[", b"", b"]", int(DEEP * share)))),
    Line("a million objects in a schema", lambda s: with_schema(nested(b'{"items":', b"{}", b"}", int(DEEP * s)))),
    Line("arguments of 10 MB", lambda share: called(b'{"a":"' + b"x" * int(LARGE * share) + b'"}')),
    Line("a number of 10 MB in arguments", lambda share: called(b'{"a":' + b"7" * int(LARGE * share) + b"}")),
    Line("a schema of 10 MB", lambda s: with_schema(b'{"description":"' + b"x" * int(LARGE * s) + b'"}')),
)


class Check(NamedTuple):
    """A schema and arguments, made for a share of the sizes. Here they are code, for a process of its own."""

    name: str
    schema: str
    arguments: str


TEXT: Final = "dumps('a' * int(50_000 * share) + '!')"
DEEPEST: Final = "'{\"a\":' * 120 + '{}' + '}' * 120"
TREE: Final = (
    "(lambda tree: tree(tree, {depth}))"
    "(lambda tree, n: {{'{op}': [tree(tree, n - 1)] * 2}} if n else {{'type': 'null'}})"
)

CHECKS: Final = (
    Check("pattern ^(a+)+$", "{'pattern': '^(a+)+$'}", TEXT),
    Check("pattern ^(a|a)*$", "{'pattern': '^(a|a)*$'}", TEXT),
    Check("pattern ^(.*a){25}$", "{'pattern': '^(.*a){25}$'}", TEXT),
    Check("pattern ^a+a+a+a+$", "{'pattern': '^a+a+a+a+$'}", TEXT),
    Check("pattern (a*)(a*)(a*)\\1\\2\\3c", "{'pattern': r'(a*)(a*)(a*)\\1\\2\\3c'}", TEXT),
    Check("pattern (?=(a+)+$)a", "{'pattern': '(?=(a+)+$)a'}", TEXT),
    Check(
        "1,000 patternProperties, 1,000 keys",
        "{'patternProperties': {f'^x{i}.*y$': False for i in range(int(1000 * share))}}",
        "dumps({f'x{i}zzz': 1 for i in range(int(1000 * share))})",
    ),
    *(Check(f"{op} tree of 2^12", TREE.format(op=op, depth=12), "'{\"a\":1}'") for op in ("anyOf", "oneOf", "allOf")),
    Check(
        "$ref doubled 30 times",
        "{'$ref': '#/$defs/0', '$defs': {'30': False, "
        "**{str(i): {'anyOf': [{'$ref': f'#/$defs/{i + 1}'}] * 2} for i in range(30)}}}",
        "'1'",
    ),
    Check("$ref twice, 120 deep", "{'type': 'object', 'properties': {'a': {'allOf': [SELF, SELF]}}}", DEEPEST),
    Check(
        "oneOf $ref twice, 120 deep",
        "{'type': 'object', 'properties': {'a': {'oneOf': [SELF, SELF]}}}",
        DEEPEST,
    ),
    Check(
        "$dynamicRef twice, 120 deep",
        "{'$dynamicAnchor': 'n', 'type': 'object', 'properties': {'a': {'anyOf': [{'$dynamicRef': '#n'}] * 2}}}",
        DEEPEST,
    ),
    Check(
        "unevaluatedProperties, 100 deep",
        "{'properties': {'a': SELF}, 'anyOf': [{'properties': {'a': SELF}}], 'unevaluatedProperties': False}",
        "'{\"a\":' * 100 + '{}' + '}' * 100",
    ),
    Check(
        "uniqueItems, 100,000 objects",
        "{'uniqueItems': True}",
        "dumps([{'a': i} for i in range(int(100_000 * share))])",
    ),
    Check("contains, 200,000 items", "{'contains': {'type': 'string'}}", "dumps([1] * int(200_000 * share))"),
    Check(
        "contains in contains, 1,000,000 items",
        "{'contains': {'contains': {'type': 'string'}}}",
        "dumps([[1] * 1000] * int(1000 * share))",
    ),
    Check(
        "enum of 3,000 objects, 3,000 items",
        "{'items': {'enum': [{'a': i} for i in range(int(3000 * share))]}}",
        "dumps([{'a': int(3000 * share) - 1}] * int(3000 * share))",
    ),
    Check(
        "multipleOf of 100,000 digits",
        "b'{\"multipleOf\":' + b'7' * int(100_000 * share) + b'}'",
        "'7' * int(300_000 * share)",
    ),
    Check("multipleOf 3, 1e999999999999", "{'multipleOf': 3}", "'1e999999999999'"),
    Check("minLength 1e400", "b'{\"minLength\":1e400}'", "'\"a\"'"),
    Check(
        "10 MB of rows",
        "{'type': 'array', 'items': {'type': 'object', 'properties': {'id': {'type': 'integer'}}, 'required': ['id']}}",
        "dumps([{'id': i, 'name': 'some name here'} for i in range(int(270_000 * share))])",
    ),
    Check(
        "10 MB with a lone surrogate",
        "{'type': 'object'}",
        "'{\"b\":\"\\\\ud800\",\"a\":[' + ','.join(['{\"k\":1}'] * int(1_200_000 * share)) + ']}'",
    ),
    Check("a schema of 10 MB: description", "{'description': 'd' * int(10_000_000 * share)}", "'1'"),
    Check("a schema of 10 MB: const", "{'const': list(range(int(1_300_000 * share)))}", "'1'"),
    Check(
        "a schema of 10 MB: enum",
        "{'properties': {'a': {'enum': [f'value number {i}' for i in range(int(480_000 * share))]}}}",
        "'{\"a\":1}'",
    ),
    Check(
        "a schema of 10 MB: properties",
        "{'properties': {f'p{i}': {'type': 'string', 'title': 't' * 50} for i in range(int(110_000 * share))}}",
        "'{\"p1\":1}'",
    ),
    Check("a schema of 10 MB: anyOf", "{'anyOf': [{'type': 'null'}] * int(580_000 * share)}", "'1'"),
    Check(
        "a schema of 10 MB: references",
        "{'$ref': '#/$defs/0', '$defs': {str(i): {'$ref': '#/$defs/a'} for i in range(int(350_000 * share))}"
        " | {'a': {'type': 'null'}}}",
        "'1'",
    ),
)

CHECK: Final = """
import sys, time
from json import dumps
share, SELF = {share}, {{"$ref": "#"}}
schema, arguments = {schema}, {arguments}
text = schema if isinstance(schema, bytes) else dumps(schema).encode()
del schema
from converter.schemas import ToolSchema
ToolSchema(b'{{"type":"null"}}').fault("1")  # what is imported when it is needed
began = time.process_time()
tool = ToolSchema(text)
built = time.process_time()
verdict = "invalid_tool_schema" if tool.problem else tool.verdict(arguments).value
judged = time.process_time()
if verdict == "arguments_schema" and "given up" in tool.fault(arguments):
    verdict += ", given up"
print(f"{{verdict}} | {{built - began:.2f}} | {{judged - built:.2f}} | {{time.process_time() - judged:.2f}}")
"""


def spent(command: list[str]) -> tuple[bytes, float, float, int]:
    """What a process wrote, its peak memory in MB, its processor time, and its exit status."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as running:
        assert running.stdout is not None
        said = running.stdout.read()
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    scale = 1e6 if sys.platform == "darwin" else 1e3
    return said, usage.ru_maxrss / scale, usage.ru_utime + usage.ru_stime, running.returncode


def table(*head: str) -> None:
    print(f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}", flush=True)


def lines(share: float, rows: list[Line]) -> None:
    table("record", "MB", "peak memory, MB", "seconds", "outcome")
    with tempfile.TemporaryDirectory() as folder:
        log, rejects = os.path.join(folder, "log"), os.path.join(folder, "rejects")
        for line in rows:
            write(log, line, share)
            run = [sys.executable, "-m", "converter", "to-responses", "-q", log, "-o", os.path.join(folder, "out")]
            _, memory, seconds, status = spent([*run, "--rejects", rejects, *line.options])
            size = os.path.getsize(log) / 1e6
            print(
                f"| {line.name} | {size:,.1f} | {memory:,.0f} | {seconds:.2f} | {outcome(rejects, status)} |",
                flush=True,
            )


def write(log: str, line: Line, share: float) -> None:
    """Make a log in a process of its own: a child's peak of memory begins with that of its parent."""
    pid = os.fork()
    if pid == 0:
        Path(log).write_bytes(line.make(share) + b"\n")
        os._exit(0)
    os.waitpid(pid, 0)


def outcome(rejects: str, status: int) -> str:
    if status == 0:
        return "written"
    if status != 3:
        return f"exit status {status}"
    with open(rejects, "rb") as file:
        start = file.read(300).decode(errors="replace")
    return start.partition('"code":"')[2].partition('"')[0]


def checks(share: float, rows: list[Check]) -> None:
    table("schema and arguments", "engine", "verdict", "schema, s", "verdict, s", "sentence, s", "peak memory, MB")
    for check in rows:
        code = CHECK.format(share=share, schema=check.schema, arguments=check.arguments)
        for engine, before in (("jsonschema-rs", ""), ("jsonschema", WITHOUT_FAST)):
            said, memory, _, status = spent([sys.executable, "-c", before + code])
            told: Any = said.decode().strip() if status == 0 else f"exit status {status} | - | - | -"
            print(f"| {check.name.replace('|', '&#124;')} | {engine} | {told} | {memory:,.0f} |", flush=True)


def _chosen(name: str, words: list[str]) -> bool:
    return not words or any(word in name for word in words)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the sizes, to see that it runs")
    parser.add_argument("words", nargs="*", help="only rows whose names hold one of these")
    given = parser.parse_args()
    share = 0.01 if given.quick else 1.0
    print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} processors")
    lines(share, [line for line in LINES if _chosen(line.name, given.words)])
    checks(share, [check for check in CHECKS if _chosen(check.name, given.words)])


if __name__ == "__main__":
    main()
