"""`plait export`: converts a study or a trial to the format of other tools: tables, iperf3, flent, ..."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from plait.cli.shared import complete
from plait.cli.shared.ending import notify
from plait.cli.shared.options import ResultFolder
from plait.cli.shared.outputs import output_file, write_output
from plait.errors import RequestError

# Verbs import what they need when they run, so that `plait list` and `plait --help` answer at once.


class Format(Enum):
    """The values of `--format`."""

    csv = "csv"
    parquet = "parquet"
    iperf3 = "iperf3"
    flent = "flent"
    perfetto = "perfetto"
    packetdrill = "packetdrill"
    dataset = "dataset"


class _Partition(Enum):
    """The values of `--by`."""

    case = "case"
    trial = "trial"


_BINARY = (Format.parquet, Format.flent, Format.dataset)
_SUFFIX = {
    Format.csv: "trials.csv",
    Format.parquet: "trials.parquet",
    Format.iperf3: "flow.json",
    Format.flent: "flow.flent.gz",
    Format.perfetto: "trace.json",
    Format.packetdrill: "connection_v4.pkt",
    Format.dataset: "dataset",
}


FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        help="csv, parquet: the metrics of all trials; dataset: their tables; iperf3, flent: a flow; "
        "perfetto: a trial; packetdrill: a script of a connection",
    ),
]
CaseOption = Annotated[
    str | None,
    typer.Option(
        metavar="CASE",
        help="Case: name, part of it, or number",
        show_default="all in tables, else the only one",
        autocompletion=complete.cases_of_results,
    ),
]
TrialOption = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=0, help="Number of the trial to export", show_default="all in tables, else 0"
    ),
]
FlowOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Flow to export as iperf3 or flent", show_default="the only one"),
]
PartitionOption = Annotated[
    _Partition,
    typer.Option(help="Partition a dataset by case, or by case and trial"),
]
FileOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File to write", show_default="standard output, if it is text"),
]


def command(
    folder: ResultFolder,
    *,
    kind: FormatOption = Format.iperf3,
    case: CaseOption = None,
    trial: TrialOption = None,
    flow: FlowOption = None,
    by: PartitionOption = _Partition.case,
    out: FileOption = None,
) -> int:
    """Convert a study, trial or flow to the format of another tool.

    A table has one row for each case, trial and metric.
    """
    if flow is not None and kind not in (Format.iperf3, Format.flent):
        raise RequestError(f"--flow {flow}: --format {kind.value} exports all flows; leave out --flow")
    if out is None and kind in _BINARY:
        raise RequestError(
            f"--format {kind.value} is no text; name a file or folder with --out, such as --out {_SUFFIX[kind]}"
        )
    if kind is Format.dataset and out is not None:
        return _write_dataset(folder, out, case, trial, by)
    if by is not _Partition.case:
        raise RequestError(f"--by {by.value}: --format {kind.value} has no folders; use --format dataset")
    output = None if out is None else output_file(out, "--out", new=True)
    content = _content(folder, kind, case, trial, flow)
    if output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return 0
    write_output(output, "--out", content, new=True)
    from plait.analysis.wording import size

    notify(f"wrote {out} ({size(len(content))})")
    return 0


def _write_dataset(folder: Path, out: Path, case: str | None, trial: int | None, by: _Partition) -> int:
    from plait.results.dataset import export_dataset

    if case is not None or trial is not None:
        raise RequestError("--format dataset has all cases and trials; leave out --case and --trial")
    trials = export_dataset(folder, out, by_trial=by is _Partition.trial)
    notify(f"wrote {out}: the tables of {trials} trials")
    return 0


def _content(folder: Path, kind: Format, case: str | None, trial: int | None, flow: str | None) -> bytes:
    import json

    from plait.results import export

    if kind in (Format.csv, Format.parquet):
        from plait.results.long_table import long_table, table_content

        return table_content(long_table(folder, case, trial), kind.value)
    if kind is Format.flent:
        return export.export_flent(folder, case=case, trial=trial or 0, flow=flow)
    if kind is Format.packetdrill:
        return export.export_packetdrill(folder, case=case, trial=trial or 0).encode()
    document = (
        export.export_flow(folder, case=case, trial=trial or 0, flow=flow)
        if kind is Format.iperf3
        else export.export_trace(folder, case=case, trial=trial or 0)
    )
    return json.dumps(document, indent=1 if kind is Format.iperf3 else None).encode() + b"\n"
