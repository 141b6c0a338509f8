"""The tutorial as a notebook: `python tests/unit/api/tutorial_notebook.py PAGE.md` prints it.

A test runs the page's blocks, and compares the notebook beside the page with this output.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

_BLOCK = re.compile(r"```python\n(.*?)```\n", re.DOTALL)
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def notebook(page: str) -> str:
    """Return the Jupyter notebook (format 4.5) whose cells are the text and the Python blocks of a Markdown page."""
    cells: list[dict[str, Any]] = []
    for number, part in enumerate(_BLOCK.split(page)):
        is_code = number % 2 == 1
        if part.strip():
            cells.append(_cell(len(cells), part.strip(), is_code=is_code))
    content = {"cells": cells, "metadata": {"kernelspec": _KERNEL}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _cell(number: int, text: str, *, is_code: bool) -> dict[str, Any]:
    cell = {"id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
    if is_code:
        return {**cell, "cell_type": "code", "execution_count": None, "outputs": []}
    return {**cell, "cell_type": "markdown"}


if __name__ == "__main__":
    sys.stdout.write(notebook(Path(sys.argv[1]).read_text(encoding="utf-8")))
