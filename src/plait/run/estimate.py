"""How long a study will take, said before it starts: from what trials took on this machine before.

A trial's wall time is taken for a boot and so much for each frame that its flows are expected to send; how much, is
kept in the user's cache and learned anew with every study.
"""

from __future__ import annotations

import json
from dataclasses import asdict, astuple, dataclass
from typing import TYPE_CHECKING

from plait.errors import RequestError
from plait.files import Folder, json_of
from plait.plan.application import messages
from plait.plan.applications import Bulk, OnOff, Page, Request, Stream, Transfer, Udp
from plait.plan.seeds import trial_seed

if TYPE_CHECKING:
    from pathlib import Path

    from plait.plan.model import Flow, Plan
    from plait.run.study import Study, StudyOutcome

MOST_TRIALS = 10_000
"""More are run only when they are confirmed."""
BOOT_S = 0.1
FRAME_S = 3e-5
"""Wall seconds of a boot and of a frame where nothing is known yet (measured on two cores of 2020)."""
_FRAME_BYTES = 1514
_PAYLOAD_BYTES = 1448
_UNLIMITED_BPS = 1e9
_REMEMBERED = 500
_BELIEVED = 1e15
"""A record with a greater number is damaged."""
_LOOKED_AT = 40


@dataclass(frozen=True)
class Pace:
    """What trials took on this machine so far; of many, the recent ones count more."""

    trials: float = 0.0
    frames: float = 0.0
    wall_s: float = 0.0

    @property
    def frame_s(self) -> float:
        """Wall seconds for each expected frame."""
        spent = self.wall_s - BOOT_S * self.trials
        return spent / self.frames if self.frames and spent > 0 else FRAME_S

    def trial_s(self, frames: float) -> float:
        """Wall seconds of a trial that is expected to send so many frames."""
        return BOOT_S + frames * self.frame_s


@dataclass(frozen=True)
class Estimate:
    """How much a study is."""

    cases: int
    repeat: int
    wall_s: float
    """With as many trials at once as asked for, and none of them in the store."""
    known: bool
    """It rests on trials of this machine."""
    programs: bool = False
    """Programs run in it, of which nobody knows how long they take."""

    @property
    def sentence(self) -> str:
        """The estimate in words."""
        trials = self.cases * self.repeat
        said = f"{trials} trial{'s' * (trials != 1)}"
        if self.cases > 1 and self.repeat > 1:
            said += f" ({self.cases} cases, {self.repeat} times)"
        if self.programs:
            return f"{said}; how long their programs take is not known beforehand"
        basis = "" if self.known else ", a guess: nothing has run here yet"
        return f"{said}, {_rough(self.wall_s)} at most{basis}"


def expected_frames(plan: Plan) -> float:
    """Returns the data frames that a trial will send if its flows get what the links allow each of them."""
    return sum(_frames(flow) for flow in plan.flows)


def estimate(study: Study, jobs: int, pace: Pace) -> Estimate:
    """Returns how much `study` is with `jobs` trials at once."""
    wall_s = pace.trial_s(_frames_of_a_trial(study)) * study.total / min(jobs, study.total)
    return Estimate(len(study.cases), study.repeat, wall_s, pace.trials > 0, _with_programs(study))


def refuse_too_many(cases: int, repeat: int, *, confirmed: bool) -> None:
    """Raises RequestError when there are more than MOST_TRIALS, unless they were confirmed."""
    if cases * repeat > MOST_TRIALS and not confirmed:
        raise RequestError(
            f"this is {cases * repeat} trials ({cases} cases, {repeat} times); more than {MOST_TRIALS} are run only "
            "with --yes. A latin_hypercube under vary covers a space with fewer."
        )


def learn(pace: Pace, study: Study, outcome: StudyOutcome) -> Pace:
    """Returns the pace with what this study took; trials from the store, failed ones and programs tell nothing."""
    if _with_programs(study):
        return pace
    ran = [one for one in outcome.finished if not one.reused and one.error is None]
    keep = min(1.0, _REMEMBERED / pace.trials) if pace.trials else 1.0
    return Pace(
        pace.trials * keep + len(ran),
        pace.frames * keep + _frames_of_a_trial(study) * len(ran),
        pace.wall_s * keep + sum(one.wall_s for one in ran),
    )


def read_pace(cache: Path, engine: str) -> Pace:
    """Returns what is known of an engine on this machine; nothing when there is no record, or a damaged one."""
    try:
        entry = json_of(Folder(cache).read(_name(engine)))
        pace = Pace(float(entry["trials"]), float(entry["frames"]), float(entry["wall_s"]))
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return Pace()
    return pace if all(0 <= value < _BELIEVED for value in astuple(pace)) else Pace()


def keep_pace(cache: Path, engine: str, pace: Pace) -> None:
    """Keeps the pace for the next study; a cache that cannot be written is no error."""
    try:
        Folder(cache).write(_name(engine), json.dumps(asdict(pace)).encode())
    except OSError:
        return


def _name(engine: str) -> str:
    return f"pace-{engine}.json"


def _with_programs(study: Study) -> bool:
    return any(case.scenario.programs for case in study.cases)


def _frames_of_a_trial(study: Study) -> float:
    """Returns the mean over cases; of very many, over some of them that are spread evenly."""
    some = study.cases[:: -(-len(study.cases) // _LOOKED_AT)]
    seed = trial_seed(study.seed, 0)
    return sum(expected_frames(study.resolve(case, seed)) for case in some) / len(some)


def _frames(flow: Flow) -> float:
    rate = flow.ideal_rate_bps or _UNLIMITED_BPS
    match flow.application:
        case Transfer(bytes=size):
            return size / _PAYLOAD_BYTES
        case Bulk(duration_us=lasts) | OnOff(duration_us=lasts, message_bytes=None):
            return rate * (lasts or 0) / 8e6 / _FRAME_BYTES
        case Page(objects=objects):
            return sum(1 + size / _PAYLOAD_BYTES for size in objects)
        case Stream(message_bytes=size) | Udp(packet_bytes=size) | Request(response_bytes=size):
            return messages(flow) * (1 + size / _PAYLOAD_BYTES)
        case OnOff(message_bytes=int(size)):
            return messages(flow) * (1 + size / _PAYLOAD_BYTES)
    return 0.0


def _rough(seconds: float) -> str:
    """Returns a time as a person says it: "about 12 s", "about 5 min", "about 3 h", "about 4 days"."""
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"about {seconds / size:.0f} {unit}"
    return f"about {max(seconds, 1):.0f} s"
