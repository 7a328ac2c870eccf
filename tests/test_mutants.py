"""The command that changes a module and looks whether the tests notice: what it changes, and how a change can end."""

import subprocess
import sys
from pathlib import Path

import pytest
from mutants import concerned, mutants

COMMAND = Path(__file__).with_name("mutants.py")


def function(body):
    return f"def f(a, b):\n    {body}\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("a < b", {"a <= b", "a >= b", "pass"}),
        ("a is not b", {"a is b", "pass"}),
        ("a == b in c", {"a != b in c", "a == b not in c", "pass"}),
        ("a and b and c", {"a or b or c", "b and c", "a and c", "a and b", "pass"}),
        ("a or b", {"a and b", "a", "b", "pass"}),
        ("not a", {"a", "pass"}),
        ("a + b", {"a - b", "pass"}),
        ("a //= b", {"a *= b", "pass"}),
        ("a(b, c=d, e=g)", {"a(b, e=g)", "a(b, c=d)", "pass"}),
        ("return a", {"return None"}),
        ("return", {"pass"}),
        ("return None", {"pass", "'XX'"}),
        ("return -1", {"return None", "1", "2"}),
        ("return True", {"return None", "False"}),
        ("return ['x', '', b'x']", {"return None", "'XXxXX'", "'XX'", "b'XXxXX'"}),
        ("return f'{a:>9}'", {"return None", "'XX>9XX'"}),
        ("raise a", {"pass"}),
        ("if a: b()", {"not a", "True", "False", "pass"}),
        ("if not a: b()", {"a", "True", "False", "pass"}),
        ("if a < b: b()", {"a <= b", "a >= b", "True", "False", "pass"}),
        ("while a: break", {"not a", "False", "pass"}),
        ("return [a for a in b if a]", {"return None", "not a", "True", "False"}),
        ("return a if b else c", {"return None", "not b", "True", "False"}),
        ("'what it does'", set()),
        ("a: int = b", set()),
        ("class A(B, c=d): pass", {"class A(B):"}),
    ],
)
def test_what_a_statement_becomes(body, expected):
    made = list(mutants(function(body)))
    assert sorted(mutant.after for mutant in made) == sorted(expected)
    assert len({mutant.text for mutant in made}) == len(made)
    assert {mutant.line for mutant in made} <= {2}


def test_what_stands_outside_functions():
    source = '"""Words."""\nif TYPE_CHECKING:\n    from a import b\nc: Final = 1\nd = {c: "x"}\n"""More words."""\n'
    found = [(mutant.line, mutant.before, mutant.after) for mutant in mutants(source)]
    assert found == [(4, "1", "2"), (5, "'x'", "'XXxXX'")]


def test_each_mutant_is_the_module_but_for_one_change():
    source = function("return a + 1 < b")
    texts = {mutant.text for mutant in mutants(source)}
    expected = ("return None", "return a - 1 < b", "return a + 2 < b", "return a + 1 <= b", "return a + 1 >= b")
    assert texts == {function(body).strip() for body in expected}


def test_the_tests_that_concern_a_module():
    found = [path.name for path in concerned(Path("converter/patterns.py"))]
    assert found[0] == "test_patterns.py"
    assert "test_imports.py" in found
    assert "test_killed_runs.py" not in found


# ---------------------------------------------------------------- runs

MODULE = """\
def larger(a, b):
    return a > b

def upto(n):
    at = 0
    while at < n:
        at += 1
    return at
"""
LARGER = "from small.room import larger\n\ndef test_larger():\n    assert larger(2, 1) and not larger(1, 2)\n"
UPTO = "from small.room import upto\n\ndef test_upto():\n    assert upto(3) == 3\n"


@pytest.fixture
def run(tmp_path):
    """Run the command over a small package with a test in another folder."""
    package, tests = tmp_path / "house" / "small", tmp_path / "tests"
    package.mkdir(parents=True)
    tests.mkdir()
    (package / "__init__.py").touch()
    (package / "room.py").write_text(MODULE)

    def command(test, *options):
        (tests / "test_room.py").write_text(test)
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        given = [package / "room.py", "--tests", tests / "test_room.py", *options]
        done = subprocess.run(
            [sys.executable, "-X", "utf8", str(COMMAND), *map(str, given)],
            cwd=tmp_path, capture_output=True, check=False, timeout=120, text=True,
        )  # fmt: skip
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
        return done

    return command


def test_what_survives_is_printed(run):
    survived = "2, line 2: a > b -> a >= b\n4, line 5: at = 0 -> pass\n"
    summed = "4 changes: 2 killed, 2 survived, 0 timed out; 50.0 % noticed\n"
    assert run(LARGER, "--to", 4).stdout == survived + summed


def test_what_does_not_end_is_stopped(run):
    [*_, number] = [number for number, mutant in enumerate(mutants(MODULE), 1) if mutant.before == "at += 1"]
    done = run(UPTO, "--from", number, "--to", number, "--timeout", 3)
    assert done.stdout == "1 changes: 0 killed, 0 survived, 1 timed out; 100.0 % noticed\n"


@pytest.mark.parametrize(
    ("test", "sentence"),
    [
        (UPTO.replace("== 3", "== 4"), "the tests fail, or there are none, with nothing changed"),
        ("", "the tests fail, or there are none, with nothing changed"),
        ("import sys\nsys.path.insert(0, 'house')\n" + LARGER, "the tests import small.room from another place"),
    ],
    ids=["they fail", "there are none", "elsewhere"],
)
def test_tests_that_say_nothing_are_an_error(run, test, sentence):
    done = run(test)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert not done.stdout
