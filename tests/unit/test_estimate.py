"""How much a study is, said before it starts; and too much is refused until it is confirmed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from scenario_samples import TWO

import plait
from plait.errors import RequestError
from plait.run.estimate import (
    BOOT_S,
    Estimate,
    Pace,
    estimate,
    expected_frames,
    keep_pace,
    learn,
    read_pace,
    refuse_too_many,
)
from plait.run.request import study_of
from plait.run.study import StudyOutcome, TrialKey, TrialOutcome
from plait.scenario import parse
from plait.testing.engine import FakeEngine
from plait.testing.plans import FakeFlow, fake_plan

if TYPE_CHECKING:
    from pathlib import Path

    from plait.run.study import Study


def study(repeat: int = 10) -> Study:
    return study_of(parse(TWO + "vary: {transport: [tcp, mptcp]}\n", "t.yaml"), "test", repeat=repeat)


def test_frames_are_what_the_links_allow_for_the_time() -> None:
    assert expected_frames(fake_plan(FakeFlow(transport="tcp"))) == pytest.approx(5e6 * 10 / 8 / 1514)
    assert expected_frames(fake_plan(FakeFlow(bytes=1_424_000))) == pytest.approx(1000)


def test_frames_are_as_long_as_the_interfaces_allow() -> None:
    plan = fake_plan(FakeFlow(transport="tcp"), mtu=9000)
    assert expected_frames(plan) == pytest.approx(5e6 * 10 / 8 / 9014)
    mptcp = fake_plan(FakeFlow(bytes=8924 * 100), mtu=9000)  # 9000 less 20, 20, 12 and 24 bytes of headers
    assert expected_frames(mptcp) == pytest.approx(100)


def test_an_estimate_grows_with_trials_and_shrinks_with_jobs() -> None:
    pace = Pace(trials=100, frames=100 * 6000, wall_s=100 * (BOOT_S + 0.6))  # 0.1 ms a frame
    found = estimate(study(), 2, pace)
    # TCP sends 4128 frames at 5 Mbit/s in 10 s, MPTCP twice as many.
    assert found.wall_s == pytest.approx(10 * (2 * BOOT_S + 3 * 0.4128) / 2, rel=1e-3)
    assert estimate(study(), 1, pace).wall_s == pytest.approx(2 * found.wall_s)
    assert found.sentence == "20 trials (2 cases, 10 times), about 7 s at most"
    assert estimate(study(), 1, Pace()).sentence.endswith("a guess: nothing has run here yet")


def test_times_are_said_roughly() -> None:
    said = [Estimate(1, 1, seconds, known=True).sentence for seconds in (0.1, 119, 120, 7200, 200_000)]
    assert [text.removeprefix("1 trial, about ") for text in said] == [
        f"{text} at most" for text in ("1 s", "119 s", "2 min", "2 h", "2 days")
    ]


def test_the_pace_is_learned_from_what_ran_and_forgotten_slowly(tmp_path: Path) -> None:
    def ended(index: int, *, reused: bool = False, error: str | None = None) -> TrialOutcome:
        return TrialOutcome(TrialKey("transport=tcp", index), error, reused, 0.5, 10.0)

    finished = [ended(0), ended(1, reused=True), ended(2, error="it broke"), ended(3)]
    found = learn(Pace(), study(), StudyOutcome(4, finished, interrupted=False))
    assert (found.trials, found.wall_s) == (2, 1.0)
    assert learn(Pace(1e6, 1e6, 1e6), study(), StudyOutcome(0, [], interrupted=False)).trials == 500
    keep_pace(tmp_path, "virtual", found)
    assert read_pace(tmp_path, "virtual") == found
    assert read_pace(tmp_path, "other") == Pace()
    (tmp_path / "pace-other.json").write_text("[]")
    assert read_pace(tmp_path, "other") == Pace()


def test_a_million_trials_are_refused_until_confirmed() -> None:
    with pytest.raises(RequestError, match=r"this is 1000000 trials .* are run only with --yes"):
        refuse_too_many(1000, 1000, confirmed=False)
    refuse_too_many(1000, 1000, confirmed=True)
    refuse_too_many(2, 5000, confirmed=False)


def test_a_million_trials_are_refused_before_their_cases_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.api.perform.study_of", lambda *_, **__: pytest.fail("cases were made"))
    text = {f"tcp.{side}_buffer_max": [f"{n + 1}MiB" for n in range(100)] for side in ("receive", "send")}
    asked = plait.load("two-paths", vary=text, repeat=100)
    with pytest.raises(RequestError, match="1000000 trials"):
        plait.run(asked, engine=FakeEngine(), progress=False)


def test_how_long_programs_take_is_neither_told_nor_learned() -> None:
    more = "programs: [{node: h1, until: exit, run: a}]\n"
    some = study_of(parse(TWO + more, "t.yaml"), "test", repeat=2)
    assert estimate(some, 1, Pace(10, 1000, 10)).sentence == (
        "2 trials; how long their programs take is not known beforehand"
    )
    ran = TrialOutcome(TrialKey("default", 0), error=None, reused=False, wall_s=300.0, virtual_s=5.0)
    assert learn(Pace(10, 1000, 10), some, StudyOutcome(2, [ran], interrupted=False)) == Pace(10, 1000, 10)
