"""`plait run`: runs a study, shows its progress, and writes its result folder and report."""

from __future__ import annotations

import shlex
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plait.cli.shared import complete
from plait.cli.shared.ending import notify
from plait.cli.shared.environment import environment_of
from plait.cli.shared.kernel import engines_on
from plait.cli.shared.options import (
    ClusterOption,
    ConfigureOption,
    HostsOption,
    InsecureOption,
    JobsOption,
    RepeatOption,
    ScenarioArgument,
    SetOption,
    ShardOption,
    SshConfigOption,
    StudySeed,
    SummaryJson,
)
from plait.cli.shared.sandbox import DISK, DiskOption, RoOption, UnconfinedOption, policy
from plait.errors import RequestError, shell_command

# Verbs import what they need when they run, so that `plait list` and `plait --help` answer at once.

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from plait.cli.shared.bundles import RequestedStudy
    from plait.scenario import Scenario
    from plait.scenario.vary.overrides import Choice
    from plait.study.executors.executor import TrialExecutor
    from plait.study.pauses import PausedTrial
    from plait.study.study import Observer, StudyOutcome

_NO_JSON = (
    "--json with a pause: the prompt needs standard output; omit --json and read the folder's summary.json"
)

ProgressOption = Annotated[
    str, typer.Option(metavar="FORM", help="Progress on standard error: bar, or json for scripts")
]
_CHECKS = "Checks before the first trial"

TrialTimeout = Annotated[
    float, typer.Option(min=1, metavar="SECONDS", help="Wall time after which plait ends a trial")
]

_READERS = {
    "--hosts": "remote", "--ssh-config": "remote", "--configure": "remote", "--modules": "machine",
    "--allow-host-settings": "host",
}  # fmt: skip
"""The engine that an option concerns."""

OutOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Result folder", show_default="results/NAME")
]
EngineOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Engine that runs the trials; repeat the option to compare engines",
        show_default="that of the scenario",
    ),
]
StudyKernelOption = Annotated[
    list[str] | None,
    typer.Option(
        "--kernel",
        metavar="NAME",
        help="Built kernel (`plait kernel list`), for the engine machine debian:6.12 or an image; repeat the option "
        "to compare kernels",
        autocompletion=complete.kernels,
        show_default="that of the engine",
    ),
]
ModulesOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Modules of a kernel image (lib/modules/VERSION)", show_default="none"),
]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Run every trial again, even those in the store")]
ConfirmedOption = Annotated[
    bool,
    typer.Option("--yes", rich_help_panel=_CHECKS, help="Confirm a study of more than 10,000 trials"),
]
HostSettingsOption = Annotated[
    bool,
    typer.Option(
        "--allow-host-settings",
        rich_help_panel=_CHECKS,
        help="Let the engine host write settings that all namespaces share, as root; plait restores them",
    ),
]
NoCalibrationOption = Annotated[
    bool, typer.Option("--no-calibration", hidden=True, help="No effect: plait calibrates no links any more")
]
VerifyOption = Annotated[
    bool,
    typer.Option("--verify", help="Run a bundle's trials again and compare their digests with the bundle's"),
]


def command(
    scenario: ScenarioArgument,
    *,
    out: OutOption = None,
    seed: StudySeed = None,
    repeat: RepeatOption = None,
    jobs: JobsOption = None,
    overrides: SetOption = None,
    cluster: ClusterOption = None,
    insecure: InsecureOption = False,
    shard: ShardOption = None,
    progress: ProgressOption = "bar",
    fresh: FreshOption = False,
    engine: EngineOption = None,
    kernel: StudyKernelOption = None,
    modules: ModulesOption = None,
    hosts: HostsOption = None,
    ssh_config: SshConfigOption = None,
    configure: ConfigureOption = False,
    trial_timeout: TrialTimeout = 3600,
    ro: RoOption = None,
    disk: DiskOption = DISK,
    unconfined: UnconfinedOption = False,
    confirmed: ConfirmedOption = False,
    no_calibration: NoCalibrationOption = False,  # noqa: ARG001 - read for one version
    verify: VerifyOption = False,
    host_settings: HostSettingsOption = False,
    json_output: SummaryJson = False,
) -> int:
    """Run a study and report its results.

    plait reuses the trials that are in the store. Exit code 1: a trial failed or differs, or the report lacks a part.
    """
    from plait.cli.shared.bundles import requested_study
    from plait.study.executors.choice import executor_of
    from plait.study.perform import Options, perform
    from plait.study.shard import shard as shard_of

    executor = executor_of(cluster, notify, insecure=insecure)
    part = None if shard is None else shard_of(shard)
    chosen = [*_engines(scenario, engine or []), *_kernels(scenario, kernel or [])]
    sandbox = policy(disk, ro, unconfined=unconfined)
    with requested_study(scenario, [*(overrides or ()), *chosen], seed, repeat, verify=verify) as asked:
        command = _reproduce(scenario, asked, overrides or [], chosen)
        _refuse_unread(asked.scenario, (hosts, ssh_config, configure, modules, host_settings))
        engines = engines_on(
            _own_kernel(asked.scenario, kernel), modules=modules, trial_timeout_s=trial_timeout, policy=sandbox,
            allow_host_settings=host_settings, hosts=hosts, ssh_config=ssh_config, configure=configure,
        )  # fmt: skip
        folder, outcome = perform(
            asked.scenario, asked.name, engines,
            Options(asked.seed, asked.repeat, jobs, fresh or verify, confirmed, part, command),
            folder=out, watch=_watch(progress, executor, asked.scenario, as_json=json_output),
            notify=notify, ask=_ask, executor=executor,
        )  # fmt: skip
    _report_outcome(outcome, folder, halted=bool(asked.scenario.pause))
    if outcome.interrupted or part is not None:
        return _end_without_report(outcome, folder)
    complete = _show(folder, as_json=json_output) or not asked.scenario.traffic
    return 0 if _is_same(scenario, asked, folder, verify=verify) and complete and not outcome.failed else 1


def _is_same(scenario: str, asked: RequestedStudy, folder: Path, *, verify: bool) -> bool:
    """Return whether the trials are those of the bundle to verify, if there is one; print what differs."""
    from plait.cli.shared.bundles import show_repeat

    return asked.bundle is None or not verify or show_repeat(scenario, asked.bundle, folder)


def _end_without_report(outcome: StudyOutcome, folder: Path) -> int:
    """Say how to go on from a shard, which has no report, like an interrupted study, and return the exit code."""
    if outcome.interrupted:
        return 128 + outcome.signal
    notify(f"{folder} has {outcome.total} trials of the study; `plait merge OUT DIR...` puts shards together")
    return 1 if outcome.failed else 0


def _watch(
    progress: str, executor: TrialExecutor | None, scenario: Scenario, *, as_json: bool
) -> Callable[[int], AbstractContextManager[Observer]]:
    """Return what shows the progress on standard error (RequestError); `as_json` needs standard output alone."""
    from plait.study.progress import on_standard_error

    if scenario.pause and as_json:
        raise RequestError(_NO_JSON)
    if progress not in ("bar", "json"):
        raise RequestError(f"--progress {progress}: write bar or json")
    workers = None if executor is None else lambda: executor.workers
    return partial(on_standard_error, bar=not scenario.pause, as_json=progress == "json", workers=workers)


def _show(folder: Path, *, as_json: bool) -> bool:
    """Write and print the report; return whether it has a measured case and is complete."""
    from plait.cautions import is_complete
    from plait.cli.shared.report import report_with_progress
    from plait.files import Folder
    from plait.report.headline import measured_cases
    from plait.report.terminal.summary import read_summary, show

    cautions = report_with_progress(folder)
    if as_json:
        sys.stdout.write(Folder(folder).read("summary.json").decode())
    else:
        show(folder, cautions)
    return bool(measured_cases(read_summary(folder))) and is_complete(cautions)


def _engines(scenario: str, engines: list[str]) -> list[Choice]:
    """Return the choice of the engines of the command line; several engines are a varied field."""
    from plait.engine.factory import ENGINES
    from plait.scenario.vary.overrides import Choice
    from plait.study.bundle.repeat import is_bundle

    for name in engines:
        if name not in ENGINES:
            raise RequestError(f"--engine {name}: unknown engine; write one of: {', '.join(ENGINES)}")
    if engines and is_bundle(scenario):
        raise RequestError(f"--engine with {scenario}: a bundle repeats its study on the same engine")
    return [Choice("engine", tuple(dict.fromkeys(engines)), _flags("--engine", engines))] if engines else []


def _kernels(scenario: str, kernels: list[str]) -> list[Choice]:
    """Return the choice of the kernels of the command line; several kernels are a varied field.

    A single kernel is no part of a study whose scenario names none: see `_own_kernel`.
    """
    from plait.scenario.vary.overrides import Choice
    from plait.study.bundle.repeat import is_bundle

    names = tuple(dict.fromkeys(kernels))
    if not names or is_bundle(scenario):
        if len(names) > 1:
            raise RequestError(f"--kernel with {scenario}: a bundle repeats its study on one kernel")
        return []
    return [Choice("kernel", names, _flags("--kernel", kernels), if_given=True)]


def _refuse_unread(scenario: Scenario, given: Sequence[object]) -> None:
    """Refuse an option that concerns an engine which no case has (RequestError). `given`: as in `_READERS`."""
    from plait.scenario.vary.combinations import rows

    asked = [option for option, value in zip(_READERS, given, strict=True) if value]
    if not asked:
        return
    values = [
        value for row in rows(scenario) for name, value in row.items() if name == "engine" or value.sets
    ]
    set_by_name = {(value.sets or {}).get("engine") for value in values} - {None}
    engines = {scenario.engine} | {value.value for value in values if value.sets is None} | set_by_name
    for option in asked:
        if _READERS[option] not in engines:
            raise RequestError(
                f"{option}: it concerns the engine {_READERS[option]}, and no case has this engine; "
                f"add --engine {_READERS[option]}, or leave {option} out"
            )


def _own_kernel(scenario: Scenario, kernels: list[str] | None) -> str | None:
    """Return the kernel of the command line, if the scenario neither names one nor varies it."""
    given = scenario.kernel is not None or "kernel" in scenario.vary
    return None if given or not kernels else kernels[0]


def _flags(option: str, values: list[str]) -> str:
    return " ".join(f"{option} {shlex.quote(value)}" for value in values)


def _ask(trial: PausedTrial) -> bool:
    from plait.prompt.pause import ask

    return ask(trial, environment_of([], terminal=True))


def _reproduce(scenario: str, asked: RequestedStudy, overrides: list[str], chosen: list[Choice]) -> str:
    """Return the command that reproduces the data: only options that affect them, and nothing of this machine."""
    arguments = ["plait", "run", scenario]
    arguments += ["--seed", str(asked.seed)] if asked.seed is not None else []
    arguments += ["--repeat", str(asked.repeat)] if asked.repeat is not None else []
    for override in overrides:
        arguments += ["--set", override]
    for choice in chosen:
        if choice.field == "engine" or len(choice.values) > 1 or asked.scenario.kernel is not None:
            arguments += [word for value in choice.values for word in (f"--{choice.field}", value)]
    return shell_command(*arguments)


def _report_outcome(outcome: StudyOutcome, folder: Path, *, halted: bool) -> None:
    """Print on standard error which trials failed, and what an interrupted study keeps."""
    from plait.analysis.failures import failed_alike

    failed = [(trial.key.folder(folder), trial.error or "") for trial in outcome.failed]
    for trials, error in failed_alike(failed):
        further = len(trials) - 1
        more = f" and {further} more trial{'s' * (further > 1)}" if further else ""
        console = trials[0] / "logs" / "console.log"
        where = f"\n  the log of the trial: {console}" if console.is_file() else ""
        notify(f"{trials[0]}{more} failed: {error}{where}")
    if outcome.interrupted:
        effect = "runs the halted trials again" if halted else "continues from there"
        by = "" if outcome.signal == signal.SIGINT else f" by {outcome.signal.name}"
        notify(
            f"interrupted{by}; {len(outcome.finished)} of {outcome.total} trials are finished and kept. "
            f"The same command {effect}."
        )
