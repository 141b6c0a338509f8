#!/usr/bin/env python3
"""Builds the documentation site into build/site from the pages of the repository. `make docs` runs it.

    tools/site/build.py [--out DIR]

The site has the pages of docs/ and those at the top, with the same links. The sections of docs/README.md and of the
indexes in its folders become the navigation. The references of commands and of the Python interface come from the code.
Every warning is an error.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import commands  # beside this file
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
SITE = Path(__file__).parent
TOP = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
KINDS = {".md", ".svg", ".png", ".json", ".ipynb", ".yaml", ".c", ".py"}
MOST_S = 900
PYTHON = """\
# Python interface

`import plait` offers these names. The [tutorial](../tutorial/python.md) shows them at work.

```{eval-rst}
.. autofunction:: plait.load
.. autofunction:: plait.run
.. autofunction:: plait.open
.. autoclass:: plait.api.study.Study
   :members:
.. autoclass:: plait.api.study.Figure
   :members:
```
"""
REFERENCE = "docs/reference"
GENERATED = {f"{REFERENCE}/commands.md": commands.page, f"{REFERENCE}/python-api.md": lambda: PYTHON}


def main() -> int:
    """Build the site; return the exit code of Sphinx."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="folder of the site")
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory(prefix="plait-site-") as folder:
        source = Path(folder) / "source"
        stage(source)
        shutil.rmtree(out, ignore_errors=True)
        command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-j", "auto"]
        return subprocess.run(
            [*command, "-d", str(Path(folder) / "doctrees"), str(source), str(out)],
            check=False,
            timeout=MOST_S,
        ).returncode


def stage(source: Path) -> None:
    """Write the sources of the site to the new folder `source`."""
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "docs", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    for name in tracked.stdout.split():
        if (ROOT / name).is_file() and Path(name).suffix in KINDS and not name.startswith("."):
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
    for name, make in GENERATED.items():
        (source / name).write_text(make(), encoding="utf-8")
    _link_generated(source / "docs" / "README.md")
    for index in [*source.rglob("docs/**/README.md"), source / "docs" / "README.md"]:
        if index != source / "docs" / "README.md":
            _append_toctree(index)
    home = source / "README.md"
    home.write_text(home.read_text(encoding="utf-8") + _navigation(source), encoding="utf-8")
    _rename_home(source)
    shutil.copyfile(SITE / "conf.py", source / "conf.py")
    (source / "_static").mkdir()
    shutil.copyfile(SITE / "site.css", source / "_static" / "site.css")


def _link_generated(index: Path) -> None:
    """List the generated pages in the index, at the end of its section on reference."""
    lines = "".join(
        f"- [{_title(make())}]({name.removeprefix('docs/')})\n" for name, make in GENERATED.items()
    )
    text = index.read_text(encoding="utf-8")
    head, mark, rest = text.partition("\n## Explanation\n")
    if not mark:
        raise SystemExit("docs/README.md has no section Explanation, before which the generated pages go")
    index.write_text(f"{head.rstrip()}\n{lines}{mark}{rest}", encoding="utf-8")


def _title(text: str) -> str:
    return text.partition("\n")[0].removeprefix("# ")


def _sections(page: Path) -> list[tuple[str, list[str]]]:
    """Return the title of each section of a page, with the pages that it links to, in their order."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(page.read_text(encoding="utf-8"))
    for before, token in zip([None, *tokens], tokens, strict=False):
        if before is not None and before.type == "heading_open" and before.tag == "h2":
            sections.append((token.content, []))
        for child in token.children or []:
            target = str(child.attrGet("href") or "").partition("#")[0]
            if target.endswith(".md") and "://" not in target and target not in sections[-1][1]:
                sections[-1][1].append(target)
    return sections


def _append_toctree(index: Path) -> None:
    """Append the pages that the index of a folder links to, as navigation."""
    linked = [page for _, pages in _sections(index) for page in pages if "/" not in page]
    with index.open("a", encoding="utf-8") as file:
        file.write(_toctree("", list(dict.fromkeys(linked))))


def _navigation(source: Path) -> str:
    """Return the navigation of the home page: the sections of docs/README.md."""
    text = _toctree("", ["docs/README.md"])
    for title, pages in _sections(source / "docs" / "README.md")[1:]:
        inside = [f"docs/{page}" if not page.startswith("../") else page[3:] for page in pages]
        if title == "For developers":
            inside += [name for name in TOP[1:] if name not in inside]
        text += _toctree(title, inside)
    return text


def _toctree(caption: str, pages: list[str]) -> str:
    options = f":caption: {caption}\n" if caption else ""
    return "\n```{toctree}\n:hidden:\n" + options + "\n" + "\n".join(pages) + "\n```\n"


def _rename_home(source: Path) -> None:
    """Make README.md at the top the page index.html, and lead the links there."""
    (source / "README.md").rename(source / "index.md")
    for page in source.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        up = "../" * (len(page.relative_to(source).parts) - 1)
        page.write_text(re.sub(rf"\]\({re.escape(up)}README\.md", f"]({up}index.md", text), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
