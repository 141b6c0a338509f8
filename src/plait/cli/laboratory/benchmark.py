"""`plait benchmark`: runs the suite for a scheduler, congestion control or kernel, and ranks it among others."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plait.cli.shared.ending import notify
from plait.cli.shared.options import (
    ClusterOption,
    InsecureOption,
    JobsOption,
    KernelOption,
    ShardOption,
)
from plait.errors import RequestError, printable, shell_command
from plait.files import Folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from plait.benchmark.results_file import Results
    from plait.benchmark.run import Running
    from plait.benchmark.suite import Settings, Subset
    from plait.results.read import StudyData
    from plait.study.executors.executor import TrialExecutor
    from plait.study.study import Observer, TrialOutcome

_SUBSETS = ("quick", "full")
_MOST_DRAWS = 1_000_000
_LISTED = 4
NameOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Name of the entry", show_default="its settings")
]
AgainstOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Further results to compare with; repeat it for more"),
]
VerifyOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Run a drawn tenth of these results again, and compare digests"),
]
DrawOption = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="Number of the draw of --verify", show_default="by chance"),
]
OutOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Result folder", show_default="results/benchmark/NAME")
]


def command(
    *,
    scheduler: Annotated[
        str, typer.Option(metavar="NAME|FILE.c", help="Packet scheduler, or the C file of a new one")
    ] = "default",
    congestion_control: Annotated[
        str, typer.Option(metavar="NAME|FILE.c", help="Congestion control, or the C file of a new one")
    ] = "cubic",
    kernel: KernelOption = None,
    sysctl: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Kernel setting of all hosts; repeat it for more"),
    ] = None,
    transport: Annotated[
        str, typer.Option(metavar="mptcp|tcp", help="tcp: TCP on the better path")
    ] = "mptcp",
    subset: Annotated[str, typer.Option(metavar="quick|full", help="Cells of the suite")] = "quick",
    name: NameOption = None,
    against: AgainstOption = None,
    verify: VerifyOption = None,
    draw: DrawOption = None,
    jobs: JobsOption = None,
    cluster: ClusterOption = None,
    insecure: InsecureOption = False,
    shard: ShardOption = None,
    out: OutOption = None,
) -> int:
    """Run a fixed suite of networks and traffic, and place the result among published ones.

    Scores compare with TCP on the better path. Trials that are in the store do not run again, so an interrupted run
    continues. Exit code 1: a cell failed, or trials of --verify differ.
    """
    from plait.benchmark.results_file import read_results
    from plait.benchmark.run import run_shard
    from plait.benchmark.suite import cells
    from plait.study.executors.choice import executor_of
    from plait.study.shard import shard as shard_of

    if draw is not None and verify is None:
        raise RequestError("--draw is of --verify FILE; name the results to verify")
    if verify is not None and shard is not None:
        raise RequestError("--shard with --verify: a tenth of the cells has no shards; omit --shard")
    further = [read_results(path) for path in against or ()]
    make_executor = partial(executor_of, cluster, notify, insecure=insecure)
    running = replace(_running(kernel, jobs, make_executor), shard=shard_of(shard) if shard else None)
    if verify is not None:
        return _verify(read_results(verify), draw, out, running)
    if subset not in _SUBSETS:
        raise RequestError(f"--subset {subset}: there is no such subset; write quick or full")
    settings = _settings(scheduler, congestion_control, transport, sysctl or [], kernel)
    entry = _checked_name(name or _name(settings, kernel), further)
    folder = out or Path("results") / "benchmark" / entry.replace(" ", "-").replace(",", "")
    chosen: Subset = "full" if subset == "full" else "quick"
    running = replace(running, command=_command(settings, chosen))
    if running.shard is not None:
        return _end_shard(run_shard(settings, cells(chosen), folder, running), folder)
    results, spent = _run(settings, chosen, entry, folder, running)
    return _show(results, further, folder, spent)


def _run(
    settings: Settings, subset: Subset, entry: str, folder: Path, running: Running
) -> tuple[Results, str]:
    """Run the suite and write the results; return them, and the sentence that says where the time went."""
    from plait.benchmark.run import run

    started = time.monotonic()
    ended: list[TrialOutcome] = []
    results = run(
        settings, subset, entry, folder, replace(running, watch=partial(_kept, running.watch, ended))
    )
    Folder(folder).write("results.json", results.as_bytes())
    return results, time_spent(ended, started)


@contextmanager
def _kept(
    watch: Callable[[int], AbstractContextManager[Observer]], ended: list[TrialOutcome], total: int
) -> Iterator[Observer]:
    """Yield an observer that shows what `watch` shows, and keeps how each trial ended."""
    with watch(total) as show:

        def keep(outcome: TrialOutcome) -> None:
            ended.append(outcome)
            show(outcome)

        yield keep


def time_spent(ended: list[TrialOutcome], started: float) -> str:
    """Return where the time since `started` went."""
    from plait.benchmark.suite import cells
    from plait.study.meter import duration

    titles = {
        f"network={cell.network},traffic={cell.traffic}": cell.cell_class.title for cell in cells("full")
    }
    spent_s: defaultdict[str, float] = defaultdict(float)
    for outcome in ended:
        if not outcome.reused:
            spent_s[titles[outcome.key.case]] += outcome.wall_s
    took = f"Time: {duration(time.monotonic() - started)}"
    if not spent_s:
        return f"{took}; all trials came from the store."
    reused, total_s = sum(outcome.reused for outcome in ended), sum(spent_s.values())
    dearest = sorted(spent_s, key=spent_s.__getitem__, reverse=True)[:_LISTED]
    listed = ", ".join(f"{title} {spent_s[title] / total_s:.0%}" for title in dearest)
    return (
        f"{took} for {len(ended) - reused} trials{f' ({reused} more came from the store)' if reused else ''}, which "
        f"took {duration(total_s)} one after the other; the dearest classes: {listed}."
    )


def _settings(
    scheduler: str, control: str, transport: str, sysctls: list[str], kernel: str | None
) -> Settings:
    from plait.benchmark.suite import Settings

    if transport not in ("mptcp", "tcp"):
        raise RequestError(f"--transport {transport}: write mptcp or tcp")
    pairs = dict[str, str]()
    for text in sysctls:
        key, equals, value = text.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise RequestError(f"--sysctl {text}: write NAME=VALUE, for example net.ipv4.tcp_sack=0")
        pairs[key.strip()] = value.strip()
    return Settings(
        _algorithm(scheduler, "schedulers", "--scheduler", kernel),
        _algorithm(control, "congestion_controls", "--congestion-control", kernel),
        "tcp" if transport == "tcp" else "mptcp",
        sysctls=pairs,
    )


def _algorithm(named: str, kind: str, option: str, kernel: str | None) -> str:
    """Return the name of an algorithm; a C file is added first. Raises RequestError, MachineError."""
    from plait.api.additions import add
    from plait.binaries import AGENT
    from plait.cli.shared.kernel import chosen_kernel

    if named.endswith(".bpf.c"):
        raise RequestError(
            f"{option} {named}: the suite runs on the laboratory kernel, which has no compiler for BPF programs; "
            "write the algorithm as a module in C (docs/how-to/write-a-scheduler.md)"
        )
    if not named.endswith(".c"):
        return named
    addition = add(Path(named), chosen_kernel(kernel), AGENT)
    names: tuple[str, ...] = getattr(addition.record, kind)
    if len(names) != 1:
        raise RequestError(
            f"{option} {named}: the file registers {len(names)} {kind.replace('_', ' ')} ({', '.join(names)}); "
            f"add it with `plait kernel add`, and name one of them"
        )
    notify(f"{names[0]}: {addition.tried[names[0]]}")
    return names[0]


def _name(settings: Settings, kernel: str | None) -> str:
    """Return the name of an entry: what it sets."""
    kind = "TCP" if settings.transport == "tcp" else settings.scheduler
    sysctls = [f"{key.rpartition('.')[2]}={value}" for key, value in settings.sysctls.items()]
    parts = [kind, settings.congestion_control, *sysctls, *([kernel] if kernel else [])]
    return "".join(letter if letter.isalnum() or letter in " ._+=,-" else "-" for letter in ", ".join(parts))[
        :60
    ]


def _checked_name(name: str, further: list[Results]) -> str:
    """Return the name of the entry (RequestError if it is none, or two results have one name)."""
    from plait.benchmark.results_file import ENTRY_NAME, published

    if re.fullmatch(ENTRY_NAME, name) is None:
        raise RequestError(
            f"--name {name}: a name has at most 60 letters, digits, spaces and . _ + = , - and begins with a letter "
            "or digit"
        )
    names = [results.entry.name for results in [*published(), *further]]
    for own in (results.entry.name for results in further):
        if names.count(own) > 1 or own == name:
            raise RequestError(
                f"--against: several results have the name {own!r}; run yours again with another --name"
            )
    return name


def _command(settings: Settings, subset: str) -> str:
    sysctls = [word for key, value in settings.sysctls.items() for word in ("--sysctl", f"{key}={value}")]
    return shell_command(
        "plait", "benchmark", "--subset", subset, "--scheduler", settings.scheduler,
        "--congestion-control", settings.congestion_control, "--transport", settings.transport, *sysctls,
    )  # fmt: skip


def _running(
    kernel: str | None, jobs: int | None, make_executor: Callable[[], TrialExecutor | None]
) -> Running:
    from plait.benchmark.run import Running
    from plait.benchmark.suite import TRIAL_TIMEOUT_S
    from plait.cli.shared.kernel import engines_on
    from plait.study.progress import on_standard_error

    engines = engines_on(kernel, trial_timeout_s=TRIAL_TIMEOUT_S)
    return Running(engines, on_standard_error, notify, jobs, make_executor=make_executor)


def _end_shard(studies: dict[Path, StudyData], out: Path) -> int:
    """Say how to go on from a shard, which has no results; return the exit code."""
    places = ["ALL" if folder == out else f"ALL/{folder.name}" for folder in studies]
    merges = " and ".join(f"`{shell_command('plait', 'merge', place)} DIR...`" for place in places)
    notify(
        f"{out} has a part of the trials: {merges} puts the parts together, and the same command without --shard and "
        "with --out ALL writes the results"
    )
    return 1 if any(case.failed for study in studies.values() for case in study.cases) else 0


def _show(results: Results, further: list[Results], folder: Path, spent: str) -> int:
    """Write and print the standing; return the exit code."""
    from plait.benchmark.page import write
    from plait.benchmark.results_file import published
    from plait.benchmark.score import floor_of
    from plait.benchmark.standing import SCORE_WORDS, Standing, table
    from plait.report.terminal.summary import Screen

    known = published()
    floor = floor_of(known)
    if floor is None:
        raise RequestError(
            "this installation has no published result of TCP to compare with; install plait again"
        )
    others = [other for other in [*known, *further] if other.entry.name != results.entry.name]
    standing = Standing(results, others, floor)
    screen = Screen()
    screen.tables.print(table(standing))
    screen.line("")
    screen.line(f"Score: {SCORE_WORDS}. Ranks are ranges: entries tie where six seeds show no difference.")
    for sentence in standing.sentences():
        screen.line(sentence)
    write(standing, folder)
    screen.line(spent)
    screen.line(
        f"Summary: {folder / 'benchmark.html'}; results to publish: {folder / 'results.json'}", whole=True
    )
    return 1 if any(score.failed for score in standing.scores) else 0


def _verify(results: Results, draw: int | None, out: Path | None, running: Running) -> int:
    """Run a tenth of published results again; return the exit code."""
    import secrets

    from plait.benchmark.run import drawn_cells, verify

    number = secrets.randbelow(_MOST_DRAWS) if draw is None else draw
    folder = out or Path("results") / "benchmark" / f"verify-{number}"
    count = len(drawn_cells(results.subset, number))
    notify(f"{results.entry.name}: {count} cells of draw {number} (--draw {number} repeats it)")
    differing = verify(results, number, folder, running)
    for cell, here in differing.items():
        published = results.cells[cell.name].values
        typer.echo(printable(f"{cell.name}: published {list(published)}, here {list(here.values)}"))
    if differing:
        typer.echo(f"{len(differing)} of {count} cells differ from the published results")
        return 1
    typer.echo(f"all {count} cells gave the same bytes as published")
    return 0
