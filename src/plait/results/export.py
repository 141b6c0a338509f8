"""Exports a finished trial, or a flow of it, in the format of another tool: iperf3, flent, Perfetto or packetdrill."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plait.analysis.iperf3 import exportable, iperf3_document
from plait.analysis.labels.cases import labels as case_labels
from plait.analysis.labels.study_labels import labels_in
from plait.analysis.metrics.programs import with_connections
from plait.dataset.study_file import read_study_file
from plait.dataset.trial import TRIALS, Trial, making_sense, read_trial, trial_folder, trial_numbers
from plait.errors import DataError, RequestError
from plait.files import Folder
from plait.plan.model.plan import Flow
from plait.results.flent import flent_document, flent_file
from plait.results.packetdrill import CAPTURE_BYTES, packetdrill_script
from plait.results.perfetto import perfetto_trace
from plait.scenario.vary.choose import choose_case
from plait.scenario.wording import nearest
from plait.version import __version__

_SHOWN = 8
"""Names that a message lists."""


def export_flow(
    folder: Path, *, case: str | None = None, trial: int = 0, flow: str | None = None
) -> dict[str, Any]:
    """Return the flow `flow` of trial `trial` of `case` in the format of `iperf3 -J`.

    Without `case` or `flow`, there must be only one. Raises RequestError if there is no such case, trial or flow, or
    several; DataError if the trial's files are damaged.
    """
    _, record = _completed(folder, case, trial)
    with making_sense(record.folder):
        return iperf3_document(_flow(record, flow), record.tables, __version__)


def export_flent(folder: Path, *, case: str | None = None, trial: int = 0, flow: str | None = None) -> bytes:
    """Return a flow as the content of a `.flent.gz` file; arguments and errors are those of `export_flow`."""
    name, record = _completed(folder, case, trial)
    title = f"{Folder(folder).path.resolve().name} {name} trial {trial}"
    with making_sense(record.folder):
        return flent_file(flent_document(record.plan, _flow(record, flow), record.tables, title, __version__))


def export_trace(folder: Path, *, case: str | None = None, trial: int = 0) -> dict[str, Any]:
    """Return a trial as a trace for Perfetto; arguments and errors are those of `export_flow`."""
    name, record = _completed(folder, case, trial)
    facts = {"case": name, "trial": trial, "seed": record.provenance.seed, "plait": __version__}
    with making_sense(record.folder):
        return perfetto_trace(with_connections(record.plan, record.tables), record.tables, facts)


def export_packetdrill(folder: Path, *, case: str | None = None, trial: int = 0) -> str:
    """Return a script of packetdrill for the first MPTCP connection of a trial that has a capture.

    Arguments and errors are those of `export_flow`; RequestError also if the trial has no capture.
    """
    case, record = _completed(folder, case, trial)
    title = f"{Folder(folder).path.resolve().name}, {case}, trial {trial}, seed {record.provenance.seed}"
    captures = {}
    if "pcap" in record.folder.folders():
        pcap = record.folder / "pcap"
        captures = {name: pcap.head(name, CAPTURE_BYTES) for name in pcap.names()}
    with making_sense(record.folder):
        return packetdrill_script(record.plan, captures, title)


def _completed(folder: Path, case: str | None, trial: int) -> tuple[str, Trial]:
    """Return the name of the requested case, and its trial (RequestError: there is none, or it failed)."""
    try:
        cases = (Folder(folder) / TRIALS).folders()
    except OSError as error:
        raise DataError(
            f"exporting from {folder}: {error.filename}: {error.strerror}; check the path of the result folder"
        ) from error
    if not cases:
        raise RequestError(
            f"exporting from {folder}: this is no result folder; give one that `plait run` wrote"
        )
    if case is not None and case not in cases:
        study_file = read_study_file(folder)
        called = case_labels(study_file.cases, labels_in(study_file.scenario).cases)
        case = choose_case(case, [entry.name for entry in study_file.cases], called)
    case = _require_single("case", case, cases)
    if trial not in trial_numbers(folder, case):
        raise RequestError(
            f"exporting trial {trial} of {case}: {folder} has no such trial; choose another with --trial"
        )
    record = read_trial(trial_folder(folder, case, trial))
    if record.provenance.status == "failed":
        raise RequestError(
            f"exporting trial {trial} of {case}: it failed: {record.provenance.error or 'no reason is known'}"
        )
    return case, record


def _flow(record: Trial, requested: str | None) -> Flow:
    """Return the requested flow, or the only one, with what its server saw of the addresses of paths.

    Connections of programs count if one is requested, or no flow is planned, as in an observation.
    """
    flows = exportable(with_connections(record.plan, record.tables))
    planned = {flow.id for flow in record.plan.flows}
    own = {flow.name: flow for flow in flows if flow.id in planned or requested == flow.name}
    named = own or {flow.name: flow for flow in flows}
    return named[_require_single("flow over TCP or MPTCP", requested, list(named))]


def _require_single(kind: str, requested: str | None, names: list[str]) -> str:
    """Return the requested name, or the only one (RequestError)."""
    option = kind.split(" ", maxsplit=1)[0]
    if requested is None and len(names) == 1:
        return names[0]
    if requested is None:
        if not names:
            raise RequestError(f"exporting needs one {kind}; there is none")
        division, whole = f"--{option} NAME", ""
        if option == "case":
            division, whole = "--case NAME, a part of it, or its number", " (--format csv has all cases)"
        raise RequestError(
            f"exporting needs one {kind}, and there are {len(names)}{whole}; choose with {division}: {_listed(names)}"
        )
    if requested not in names:
        raise RequestError(
            f"--{option} {requested}: {nearest(requested, names) or 'there is: ' + _listed(names)}"
        )
    return requested


def _listed(names: Sequence[str]) -> str:
    """Return the first few names; those of cases have commas."""
    return "; ".join(names[:_SHOWN]) + "; .." * (len(names) > _SHOWN)
