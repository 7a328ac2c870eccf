"""The one-way flow of the house: a room knows the rooms below it, and none above."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

import converter

PACKAGE = Path(converter.__file__).parent

FLOORS = (
    "outcome options",
    "chat responses",
    "text place normal memo plain outline",
    "tables files targets frames records",
    "chat_stream responses_stream streams",
    "reading habits ids usage logprobs settings reasoning",
    "patterns arguments references keywords surely schemas tools",
    "settings_into_responses settings_into_chat",
    "sources foreign kinds shapes entry",
    "gate",
    "turns into_responses into_chat",
    "answers_into_responses answers_into_chat",
    "conversion",
    "repairs standing mapping folded",
    "strangers alone shortcut beginnings histories recall",
    "verify convert __init__",
    "report published verdicts check sheets inspection",
    "shards task",
    "crew",
    "job",
    "cli __main__",
)
ORDER = " ".join(FLOORS).split()
"""Every module, from what knows nothing to the command line; each imports only what stands before it."""

RUNTIME = {"msgspec", "jsonschema", "click"}
OPTIONAL = {"jsonschema_rs": "schemas", "xopen": "files", "pyarrow": "tables"}
"""Extras: the one module that looks for each, and does without."""

OF_JSONSCHEMA = {"referencing"}

MODULES = {path.stem: ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.glob("*.py"))}


def imported(tree):
    """The full names that a module imports, wherever in it; a name in a table of modules counts too."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "an import relative to its place"
            if node.module == "converter":
                names |= {f"converter.{alias.name}" for alias in node.names}
            else:
                names.add(node.module)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(r"converter\.\w+", node.value)
        ):
            names.add(node.value)
    return names


def own(tree):
    """The modules of the house among them; a name that is no module comes from the front door."""
    inside = {name.split(".")[1] for name in imported(tree) if name.startswith("converter.")}
    front = {"__init__"} if inside - MODULES.keys() else set()
    return (inside & MODULES.keys()) | front


def test_every_module_has_its_place():
    assert len(set(ORDER)) == len(ORDER)
    assert MODULES.keys() <= set(ORDER), f"no place in the order: {sorted(MODULES.keys() - set(ORDER))}"
    assert set(ORDER) <= MODULES.keys(), f"no such module: {sorted(set(ORDER) - MODULES.keys())}"


@pytest.mark.parametrize("name", MODULES)
def test_imports_go_down(name):
    below = set(ORDER[: ORDER.index(name)])
    assert own(MODULES[name]) <= below, f"{name} imports from above: {sorted(own(MODULES[name]) - below)}"


@pytest.mark.parametrize("name", MODULES)
def test_only_the_declared_packages(name):
    roots = {full.split(".")[0] for full in imported(MODULES[name])} - sys.stdlib_module_names - {"converter"}
    allowed = RUNTIME | OF_JSONSCHEMA | {extra for extra, module in OPTIONAL.items() if module == name}
    assert roots <= allowed


@pytest.mark.parametrize(("extra", "module"), OPTIONAL.items())
def test_extras_are_guarded(extra, module):
    guarded = [
        node
        for attempt in ast.walk(MODULES[module])
        if isinstance(attempt, ast.Try)
        and any(
            "ImportError" in ast.unparse(handler.type or ast.Name(""))
            or "ModuleNotFoundError" in ast.unparse(handler.type or ast.Name(""))
            for handler in attempt.handlers
        )
        for node in ast.walk(attempt)
        if isinstance(node, ast.Import | ast.ImportFrom) and extra in ast.unparse(node)
    ]
    every = [
        node
        for node in ast.walk(MODULES[module])
        if isinstance(node, ast.Import | ast.ImportFrom) and extra in ast.unparse(node)
    ]
    assert every
    assert guarded == every


def test_only_the_command_line_knows_click():
    assert [name for name, tree in MODULES.items() if "click" in {full.split(".")[0] for full in imported(tree)}] == [
        "cli"
    ]


def test_the_library_neither_logs_nor_prints():
    for name, tree in MODULES.items():
        assert "logging" not in imported(tree), name
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
        assert name in ("cli", "report", "published") or not [node for node in calls if node.func.id == "print"], name


def test_the_declared_dependencies():
    path = PACKAGE.parent / "pyproject.toml"
    if not path.is_file():
        pytest.skip("the package is installed without its checkout")
    project = tomllib.loads(path.read_text("utf-8"))["project"]
    assert {re.split(r"\W", name)[0] for name in project["dependencies"]} == RUNTIME
