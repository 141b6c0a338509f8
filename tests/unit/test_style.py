"""The code keeps the style of the project: sizes, docstrings, names, and the direction of imports."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "plait"
PYTHON = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
RUST = sorted(path for folder in ("agent", "contain") for path in (ROOT / folder).rglob("*.rs"))
CODE = [*PYTHON, *TESTS, *RUST]
LONGEST_FILE = 450
LONGEST_FUNCTION = 60
MOST_FILES = 15

# A stage may import itself, the stages named here, and what serves all (units, errors, cautions, the version).
STAGES = {
    *("scenario", "hosts", "plan", "dataset", "kernel", "bpf", "engine", "measure"),
    *("analysis", "explain", "results", "report", "study"),
}
# `traffic` crosses the stages: each of its files is one kind of traffic for all of them, and knows none of them.
MAY_IMPORT = {
    "traffic": set(),
    "scenario": set(),
    "prototype": set(),
    "hosts": {"scenario"},
    "plan": {"scenario"},
    "dataset": {"plan"},
    "kernel": {"plan"},
    "bpf": set(),
    "engine": {"hosts", "plan", "dataset", "kernel", "bpf"},
    "measure": {"scenario", "hosts", "plan", "dataset", "engine"},
    "advice": {"scenario", "dataset", "engine", "analysis", "explain", "results", "report", "study"},
    "observe": {"hosts", "plan", "dataset", "engine", "analysis", "study"},
    "analysis": {"plan", "dataset"},
    "explain": {"scenario", "plan", "dataset", "analysis"},
    "results": {"scenario", "plan", "dataset", "engine", "analysis", "explain"},
    "report": {"plan", "dataset", "analysis", "explain", "results"},
    "view": {"scenario", "plan", "dataset", "engine", "analysis", "explain", "results", "report", "advice"},
    "study": STAGES,
    "prompt": {"scenario", "plan", "engine", "study"},
    "importers": {"scenario", "analysis"},
    "api": STAGES,
    "benchmark": {"scenario", "plan", "kernel", "engine", "analysis", "results", "report", "study"},
    "artefact": {"scenario", "kernel", "dataset", "analysis", "results", "report", "study", "benchmark"},
    "cli": {
        *STAGES,
        "api",
        "prompt",
        "importers",
        "advice",
        "artefact",
        "benchmark",
        "observe",
        "view",
        "testing",
    },
    "testing": {"plan", "dataset", "explain", "kernel", "engine", "scenario"},
}
SERVES_ALL = {
    *("binaries", "cache", "cautions", "errors", "files", "frames", "janitor"),
    *(
        "label_text",
        "limits",
        "metrics",
        "parts",
        "seeds",
        "traffic",
        "units",
        "version",
        "whole_files",
        "process_pool",
    ),
}
PURE = ("scenario/scenario", "traffic", "plan", "analysis", "explain")
IMPURE = {"subprocess", "socket", "threading", "time", "datetime", "random", "os", "shutil", "tempfile"}

FUNCTION_WORDS = set(
    re.findall(
        r"\w+",
        """
        a an the of at is in on by to for from with and or as be was were are it its this that these those what
        which who whom whose how why when where there here one ones something anything nothing so such much many
        most more less few each all any some no not only own same other others else both either neither told said
        found given gave had has have do does did done made makes make put got get let lets seen saw will would
        can could shall should may might must about after before between during through until while under over
        above below up down out off than then too very yet still again once left right back
        """,
    )
)
"""A name made of these alone says neither what it holds nor what it does."""
MOST_BARE_VARIABLES, MOST_BARE_FUNCTIONS = 0.03, 0.015
"""The largest shares of such names in `src`. They may only shrink."""
RIDDLES = {"found", "told", "own", "said", "one", "_is", "_of", "_at", "_something"}

# This list may only shrink: file -> the reason.
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def trees_are_forgotten() -> Generator[None]:
    yield
    tree_of.cache_clear()


def test_each_error_of_types_is_suppressed_with_a_reason() -> None:
    without = [
        f"{relative(path)}:{number}"
        for path in CODE
        if relative(path).startswith("src/")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"# type: ignore\[[a-z, -]+\](?! *# \w)", line)
    ]
    assert not without


def test_files_are_short() -> None:
    lengths = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in CODE}
    long = {name: length for name, length in lengths.items() if length > LONGEST_FILE}
    assert long.keys() == LONG_FILES.keys(), f"do they still do one thing? {long}"


def test_modules_say_what_they_are_for() -> None:
    silent = [relative(path) for path in [*PYTHON, *TESTS] if not ast.get_docstring(tree_of(path))]
    assert not silent, "a module starts with a sentence that says what it is for"


def test_functions_are_short() -> None:
    lengths = {
        f"{relative(path)}:{node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path in [*PYTHON, *TESTS]
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef)
    }
    long = {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION}
    assert long.keys() == LONG_FUNCTIONS.keys(), long


def test_names_in_tests_say_what_they_name() -> None:
    riddles: dict[str, set[str]] = {}
    for path in TESTS:
        names = {name for node in ast.walk(tree_of(path)) if (name := named_by(node))}
        riddles |= {relative(path): names & RIDDLES} if names & RIDDLES else {}
    assert not riddles, "what do they hold or do?"


def named_by(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    if isinstance(node, ast.arg):
        return node.arg
    return node.name if isinstance(node, ast.FunctionDef | ast.ClassDef) else None


def is_bare(name: str) -> bool:
    words = [word for word in name.lower().split("_") if word]
    dunder = name.startswith("__") and name.endswith("__")
    return bool(words) and not dunder and name not in {"self", "cls"} and FUNCTION_WORDS.issuperset(words)


def test_few_names_consist_of_function_words() -> None:
    variables: list[str] = []
    functions: list[str] = []
    for path in PYTHON:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions.append(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                variables.append(node.id)
            elif isinstance(node, ast.arg):
                variables.append(node.arg)
    for names, most in ((variables, MOST_BARE_VARIABLES), (functions, MOST_BARE_FUNCTIONS)):
        bare = Counter(name for name in names if is_bare(name))
        share = bare.total() / len(names)
        assert share <= most, f"{share:.4f} of the names say nothing, such as {bare.most_common(20)}"


def imported_stages(path: Path) -> set[str]:
    stages = set()
    for node in ast.walk(tree_of(path)):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (
                [node.module] if node.module != "plait" else [f"plait.{alias.name}" for alias in node.names]
            )
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        stages |= {name.split(".")[1] for name in names if name.startswith("plait.")}
    return stages


def test_a_stage_imports_only_the_stages_before_it() -> None:
    wrong: dict[str, set[str]] = {}
    for path in PYTHON:
        stage = path.relative_to(PACKAGE).parts[0]
        if stage in MAY_IMPORT:
            extra = imported_stages(path) - MAY_IMPORT[stage] - SERVES_ALL - {stage}
            wrong |= {relative(path): extra} if extra else {}
    assert not wrong, "these stages must not know of those"


def imported_modules(path: Path, modules: set[str]) -> set[str]:
    """Return the modules of plait that a file imports, also for annotations alone and inside functions."""
    imported = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                imported.add(inside if inside in modules else node.module)
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    return imported & modules


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_files_import_each_other_in_a_circle() -> None:
    paths = {module_of(path): path for path in PYTHON}
    imports = {name: imported_modules(path, set(paths)) - {name} for name, path in paths.items()}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_no_neighbours_import_each_other() -> None:
    """Of two folders or modules in one place, one comes first: whoever reads it need not know the other one."""
    paths = {module_of(path): path for path in PYTHON}
    imports = set()
    for importer, path in paths.items():
        for imported in imported_modules(path, set(paths)):
            parts = list(zip(importer.split("."), imported.split("."), strict=False))
            depth = next((depth for depth, (user, used) in enumerate(parts) if user != used), None)
            if depth is not None:  # a package and a module in it are no neighbours
                imports.add((".".join(importer.split(".")[:depth]), *parts[depth]))
    assert not {(place, user, used) for place, user, used in imports if (place, used, user) in imports}


def test_a_folder_holds_few_files() -> None:
    files = Counter(relative(path.parent) for path in CODE if path.name != "__init__.py")
    full = {folder: number for folder, number in files.items() if number > MOST_FILES}
    assert not full, "which of their files belong together?"


def test_no_two_classes_have_one_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in PYTHON:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(relative(path))
    twice = {name: paths for name, paths in homes.items() if len(paths) > 1}
    assert not twice, twice


def test_pure_stages_touch_neither_files_nor_clock_nor_processes() -> None:
    pure = [
        path for path in PYTHON if relative(path).startswith(tuple(f"src/plait/{stage}" for stage in PURE))
    ]
    assert len(pure) > 100
    for path in pure:
        for node in ast.walk(tree_of(path)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not IMPURE & {name.split(".")[0] for name in names}, relative(path)


def test_unsafe_is_in_one_place() -> None:
    for path in RUST:
        if "sys" not in relative(path):
            code = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
            assert not re.search(r"\bunsafe\s*[{(]|\bunsafe\s+(fn|impl)\b", code), relative(path)


def test_nothing_of_this_machine_is_committed() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    hosts = re.compile(
        r"pypi\.org|pythonhosted|registry\.npmjs|static\.crates|deb\.debian\.org|proxy\.golang"
    )
    for name in tracked.splitlines():
        path = ROOT / name
        if path == Path(__file__) or not path.is_file() or path.suffix in {".png", ".parquet"}:
            continue
        text = path.read_text(encoding="utf-8")
        assert not hosts.search(text), f"{name} names a package registry"
        assert not re.search(r"/(root|home/\w+|work)/(main|lab|shared|\.cargo|\.pyenv)", text), (
            f"{name} names a path"
        )


def test_no_two_test_files_have_one_name() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names)), "pytest imports files outside packages by their name alone"


def test_documents_are_as_the_formatter_writes_them() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    asked = [sys.executable, "-m", "mdformat", "--check", *tracked.stdout.split()]
    checked = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert checked.returncode == 0, f"`make format` formats them:\n{checked.stderr}"
