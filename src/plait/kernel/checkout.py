"""A private checkout of a kernel developer's git tree, in which plait builds incrementally.

The checkout borrows the objects of the tree and copies none. plait never writes to the tree. Between two builds git
replaces only the files that differ, so make compiles only what depends on them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plait.cache import scratch
from plait.errors import KernelBuildError, MachineError, RequestError, shell_command
from plait.files import Folder
from plait.kernel.unpack import LEFT_OUT_OF_CHECKOUT

_TIMEOUT_S = 600
_ALTERNATES = Path(".git", "objects", "info", "alternates")
"""Names the objects that a checkout borrows; a checkout without it is not complete."""
_SETTINGS = {
    "core.sparseCheckout": "true", "gc.auto": "0", "index.version": "4",
    "core.checkStat": "minimal", "core.trustctime": "false",  # a copy of a checkout has its times and sizes
}  # fmt: skip
_SCRATCH = ".plait-"
"""How the folders of indexes begin; whoever uses a checkout holds the lock of builds."""
_FAILED = re.compile(r"^error: patch failed: (?P<file>.+):(?P<line>\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class GitTree:
    """A git tree of the user, which plait only reads."""

    folder: Path

    @classmethod
    def at_folder(cls, folder: Path) -> GitTree:
        """Return the tree in `folder` (RequestError if it is none; MachineError without git)."""
        if shutil.which("git") is None:
            raise MachineError(
                f"reading the tree {folder}: git is not installed; run `sudo apt-get install git`"
            )
        if not folder.is_dir():
            raise RequestError(f"--tree {folder}: there is no such folder; correct the path")
        answer = run_git(["-C", str(folder), "rev-parse", "--show-toplevel"], {})
        if answer.returncode != 0:
            raise RequestError(
                f"--tree {folder}: this is no git tree; give a clone of Linux, or a plain folder with --source"
            )
        return cls(Path(answer.stdout.strip()))

    def commit(self, revision: str) -> str:
        """Return the commit that `revision` names (RequestError if it names none)."""
        answer = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if answer.returncode != 0:
            raise RequestError(
                f"{self.folder}: git knows no commit {revision!r}; correct the revision, or fetch it (git fetch --tags)"
            )
        return answer.stdout.strip()

    def precedes(self, earlier: str, later: str) -> bool:
        """Return whether the history of the commit `later` has the commit `earlier`, or both are the same."""
        return self._git("merge-base", "--is-ancestor", earlier, later).returncode == 0

    def tree(self, revision: str) -> str:
        """Return the git tree of a commit (RequestError if `revision` names none)."""
        return self._checked("rev-parse", f"{self.commit(revision)}^{{tree}}").strip()

    def path(self, name: str) -> Path:
        """Return the place of a file of the repository, such as `objects`."""
        return Path(self._checked("rev-parse", "--path-format=absolute", "--git-path", name).strip())

    def _checked(self, *arguments: str) -> str:
        answer = self._git(*arguments)
        if answer.returncode != 0:
            raise KernelBuildError(f"reading the git tree {self.folder}: {_first_line(answer.stderr)}")
        return answer.stdout

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_git(["-C", str(self.folder), *arguments], {})


class Checkout:
    """A folder that holds one state of a tree at a time, with the products of its last build."""

    def __init__(self, folder: Path, tree: GitTree) -> None:
        """Open the checkout in `folder`, and make it if there is none.

        A new one is a copy of the tree's newest checkout beside it, so that make compiles only what another
        configuration changes.
        """
        self.folder = folder
        self._tree = tree
        borrowed = f"{tree.path('objects')}\n"
        if not (folder / _ALTERNATES).is_file():
            shutil.rmtree(folder, ignore_errors=True)
            if not _copy_newest(folder, borrowed):
                folder.mkdir(parents=True)
                self._git(["init", "--quiet"])
                for name, value in _SETTINGS.items():
                    self._git(["config", name, value])
                excluded = "\n".join(LEFT_OUT_OF_CHECKOUT) + "\n"
                Folder(folder, (".git", "info")).write("sparse-checkout", excluded.encode())
                Folder(folder, _ALTERNATES.parent.parts).write(_ALTERNATES.name, borrowed.encode())

    @property
    def objects(self) -> Path:
        """The folder of the checkout's own objects."""
        return self.folder / ".git" / "objects"

    def working_state(self) -> str:
        """Return the git tree of the user's working files: the last commit with all uncommitted changes."""
        index = self._tree.path("index")
        with scratch(self.folder / ".git", _SCRATCH) as place:
            copy = place / "index"
            if index.is_file():
                Folder(place).bring(index, copy.name)  # git then reads only the files that changed since
            environment = {
                "GIT_INDEX_FILE": str(copy),
                "GIT_OBJECT_DIRECTORY": str(self.objects),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self._tree.path("objects")),
            }
            self._git(["add", "--all", "."], environment, self._tree.folder)
            return self._git(["write-tree"], environment, self._tree.folder).strip()

    def with_patches(self, state: str, patches: Sequence[Path], *, removable: bool = False) -> str:
        """Return the git tree `state` with patches applied; `removable`: they are plait's.

        Raises KernelBuildError with the hunk that does not apply.
        """
        if not patches:
            return state
        with scratch(self.folder / ".git", _SCRATCH) as place:
            index = {"GIT_INDEX_FILE": str(place / "index")}
            self._git(["read-tree", state], index)
            apply = ["apply", "--3way", "--cached", "--whitespace=nowarn"]
            if run_git([*apply, *map(str, patches)], index, self.folder).returncode != 0:
                self._git(["read-tree", "--reset", state], index)
                for patch in patches:
                    state_before = self._git(["write-tree"], index).strip()
                    if run_git([*apply, str(patch)], index, self.folder).returncode != 0:
                        self._git(
                            ["read-tree", "--reset", state_before], index
                        )  # a merge that failed leaves conflicts
                        raise KernelBuildError(self._refused(patch, index, removable=removable))
            return self._git(["write-tree"], index).strip()

    def _refused(self, patch: Path, index: Mapping[str, str], *, removable: bool) -> str:
        """Return the message for a patch that does not apply to the index, with its hunk."""
        answer = run_git(["apply", "--cached", "--check", str(patch)], index, self.folder)
        match = _FAILED.search(answer.stderr)
        place = f" at {match['file']}:{match['line']}" if match else ""
        hunk = f", hunk {_hunk(patch, match['file'], match['line'])}" if match else ""
        if "No valid patches" in answer.stderr:
            return f"applying {patch.name}: it has no diff; give what `git diff` or `git format-patch` writes"
        if "corrupt patch" in answer.stderr:
            reason = _first_line(answer.stderr).removeprefix("error: ")
            return f"applying {patch.name}: git cannot read it: {reason}; make it again with `git diff`"
        reason = "" if match else f": {_first_line(answer.stderr) or 'it conflicts with the tree'}"
        remedy = f"leave it out with --without {patch.stem}" if removable else "rebase the patch on this tree"
        return f"applying {patch.name}: the tree differs{place}{hunk}{reason}; {remedy}"

    def with_files(self, state: str, files: Mapping[str, bytes]) -> str:
        """Return the git tree `state` with added files."""
        with scratch(self.folder / ".git", _SCRATCH) as place:
            index = {"GIT_INDEX_FILE": str(place / "index")}
            self._git(["read-tree", state], index)
            lines = []
            for path, content in files.items():
                source = place / "file"
                Folder(place).write(source.name, content)
                blob = self._git(["hash-object", "-w", "--no-filters", str(source)]).strip()
                lines.append(f"100644 {blob}\t{path}\n")
            self._git(["update-index", "--add", "--index-info"], index, text="".join(lines))
            return self._git(["write-tree"], index).strip()

    def switch(self, state: str) -> None:
        """Write the files of a git tree to the folder; the products of earlier builds stay."""
        self._git(["read-tree", "--reset", "-u", state])

    def version_text(self, state: str) -> str:
        """Return the Makefile of a git tree (KernelBuildError if it has none)."""
        answer = run_git(["cat-file", "blob", f"{state}:Makefile"], {}, self.folder)
        if answer.returncode != 0:
            raise KernelBuildError(
                f"{self._tree.folder} is not a Linux source tree: it has no Makefile; give another with --tree"
            )
        return answer.stdout

    def _git(
        self,
        arguments: list[str],
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        text: str | None = None,
    ) -> str:
        answer = run_git([*arguments], environment or {}, folder or self.folder, text)
        if answer.returncode != 0:
            command = shell_command("git", arguments[0])
            raise KernelBuildError(
                f"`{command}` in the checkout of {self._tree.folder}: {_first_line(answer.stderr)}; if the disk "
                f"is not full, remove {self.folder}"
            )
        return answer.stdout


def _copy_newest(folder: Path, borrowed: str) -> bool:
    """Copy the newest checkout beside `folder` that borrows the same objects, and return whether there is one."""
    others = [
        path
        for path in folder.parent.glob("*/")
        if path.suffix != ".part"
        and ("-" in path.name) == ("-" in folder.name)  # of the same architecture
        and (path / _ALTERNATES).is_file()
        and (path / _ALTERNATES).read_text(encoding="utf-8") == borrowed
    ]
    if not others:
        return False
    newest = max(others, key=lambda path: (path / ".git" / "index").stat().st_mtime_ns)
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    copy = ["cp", "--archive", "--reflink=auto", "--", str(newest), str(part)]
    answer = subprocess.run(
        copy, capture_output=True, text=True, errors="replace", check=False, timeout=_TIMEOUT_S
    )
    if answer.returncode != 0:
        shutil.rmtree(part, ignore_errors=True)
        raise KernelBuildError(
            f"copying the checkout {newest} for another configuration: {_first_line(answer.stderr)}; "
            "free disk space, for example with `plait store prune --part trees`"
        )
    (part / ".git" / "index.lock").unlink(missing_ok=True)
    for name, value in _SETTINGS.items():  # an earlier version of plait may have made the other one
        run_git(["config", name, value], {}, part)
    Folder(folder.parent).take(part, folder.name)
    return True


def _hunk(patch: Path, file: str, line: str) -> str:
    """Return the head of the hunk that starts at this line of the file."""
    current = ""
    for text in patch.read_text(encoding="utf-8", errors="replace").splitlines():
        if text.startswith(("--- a/", "+++ b/")):
            current = text[6:].split("\t")[0]
        if current == file and text.startswith((f"@@ -{line},", f"@@ -{line} ")):
            return text
    return f"@@ -{line} @@"


def run_git(
    arguments: list[str], environment: Mapping[str, str], folder: Path | None = None, text: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run git in `folder` without the user's configuration, and return what it printed."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    clean |= {"GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C", "GIT_CONFIG_COUNT": "1"}
    clean |= {"GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*", **environment}
    return subprocess.run(
        ["git", *arguments], cwd=folder, env=clean, input=text or "", capture_output=True, text=True, errors="replace",
        check=False, timeout=_TIMEOUT_S,
    )  # fmt: skip


def _first_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[0] if lines else ""
