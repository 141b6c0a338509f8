"""`plait crosscheck`: runs the same cases on several engines, and says where they differ."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plait.cli.shared.ending import notify
from plait.cli.shared.kernel import engines_on
from plait.cli.shared.options import JobsOption, RepeatOption, ScenarioArgument, SetOption, parsed
from plait.errors import RequestError, shell_command

# Verbs import what they need when they run, so that `plait list` and `plait --help` answer at once.


CheckFolderOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Result folder", show_default="results/NAME-crosscheck")
]
MachineKernelOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Kernel of the engine machine", show_default="that of the engine"),
]
ImageModulesOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Modules of a kernel image", show_default="none")
]


def command(
    scenario: ScenarioArgument,
    *,
    engines: Annotated[
        str, typer.Option(metavar="NAME,NAME", help="Engines to compare; the first is the reference")
    ] = "virtual,machine",
    repeat: RepeatOption = None,
    jobs: JobsOption = None,
    out: CheckFolderOption = None,
    bound: Annotated[
        str, typer.Option(metavar="RATIO", help="Largest difference that counts as agreement")
    ] = "2%",
    overrides: SetOption = None,
    kernel: MachineKernelOption = None,
    modules: ImageModulesOption = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON")] = False,
) -> int:
    """Run the same cases on several engines, and compare them.

    It compares goodput, completion, RTT and shares of paths. Exit code 1: some differ, or a trial failed.
    """
    from plait.analysis.compare.engines import cross_check
    from plait.report import build
    from plait.report.terminal.cross_check import explain_first, show_cross_check
    from plait.results.read import read_study
    from plait.scenario import load as load_scenario
    from plait.scenario.vary.overrides import Choice
    from plait.study.perform import Options, perform
    from plait.study.progress import on_standard_error
    from plait.units import Ratio

    names, limit = _names(engines), float(parsed("--bound", bound, Ratio))
    chosen = Choice("engine", tuple(names), f"--engines {engines}")
    loaded = load_scenario(scenario, (*(overrides or ()), chosen))
    own_kernel, laboratory = engines_on(kernel, modules=modules), engines_on(None)
    command = shell_command("plait", "crosscheck", scenario, "--engines", engines)
    folder, outcome = perform(
        loaded,
        f"{Path(scenario).stem}-crosscheck",
        lambda engine: (laboratory if engine == "virtual" else own_kernel)(engine),
        Options(repeat=repeat, jobs=jobs, command=command),
        folder=out,
        watch=on_standard_error,
        notify=notify,
    )
    if outcome.interrupted:
        return 128 + outcome.signal
    build(folder)
    study = read_study(folder)
    check = cross_check(study.cases, names, limit)
    if json_output:
        typer.echo(check.model_dump_json(indent=1))
    else:
        show_cross_check(check, explain_first(folder, study.cases, check))
    return 1 if check.beyond or outcome.failed or not check.differences else 0


def _names(text: str) -> list[str]:
    from plait.engine.factory import ENGINES

    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in ENGINES:
            raise RequestError(
                f"--engines {text}: there is no engine {name!r}; choose of: {', '.join(ENGINES)}"
            )
    if len(set(names)) < 2:
        raise RequestError(f"--engines {text}: give two or more engines, for example virtual,machine")
    return list(dict.fromkeys(names))
