"""`plait view --export`: the pages as static files, which any web server and `file://` open.

An export has every study, case and trial. Its figures are drawn again: a stranger's result folder may hold an SVG with
a script, which a browser would run if somebody opened the file by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.analysis.labels.study_labels import labels_in
from plait.dataset.trial import read_trial, trial_folder
from plait.errors import DataError, MachineError, PlaitError, RequestError
from plait.files import Folder
from plait.report.assemble import read_partly, summary_of
from plait.report.figures.kinds.over_time_chart import KINDS
from plait.report.figures.study_figures import figure_data, static_figures
from plait.report.render.render import draw_all
from plait.report.representatives import representatives
from plait.view.assets import ASSETS, asset, index
from plait.view.downloads import drawing_file, study_table, table_file, trial_figures
from plait.view.encode import data_script
from plait.view.site import StudySite, finish, require_studies

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Any

    from plait.view.site import OpenStudy

MARK = "plait-view.txt"
"""The file by which a folder is known to be an export, which a later export may replace."""
NOTE = "plait view --export wrote this folder, and replaces its files.\n"
TELL_EVERY = 20


def export_site(roots: Sequence[Path], target: Path, notify: Callable[[str], None]) -> int:
    """Write the pages of all studies below `roots` to `target`; return the number of files.

    Raises:
        RequestError: a folder does not exist, or `target` holds anything else.
        DataError: there is no study.
        MachineError: plait cannot write.
    """
    _refuse_foreign(target)
    site = StudySite(roots, live=False)
    studies = require_studies(site)
    out = _Out(Folder(target))
    try:
        out.write((), MARK, NOTE.encode())
        out.write((), "index.html", index(live=False).encode())
        for name in ASSETS:
            out.write(("assets",), name, asset(name))
        out.data("studies", site.studies())
        for found in studies:
            notify(f"exporting {found.name}")
            try:
                _study(site, site.study(found.id), out, notify)
            except DataError as error:  # its page shows the error
                out.data(f"{found.id}/study", {"error": str(error)})
                notify(str(error))
    except OSError as error:
        raise MachineError(
            f"exporting to {error.filename or target}: {error.strerror}; check space and permissions"
        ) from error
    return out.count


class _Out:
    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.count = 0

    def write(self, folders: Sequence[str], name: str, content: bytes) -> None:
        place = self._folder
        for folder in folders:
            place = place / folder
        place.write(name, content)
        self.count += 1

    def data(self, key: str, value: dict[str, Any]) -> None:
        *folders, name = ("data", *key.split("/"))
        self.write(folders, f"{name}.js", data_script(key, value))


def _refuse_foreign(target: Path) -> None:
    if target.exists() and not target.is_dir():
        raise RequestError(f"exporting to {target}: it is a file; give another folder")
    folder = Folder(target)
    if target.is_dir() and folder.names() and not folder.has(MARK):
        raise RequestError(f"exporting to {target}: it holds other files; give an empty or a new folder")


def _study(site: StudySite, study: OpenStudy, out: _Out, notify: Callable[[str], None]) -> None:
    about = study.about()
    finish(study, [case.name for case in about.cases])
    key = study.found.id
    view = site.study_view(key)
    drawn = _figures(study, out)
    out.data(f"{key}/study", {**view, "drawn": drawn})
    out.data(f"{key}/result", site.result(key))
    for name in ("cases", "trials"):
        frame = study_table(study, name)
        for suffix in ("csv", "parquet"):
            out.write(("files", key), f"{name}.{suffix}", table_file(frame, suffix))
    done = 0
    for case in range(len(about.cases)):
        data = site.case(key, case)
        out.data(f"{key}/{case}", data)
        for number, error in zip(data["numbers"], data["errors"], strict=True):
            done += 1
            if done % TELL_EVERY == 0:
                notify(f"{done} trials exported")
            _trial(site, study, _Place(case, about.cases[case].name, number), out, failed=error is not None)


def _figures(study: OpenStudy, out: _Out) -> list[dict[str, Any]]:
    """Draw the figures of a study; return their names."""
    data = read_partly(study.folder)
    summary = summary_of(data)
    shown = representatives(data, summary)
    drawings = draw_all(static_figures(data, summary, shown))
    tables = figure_data(drawings, data, summary, shown)
    place = ("files", study.found.id, "figures")
    views = []
    for name, drawing in drawings.items():
        for suffix in ("svg", "pdf", "png"):
            out.write(place, f"{name}.{suffix}", drawing_file(drawing, suffix))
        if name in tables:
            out.write(place, f"{name}.csv", tables[name].encode())
        views.append({"name": name, "formats": ["svg", "pdf", "png", *(["csv"] if name in tables else [])]})
    return views


@dataclass(frozen=True)
class _Place:
    """A trial: the number and the name of its case, and its own number."""

    case: int
    name: str
    number: int


def _trial(site: StudySite, study: OpenStudy, at: _Place, out: _Out, *, failed: bool) -> None:
    key = study.found.id
    page = f"{key}/{at.case}/{at.number}"
    try:
        out.data(page, site.trial(key, at.case, at.number))
    except PlaitError as error:
        out.data(page, {"error": str(error)})
        return
    if failed:
        return
    trial = read_trial(trial_folder(study.folder, at.name, at.number))
    place = ("files", *page.split("/"))
    for table in trial.tables:
        for suffix in ("csv", "parquet"):
            out.write(place, f"{table}.{suffix}", table_file(trial.tables[table], suffix))
    labels = labels_in(study.about().scenario)
    for figure, drawing in trial_figures(trial, at.name, (*KINDS, "network"), labels).items():
        for suffix in ("svg", "pdf", "png"):
            out.write(place, f"{figure}.{suffix}", drawing_file(drawing, suffix))
