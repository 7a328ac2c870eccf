"""What the README shows is what happens: its commands are run, its examples executed, its tables held to the code.

``python tests/test_readme.py`` writes the outputs that it shows anew.
"""

import ast
import doctest
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import copytree

import pytest

import converter
from converter import (
    Options,
    Refused,
    Verdict,
    cli,
    outcome,
    settings_into_chat,
    settings_into_responses,
    to_responses,
    verify,
)
from converter.convert import Session
from converter.options import REPAIRS
from converter.outcome import ALLOWABLE, LOSSES, NOTICES, REASONS
from converter.shapes import KNOWN, SHAPE_TABLE, SOURCE_TABLE

PACKAGE = Path(converter.__file__).parent
ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = re.compile(r"(?<= in )[\d,]+\.\d(?= s\b)")


def text():
    return README.read_text("utf-8")


def blocks(language):
    return [match[2] for match in FENCE.finditer(text()) if match[1] == language]


def section(title):
    """What stands under a heading, up to the next one of its level or above."""
    prose = FENCE.sub("", text())
    found = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^#{{1,6}} |\Z)", prose, re.MULTILINE | re.DOTALL)
    assert found, f"no section {title}"
    return found[2]


def rows(title):
    """The rows of the tables in a section, as lists of cells; rows whose first cell is no code are headings."""
    lines = [line for line in section(title).splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def codes(title):
    """The names in the first column."""
    return [re.findall(r"`([^`]+)`", row[0])[0] for row in rows(title)]


# ---------------------------------------------------------------- a checkout in which commands can be run

STUB = """#!/bin/sh
if [ "$1 $2" = "-m venv" ]; then mkdir -p "$3/bin" && cp "{bin}"/* "$3/bin/"; exit; fi
if [ "$1 $2" = "-m pytest" ]; then echo "$@" >> "{log}"; exit; fi
exec "{python}" "$@"
"""


class Checkout:
    """A copy of the checkout, with the running interpreter under the names that the README uses."""

    def __init__(self, folder):
        self.folder = folder / "clone"
        self.log = folder / "log"
        self.bin = folder / "bin"
        for name in ("schemas", "tests/samples"):
            copytree(ROOT / name, self.folder / name)
        self.bin.mkdir()
        stub = STUB.format(bin=self.bin, log=self.log, python=sys.executable)
        programs = {
            "converter": f'#!/bin/sh\nexec "{sys.executable}" -m converter "$@"\n',
            "pip": f'#!/bin/sh\necho pip "$@" >> "{self.log}"\n',
            "python": stub,
            "python3": stub,
        }
        for name, program in programs.items():
            path = self.bin / name
            path.write_text(program)
            path.chmod(0o755)

    def run(self, script, status=None, together=False):
        """Run a script as a shell does; standard output and standard error, without what differs from run to run."""
        environment = {
            **os.environ,
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")])),
        }
        done = subprocess.run(
            ["sh", "-ec", script], cwd=self.folder, env=environment, timeout=60, check=False, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT if together else subprocess.PIPE,
        )  # fmt: skip
        assert status is None or done.returncode == status, done.stdout + (done.stderr or "")
        return done.stdout, done.stderr


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return Checkout(tmp_path_factory.mktemp("readme"))


def timeless(shown):
    return SECONDS.sub("0.0", shown)


def console(block):
    """The commands of a console example, each with what it shows."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
    assert parts[0] == ""
    return [tuple(part.split("\n", 1)) for part in parts[1:]]


# ---------------------------------------------------------------- commands


def test_the_first_block_shows_the_main_job(tmp_path):
    """A shell that stops at the first failure runs it to its end; what is shown is what comes out."""
    checkout = Checkout(tmp_path)
    output, errors = checkout.run(blocks("sh")[0], status=0)
    assert output == blocks("json")[0]
    assert timeless(errors) == timeless(blocks("text")[0])
    assert checkout.log.read_text() == "pip install --quiet .\n"


def test_the_main_job_covers_the_gate():
    shown = blocks("json")[0] + blocks("text")[0]
    for code in ("arguments_schema", "namespaced", "status", "arguments_type"):
        assert f": {code} at /" in shown
    assert '"type":"function_call_output"' in shown


def test_the_second_block_runs_the_tests(tmp_path):
    checkout = Checkout(tmp_path)
    checkout.run(blocks("sh")[1], status=0)
    assert checkout.log.read_text() == "pip install --quiet -e .[test]\n-m pytest\n"


def test_every_command_shows_what_it_gives(checkout):
    """In order and in one place, since an example may go on from the one before it."""
    commands = [example for block in blocks("console") for example in console(block)]
    assert commands
    for command, shown in commands:
        output, _ = checkout.run(command, together=True)
        assert timeless(output) == timeless(shown), command


def test_python_examples():
    names = {}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    said = []
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        for number, block in enumerate(blocks("python")):
            test = parser.get_doctest(block, names, f"README example {number + 1}", str(README), 0)
            assert test.examples
            runner.run(test, out=said.append, clear_globs=False)
            names.update(test.globs)
    finally:
        os.chdir(before)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


# ---------------------------------------------------------------- closed lists


def test_every_reason_has_its_row():
    assert sorted(codes("Reasons")) == sorted(code for family in REASONS.values() for code in family)
    assert {row[0].strip("`") for row in rows("Reasons") if row[4] == "yes"} == ALLOWABLE
    assert {row[4] for row in rows("Reasons")} == {"yes", "no"}


def test_every_family_has_its_row():
    found = re.findall(r"^\| (\w[\w ]*) \|", section("What is refused, and what can I do?"), re.MULTILINE)
    assert found[1:] == list(REASONS)


def test_every_notice_has_its_row():
    assert codes("Notices") == list(NOTICES)
    assert {row[0].strip("`") for row in rows("Notices") if row[2] == "refused"} == LOSSES


def test_every_repair_has_its_row():
    assert sorted(codes("Repairs")) == sorted(REPAIRS)


def test_every_shape_has_its_row():
    assert set(KNOWN) <= {*codes("Shapes"), *codes("Where logs come from")}


@pytest.mark.parametrize("marker", ["shapes", "sources"])
def test_tables_are_those_of_the_code(marker):
    """`anew` writes them."""
    assert MARKED[marker].search(text())[2].strip() == made_tables()[marker].strip()


def test_every_verdict_has_its_row():
    assert codes("What the gate guarantees") == [verdict.value for verdict in Verdict]


def spellings(command):
    return {name for parameter in command.params for name in parameter.opts if name.startswith("-")} | {"-h", "--help"}


def test_every_option_has_its_row():
    by_command = {name: spellings(command) for name, command in cli.main.commands.items()}
    known = set().union(*by_command.values(), spellings(cli.main))
    listed = [re.findall(r"(?<![\w-])--?[a-z][a-z-]*", row[0]) for row in rows("Options")]
    assert sorted(name for names in listed for name in names) == sorted(known)
    pairs = zip(rows("Options"), listed, strict=True)
    marked = [(row[0].split()[-1], names) for row, names in pairs]
    starred, twice = (
        {name for mark, names in marked if mark in stars for name in names} for stars in (("*", "**"), ("**",))
    )
    assert starred == by_command["to-responses"] - by_command["check"]
    assert twice == by_command["to-responses"] - by_command["inspect"]
    assert by_command["to-chat"] == by_command["to-responses"]
    assert by_command["inspect"] - by_command["to-responses"] == {"--line"}


def test_no_option_is_named_that_does_not_exist():
    known = set().union(*map(spellings, [cli.main, *cli.main.commands.values()]))
    page = text().replace(section("Where logs come from"), "")  # names options of other tools
    page = re.sub(r"^python tests/benchmarks/.*$", "", page, flags=re.MULTILINE)  # has options of its own
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", page)) <= known


def test_the_commands():
    assert set(cli.main.commands) == set(re.findall(r"`(to-responses|to-chat|check|inspect)`", section("Options")))


def test_the_exit_statuses():
    shown = re.findall(r"^\| (\d+) \| (.*) \|$", section("Exit status"), re.MULTILINE)
    said = re.findall(r"^ +(\d+) +(.*)$", inspect.getdoc(cli.main.callback).split("Exit status:")[1], re.MULTILINE)
    assert [status for status, _ in shown] == [status for status, _ in said]


def test_every_setting_has_its_row():
    named = set(re.findall(r"\w+", section("Mapping: settings")))
    assert set(settings_into_responses.ROWS) | set(settings_into_chat.ROWS) <= named


def test_the_fields_of_options():
    named = set(re.findall(r"`(\w+)`", section("As a library")))
    assert set(Options.__struct_fields__) <= named


def test_the_library_names_exist():
    for name in re.findall(r"^>>> from converter import (.*)$", text(), re.MULTILINE):
        assert set(name.split(", ")) <= set(converter.__all__)


def test_every_module_has_its_row():
    named = [name for row in rows("How the code is laid out") for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(named) == sorted(path.stem for path in PACKAGE.glob("*.py"))
    for at, name in enumerate(named):
        for node in ast.walk(ast.parse((PACKAGE / f"{name}.py").read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("converter."):
                assert node.module.split(".")[1] in named[:at], f"{name} imports {node.module}"


def test_every_file_that_is_named_exists():
    for name in re.findall(r"`((?:schemas|tests|converter)/[\w./-]+)`", text()):
        assert (ROOT / name).exists(), name
    for name in re.findall(r"`(\w+\.py)`", section("How the code is laid out")):
        assert (PACKAGE / name).is_file(), name
    for table in re.findall(r"\brow (?:to|in) `([A-Z_]+)`", section("How the code is laid out")):
        assert any(f"\n{table}: " in path.read_text("utf-8") for path in PACKAGE.glob("*.py")), table


def test_links_lead_somewhere():
    heads = re.findall(r"^#+ (.*)$", FENCE.sub("", text()), re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}
    assert set(re.findall(r"\]\(#([^)]+)\)", text())) <= anchors


def test_the_specification_is_named():
    assert f"released on {converter.SPECIFICATION}" in text()


# ---------------------------------------------------------------- sentences


def said_by_the_tests(code):
    """The sentences of the records that `test_reasons` has for this reason, as they are given now."""
    from test_reasons import ROWS, VERBS

    for verb, options, record, *expected in ROWS:
        if expected[0].startswith(f"{code} "):
            with pytest.raises(Refused) as refused:
                VERBS[verb](record, Options(**options))
            yield from (reason.message for reason in refused.value.reasons if reason.code == code)


def said_of_a_long_line(code):
    done = subprocess.run(
        [sys.executable, "-m", "converter", "to-responses", "--max-line-bytes", "20"],
        input=b'{"messages": "more than enough"}\n', capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    yield done.stderr.decode().split(f"{code} at the top: ")[1].split("\n")[0]


def said_of_a_stream(code):
    choice = {"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}
    data = f"data: {json.dumps({'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n"
    with pytest.raises(Refused) as refused:
        to_responses({"sse": f"{data}data: [DONE]\n\n{data}"})
    yield from (reason.message for reason in refused.value.reasons if reason.code == code)


def said_of_a_difference(code):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "_back", lambda session, written: b'[{"role":"user","content":"another"}]')
        with pytest.raises(Refused) as refused:
            to_responses([{"role": "user", "content": "x"}], Options(verify=True))
    yield from (reason.message for reason in refused.value.reasons if reason.code == code)


SAYERS = {"too_long": said_of_a_long_line, "stream_conflict": said_of_a_stream, "verify": said_of_a_difference}


@pytest.mark.parametrize("code", [code for family in outcome.REASONS.values() for code in family])
def test_example_sentence(code):
    [row] = [row for row in rows("Reasons") if row[0] == f"`{code}`"]
    sentence = row[2].strip('"')
    said = []
    for one in SAYERS.get(code, said_by_the_tests)(code):
        if one == sentence:
            return
        said.append(one)
    pytest.fail(f"{sentence!r} is none of {said}")


def test_verify_says_what_it_leaves_out():
    """The README lists the notices after which the way back is not compared in full."""
    last = section("Normal form of the round trip").split("Numbers count")[1]
    assert set(verify.ONE_WAY) == set(re.findall(r"`(\w+)`", last.split("cannot come back")[0]))


# ---------------------------------------------------------------- writing anew

MARKED = {
    name: re.compile(rf"(<!-- {name} -->\n)(.*?)(?=^[#A-Z])", re.MULTILINE | re.DOTALL)
    for name in ("shapes", "sources")
}
"""A place for a table: from its mark to the next paragraph or heading."""


def made_tables():
    shapes = [(f"`{name}`" if name in KNOWN else name, *cells) for name, cells in SHAPE_TABLE.items()]
    sources = [(f"`{name}`", *cells) for name, cells in SOURCE_TABLE.items()]
    return {
        "shapes": table(("shape", "recognised by", "what comes out"), shapes),
        "sources": table(("`--from`", "what is read", "what comes out", "what to know"), sources),
    }


def table(heads, cells):
    lines = [heads, ["---"] * len(heads), *cells]
    return "".join(f"| {' | '.join(' '.join(cell.replace('``', '`').split()) for cell in line)} |\n" for line in lines)


def anew(checkout):
    """The README with the outputs that its commands give now, and the tables that the code has now."""
    output, errors = checkout.run(blocks("sh")[0])
    first = {"json": output, "text": errors}

    def shown(match):
        language, body = match[1], match[2]
        if language in first:
            body = first.pop(language)
        elif language == "console":
            commands = [command for command, _ in console(body)]
            body = "".join(f"$ {command}\n{checkout.run(command, together=True)[0]}" for command in commands)
        return f"```{language}\n{body}```"

    readme = FENCE.sub(shown, text())
    for name, made in made_tables().items():
        readme = MARKED[name].sub(lambda match, made=made: f"{match[1]}\n{made}\n", readme)
    return readme


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        README.write_text(anew(Checkout(Path(folder))), "utf-8")
