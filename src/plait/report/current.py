"""Recognises a report of which nothing has changed since plait made it: neither data, nor its files, nor the code.

Whoever wants other columns of its table then need not wait until all trials are read again.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from plait.cache import ContentCache
from plait.cautions import Caution
from plait.files import Folder
from plait.results.reduce import code_of

REPORTS = ContentCache("reports", most=500)
CODE = ("analysis", "dataset", "explain", "plan", "report", "results", "scenario")
"""Packages on whose code a report depends."""
_CAUTIONS = TypeAdapter(tuple[Caution, ...])


def kept_cautions(study_dir: Path, options: tuple[float | str, ...]) -> tuple[Caution, ...] | None:
    """Return the cautions of the report in `study_dir` if it is the one that `build` would make; else None.

    `options` are those of its figures.
    """
    key = _key(study_dir, options)
    kept = None if key is None else REPORTS.get(key)
    try:
        return None if kept is None else _CAUTIONS.validate_json(kept)
    except ValidationError:
        return None  # written by other code


def keep_cautions(study_dir: Path, options: tuple[float | str, ...], cautions: tuple[Caution, ...]) -> None:
    """Keep the cautions of a report that was made just now."""
    key = _key(study_dir, options)
    if key is not None:
        REPORTS.put(key, _CAUTIONS.dump_json(cautions))
        REPORTS.prune()


def _key(study_dir: Path, options: tuple[float | str, ...]) -> str | None:
    """Return the hash of all that a report follows from, and of the state of its files; None if one is unfit."""
    try:
        files = Folder(study_dir).versions()
        content = [str(study_dir.resolve()), options, code_of(CODE), files]
    except OSError:
        return None
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
