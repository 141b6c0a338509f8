"""The pauses of a study: each trial halts for a prompt until the user skips the remaining pauses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from plait.engine.interactive import PromptedGuest
from plait.plan.model.plan import PauseAt, Plan


@dataclass(frozen=True)
class PausedTrial:
    """A trial that waits at a prompt."""

    case: str
    index: int
    """The trial's number within its case, from 0."""
    number: int
    total: int
    """The position of the trial in the study, from 1 to `total`."""
    at: PauseAt
    plan: Plan
    guest: PromptedGuest

    @property
    def sentence(self) -> str:
        """Return which trial waits, and at which of its pauses."""
        return (
            f"{self.case} #{self.index} (trial {self.number} of {self.total}) is halted {self.at} its traffic"
        )


@dataclass
class Pauses:
    """The state of a study's pauses. `ask` opens a prompt and returns whether to halt again."""

    ask: Callable[[PausedTrial], bool] | None
    total: int
    _numbers: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def active(self) -> bool:
        """Whether trials still halt."""
        return self.ask is not None

    def effective_plan(self, plan: Plan) -> Plan:
        """Return the plan, without its pauses if the user has skipped the remaining ones."""
        return plan if self.active else plan.model_copy(update={"pause": ()})

    def callback(self, case: str, index: int, plan: Plan) -> Callable[[PauseAt, PromptedGuest], None]:
        """Return the function that the engine calls at each pause of a trial."""
        number = self._numbers.setdefault((case, index), len(self._numbers) + 1)

        def on_pause(pause: PauseAt, guest: PromptedGuest) -> None:
            trial = PausedTrial(case, index, number, self.total, pause, plan, guest)
            if self.ask is not None and not self.ask(trial):
                self.ask = None

        return on_pause
