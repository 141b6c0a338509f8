"""`plait view --export`: the pages as static files, which any web server and `file://` open.

An export has every study, case and trial. Its figures are drawn again: a stranger's result folder may hold an SVG with
a script, which a browser would run if somebody opened the file by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from plait.analysis.labels.study_labels import labels_in
from plait.dataset.trial import making_sense, read_trial, trial_folder
from plait.engine.workspace import Workspace
from plait.errors import DataError, MachineError, RequestError
from plait.files import Folder
from plait.limits import remedy
from plait.report.assemble import read_partly, summary_of
from plait.report.figures.kinds.over_time_chart import KINDS
from plait.report.figures.study_figures import figure_data, static_figures
from plait.report.render.render import draw_all
from plait.report.representatives import representatives
from plait.results.long_table import table_content
from plait.view.assets import ASSETS, asset, index
from plait.view.downloads import study_table, trial_figures
from plait.view.encode import data_script
from plait.view.site import OpenStudy, StudySite, finish

MARK = "plait-view.txt"
"""The file by which a folder is known to be an export, which a later export may replace."""
TOP = ("assets", "data", "files", "index.html")
"""What an export has beside it. The page comes last: it loads the others."""
WORK = ".export-"
"""How the folder begins in which plait writes an export before it is complete."""
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
    studies = site.refresh()
    if not studies:
        raise DataError("there is no study below these folders; give a folder that `plait run` wrote to")
    is_new = not target.exists()
    try:
        with Workspace(target, WORK) as work:
            output = _Out(Folder(work.job()))
            _write(site, studies, output, notify)
            _publish(output.folder, Folder(target), work.job())
    except OSError as error:
        raise MachineError(
            f"exporting to {target}: {error.strerror}; {remedy(error, 'check space and permissions')}"
        ) from error
    finally:
        if is_new:
            with suppress(OSError):  # it has the export
                target.rmdir()
    return output.count


def _write(
    site: StudySite, studies: Sequence[OpenStudy], output: _Out, notify: Callable[[str], None]
) -> None:
    """Write all files of an export. Raise OSError, MachineError."""
    output.write((), MARK, NOTE.encode())
    output.write((), "index.html", index(live=False).encode())
    for name in ASSETS:
        output.write(("assets",), name, asset(name))
    output.data("studies", site.studies())
    for study in studies:
        notify(f"exporting {study.name}")
        try:
            with making_sense(study.folder):
                _study(site, study, output, notify)
        except DataError as error:  # its page shows the error
            output.data(f"{study.id}/study", {"error": str(error)})
            notify(str(error))


def _publish(pages: Folder, target: Folder, old: Path) -> None:
    """Move the complete export to `target`, and what an earlier one has there to `old`. Raise OSError."""
    for name in (MARK, *TOP):
        if target.has(name):
            target.give(name, old / name)
        if pages.has(name):
            target.take(pages.path / name, name)


class _Out:
    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.count = 0

    def write(self, folders: Sequence[str], name: str, content: bytes) -> None:
        place = self.folder
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
    others = target.is_dir() and any(not name.startswith(WORK) for name in folder.names())
    if others and not folder.has(MARK):
        raise RequestError(f"exporting to {target}: it holds other files; give an empty or a new folder")


def _study(site: StudySite, study: OpenStudy, output: _Out, notify: Callable[[str], None]) -> None:
    study_file = study.study_file()
    finish(study, [case.name for case in study_file.cases])
    view = site.study_view(study.id)
    drawn = _figures(study, output)
    output.data(f"{study.id}/result", site.result(study.id))
    for name in ("cases", "trials"):
        frame = study_table(study, name)
        for suffix in ("csv", "parquet"):
            output.write(("files", study.id), f"{name}.{suffix}", table_content(frame, suffix))
    exported = 0
    for case in range(len(study_file.cases)):
        data = site.case(study.id, case)
        output.data(f"{study.id}/{case}", data)
        for number, error in zip(data["numbers"], data["errors"], strict=True):
            exported += 1
            if exported % TELL_EVERY == 0:
                notify(f"{exported} trials exported")
            page = f"{study.id}/{case}/{number}"
            try:
                with making_sense(study.folder):
                    shown = site.data(page)
                    if error is None:
                        name = study_file.cases[case].name
                        _trial_files(study, name, number, output, ("files", *page.split("/")))
            except DataError as problem:
                shown = {"error": str(problem)}
            output.data(page, shown)
    output.data(f"{study.id}/study", {**view, "drawn": drawn})


def _figures(study: OpenStudy, output: _Out) -> list[dict[str, Any]]:
    """Draw the figures of a study; return their names."""
    data = read_partly(study.folder)
    summary = summary_of(data)
    shown = representatives(data, summary)
    drawings = draw_all(static_figures(data, summary, shown))
    tables = figure_data(drawings, data, summary, shown)
    place = ("files", study.id, "figures")
    views = []
    for name, drawing in drawings.items():
        contents = drawing.files | ({"csv": tables[name].encode()} if name in tables else {})
        for suffix, content in contents.items():
            output.write(place, f"{name}.{suffix}", content)
        views.append({"name": name, "formats": list(contents)})
    return views


def _trial_files(study: OpenStudy, case: str, number: int, output: _Out, place: Sequence[str]) -> None:
    trial = read_trial(trial_folder(study.folder, case, number))
    for table in trial.tables:
        for suffix in ("csv", "parquet"):
            output.write(place, f"{table}.{suffix}", table_content(trial.tables[table], suffix))
    labels = labels_in(study.study_file().scenario)
    for figure, drawing in trial_figures(trial, (*KINDS, "network"), labels).items():
        for suffix, content in drawing.files.items():
            output.write(place, f"{figure}.{suffix}", content)
