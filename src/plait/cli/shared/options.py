"""Arguments and options that several verbs have: the same name and the same help text in each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from plait.cli.shared import complete
from plait.errors import RequestError

if TYPE_CHECKING:
    from plait.units import Text

Q = TypeVar("Q", bound="Text")

ScenarioArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help="A scenario file, or the name of a shipped scenario (`plait list`)",
        autocompletion=complete.scenarios,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Set a field of the scenario; repeat the option for more fields",
        autocompletion=complete.fields,
    ),
]
ResultFolder = Annotated[Path, typer.Argument(metavar="DIR", help="A result folder that `plait run` wrote")]
PlannedCase = Annotated[
    str | None,
    typer.Option(
        "--case",
        metavar="CASE",
        help="Case to use: name, part of it, or number",
        show_default="the baseline",
        autocompletion=complete.planned_cases,
    ),
]
StudySeed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", min=0, help="Seed of the study", show_default="that of the scenario"),
]
KernelOption = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        metavar="NAME",
        help="Kernel to use (`plait kernel list`)",
        autocompletion=complete.kernels,
    ),
]
TreeOption = Annotated[
    Path | None,
    typer.Option("--tree", metavar="DIR", help="Git tree of Linux; plait builds it incrementally"),
]
PatchOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--patch", metavar="FILE", exists=True, dir_okay=False, help="Patch for --tree; repeat it for more"
    ),
]
ConfigOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--config",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Kernel configuration options for --tree",
    ),
]
WithoutOption = Annotated[
    list[str] | None,
    typer.Option("--without", metavar="PATCH", help="Leave a patch of plait out, for --tree"),
]
JobsOption = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Trials to run in parallel", show_default="number of CPUs"),
]
SummaryJson = Annotated[bool, typer.Option("--json", help="Print summary.json instead of the table")]
_REMOTE = "Real hosts (--engine remote)"
HostsOption = Annotated[
    Path | None,
    typer.Option(
        "--hosts", metavar="FILE", help="File of the real hosts, hosts.yaml", rich_help_panel=_REMOTE
    ),
]
SshConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--ssh-config", metavar="FILE", help="Configuration file for ssh", show_default="your own",
        rich_help_panel=_REMOTE,
    ),
]  # fmt: skip
ConfigureOption = Annotated[
    bool,
    typer.Option(
        "--configure",
        help="Set endpoints, limits and sysctls on the hosts with `sudo -n`, and restore them",
        rich_help_panel=_REMOTE,
    ),
]
_WORKERS = "Other machines"
ClusterOption = Annotated[
    str | None,
    typer.Option(
        metavar="WHERE",
        rich_help_panel=_WORKERS,
        help="Run the trials on a Dask cluster: tls://HOST:PORT, local:N, or slurm",
    ),
]
InsecureOption = Annotated[
    bool,
    typer.Option(
        "--insecure",
        rich_help_panel=_WORKERS,
        help="Accept a Dask cluster without TLS (tcp://HOST:PORT): anyone who can reach its ports can run code as you",
    ),
]
ShardOption = Annotated[
    str | None,
    typer.Option(
        metavar="I/N", rich_help_panel=_WORKERS, help="Run only every N-th trial, starting with the I-th"
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAME,..",
        help="Columns of the table: factors and metrics",
        show_default="factors, then what has room",
    ),
]
RepeatOption = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Trials per case", show_default="that of the scenario")
]
GuestsOption = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Guests at once", show_default="number of CPUs")
]


def parsed(option: str, text: str, quantity: type[Q]) -> Q:
    """Return what an option has as a quantity with a unit (RequestError if it is none)."""
    try:
        return quantity.parse(text)
    except ValueError as error:
        raise RequestError(f"{option} {text}: {error}") from error


def column_names(text: str | None) -> tuple[str, ...]:
    """Return the names that `--columns` lists."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())
