"""All data files of the pages, by name: what the server answers and what an export writes.

studies      the list of studies
ID/study     a study with its cases; ID/result its headline
ID/C         the trials of case number C
ID/C/N       trial N of that case
ID/live      what is new in a study that runs; only from a server

Names below the folders that a user gives come from strangers. An address has IDs, never a path; links are not followed.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from plait.analysis.judge import judged_in
from plait.analysis.labels.study_labels import labels_in
from plait.dataset.study_file import StudyFile, read_study_file
from plait.dataset.trial import making_sense
from plait.errors import PlaitError, RequestError, printable
from plait.version import __version__
from plait.view import study_data
from plait.view.encode import data_script, rounded
from plait.view.reduced import ReducedTrials
from plait.view.running import is_running, running_trials
from plait.view.study_data import advice_view
from plait.view.trial_data import trial_view

MOST_DEPTH = 6
MOST_FOLDERS = 20_000
"""Bounds of the search: levels below a folder that the user names, and folders in all."""


class UnknownPageError(PlaitError):
    """There is no such study, case or trial."""


class OpenStudy:
    """A result folder: its ID in addresses, its name for people, its path, and its trials so far."""

    def __init__(self, study_id: str, name: str, folder: Path) -> None:
        self.id = study_id
        self.name = name
        self.folder = folder
        self.trials = ReducedTrials(folder)
        self._lock = threading.Lock()
        self._computed: dict[str, tuple[int, study_data.CaseFigures]] = {}
        """The figures of a case, and the version of its rows that they are of."""

    def study_file(self) -> StudyFile:
        """Return study.json as it is now (DataError)."""
        return read_study_file(self.folder)

    def figures(self, case: str) -> study_data.CaseFigures:
        """Return the figures of a case from its rows so far."""
        version = self.trials.changed.get(case, 0)
        with self._lock:
            kept = self._computed.get(case)
            if kept is None or kept[0] != version:
                kept = self._computed[case] = (version, study_data.case_so_far(self.trials, case))
            return kept[1]


class StudySite:
    """The data of all pages about the studies below some folders."""

    def __init__(self, roots: Sequence[Path], *, live: bool) -> None:
        self._roots = tuple(roots)
        self._live = live
        self._open: dict[str, OpenStudy] = {}
        self._lock = threading.Lock()
        self.refresh()

    def refresh(self) -> list[OpenStudy]:
        """Look for studies again, and return them (RequestError)."""
        studies_found = find_studies(self._roots)
        with self._lock:
            return [self._open.setdefault(study.id, study) for study in studies_found]

    def study(self, study_id: str) -> OpenStudy:
        """Return a study by its ID (UnknownPageError)."""
        with self._lock:
            study = self._open.get(study_id)
        if study is None:
            raise UnknownPageError
        return study

    def close(self) -> None:
        """Stop all background work."""
        for study in self._open.values():
            study.trials.close()

    def script(self, name: str) -> bytes:
        """Return a data file by its name; that of damaged data has only the error (UnknownPageError)."""
        study = self._open.get(name.partition("/")[0])
        try:
            with making_sense(study.folder) if study is not None else nullcontext():
                return data_script(name, self.data(name))
        except UnknownPageError:
            raise
        except PlaitError as error:
            return data_script(name, {"error": str(error)})
        except OSError as error:
            return data_script(name, {"error": f"{error.filename}: {error.strerror}"})

    def data(self, name: str) -> dict[str, Any]:
        """Return the content of a data file by its name (UnknownPageError, PlaitError)."""
        key, *parts = name.split("/")
        if all(part.isdecimal() and len(part) < 10 for part in parts) and 1 <= len(parts) <= 2:
            page = self.case if len(parts) == 1 else self.trial
            return page(key, *map(int, parts))
        pages = {"study": self.study_view, "result": self.result, "live": self.live}
        if len(parts) == 1 and parts[0] in pages:
            return pages[parts[0]](key)
        if name == "studies":
            return self.studies()
        raise UnknownPageError

    def studies(self) -> dict[str, Any]:
        """Return the list of studies, each with its headline."""
        listed = [self._listed(study) for study in self.refresh()]
        titles = Counter(view.get("title") for view in listed)
        for view in listed:
            apart = view.pop("apart", "")
            view["apart"] = apart if titles[view.get("title")] > 1 else ""
        return {"live": self._live, "version": __version__, "studies": listed}

    def _listed(self, study: OpenStudy) -> dict[str, Any]:
        view: dict[str, Any] = {"id": study.id, "folder": study.name}
        try:
            with making_sense(study.folder):
                study_file = study.study_file()
                result = study_data.result_view(study.folder, study_data.SUMMARY_BYTES)
                apart = study_data.apart(study.folder, study_file)
        except (PlaitError, OSError) as error:
            return {**view, "error": str(error)}
        return {
            **view,
            **study_data.facts_view(study_file),
            "running": self._live and is_running(study.folder),
            "result": result,
            "apart": apart,
        }

    def study_view(self, study_id: str) -> dict[str, Any]:
        """Return the page of a study: of a finished one from summary.json, else from the trials so far."""
        study = self.study(study_id)
        study_file = study.study_file()
        names = [case.name for case in study_file.cases]
        drawn = study_data.figure_names(study.folder)
        running = self._live and is_running(study.folder)
        figures = None if running else study_data.cases_in_summary(study.folder, study_file)
        summarised = figures is not None
        if figures is None:
            self._want(study, names)
            figures = study_data.cases_view([study.figures(name) for name in names])
        view = study_data.study_view(study_id, study.name, study_file, figures)
        # A study that the user names alone: the folder above it is none that the pages may show.
        advice = None if study.folder in self._roots else advice_view(study.folder)
        return {**view, "running": running, "summarised": summarised, "drawn": drawn, "advice": advice}

    def result(self, study_id: str) -> dict[str, Any]:
        """Return the headline of a study and the sentences below it; nothing without a summary."""
        return study_data.result_view(self.study(study_id).folder) or {}

    def case(self, study_id: str, case: int) -> dict[str, Any]:
        """Return the trials of a case with their metrics, as far as they were reduced."""
        study = self.study(study_id)
        study_file = study.study_file()
        name, judged = case_name(study_file, case), judged_in(study_file.scenario)
        self._want(study, [name], first=name)
        pending = study.trials.pending(name)  # before the rows: none is missing if nothing is pending
        rows = study.trials.of_case(name)
        metrics = list(dict.fromkeys(metric for row in rows.values() for metric in row.metrics))
        return {
            "case": case,
            "numbers": list(rows),
            "seeds": [row.seed for row in rows.values()],
            "errors": [row.error for row in rows.values()],
            "metrics": {
                metric: [rounded(row.metrics.get(metric)) for row in rows.values()] for metric in metrics
            },
            "views": [
                study_data.metric_view(metric, labels_in(study_file.scenario))
                for metric in study_data.ordered_metrics(metrics, judged)[2]
            ],
            "pending": pending,
        }

    def trial(self, study_id: str, case: int, number: int) -> dict[str, Any]:
        """Return the page of a trial (UnknownPageError, DataError)."""
        study = self.study(study_id)
        study_file = study.study_file()
        return trial_view(study.folder, study_file, case_name(study_file, case), number)

    def live(self, study_id: str) -> dict[str, Any]:
        """Return what a study that runs has so far: its cases, and the trials that run now."""
        study = self.study(study_id)
        study_file = study.study_file()
        names = [case.name for case in study_file.cases]
        self._want(study, names)
        running = is_running(study.folder)
        # Before the figures: a row that arrives meanwhile is then news for the next request, too.
        version, pending = study.trials.version, study.trials.pending()
        figures = [study.figures(name) for name in names]
        return {
            "running": running,
            "pending": pending,
            "version": version,
            "figures": study_data.cases_view(figures),
            "done": sum(case.trials for case in figures),
            "failed": sum(case.failed for case in figures),
            "total": study_file.repeat * len(names),
            "trials": running_trials(study.folder, names),
        }

    def _want(self, study: OpenStudy, names: Sequence[str], first: str | None = None) -> None:
        if self._live:
            study.trials.want(names, first)
        else:
            finish(study, names)


def finish(study: OpenStudy, names: Sequence[str]) -> None:
    """Reduce all trials of these cases before returning."""
    for _ in study.trials.finish(names):
        pass


def case_name(study_file: StudyFile, case: int) -> str:
    """Return the name of a case by its number (UnknownPageError)."""
    if not 0 <= case < len(study_file.cases):
        raise UnknownPageError
    return study_file.cases[case].name


def find_studies(roots: Sequence[Path]) -> list[OpenStudy]:
    """Return the studies in and below `roots`, in the order of their names.

    Raises:
        RequestError: a folder does not exist, or there are too many folders to search.
    """
    by_id: dict[str, OpenStudy] = {}
    for root in roots:
        if not root.is_dir():
            problem = "this is not a folder" if root.exists() else "there is no such folder"
            raise RequestError(f"{root}: {problem}; give a folder with results of `plait run`")
        for folder in _study_folders(root):
            inside = folder.relative_to(root).as_posix()
            name = root.resolve().name if inside == "." else inside
            name = f"{root.name or root.resolve().name}/{name}" if len(roots) > 1 and inside != "." else name
            key = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
            by_id[key] = OpenStudy(key, printable(name, keep=""), folder)
    return sorted(by_id.values(), key=lambda study: study.name)


def _study_folders(root: Path) -> Iterator[Path]:
    """Yield each folder with a study.json; a study inside a study is part of it."""
    waiting = [(root, 0)]
    visited = 0
    while waiting:
        folder, depth = waiting.pop()
        visited += 1
        if visited > MOST_FOLDERS:
            raise RequestError(
                f"searching {root} for studies: it holds more than {MOST_FOLDERS} folders; give a folder nearer to them"
            )
        try:
            with os.scandir(folder) as entries:
                listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError:  # without permission, or removed meanwhile: no study of this user
            continue
        if any(name == "study.json" and not is_folder for name, is_folder in listed):
            yield folder
        elif depth < MOST_DEPTH:
            inner = [name for name, is_folder in listed if is_folder and not name.startswith(".")]
            waiting += [(folder / name, depth + 1) for name in inner]
