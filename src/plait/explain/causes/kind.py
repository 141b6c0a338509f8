"""A kind of cause: its words, its evidence, the change that removes it, and the rules that find it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from plait.explain.changes import Remedy, Suspect
from plait.explain.facts import FlowFacts, LateMessage, PathFacts
from plait.explain.time.path_time import PathTime


@dataclass(frozen=True)
class Kind:
    """One cause."""

    cause: str
    title: str
    """A short label, for tables and figures."""
    clause: str
    """A main clause that completes "The flow was limited by NAME: ..."."""
    next_step: str = ""
    """The remedy, as an imperative without a full stop; empty if there is nothing to do."""
    next_steps: Mapping[str, str] = field(default_factory=dict)
    """Other remedies, by the reason of the cause."""
    prototype_step: str = ""
    """The remedy in a prototype, which has its own window, congestion control and scheduler; empty: as elsewhere."""
    message_words: tuple[str, str] | None = None
    """Clause and next step if the cause delays messages; None: as for bulk transfers."""
    evidence: Callable[[FlowFacts, tuple[str, ...]], list[str]] | None = None
    """Return the evidence at the places of the cause, one sentence each."""
    change: Callable[[Suspect], Remedy | None] | None = None
    """Return the change of a scenario that removes the cause; None if nothing in the scenario does.

    A test demands a change; if no field removes the cause, name it in `nothing_to_set` of
    `tests/unit/explain/test_explain_rules.py`.
    """
    rule: Callable[[FlowFacts, PathFacts, PathTime], None] | None = None
    """Move time of a path to this cause from those that the path shows; `time/` finds causes without a rule."""
    precedence: int = 0
    """Rules run in this order, the smallest first: a later one sees what the earlier ones have moved."""
    late_rule: Callable[[LateMessage], tuple[str, ...]] | None = None
    """Return the places of the cause if it explains a late message, else none; links and long waits come before it."""
    keeps_messages: Literal["never", "partial segments", "whole segments"] = "never"
    """What a sender may keep back of a message for this cause of its time; `messages/late.py` looks for these."""
    is_marked: bool = False
    """It begins at a certain time, so figures over time mark it."""
    names_place: bool = False
    """Its clause names the place, or it has none."""
    is_harmless: bool = False
    """It makes no flow slower."""
