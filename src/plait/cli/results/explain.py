"""`plait explain`: report what limited each flow, with the evidence, and the effect of changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plait.cli.shared import complete
from plait.cli.shared.ending import notify
from plait.cli.shared.options import JobsOption, KernelOption, ResultFolder
from plait.errors import RequestError

# Verbs import what they need when they run, so that `plait list` and `plait --help` answer at once.

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.advice.changes.model import Candidate
    from plait.explain.model import StudyExplanation
    from plait.scenario import Scenario
    from plait.study.verify import Fields


def command(
    folder: ResultFolder,
    *,
    case: Annotated[
        str | None,
        typer.Option(
            metavar="CASE",
            help="Explain only this case: name, part of it, or number",
            autocompletion=complete.cases_of_results,
        ),
    ] = None,
    flow: Annotated[str | None, typer.Option(metavar="NAME", help="Explain only this flow")] = None,
    trial: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="Number of the trial to explain", show_default="a representative one"
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Run the case again without each named cause, and report the effect"),
    ] = False,
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            "--what-if",
            metavar="PATH=VALUE",
            help="Run the case again with this field set, as with `plait run --set`; separate several fields by `;`",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(metavar="N", min=2, help="Number of seeds for --verify and --what-if")
    ] = 5,
    jobs: JobsOption = None,
    kernel: KernelOption = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the explanation as JSON")] = False,
) -> int:
    """Explain what limited each flow."""
    from plait.report.terminal.explanation import show_explanation
    from plait.results.explain import explain_study, for_people

    explanation = explain_study(folder, case=case, flow=flow, trial=trial)
    if verify or what_if:
        from plait.cli.shared.kernel import engines_on
        from plait.study.verify import try_out

        explanation = try_out(
            folder, explanation, engines_on(kernel), what_ifs=[text.split(";") for text in what_if or ()],
            verify=verify, advised=_advised, seeds=seeds, jobs=jobs, notify=notify,
        )  # fmt: skip
    if json_output:
        typer.echo(explanation.model_dump_json(indent=1))
    else:
        show_explanation(*for_people(folder, explanation, flow))
        _show_advice(folder, explanation)
    return 0


def _show_advice(folder: Path, explanation: StudyExplanation) -> None:
    """Print which changes `plait advise` would try against the first cause, if the scenario has lines to advise on."""
    from plait.dataset.study_file import read_study_file
    from plait.report.terminal.summary import Screen
    from plait.results.explain import recorded_scenario

    causes = {str(flow.first) for case in explanation.cases for flow in case.flows if flow.first is not None}
    try:
        scenario = recorded_scenario(read_study_file(folder))
    except RequestError:
        return
    names = dict.fromkeys(
        change.name for cause in sorted(causes) for change in _changes_against(scenario, cause)
    )
    if names:
        Screen().line(f"plait advise would try: {', '.join(names)}")


def _changes_against(scenario: Scenario, cause: str) -> Sequence[Candidate]:
    """Return what `plait advise` would try against a cause; nothing for a scenario without lines to advise on."""
    from plait.advice.candidates import against_cause
    from plait.advice.situation import Situation

    try:
        return against_cause(Situation.of(scenario), cause)
    except RequestError:
        return []


def _advised(scenario: Scenario, cause: str) -> list[tuple[str, Fields]]:
    """Return what `plait advise` would try against a cause on these lines, in words and as fields."""
    changes = _changes_against(scenario, cause)
    raw = scenario.model_dump(mode="json", by_alias=True, exclude_unset=True) if changes else {}
    return [
        (change.words, tuple(change.fields(raw["traffic"]).items()))
        for change in changes
        if scenario.transport != "tcp"
        or not any(path.startswith(("mptcp", "transport")) for path in change.settings)
    ]
