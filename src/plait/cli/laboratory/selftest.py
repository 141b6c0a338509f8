"""`plait selftest`: runs upstream's own tests of MPTCP in virtual time, over seeds."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from plait.cli.shared import complete
from plait.cli.shared.ending import interruption_of, notify
from plait.cli.shared.kernel import chosen_kernel
from plait.cli.shared.observing import (
    CAPTURED_BYTES,
    TRACE,
    PcapOption,
    TraceOption,
    TraceToOption,
    capture_folder,
    tracing,
)
from plait.cli.shared.options import GuestsOption, KernelOption, parsed
from plait.cli.shared.outputs import output_file, output_folder, write_output
from plait.errors import MachineError, RequestError, printable, shell_command
from plait.files import Output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plait.files import Folder
    from plait.testing.selftest.packetdrill import Scripts
    from plait.testing.selftest.run import ShardResult
    from plait.testing.selftest.suites import Suites, SuiteShard
    from plait.testing.selftest.tap import Subtest, Verdict

_WORDS: dict[Verdict, str] = {"pass": "passed", "fail": "failed", "ignore": "ignored", "skip": "skipped"}
_SEVERITY: tuple[Verdict, ...] = ("pass", "skip", "ignore", "fail")
_LINE = 80
_SHOWN = 40
"""Most subtests that did not always pass in the table; --junit and --tap have all."""
_SEEDS, _REASONS = 8, 5
"""Most seeds and reasons of such a subtest."""

SuiteArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SUITE",
        help="Suites to run, such as simult_flows, or a group of one (mptcp_join:f); "
        "or `packetdrill` with scripts or their folders",
        show_default="all of the tree",
        autocompletion=complete.suites,
    ),
]
PacketdrillOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="packetdrill's program", show_default="PLAIT_PACKETDRILL, or PATH"),
]
ToleranceOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Tolerance of times in packetdrill's scripts; 0: measure the slack of each script",
        show_default="that of each script",
    ),
]
AgainstOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Earlier results to compare with: JUnit XML of --junit, or JSON of `plait benchmark`; may be repeated",
    ),
]
FiguresOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="New JSON of `plait benchmark`, to compare with that of --against"),
]


def command(
    suites: SuiteArgument = None,
    *,
    tree: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Source tree with the suites", show_default="the distribution's 6.12"
        ),
    ] = None,
    kernel: KernelOption = None,
    seeds: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="Number of seeds")] = 1,
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="First of the seeds")] = 1,
    jobs: GuestsOption = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write JUnit XML")] = None,
    tap: Annotated[bool, typer.Option("--tap", help="Print TAP instead of the table")] = False,
    logs: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write the output of each suite and seed")
    ] = None,
    packetdrill: PacketdrillOption = None,
    tolerance: ToleranceOption = None,
    against: AgainstOption = None,
    figures: FiguresOption = None,
    trace: TraceOption = None,
    trace_to: TraceToOption = TRACE,
    pcap: PcapOption = None,
) -> int:
    """Run upstream's selftests of MPTCP, unmodified, in virtual time.

    A flake fails again with the same seed. Exit code 1: a subtest failed (with --against: one that passed before);
    3: none did, but a suite cannot run here.
    """
    from plait.testing.selftest.run import run

    compare = _comparison(against or [], figures)
    prepared, shards = _prepared(suites or [], tree, packetdrill, tolerance)
    notify(f"{len(shards)} guest{'s' * (len(shards) != 1)} for each of {seeds} seed{'s' * (seeds != 1)}")
    booted = chosen_kernel(kernel)
    _require_one_guest("--trace" if trace else "--pcap" if pcap else None, len(shards) * seeds)
    captures = None if (captured := capture_folder(pcap)) is None else (captured, CAPTURED_BYTES)
    junit_file = output_file(junit, "--junit") if junit else None
    log_folder = output_folder(logs, "--logs") if logs else None

    def start(done: Callable[[ShardResult], None]) -> None:
        with tracing(trace, trace_to, booted, notify) as traced:
            run(
                prepared, shards, range(seed, seed + seeds), booted, jobs=jobs or len(os.sched_getaffinity(0)),
                on_result=done, traced=traced, captures=captures,
            )  # fmt: skip

    results: list[ShardResult] = []
    interrupted_by = interruption_of(lambda: start(partial(_keep, results)))
    results.sort(key=lambda result: (shards.index(result.shard), result.seed))
    code = _show_all(results, junit_file, log_folder, as_tap=tap, tolerance=tolerance)
    if compare is not None:
        failures = compare([subtest for result in results for subtest in result.subtests], as_tap=tap)
        code = failures if code == 1 else code
    if interrupted_by is not None:
        notify(f"interrupted by {interrupted_by.name}; {len(results)} of {len(shards) * seeds} guests ended")
        return 128 + interrupted_by
    return code


def _comparison(against: list[Path], figures: Path | None) -> Callable[..., int] | None:
    """Return the function that prints what changed since `against` and returns 1 after a new failure; None without."""
    from plait.benchmark.moved import moved_figures
    from plait.benchmark.results_file import read_results
    from plait.testing.selftest.against import changes_of_subtests, read_junit

    earlier = [subtest for path in against if path.suffix != ".json" for subtest in read_junit(path)]
    files = [path for path in against if path.suffix == ".json"]
    if bool(files) != (figures is not None) or len(files) > 1:
        raise RequestError(
            "--figures NEW.json and --against OLD.json belong together: give one of each, of `plait benchmark`"
        )
    moved = moved_figures(read_results(files[0]), read_results(figures)) if figures is not None else []
    if not against:
        return None

    def compare(subtests: list[Subtest], *, as_tap: bool) -> int:
        changes = [*(changes_of_subtests(earlier, subtests) if len(files) < len(against) else ()), *moved]
        lines = [
            f"Against {', '.join(map(str, against))}: "
            + (f"{len(changes)} changed" if changes else "as before")
        ]
        for kind, name, detail in changes:
            first, *more = wrap(f"{name} ({detail})", _LINE - len(f"  {'':<14} ") - 2 * as_tap)
            lines += [f"  {kind:<14} {first}", *(f"  {'':<14} {line}" for line in more)]
        typer.echo("\n".join(f"# {line}" if as_tap else line for line in lines))
        return int(any(kind in ("new failure", "new flake") for kind, _, _ in changes))

    return compare


def _prepared(
    words: list[str], tree: Path | None, program: Path | None, tolerance: str | None
) -> tuple[Suites | Scripts, list[SuiteShard]]:
    """Return what to run, and in which guests."""
    from plait.testing.selftest import packetdrill, suites
    from plait.units import Duration

    if words[:1] == [packetdrill.SUITE]:
        # a tolerance below 1 us is not 0, which would measure the slack
        written = "0us" if tolerance == "0" else tolerance
        allowed = None if written is None else -(-parsed("--tolerance", written, Duration) // 1000)
        return packetdrill.prepare(
            [Path(word) for word in words[1:]], program=program, tree=tree, tolerance_us=allowed
        )
    for option, value in (("--packetdrill", program), ("--tolerance", tolerance)):
        if value is not None:
            raise RequestError(f"{option} {value}: it concerns `plait selftest packetdrill`; omit it")
    prepared = suites.prepare(tree, lambda step, _: notify(f"selftests: {step}"))
    return prepared, prepared.shards(tuple(words))


def _show_all(
    results: list[ShardResult],
    junit: Output | None,
    logs: Folder | None,
    *,
    as_tap: bool,
    tolerance: str | None,
) -> int:
    """Write and print the results, and return the exit code."""
    from plait.testing.selftest.tap import as_tap as tap_of

    subtests = [subtest for result in results for subtest in result.subtests]
    _write(subtests, results, junit=junit, logs=logs)
    if as_tap:
        sys.stdout.write(tap_of(subtests))
    else:
        _show(subtests, results, tolerance)
    if any(subtest.verdict == "fail" for subtest in subtests):
        return 1
    return 0 if all(result.tested for result in results) else MachineError.exit_code


def _require_one_guest(option: str | None, guests: int) -> None:
    if option is not None and guests != 1:
        raise RequestError(
            f"{option} with {guests} guests: it observes one; name one suite or group, and give --seed S and --seeds 1"
        )


def _keep(results: list[ShardResult], result: ShardResult) -> None:
    """Keep the result of a guest that ended, and say what it is."""
    results.append(result)
    notify(
        f"{result.shard.title}, seed {result.seed}: {_counts([s.verdict for s in result.subtests])} "
        f"({result.wall_s:.0f} s, of virtual time {result.virtual_s:.0f} s)"
    )


def _counts(verdicts: list[Verdict]) -> str:
    """Return how many of these verdicts there are of each kind."""
    return ", ".join(f"{verdicts.count(verdict)} {word}" for verdict, word in _WORDS.items())


def _worst(runs: list[Subtest]) -> Verdict:
    """Return the verdict of a subtest over all seeds: `pass` only if it passed with every seed."""
    return max((subtest.verdict for subtest in runs), key=_SEVERITY.index)


def _write(
    subtests: list[Subtest], results: list[ShardResult], *, junit: Output | None, logs: Folder | None
) -> None:
    """Write the results as JUnit XML, and the output of each guest."""
    from plait.testing.selftest.tap import as_junit

    if junit is not None:
        write_output(junit, "--junit", as_junit(subtests))
    if logs is not None:
        for result in results:
            name = f"{result.shard.title.replace(' ', '-' if result.shard.scripts else '')}-seed{result.seed}.log"
            write_output(Output(logs, name), "--logs", result.output.encode())


def _show(subtests: list[Subtest], results: list[ShardResult], tolerance: str | None) -> None:
    """Print a line for each suite, a line for each subtest that did not always pass, and how to repeat a failure."""
    by_suite: dict[str, dict[str, list[Subtest]]] = {}
    for subtest in subtests:
        by_suite.setdefault(subtest.suite, {}).setdefault(subtest.name, []).append(subtest)
    troubled = []
    for suite, named in by_suite.items():
        worst = [_worst(runs) for runs in named.values()]
        typer.echo(f"{suite:<24} {_counts(worst).replace('passed', 'passed with every seed', 1)}")
        troubled += [runs for runs, verdict in zip(named.values(), worst, strict=True) if verdict != "pass"]
    for runs in troubled[:_SHOWN]:
        passed = sum(s.verdict == "pass" for s in runs)
        typer.echo(f"  {runs[0].suite}: {runs[0].name[:60]}")
        typer.echo(f"    {passed}/{len(runs)} passed; {'; '.join(_states(runs))}")
    if len(troubled) > _SHOWN:
        typer.echo(f"  and {len(troubled) - _SHOWN} more; --tap lists all")
    _show_slack(subtests)
    _show_repeat(results, tolerance)


def _show_slack(subtests: list[Subtest]) -> None:
    """Print the slack of each script of packetdrill, the largest first."""
    measured = sorted(
        ((subtest.slack_us, subtest.name) for subtest in subtests if subtest.slack_us is not None),
        reverse=True,
    )
    if measured:
        typer.echo("Smallest tolerance with which a script passes:")
    for slack_us, name in measured[:_SHOWN]:
        typer.echo(f"  {slack_us:>9} us  {name}")
    if len(measured) > _SHOWN:
        typer.echo(f"  and {len(measured) - _SHOWN} smaller ones; --tap lists all")


def _states(runs: list[Subtest]) -> Iterator[str]:
    """Yield with which seeds a subtest had each verdict but `pass`, and why; seeds with one reason belong together."""
    seeds: dict[tuple[Verdict, str], list[int]] = {}
    for verdict in ("fail", "ignore", "skip"):
        for subtest in runs:
            if subtest.verdict == verdict:
                seeds.setdefault((verdict, subtest.reason), []).append(subtest.seed)
    for (verdict, reason), those in list(seeds.items())[:_REASONS]:
        more = f" and {len(those) - _SEEDS} more" * (len(those) > _SEEDS)
        named = (
            "every seed" if len(those) == len(runs) else f"seed {', '.join(map(str, those[:_SEEDS]))}{more}"
        )
        yield f"{_WORDS[verdict]} with {named}" + (f": {printable(reason, keep='')}" if reason else "")
    if len(seeds) > _REASONS:
        yield f"and {len(seeds) - _REASONS} other reasons; --tap lists all"


def _show_repeat(results: list[ShardResult], tolerance: str | None) -> None:
    """Print the command that repeats the first guest with a failed subtest."""
    for result in results:
        if any(subtest.verdict == "fail" for subtest in result.subtests):
            options = () if tolerance is None else ("--tolerance", tolerance)
            repeat = shell_command(
                "plait", "selftest", *result.shard.words, *options, "--seed", result.seed, "--logs", "DIR"
            )
            typer.echo(f"To repeat: {repeat}")
            return
