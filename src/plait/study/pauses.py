"""The pauses of a study: which of its trials are halted for a prompt, until the person has seen enough."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from plait.engine.interactive import PromptedGuest
    from plait.plan.model.plan import PauseAt, Plan


@dataclass(frozen=True)
class PausedTrial:
    """A trial that waits for a person."""

    case: str
    index: int
    """The trial's number within its case, from 0."""
    number: int
    total: int
    """It is the `number`th (from 1) of so many of the study."""
    at: PauseAt
    plan: Plan
    guest: PromptedGuest

    @property
    def sentence(self) -> str:
        """Says which trial it is, and where it stands."""
        return (
            f"{self.case} #{self.index} (trial {self.number} of {self.total}) is halted {self.at} its traffic"
        )


@dataclass
class Pauses:
    """What a study knows of its pauses. `ask` gives a prompt, and returns whether to halt again."""

    ask: Callable[[PausedTrial], bool] | None
    total: int
    _numbers: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def active(self) -> bool:
        """Whether a person wants to be asked."""
        return self.ask is not None

    def effective_plan(self, plan: Plan) -> Plan:
        """Returns the plan, without pauses where nobody wants any."""
        return plan if self.active else plan.model_copy(update={"pause": ()})

    def callback(self, case: str, index: int, plan: Plan) -> Callable[[PauseAt, PromptedGuest], None]:
        """Returns what to call at the pauses of a trial."""
        number = self._numbers.setdefault((case, index), len(self._numbers) + 1)

        def on_pause(at: PauseAt, guest: PromptedGuest) -> None:
            trial = PausedTrial(case, index, number, self.total, at, plan, guest)
            if self.ask is not None and not self.ask(trial):
                self.ask = None

        return on_pause
