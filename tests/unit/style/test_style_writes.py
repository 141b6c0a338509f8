"""Only `plait.files` writes files: everything else goes through it, but for a list that may only shrink."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).parents[3] / "src" / "plait"
WRITERS = {"files.py", "whole_files.py"}
COPIES = {"copy", "copy2", "copyfile", "copytree", "move", "make_archive", "unpack_archive"}
OF_PATHS = {"write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "rename"}
OF_OS = {"rename", "renames", "replace", "link", "symlink", "truncate", "mkfifo", "mknod"}
KINDS = ("parquet", "csv", "ipc", "ipc_stream", "json", "ndjson", "avro")
OF_FRAMES = {f"{verb}_{kind}" for kind in KINDS for verb in ("write", "sink")}
ARCHIVES = {"ZipFile", "GzipFile", "TarFile"}
OPENING = {"gzip", "lzma", "bz2", "tarfile", "io", "codecs"}
UNSAFE = {"NamedTemporaryFile", "mkstemp", "mktemp", "extractall", "savefig", "tofile", "savez", "savetxt"}
FLAGS = {"O_CREAT", "O_TRUNC", "O_TMPFILE", "O_APPEND"}
TEMPORARY = {"cache.py": 2, "kernel/cache.py": 1}
"""How many calls make temporary files and folders; the list may only shrink."""

# This list may only shrink: file below src/plait -> the number of places, and the reason.
EXCEPTIONS = {
    "cache.py": (1, "locks in the user's own cache, with the process that holds each"),
    "engine/host/settings.py": (1, "sysctls in /proc, which plait never creates"),
    "engine/virtual/guest_folder.py": (
        1,
        "the output that a guest fills, in its own folder in memory; links and all but regular files are refused",
    ),
    "kernel/build.py": (1, "the log that make writes while plait reads it, in the user's own cache"),
    "testing/hunt/netlink.py": (1, "sysctls in the guest's own /proc: this file runs in the guest"),
    "testing/selftest/suites.py": (
        1,
        "copies of scripts with their modes, in a new folder of the user's own cache",
    ),
}
EXAMPLES = (
    "shutil.copytree(a, b)", "from shutil import copyfile", 'open(path, "w")', 'open(path, mode="ab")',
    'path.open("xb")', 'path.open("r+")', 'io.open(path, "w")', 'gzip.open(path, "wt")', "path.write_text(text)",
    "frame.write_parquet(path)", "frame.sink_csv(path)", "os.open(path, os.O_WRONLY | os.O_CREAT)", "os.rename(a, b)",
    "path.replace(other)", "path.symlink_to(other)", 'zipfile.ZipFile(path, "w")', "archive.extractall(folder)",
    "tempfile.mkstemp()", 'tarfile.open(path, "w:xz")', "path.touch()", "figure.savefig(path)",
)  # fmt: skip
HARMLESS = (
    "open(path)", 'path.open("rb")', 'text.replace("a", "b")', "replace(record, field=1)", "zipfile.ZipFile(path)",
    'with folder.create("x") as file: frame.write_csv(file)', "out = io.BytesIO(); frame.write_parquet(out)",
    'with output.create() as file, zipfile.ZipFile(file, "w") as archive: pass',
)  # fmt: skip


def writes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each call that writes a file by its path."""
    streams = set(bound_streams(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in FLAGS:
            yield node.lineno, f"os.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module in {"shutil", "os"}:
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name in COPIES | OF_OS)
        elif isinstance(node, ast.Call) and (name := written_by(node, streams)) is not None:
            yield node.lineno, name


def bound_streams(tree: ast.Module) -> Iterator[str]:
    """Yield the names of streams that `plait.files` made, or that are in memory."""
    for node in ast.walk(tree):
        if isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
            called, bound = node.context_expr, node.optional_vars
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            called, bound = node.value, node.targets[0]
        else:
            continue
        function = called.func if isinstance(called, ast.Call) else None
        if isinstance(function, ast.Attribute) and function.attr in {"create", "BytesIO"}:
            yield bound.id


def written_by(call: ast.Call, streams: set[str]) -> str | None:
    """Return the name of the function if the call writes a file by its path."""
    function = call.func
    targets = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "fileobj")]
    to_stream = any(isinstance(target, ast.Name) and target.id in streams for target in targets)
    if isinstance(function, ast.Name):
        archive = function.id in ARCHIVES and not to_stream and creates(call, 1)
        return function.id if archive or (function.id == "open" and creates(call, 1)) else None
    if not isinstance(function, ast.Attribute):
        return None
    module = function.value.id if isinstance(function.value, ast.Name) else ""
    name = f"{module}.{function.attr}"
    forbidden = (
        (module == "shutil" and function.attr in COPIES)
        or (module == "os" and function.attr in OF_OS)
        or function.attr in OF_PATHS | UNSAFE
        or (function.attr in OF_FRAMES and not to_stream)
        or (function.attr in ARCHIVES and not to_stream and creates(call, 1))
        or (function.attr == "open" and not to_stream and creates(call, module in OPENING))
        or (function.attr == "replace" and is_path_replacement(call))
    )
    return name if forbidden else None


def creates(call: ast.Call, position: int) -> bool:
    """Return whether the mode of a call, its argument at `position`, creates or changes a file."""
    modes = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    modes += call.args[position : position + 1]
    return any(
        isinstance(mode, ast.Constant) and re.fullmatch(r"(?=.*[wax+])[rwaxbt+]+(:\w*)?", str(mode.value))
        for mode in modes
    )


def is_path_replacement(call: ast.Call) -> bool:
    """Return whether a call of `replace` has the form of `Path.replace`; texts take two arguments, frames a dict."""
    if len(call.args) != 1 or call.keywords:
        return False
    replaced = call.args[0]
    return not (
        isinstance(replaced, ast.Dict)
        or (isinstance(replaced, ast.Call) and ast.unparse(replaced.func) == "dict")
    )


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_call_that_writes_by_path_is_noticed(example: str) -> None:
    assert [name for _, name in writes(ast.parse(example))]


@pytest.mark.parametrize("example", HARMLESS)
def test_what_reads_or_writes_to_a_stream_is_allowed(example: str) -> None:
    assert list(writes(ast.parse(example))) == []


def test_only_the_files_module_writes_files() -> None:
    places = {
        path.relative_to(PACKAGE).as_posix(): list(writes(ast.parse(path.read_text(encoding="utf-8"))))
        for path in sorted(PACKAGE.rglob("*.py"))
    }
    actual = {path: calls for path, calls in places.items() if calls and path not in WRITERS}
    for path, calls in actual.items():
        count, _ = EXCEPTIONS.get(path, (0, ""))
        assert len(calls) <= count, f"{path}: write through plait.files instead: {calls}"
    counts = {path: len(calls) for path, calls in actual.items()}
    assert counts == {path: count for path, (count, _) in EXCEPTIONS.items()}, "shrink the list of exceptions"


def test_a_temporary_folder_has_somebody_who_removes_it_after_a_kill() -> None:
    """`plait.engine.workspace`, and `scratch` and `temporary` of `plait.cache` do."""
    making = re.compile(r"tempfile\.(mk\w+|\w+File|TemporaryDirectory)\(")
    counts = {
        path.relative_to(PACKAGE).as_posix(): len(making.findall(path.read_text(encoding="utf-8")))
        for path in sorted(PACKAGE.rglob("*.py"))
    }
    assert {path: count for path, count in counts.items() if count} == TEMPORARY
