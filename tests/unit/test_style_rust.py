"""The modules of the Rust programs use each other in one direction only, and so do their top-level modules as a whole.

A module is a file. It uses another module when it names something that the other one defines, also through a re-export.
The unit tests in a file do not count. A file that includes what the build writes defines all
names that are nowhere else.
"""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
CRATES = ("agent", "contain", "programs/quic")
# Comments, strings, characters (a lifetime is no character), and who may see an item.
NO_CODE = re.compile(
    r"//[^\n]*|\bb?r(#*)\".*?\"\1|\"(?:\\.|[^\"\\])*\"|b?'(?:\\[^']+|[^'\\])'|\bpub\([^)]*\)", re.DOTALL
)
DEFINITION = re.compile(r"(?:\b(?:fn|struct|enum|trait|type|const|static)|macro_rules!)\s+(?:mut\s+)?(\w+)")
# A macro of this repository that defines structs takes them in braces.
MACRO = re.compile(r"^\w+! \{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
MACRO_STRUCT = re.compile(r"^    (\w+)[^\n]* \{$", re.MULTILINE)
USE = re.compile(r"\buse\s+([^;]+);")
PATH = re.compile(r"\b[a-z]\w*(?:::\w+)+")

Names = tuple[str, ...]
Graph = dict[Names, set[Names]]


def use_paths(tree: str) -> Iterator[tuple[Names, str]]:
    """Yield each path of a `use` declaration with its local name; `tree` has no blanks, and `=` for `as`."""
    prefix, brace, rest = tree.partition("{")
    if not brace:
        path, _, alias = tree.partition("=")
        names = tuple(path.removesuffix("::self").split("::"))
        yield names, alias or names[-1]
        return
    depth, part = 0, ""
    for character in rest[:-1] + ",":
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            yield from use_paths(prefix + part) if part else ()
            part = ""
        else:
            part += character


class Module:
    """One file of a crate: its submodules, what it defines, what it imports, and the paths that it spells out."""

    def __init__(self, path: Names, text: str) -> None:
        code = NO_CODE.sub(" ", text).split("#[cfg(test)]\nmod tests")[0]
        structs = [name for body in MACRO.findall(code) for name in MACRO_STRUCT.findall(body)]
        uses = [use for tree in USE.findall(code) for use in use_paths(re.sub(r"\s+as\s+|\s+", blank, tree))]
        self.path = path
        self.children = set(re.findall(r"\bmod\s+(\w+)\s*;", code))
        self.definitions = {*DEFINITION.findall(code), *structs}
        self.imports = {name: names for names, name in uses if name != "*"}
        self.globs = [names[:-1] for names, name in uses if name == "*"]
        self.includes = "include!(concat!(env!(" in code
        self.spelled = [tuple(path.split("::")) for path in PATH.findall(USE.sub(" ", code))]


def blank(match: re.Match[str]) -> str:
    return "=" if "as" in match[0] else ""


class Crate:
    """The modules of one crate by their paths; the path of the root is empty."""

    def __init__(self, files: dict[str, str]) -> None:
        modules = [Module(module_path(name), text) for name, text in files.items()]
        self.modules = {module.path: module for module in modules}

    def graph(self) -> Graph:
        """Return for each module the modules that define what it names."""
        return {path: self.uses(module) for path, module in self.modules.items()}

    def uses(self, module: Module) -> set[Names]:
        named = [*module.imports.values(), *module.globs, *module.spelled]
        return {home for names in named if (home := self.home(module.path, names)) is not None} - {
            module.path
        }

    def home(
        self, here: Names, names: Names, seen: frozenset[tuple[Names, Names]] = frozenset()
    ) -> Names | None:
        """Return the module that defines what `names` means in module `here`; None if another crate does."""
        if here not in self.modules or (here, names) in seen:
            return None
        if not names:
            return here
        module, seen, (first, *rest) = self.modules[here], seen | {(here, names)}, names
        starts = {"crate": (), "self": here, "super": here[:-1]}
        starts |= {child: (*here, child) for child in module.children}
        if first in starts:
            return self.home(starts[first], tuple(rest), seen)
        if first in module.definitions:
            return here
        if first in module.imports:
            return self.home(here, (*module.imports[first], *rest), seen)
        homes = (self.home(here, (*glob, *names), seen) for glob in module.globs)
        known = next((home for home in homes if home is not None), None)
        return here if known is None and module.includes and len(names) == 1 else known


def module_path(name: str) -> Names:
    parts = name.removesuffix(".rs").split("/")
    return tuple(parts[:-1] if parts[-1] in ("main", "mod") else parts)


def read_crate(name: str) -> Crate:
    source = ROOT / name / "src"
    files = [path for path in source.rglob("*.rs") if path.name != "tests.rs"]
    return Crate({path.relative_to(source).as_posix(): path.read_text(encoding="utf-8") for path in files})


def top_level(graph: Graph) -> Graph:
    """Return the graph of the top-level modules, each with all that is below it."""
    tops: Graph = {}
    for path, used in graph.items():
        tops.setdefault(path[:1], set()).update(other[:1] for other in used)
    return {path: used - {path} for path, used in tops.items()}


def circle(graph: Graph) -> list[str]:
    """Return the names of modules that use each other in a circle; empty if there are none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return ["::".join(path) or "the root" for path in reversed(error.args[1])]
    return []


@pytest.mark.parametrize("name", CRATES)
def test_rust_modules_use_each_other_in_one_direction(name: str) -> None:
    graph = read_crate(name).graph()
    assert not (modules := circle(graph)), f"a circle: {' uses '.join(modules)}"
    assert not (modules := circle(top_level(graph))), f"a circle of folders: {' uses '.join(modules)}"


@pytest.mark.parametrize(
    "low",
    [
        "use crate::high::High;",
        "use super::high::{self as top};\nfn low() { top::High::new(); }",
        "use crate::{low::Low, Again as Other};",
        "use crate::*;\nfn low() { crate::high::deep() }",
    ],
    ids=["import", "alias", "re-export", "path"],
)
def test_a_circle_of_rust_modules_is_seen(low: str) -> None:
    files = {
        "main.rs": "mod high;\nmod low;\nuse high::High as Again;",
        "high.rs": "use crate::low::Low;\npub struct High;\npub fn deep() {}",
        "low.rs": f"pub struct Low;\n{low}",
    }
    assert circle(Crate(files).graph())
    assert not circle(
        Crate({**files, "low.rs": f"pub struct Low;\n#[cfg(test)]\nmod tests {{ {low} }}"}).graph()
    )
