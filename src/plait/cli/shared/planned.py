"""The plan of one case of the scenario on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.plan.model.plan import Plan


def planned_case(
    scenario: str,
    overrides: Sequence[str] | None,
    case: str | None,
    *,
    seed: int | None = None,
    repeat: int = 0,
) -> tuple[Plan, str, list[str]]:
    """Return the plan of a trial of a case, with the modules that it loads, the case's name, and those of all cases.

    Without `case` it is the first one, and without `seed` that of the scenario. Raises ScenarioError, RequestError.
    """
    from plait.analysis.labels.cases import labels as case_labels
    from plait.kernel import additions
    from plait.plan.modules import with_modules
    from plait.plan.resolve import resolve
    from plait.scenario import load as load_scenario
    from plait.scenario.vary.cases import expand
    from plait.scenario.vary.choose import choose_case
    from plait.seeds import trial_seed

    loaded = load_scenario(scenario, tuple(overrides or ()))
    cases = {entry.name: entry for entry in expand(loaded)}
    labels = case_labels(list(cases.values()), loaded.labels.cases if loaded.labels is not None else None)
    name = next(iter(cases)) if case is None else choose_case(case, list(cases), labels)
    planned = resolve(cases[name].scenario, trial_seed(loaded.seed if seed is None else seed, repeat))
    return with_modules(planned, additions.modules_by_name()), name, list(cases)
