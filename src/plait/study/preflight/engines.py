"""Refuse what the engines of a study lack for its cases: features of plans, algorithms, sysctls, programs."""

from __future__ import annotations

from collections.abc import Mapping

from plait.engine.engine import Engine
from plait.engine.factory import engines_with
from plait.engine.support import Use
from plait.errors import Mistake
from plait.scenario import Scenario
from plait.scenario.fields.events import happenings
from plait.scenario.mistakes import Where
from plait.seeds import trial_seed
from plait.study.preflight.kernel import add, refuse, refuse_what_is_missing
from plait.study.study import PlannedStudy


def refuse_what_engines_lack(study: PlannedStudy, engines: Mapping[str, Engine]) -> None:
    """Raise ScenarioError, with the place of each mistake, if an engine or its kernel lacks what a case needs.

    Raises MachineError if asking a kernel fails.
    """
    mistakes: dict[str, Mistake] = {}
    seed = trial_seed(study.seed, 0)
    for case in study.cases:
        engine = engines[case.engine]
        for missing in engine.unsupported(case.plan(seed)):
            names = [name for name in engines_with(missing.use.feature) if name != engine.name]
            problem = f"the engine {engine.name} {missing.reason}; {_remedy(names)}"
            add(mistakes, case, place(case.scenario, missing.use), problem)
    refuse(mistakes)
    for name, engine in engines.items():
        refuse_what_is_missing([case for case in study.cases if case.engine == name], engine.inventory)


def _remedy(names: list[str]) -> str:
    if not names:
        return "no engine has this; leave it out"
    return f"use --engine {' or '.join(names)}, or leave it out"


def place(scenario: Scenario, use: Use) -> Where:
    """Return the field of the scenario that asks for a feature; the part as a whole if it is none by itself."""
    network = scenario.network
    match use.part:
        case "links" if use.name in network.links:
            return ("network", "links", use.name)
        case "links":
            return ("network", "links")
        case "nodes":
            for kind in ("hosts", "switches", "routers"):
                if use.name in getattr(network, kind):
                    return ("network", kind, use.name)
            return ("network",)
        case "traffic" if use.name.isdigit() and int(use.name) < len(scenario.traffic):
            return ("traffic", int(use.name))
        case "programs":
            numbers = [i for i, program in enumerate(scenario.programs) if program.name == use.name]
            return ("programs", *numbers[:1])
        case "events":
            named = [
                happening.where for happening in happenings(scenario.events) if happening.subject == use.name
            ]
            return named[0] if named else ("events",)
        case "machine":
            return ("machine", use.name)
        case "settings":
            return (use.name,) if use.name.partition(".")[0] in type(scenario).model_fields else ()
        case part:
            return (part,)
