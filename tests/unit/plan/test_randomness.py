"""plait recognises a scenario without randomness before it runs, and does not repeat it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import fake_engine as engine
import plait
from fake_tables import fake_tables
from plait.plan.chance import nothing_drawn
from plait.plan.resolve import resolve
from plait.scenario import parse

if TYPE_CHECKING:
    from pathlib import Path

STEADY = """
title: Nothing is random
network:
  hosts: [h1, h2]
  links: {h1-h2: {rate: 5mbit, delay: 5ms%s}}
traffic:
  - %s: {from: h1, to: h2, start_jitter: 0s, %s}
repeat: 30
"""
BULK = ("bulk", "duration: 1s")


@pytest.mark.parametrize(
    ("link", "traffic", "steady"),
    [
        ("", BULK, True),
        (", aqm: codel", BULK, True),
        (", loss: 1%", BULK, False),
        (", jitter: 1ms", BULK, False),
        (", reorder: 1%", BULK, False),
        (", duplicate: 1%", BULK, False),
        (", corrupt: 1%", BULK, False),
        (", aqm: {red: {min: 25pkt, max: 50pkt, probability: 10%}}", BULK, False),
        ("", ("bulk", "duration: 1s, start_jitter: 1ms"), False),
        ("", ("request", "response: 1KB, every: 10ms, duration: 1s"), True),
        ("", ("request", "response: 1KB, every: exponential 10ms, duration: 1s"), False),
    ],
)
def test_what_draws_a_random_number_is_found_in_the_plan(
    link: str, traffic: tuple[str, str], *, steady: bool
) -> None:
    text = STEADY % (link, *traffic)
    if "start_jitter: 1ms" in text:
        text = text.replace("start_jitter: 0s, ", "")
    scenario = parse(text, "s.yaml")
    assert nothing_drawn(resolve(scenario, 1), resolve(scenario, 2)) is steady


def test_what_an_event_brings_later_counts_too() -> None:
    later = "events: [{at: 100ms, set: {h1-h2: {loss: 1%}}}]\n"
    scenario = parse(STEADY % ("", *BULK) + later, "s.yaml")
    assert not nothing_drawn(resolve(scenario, 1), resolve(scenario, 2))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a text on an engine whose data are those of the seed 1, or follow from each seed."""
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def perform(text: str, *, alike: bool, repeat: int | None = None) -> tuple[plait.api.Study, int, str]:
        messages: list[str] = []
        place = engine.FakeEngine()
        if alike:
            same = lambda plan: fake_tables(plan.model_copy(update={"seed": 1}))  # noqa: E731
            monkeypatch.setattr(engine, "fake_tables", same)
        study = run_with_messages(text, place, messages, repeat)
        return study, place.calls, "\n".join(messages)

    return perform


def run_with_messages(
    text: str, place: engine.FakeEngine, messages: list[str], repeat: int | None
) -> plait.api.Study:
    from pathlib import Path

    from plait.study.perform import Options, perform
    from plait.study.progress import silent

    folder, _ = perform(
        parse(text, "s.yaml"), "s", lambda _: place, Options(repeat=repeat),
        folder=Path("out"), watch=silent, notify=messages.append,
    )  # fmt: skip
    return plait.open(folder)


def test_a_study_without_randomness_ends_after_a_second_trial_that_measured_the_same(run: Any) -> None:
    study, calls, messages = run(STEADY % ("", *BULK), alike=True)
    assert calls == 2
    assert "nothing in this scenario is random, so one trial of each case is enough" in messages
    assert messages.index("one trial of each case is enough") < messages.index(": 2 trials")
    assert "both trials of each case measured the same; plait leaves out the 28 further repeats" in messages
    *_, messages = run(STEADY.replace("repeat: 30", "repeat: 3") % ("", *BULK), alike=True)
    assert "plait leaves out the further repeat" in messages
    assert "TRIALS_MISSING" not in {caution.code for caution in study.cautions}


@pytest.mark.slow
def test_all_repeats_run_where_the_kernels_own_draws_change_what_is_measured(run: Any) -> None:
    study, calls, messages = run(STEADY % ("", *BULK), alike=False)
    assert calls == 30
    assert "the kernel draws itself change the results of case default; plait runs all 30 repeats" in messages
    assert len(study.trials) == 30


@pytest.mark.slow
def test_requested_repeats_and_random_scenarios_run_in_full(run: Any) -> None:
    assert run(STEADY % ("", *BULK), alike=True, repeat=5)[1] == 5
    assert run(STEADY % (", loss: 1%", *BULK), alike=True)[1] == 30
