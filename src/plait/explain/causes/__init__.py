"""All kinds of causes. Each module here has `KINDS`, and this registry finds them.

A new cause is a `Kind` with its name and a `rule` (of the time of a path) or a `late_rule` (of messages) in a module
here, and in `docs/reference/explain.md` its row under
*Every cause*, its rule, how it can mislead, and its remedy. `return_path.py` has a whole one. Facts end at the `end_us`
of the flow. The name moves to `explain/cause.py` when another module speaks of it.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from plait.explain.causes.kind import Kind
from plait.explain.changes import Remedy, Suspect

_MODULES = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
CAUSES: dict[str, Kind] = {
    str(kind.cause): kind for module in _MODULES for kind in getattr(module, "KINDS", ())
}
HARMLESS = frozenset(cause for cause, kind in CAUSES.items() if kind.is_harmless)
"""Causes that make no flow slower."""
RULES = [
    kind.rule for kind in sorted(CAUSES.values(), key=lambda kind: kind.precedence) if kind.rule is not None
]
LATE_RULES = {
    cause: kind.late_rule
    for cause, kind in sorted(CAUSES.items(), key=lambda item: item[1].precedence)
    if kind.late_rule is not None
}
WHOLE_SEGMENTS = frozenset(cause for cause, kind in CAUSES.items() if kind.keeps_messages == "whole segments")
ANY_SEGMENTS = WHOLE_SEGMENTS | {
    cause for cause, kind in CAUSES.items() if kind.keeps_messages == "partial segments"
}


def next_step(cause: str, transport: str, reason: str | None = None) -> str:
    """Return what to do about a cause in a flow of this transport; empty if nothing."""
    kind = CAUSES[cause]
    if reason is not None and reason in kind.next_steps:
        return kind.next_steps[reason]
    return (transport == "prototype" and kind.prototype_step) or kind.next_step


def remedy(suspect: Suspect) -> Remedy | None:
    """Return the change that removes a cause; None if there is none."""
    make = CAUSES[suspect.share.cause].change
    if make is None or not any(flow.id == suspect.flow.flow_id for flow in suspect.plan.flows):
        return None
    return make(suspect)
