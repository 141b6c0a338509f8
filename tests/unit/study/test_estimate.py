"""plait states a study's cost before it starts, and asks for confirmation of a very large one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

import plait
from fake_engine import FakeEngine
from fake_plans import FakeFlow, fake_plan
from plait.engine.engine import EngineIdentity
from plait.errors import RequestError
from plait.scenario import parse
from plait.study.engines import StudyEngines
from plait.study.estimate import (
    BOOT_S,
    HOP_S,
    REPORT_S,
    ROW_S,
    TRIAL_REPORT_S,
    DurationEstimate,
    Pace,
    Paces,
    estimate,
    expected_work,
    keep_pace,
    learn,
    read_pace,
    refuse_too_many,
)
from plait.study.study import StudyOutcome, TrialKey, TrialOutcome, plan_study
from scenario_samples import TWO

if TYPE_CHECKING:
    from pathlib import Path

    from plait.study.study import PlannedStudy


def study(repeat: int = 10) -> PlannedStudy:
    return plan_study(parse(TWO + "vary: {transport: [tcp, mptcp]}\n", "t.yaml"), "test", repeat=repeat)


HOPS = 2 * 1.5
"""Links of a path, and frames with their acknowledgements for each data frame."""


def test_frames_are_what_the_links_allow_for_the_time() -> None:
    assert expected_work(fake_plan(FakeFlow(transport="tcp"))).frame_hops == pytest.approx(
        5e6 * 10 / 8 / 1514 * HOPS
    )
    assert expected_work(fake_plan(FakeFlow(bytes=1_424_000))).frame_hops == pytest.approx(1000 * HOPS)


def test_frames_are_as_long_as_the_interfaces_allow() -> None:
    plan = fake_plan(FakeFlow(transport="tcp"), mtu=9000)
    assert expected_work(plan).frame_hops == pytest.approx(5e6 * 10 / 8 / 9014 * HOPS)
    mptcp = fake_plan(FakeFlow(bytes=8924 * 100), mtu=9000)  # 9000 less 20, 20, 12 and 24 bytes of headers
    assert expected_work(mptcp).frame_hops == pytest.approx(100 * HOPS)


def test_flows_on_one_link_share_its_rate_and_frames_count_on_each_link() -> None:
    """Four flows over the same two links of 5 Mbit/s send no more than one of them."""
    alone = expected_work(fake_plan(FakeFlow(transport="tcp")))
    four = expected_work(fake_plan(*[FakeFlow(transport="tcp")] * 4))
    assert alone.frame_hops == pytest.approx(5e6 * 10 / 8 / 1514 * HOPS)
    assert four.frame_hops == pytest.approx(alone.frame_hops)
    # 100 samples; each with a row for connection and subflow of both sides, and for both directions of four links.
    assert (alone.rows, four.rows) == (100 * (4 + 8), 100 * (4 * 4 + 8))


def test_an_estimate_grows_with_trials_and_shrinks_with_jobs() -> None:
    single, double = estimate(study(), 1, Pace()), estimate(study(), 2, Pace())
    # TCP sends 4128 frames at 5 Mbit/s in 10 s, MPTCP twice as many; the links are as those above.
    hops, rows = HOPS * 3 * 5e6 * 10 / 8 / 1514, 100 * (12 + 14)
    assert single.running_s == pytest.approx(10 * (2 * BOOT_S + HOP_S * hops + ROW_S * rows), rel=1e-2)
    assert double.running_s == pytest.approx(single.running_s / 2)
    assert single.report_s == double.report_s == REPORT_S + 20 * TRIAL_REPORT_S
    assert single.sentence.startswith("20 trials (2 cases, 10 repeats each), ")
    assert single.sentence.endswith(
        " s including the report (a rough guess: no study has run on this machine yet)"
    )


def test_the_estimate_prints_times_as_ranges() -> None:
    def wording(low: float, high: float) -> str:
        middle = (low * high) ** 0.5
        text = DurationEstimate(1, 1, middle, 0.0, (high / low) ** 0.5, learned=True).sentence
        return text.removeprefix("1 trial, ").removesuffix(" including the report")

    assert [wording(0.1, 0.9), wording(7, 30), wording(60, 118.5)] == ["1 to 2 s", "7 to 30 s", "60 to 119 s"]
    assert [wording(30, 140), wording(130, 601)] == ["0.5 to 3 min", "2 to 11 min"]
    assert [wording(3700, 7300), wording(100_000, 200_000)] == ["1 to 3 h", "1 to 3 days"]
    assert [wording(40, 10_000), wording(200, 200_000)] == ["40 s to 3 h", "3 min to 3 days"], "no 0.0 to 3 h"


def test_a_range_is_as_wide_as_the_error_that_nine_of_ten_studies_stayed_below() -> None:
    few = Pace(errors=(0.1,) * 8)
    assert few.spread == pytest.approx(3)
    assert Pace(errors=(*few.errors[1:], -2.0)).spread == pytest.approx(math.exp(2))
    # Of 19 errors 0.1, -0.2, .., 1.9 the 18th smallest: 18 of 19 stayed below it.
    errors = tuple(n / 10 * (-1) ** n for n in range(1, 20))
    assert Pace(errors=errors).spread == pytest.approx(math.exp(1.8))


def test_the_pace_is_learned_from_what_ran_and_forgotten_slowly(tmp_path: Path) -> None:
    def ended(index: int, *, reused: bool = False, error: str | None = None) -> TrialOutcome:
        return TrialOutcome(TrialKey("transport=tcp", index), error, reused, 5.0)

    expected = estimate(study(2), 1, Pace())
    mixed = [ended(0), ended(1, reused=True), ended(2, error="it broke"), ended(3)]
    pace = learn(Pace(), study(2), StudyOutcome(4, mixed, interrupted=False), expected, 99.0)
    assert math.exp(pace.trials[0]) == pytest.approx(5.0 / (expected.running_s / 4))
    assert pace.errors == (), "what came from the store took no time"
    whole = StudyOutcome(4, [ended(n) for n in range(4)], interrupted=False)
    assert learn(Pace(), study(2), whole, expected, 1.0).errors == (), "a guess's error tells nothing"
    second = estimate(study(2), 1, pace)
    pace = learn(pace, study(2), whole, second, 2 * second.running_s)
    assert math.exp(pace.errors[0]) == pytest.approx(2)
    assert len(learn(Pace((0.0,) * 40), study(2), whole, expected, 1.0).trials) == 40
    assert estimate(study(), 1, pace).running_s == pytest.approx(
        pace.factor * estimate(study(), 1, Pace()).running_s
    )
    keep_pace(tmp_path, "virtual", pace)
    assert read_pace(tmp_path, "virtual") == pace
    assert read_pace(tmp_path, "other") == Pace()
    (tmp_path / "pace-other.json").write_text("[]")
    assert read_pace(tmp_path, "other") == Pace()


def test_a_million_trials_are_refused_until_confirmed() -> None:
    with pytest.raises(RequestError, match=r"the study has 1000000 trials .* confirm them with --yes"):
        refuse_too_many(1000, 1000, confirmed=False)
    refuse_too_many(1000, 1000, confirmed=True)
    refuse_too_many(2, 5000, confirmed=False)


def test_a_million_trials_are_refused_before_their_cases_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.study.perform.plan_study", lambda *_, **__: pytest.fail("cases were made"))
    text = {f"tcp.{side}_buffer_max": [f"{n + 1}MiB" for n in range(100)] for side in ("receive", "send")}
    asked = plait.load("two-paths", vary=text, repeat=100)
    with pytest.raises(RequestError, match="1000000 trials"):
        plait.run(asked, engine=FakeEngine(), progress=False)


def test_the_estimate_neither_states_nor_learns_the_time_of_programs() -> None:
    more = "programs: [{node: h1, wait: true, run: a}]\n"
    some = plan_study(parse(TWO + more, "t.yaml"), "test", repeat=2)
    pace = Pace((0.5,), (0.1,))
    expected = estimate(some, 1, pace)
    assert expected.sentence == "2 trials; plait cannot estimate how long their programs take"
    ran = TrialOutcome(TrialKey("default", 0), error=None, reused=False, wall_s=300.0)
    assert learn(pace, some, StudyOutcome(2, [ran], interrupted=False), expected, 300.0) == pace


class NamedEngine(FakeEngine):
    """A fake engine that has the name of another."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def identity(self) -> EngineIdentity:
        return EngineIdentity(self._name, "0" * 64, "0.0", "f" * 64)


def sentence_for(cache: Path, *names: str) -> str:
    more = f"vary: {{engine: [{', '.join(names)}]}}\n"
    engines = StudyEngines.named({name: NamedEngine(name) for name in names})
    asked = plan_study(parse(TWO + more, "t.yaml"), "test", repeat=2)
    return Paces.read(cache, engines).estimate(asked, 1).sentence


def test_an_engine_other_than_virtual_has_no_estimate_before_its_first_study(tmp_path: Path) -> None:
    """A machine takes some 200 times as long as the costs say, which are those of virtual."""
    none = "; no estimate yet, because no study has run on the engine machine on this machine"
    assert sentence_for(tmp_path, "machine") == f"2 trials{none}"
    assert sentence_for(tmp_path, "virtual", "machine") == f"4 trials (2 cases, 2 repeats each){none}"
    assert sentence_for(tmp_path, "virtual").endswith("(a rough guess: no study has run on this machine yet)")
    keep_pace(tmp_path, "machine", Pace((math.log(200),)))
    assert sentence_for(tmp_path, "machine").startswith("2 trials, ")


def test_a_slow_engine_does_not_slow_the_report_down() -> None:
    fast, slow = (estimate(study(), 1, Pace((math.log(ratio),))) for ratio in (1, 200))
    assert slow.report_s == fast.report_s
