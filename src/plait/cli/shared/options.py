"""Arguments and options that several verbs have: the same name and the same help text in each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ScenarioArgument = Annotated[
    str,
    typer.Argument(metavar="SCENARIO", help="A scenario file, or the name of a shipped one (`plait list`)."),
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Set a field of the scenario.")
]
ResultFolder = Annotated[
    Path, typer.Argument(metavar="DIR", help="A result folder, as `plait run` writes it.")
]
PlannedCase = Annotated[
    str | None, typer.Option("--case", metavar="NAME", help="Which case. Default: the first (the baseline).")
]
StudySeed = Annotated[
    int | None, typer.Option("--seed", min=0, help="The study's seed. Default: the scenario's.")
]
KernelOption = Annotated[
    str | None, typer.Option("--kernel", metavar="NAME", help="A built kernel (`plait kernel list`).")
]
SummaryJson = Annotated[bool, typer.Option("--json", help="Print summary.json instead of the table.")]
