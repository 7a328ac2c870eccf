"""What the tests notice: a module is changed in one place, the tests are run, and what they let pass is printed.

Run it as ``python tests/mutants.py converter/gate.py [--tests FILE ...] [--from N] [--to M] [--timeout S]``. Without
``--tests`` they are the files that name the module, the one that is called after it first. Each change is tried in a
copy of the package that stands first on the path, in a process forked from one that has imported what takes long.

A change that nothing notices is a gap in the tests, or makes no difference: which one, somebody has to look.
"""

from __future__ import annotations

import argparse
import ast
import gc
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from importlib import import_module
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, NamedTuple

TESTS: Final = Path(__file__).parent
ENDS: Final = ("killed", "survived", "timed out")

# ---------------------------------------------------------------- what can be changed

OPERATORS: Final[dict[type[ast.AST], tuple[type[ast.AST], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.FloorDiv,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitXor: (ast.BitOr,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}
"""For each operator those that take its place."""


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    changed = copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _without(values: list[Any]) -> Iterator[list[Any]]:
    """The list without each of its values."""
    for at in range(len(values)):
        yield values[:at] + values[at + 1 :]


def _operated(node: Any) -> Iterator[ast.AST]:
    for other in OPERATORS.get(type(node.op), ()):
        yield _with(node, op=other())


def _compared(node: ast.Compare) -> Iterator[ast.AST]:
    for at, operator in enumerate(node.ops):
        for other in OPERATORS[type(operator)]:
            yield _with(node, ops=[*node.ops[:at], other(), *node.ops[at + 1 :]])


def _joined(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield from _operated(node)
    for values in _without(node.values):
        yield _with(node, values=values) if len(values) > 1 else values[0]


def _signed(node: ast.UnaryOp) -> Iterator[ast.AST]:
    yield node.operand


def _constant(node: ast.Constant) -> Iterator[ast.AST]:
    value = node.value
    if value is None:
        yield ast.Constant("XX")
    elif isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, str):
        yield ast.Constant(f"XX{value}XX" if value else "XX")
    elif isinstance(value, bytes):
        yield ast.Constant(b"XX%bXX" % value if value else b"XX")
    elif isinstance(value, int | float | complex):
        yield ast.Constant(value + 1)


def _less_named(node: ast.Call | ast.ClassDef) -> Iterator[ast.AST]:
    for keywords in _without(node.keywords):
        yield _with(node, keywords=keywords)


def _left_out(_: ast.stmt) -> Iterator[ast.AST]:
    yield ast.Pass()


def _returned(node: ast.Return) -> Iterator[ast.AST]:
    empty = node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)
    yield ast.Pass() if empty else ast.Return(ast.Constant(None))


CHANGES: Final[dict[type[ast.AST], Callable[[Any], Iterator[ast.AST]]]] = {
    ast.Compare: _compared,
    ast.BoolOp: _joined,
    ast.BinOp: _operated,
    ast.AugAssign: _operated,
    ast.UnaryOp: _signed,
    ast.Constant: _constant,
    ast.Call: _less_named,
    ast.ClassDef: _less_named,
}
"""What takes the place of a node, wherever it stands."""

STATEMENTS: Final[dict[type[ast.AST], Callable[[Any], Iterator[ast.AST]]]] = {
    **dict.fromkeys((ast.Expr, ast.Assign, ast.AugAssign, ast.Delete, ast.Raise, ast.Break, ast.Continue), _left_out),
    ast.Return: _returned,
}
"""The same inside functions. A name that a module lacks would be noticed by everything."""


def _decided(parent: ast.AST, test: ast.AST) -> Iterator[ast.AST]:
    """A condition the other way round, always true, and always false."""
    if isinstance(test, ast.Constant):
        return
    if not isinstance(test, ast.Compare) or len(test.ops) > 1:  # a single comparison is turned by its operator
        yield test.operand if isinstance(test, ast.UnaryOp) else ast.UnaryOp(ast.Not(), test)
    if not isinstance(parent, ast.While):  # it would not end
        yield ast.Constant(True)
    yield ast.Constant(False)


# ---------------------------------------------------------------- the mutants of a module


class Mutant(NamedTuple):
    """One change: its line, what stood there, what stands there now, and the module's text with it."""

    line: int
    before: str
    after: str
    text: str


class Slot(NamedTuple):
    """A place in a tree that holds a node: a field of another node, or one of the nodes in a field."""

    parent: ast.AST
    field: str
    at: int | None
    node: Any

    def put(self, node: ast.AST) -> None:
        if self.at is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.at] = node

    def changes(self) -> Iterator[ast.AST]:
        """What takes the node's place, nothing twice."""
        seen = set()
        for change in self._changes():
            if (shown := ast.unparse(change)) not in seen:
                seen.add(shown)
                yield change

    def _changes(self) -> Iterator[ast.AST]:
        if self.field in ("test", "ifs"):
            yield from _decided(self.parent, self.node)
        if change := CHANGES.get(type(self.node)):
            yield from change(self.node)
        if not isinstance(self.parent, ast.Module | ast.ClassDef) and (change := STATEMENTS.get(type(self.node))):
            yield from change(self.node)


def slots(parent: ast.AST) -> Iterator[Slot]:
    """All places, in the order in which they are written, but for what is not run: docstrings and annotations."""
    for field, value in ast.iter_fields(parent):
        if field in ("annotation", "returns"):
            continue
        for at, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, ast.AST) and not _unread(node):
                yield Slot(parent, field, at, node)
                yield from slots(node)


def _unread(node: ast.AST) -> bool:
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
        return node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def mutants(source: str) -> Iterator[Mutant]:
    """All changes of a module, one at a time, in the order of its lines."""
    tree = ast.parse(source)
    for slot in sorted(slots(tree), key=lambda slot: getattr(slot.node, "lineno", 0)):
        for change in slot.changes():
            slot.put(change)
            yield Mutant(slot.node.lineno, _shown(slot.node), _shown(change), ast.unparse(tree))
            slot.put(slot.node)


def _shown(node: ast.AST) -> str:
    return ast.unparse(node).split("\n")[0]


# ---------------------------------------------------------------- one run of the tests

HEAVY: Final = ("pytest", "hypothesis", "msgspec", "jsonschema", "jsonschema_rs", "click", "pyarrow")
OPTIONS: Final = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:anyio", "--tb=no", "--assert=plain")
BESIDE: Final = "schemas"
"""What a package looks for beside itself."""

MOST_MEMORY: Final = 8 << 30
ELSEWHERE: Final = 99
"""The exit status where the tests import the module from somewhere else."""


class Ground:
    """A copy of a package in which one module is changed, and the tests that are run against it."""

    def __init__(self, folder: Path, module: Path, tests: list[Path]) -> None:
        package = module = module.resolve()
        while (package.parent / "__init__.py").exists():
            package = package.parent
        self.folder = folder
        self.module = folder / module.relative_to(package.parent)
        self.name = ".".join(self.module.relative_to(folder).with_suffix("").parts)
        self.said = folder / "said"
        self.tests = tests
        if package.is_dir():
            shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__"))
        if (beside := package.parent / BESIDE).is_dir():
            (folder / BESIDE).symlink_to(beside)

    def end(self, number: int, text: str, timeout: float | None) -> str:
        """How the tests end with this text of the module. Raises `RuntimeError` where they import another one."""
        self.module.write_text(text, "utf-8")
        os.utime(self.module, (number, number))  # by its time Python knows whether what it has compiled is of today
        process = get_context("fork").Process(target=self._run)
        process.start()
        group = process.pid
        assert group
        process.join(timeout)
        late = process.is_alive()
        process.kill()
        process.join()
        with suppress(ProcessLookupError):  # what its tests have started is in the group that it made
            os.killpg(group, signal.SIGKILL)
        if process.exitcode == ELSEWHERE:
            raise RuntimeError(f"the tests import {self.name} from another place than the copy that is changed")
        return "timed out" if late else "survived" if process.exitcode == 0 else "killed"

    def _run(self) -> None:
        """In a process of its own: run the tests, and tell by the exit status how they end."""
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        with self.said.open("wb") as said:
            for stream in (1, 2):
                os.dup2(said.fileno(), stream)
        sys.dont_write_bytecode = False
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(self.folder / "compiled")
        sys.path.insert(0, str(self.folder))
        os.environ["PYTHONPATH"] = str(self.folder)
        status = int(import_module("pytest").main([*OPTIONS, *map(str, self.tests)]))
        imported = getattr(sys.modules.get(self.name), "__file__", None) or str(self.module)
        sys.exit(status if Path(imported) == self.module else ELSEWHERE)


def prepare() -> None:
    """Import what takes long, and let hypothesis stop at the first example that fails."""
    for name in HEAVY:
        with suppress(ImportError):
            import_module(name)
    gc.freeze()  # what is imported need not be looked through in every process
    hypothesis = sys.modules.get("hypothesis")
    if hypothesis is not None:
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile(
            "mutants", max_examples=50, deadline=None, derandomize=True, database=None, phases=phases,
            suppress_health_check=[hypothesis.HealthCheck.too_slow],
        )  # fmt: skip
        os.environ["HYPOTHESIS_PROFILE"] = "mutants"


def concerned(module: Path) -> list[Path]:
    """The test files that name a module, first the one that is called after it."""
    named = re.compile(rf"\b{re.escape(module.stem)}\b")
    own = TESTS / f"test_{module.stem}.py"
    found = [path for path in sorted(TESTS.glob("test_*.py")) if path == own or named.search(path.read_text("utf-8"))]
    return sorted(found, key=lambda path: path != own)


# ---------------------------------------------------------------- all of them


def rounds(ground: Ground, source: str, first: int, last: int | None, timeout: float | None) -> Counter[str]:
    """Print each change that survives; how many ended how. Raises `RuntimeError` where the tests fail without one."""
    began = time.monotonic()
    if ground.end(0, ast.unparse(ast.parse(source)), None) != "survived":
        said = ground.said.read_text("utf-8")
        raise RuntimeError(f"the tests fail, or there are none, with nothing changed: {said}")
    limit = timeout or 5 + 3 * (time.monotonic() - began)
    ends: Counter[str] = Counter()
    for number, mutant in islice(enumerate(mutants(source), 1), first - 1, last):
        end = ground.end(number, mutant.text, limit)
        ends[end] += 1
        if end == "survived":
            print(f"{number}, line {mutant.line}: {mutant.before} -> {mutant.after}", flush=True)
    return ends


def main() -> None:
    parser = argparse.ArgumentParser(description="Change a module in one place, and look whether the tests notice.")
    parser.add_argument("module", type=Path)
    parser.add_argument("--tests", type=Path, nargs="+", help="in the order in which they are run")
    parser.add_argument("--from", type=int, default=1, dest="first", help="number of the first change")
    parser.add_argument("--to", type=int, dest="last", help="number of the last change")
    parser.add_argument("--timeout", type=float, help="seconds; without it, three times what nothing changed takes")
    asked = parser.parse_args()
    prepare()
    with tempfile.TemporaryDirectory() as folder:
        ground = Ground(Path(folder).resolve(), asked.module, asked.tests or concerned(asked.module))
        source = asked.module.read_text("utf-8")
        ends = rounds(ground, source, asked.first, asked.last, asked.timeout)
    total = ends.total()
    noticed = f"{100 * (total - ends['survived']) / total:.1f} %" if total else "nothing"
    print(f"{total} changes: {', '.join(f'{ends[end]} {end}' for end in ENDS)}; {noticed} noticed")


if __name__ == "__main__":
    main()
