"""`plait compare`: compares two studies and gives scripts a verdict as an exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plait.cli.shared.options import ColumnsOption, column_names, parsed

# Verbs import what they need when they run, so that `plait list` and `plait --help` answer at once. A test compares the
# names with those of `plait.metrics`.

_COMPARED = (
    "completion_s, page_load_s, request_latency_p95_us, message_delay_p95_us, goodput_bps, udp_loss_ratio, "
    "iperf3_udp_loss_ratio, probe_rtt_p95_us"
)


def command(
    first: Annotated[Path, typer.Argument(metavar="BEFORE", help="Result folder to compare with")],
    second: Annotated[Path, typer.Argument(metavar="AFTER", help="Result folder to judge")],
    *,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Metric to judge; repeat the option for several metrics",
            show_default=f"`judge` of AFTER, else {_COMPARED}",
        ),
    ] = None,
    tolerance: Annotated[
        str | None,
        typer.Option(
            metavar="RATIO",
            help="Accepted change, such as 2%",
            show_default="that of each metric under `judge` of AFTER, else 1%",
        ),
    ] = None,
    columns: ColumnsOption = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON")] = False,
) -> int:
    """Compare the results of a study with earlier ones.

    Exit code 0: no worse; 1: worse; 2: plait cannot compare the two studies.
    """
    from plait.report.terminal.comparison import compare_folders, show_comparison
    from plait.units import Ratio

    tolerated = None if tolerance is None else float(parsed("--tolerance", tolerance, Ratio))
    metrics = tuple(dict.fromkeys(metric)) if metric else ()
    comparison, lines = compare_folders(first, second, metrics=metrics, tolerance=tolerated)
    if json_output:
        typer.echo(comparison.model_dump_json(indent=1))
    else:
        show_comparison(comparison, lines, wanted=column_names(columns))
    return 1 if comparison.verdict == "worse" else 0
