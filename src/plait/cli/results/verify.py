"""`plait verify`: checks a bundle on this machine within five minutes, or its claims."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plait.cli.shared.ending import notify
from plait.cli.shared.options import JobsOption, KernelOption
from plait.errors import RequestError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plait.artefact.claims import Artefact, Claim
    from plait.scenario import Scenario
    from plait.study.bundle.record import BundledTrial, BundleRecord

_MOST_DRAWS = 1_000_000
_TRIAL_TIMEOUT_S = 3600.0
_SHARE_OF_BATCHES = 0.8
"""The share of the minutes for trials; plait reads their data in the rest."""


def command(
    bundle: Annotated[
        Path,
        typer.Argument(metavar="BUNDLE", help="A bundle that `plait bundle` wrote, or its unpacked folder"),
    ],
    *,
    claim: Annotated[
        list[int] | None, typer.Option(metavar="N", min=1, help="Check this claim; repeat it for more")
    ] = None,
    claims: Annotated[bool, typer.Option("--claims", help="Check all claims")] = False,
    minutes: Annotated[
        float | None,
        typer.Option(metavar="N", min=0.01, max=1440, help="Time for drawn trials", show_default="5"),
    ] = None,
    draw: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Number of the draw", show_default="by chance")
    ] = None,
    kernel: KernelOption = None,
    jobs: JobsOption = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Result folder of the repeat", show_default="results/verify-NAME"),
    ] = None,
) -> int:
    """Run a part of a bundle again, and compare it.

    By default that is a drawn part that takes less than five minutes. Exit code 1: a trial differs, or a claim does not
    hold.
    """
    import secrets

    from plait.artefact import check
    from plait.engine.workspace import working_folder
    from plait.study.bundle.repeat import open_bundle

    if (claim or claims) and (draw is not None or minutes is not None):
        raise RequestError(
            "--draw and --minutes choose trials, and a claim has its own; use one or the other"
        )
    artefact = check.read_artefact(bundle)
    numbers = [known.number for known in artefact.claims] if claims else claim or []
    if claims and not numbers:
        raise RequestError(f"--claims: {bundle} has no claims; leave the option out to check trials")
    asked = check.claimed(artefact, numbers)
    with working_folder() as workspace:
        opened = open_bundle(bundle, workspace.job())
        target = out or Path("results") / f"verify-{opened.record.name}"
        run = partial(_repeat, opened.scenario, opened.record, target, kernel=kernel, jobs=jobs)
        if asked:
            subject = f"{len(asked)} of {len(artefact.claims)} claims"
            run(_announced(subject, opened.record, check.trials_of(opened.record, asked)))
        else:
            number = secrets.randbelow(_MOST_DRAWS) if draw is None else draw
            drawn = check.drawn(opened.record, number, minutes or check.MINUTES)
            subject = f"draw {number} (--draw {number} repeats it)"
            done = _within(minutes or check.MINUTES, _announced(subject, opened.record, drawn), run)
    return _show_claims(bundle, asked, target) if asked else _show_trials(artefact, done, target)


def _announced(subject: str, record: BundleRecord, chosen: Sequence[BundledTrial]) -> Sequence[BundledTrial]:
    """Print which trials run again, and return them."""
    from plait.artefact.check import recorded_s

    notify(
        f"{subject}: {len(chosen)} of {len(record.trials)} trials, which took {recorded_s(chosen):.0f} s one after "
        "the other"
    )
    return chosen


def _within(minutes: float, chosen: Sequence[BundledTrial], run: Callable[..., None]) -> list[BundledTrial]:
    """Run drawn trials, batch by batch, until no other batch fits into the time; return those that ran."""
    from plait.artefact.check import batches

    begun = time.monotonic()
    done: list[BundledTrial] = []
    for number, batch in enumerate(batches(chosen)):
        elapsed = time.monotonic() - begun
        if number and elapsed * (number + 1) / number > minutes * 60 * _SHARE_OF_BATCHES:
            notify(
                f"stopped after {len(done)} trials, because others no longer fit into {minutes:g} minutes here"
            )
            break
        run(batch, done=tuple(done))
        done += batch
    return done


def _repeat(
    scenario: Scenario,
    record: BundleRecord,
    target: Path,
    chosen: Sequence[BundledTrial],
    *,
    kernel: str | None,
    jobs: int | None,
    done: Sequence[BundledTrial] = (),
) -> None:
    """Run the chosen trials again into `target`, beside those that are done."""
    from plait.artefact.check import selection
    from plait.cli.shared.kernel import engines_on
    from plait.study.perform import Options, perform
    from plait.study.progress import on_standard_error

    options = Options(
        record.seed, record.repeat, jobs, fresh=True, confirmed=True, shard=selection(scenario, chosen, done)
    )
    _, outcome = perform(
        scenario, record.name, engines_on(kernel, trial_timeout_s=_TRIAL_TIMEOUT_S), options, folder=target,
        watch=on_standard_error, notify=notify,
    )  # fmt: skip
    if outcome.interrupted:
        raise KeyboardInterrupt


def _show_trials(artefact: Artefact, chosen: Sequence[BundledTrial], folder: Path) -> int:
    """Print how drawn trials compare; return the exit code."""
    from collections import Counter

    from plait.artefact.check import check_trials

    checks = check_trials(artefact, chosen, folder)
    for check in checks:
        if check.result == "differs":
            typer.echo(printable(f"{check.trial.case} #{check.trial.number} differs: {check.reason}"))
    counts = Counter(check.result for check in checks)
    typer.echo(
        ", ".join(f"{count} {result}" for result, count in counts.items()) + f" ({len(checks)} trials)"
    )
    return 1 if counts["differs"] else 0


def _show_claims(bundle: Path, asked: Sequence[Claim], folder: Path) -> int:
    """Print which claims hold; return the exit code."""
    from plait.artefact.check import read_benchmark
    from plait.artefact.claims import repeated_value
    from plait.results.read import read_study

    study, results = read_study(folder), read_benchmark(bundle, asked)
    measured = [(claim, repeated_value(claim, study, results)) for claim in asked]
    for claim, repeated in measured:
        result = "holds" if claim.holds(repeated) else "DOES NOT HOLD"
        tolerance = f"{claim.show(claim.low)} to {claim.show(claim.high)}"
        value = "not measured" if repeated is None else claim.show(repeated)
        typer.echo(
            printable(f"claim {claim.number} {result}: here {value}, tolerance {tolerance}. {claim.sentence}")
        )
    return 0 if all(claim.holds(repeated) for claim, repeated in measured) else 1
