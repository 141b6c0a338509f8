"""Makes a release: builds the distributions, the bill of materials and the notes, and tags the commit.

It changes nothing outside this machine: it ends with the commands that push the tag and upload the files.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import bill
import build

from plait.version import __version__

ROOT = build.ROOT


def notes(changelog: str, version: str) -> str:
    """Return the section of a version from the text of CHANGELOG.md (SystemExit if there is none, or it is empty)."""
    found = re.search(rf"^## {re.escape(version)}(?: [^\n]*)?\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        sys.exit(
            f"releasing {version}: CHANGELOG.md has no section `## {version}`; "
            "rename `## Unreleased`, and commit that"
        )
    return f"# plait {version}\n\n{found[1].strip()}\n"


def check(root: Path, version: str) -> None:
    """Exit unless the tree is committed and the version is new."""
    changed = _git(root, "status", "--porcelain")
    if changed:
        sys.exit(f"releasing {version}: these files are not committed:\n{changed}")
    if _git(root, "tag", "--list", f"v{version}"):
        sys.exit(f"releasing {version}: the tag v{version} exists; set a new version in src/plait/version.py")


def main() -> None:
    """Make a release, or with --dry-run everything except the tag."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="do not check the tree, and create no tag")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder to fill [default: dist]")
    options, passed = parser.parse_known_args()
    out = options.out.resolve()
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version = "Unreleased" if options.dry_run and f"## {__version__}" not in changelog else __version__
    text = notes(changelog, version)
    if not options.dry_run:
        check(ROOT, __version__)
    command = [sys.executable, str(ROOT / "tools" / "dist" / "build.py"), "--out", str(out), *passed]
    if subprocess.run(command, check=False).returncode != 0:
        sys.exit("releasing: building the distributions failed; see the message above")
    (out / "NOTES.md").write_text(text, encoding="utf-8")
    bill.write(ROOT, out / f"plait-{__version__}.cdx.json", __version__, build.epoch())
    build.sums(out)
    if options.dry_run:
        sys.stdout.write("dry run: created no tag\n")
        return
    _git(ROOT, "tag", "--annotate", f"v{__version__}", f"--file={out / 'NOTES.md'}", "--cleanup=whitespace")
    sys.stdout.write(
        f"tagged v{__version__}. Check {out}, and then publish:\n"
        f"  git push origin v{__version__}\n  twine upload {out}/*.whl {out}/*.tar.gz\n"
    )


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    main()
