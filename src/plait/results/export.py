"""A flow of a finished trial in the shape of another tool's results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plait.analysis.iperf3 import exportable, iperf3_document
from plait.analysis.translation import with_translation
from plait.dataset.trial import TRIALS, making_sense, read_trial, trial_folder, trial_numbers
from plait.errors import DataError, RequestError
from plait.files import Folder
from plait.scenario.read.wording import nearest
from plait.version import __version__

if TYPE_CHECKING:
    from pathlib import Path


def export_flow(
    folder: Path, *, case: str | None = None, trial: int = 0, flow: str | None = None
) -> dict[str, Any]:
    """Returns the flow `flow` of trial `trial` of `case` as `iperf3 -J` would print it.

    Without `case` or `flow` the only one is meant. RequestError when there is no such case, trial or flow, or several;
    DataError when the trial's files are damaged.
    """
    try:
        cases = (Folder(folder) / TRIALS).folders()
    except OSError as error:
        raise DataError(f"exporting from {folder}: {error.filename}: {error.strerror}") from error
    if not cases:
        raise RequestError(
            f"exporting from {folder}: it is no result folder; give one that `plait run` has written"
        )
    case = _one("case", case, cases)
    if trial not in trial_numbers(folder, case):
        raise RequestError(f"exporting trial {trial} of {case}: there is no such trial in {folder}")
    found = read_trial(trial_folder(folder, case, trial))
    if found.provenance.status == "failed":
        raise RequestError(
            f"exporting trial {trial} of {case}: it failed: {found.provenance.error or 'no reason is known'}"
        )
    with making_sense(found.folder):
        plan = with_translation(found.plan, found.tables)
        flows = {one.name: one for one in exportable(plan)}
        chosen = _one("flow over TCP or MPTCP", flow, list(flows))
        return iperf3_document(flows[chosen], found.tables, __version__)


def _one(what: str, asked: str | None, there: list[str]) -> str:
    """The one that is asked for, or the only one."""
    option = what.split(" ", maxsplit=1)[0]
    if asked is None and len(there) == 1:
        return there[0]
    if asked is None:
        known = f"choose by --{option}: {', '.join(there[:8])}" if there else "there is none"
        raise RequestError(f"exporting needs one {what}; {known}")
    if asked not in there:
        raise RequestError(
            f"--{option} {asked}: {nearest(asked, there) or 'there is: ' + ', '.join(there[:8])}"
        )
    return asked
