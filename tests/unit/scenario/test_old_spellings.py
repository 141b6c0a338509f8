"""Old spellings of the scenario file: plait reads them for one version, says what to write, and plans the same."""

import warnings

import pytest

from plait.errors import OldSpellingWarning, ScenarioError
from plait.plan.identity import plan_bytes
from plait.plan.resolve import resolve
from plait.scenario import Scenario, parse
from plait.scenario.vary.cases import expand

HEAD = "title: t\nnetwork: {hosts: [a, b], links: {a-b: {rate: 10mbit, delay: 1ms}}}\n"
ENDS = "from: a, to: b"
FLOWS = [
    (f"bulk: {{{ENDS}, duration: 1s, bidirectional: true}}", f"bulk: {{{ENDS}, duration: 1s, back: true}}"),
    (
        f"transfer: {{{ENDS}, bytes: 1MB, first: 100B, pause: 200ms}}",
        f"transfer: {{{ENDS}, bytes: 1MB, first: 100B, gap: 200ms}}",
    ),
    (
        f"transfer: {{{ENDS}, bytes: 1MB, repeat: 3, gap: 1s, first: 1B, pause: 1ms}}",
        f"transfer: {{{ENDS}, bytes: 1MB, rounds: 3, round_gap: 1s, first: 1B, gap: 1ms}}",
    ),
    (
        f"page: {{{ENDS}, objects: [1KB], repeat: 2, gap: 1s}}",
        f"page: {{{ENDS}, objects: [1KB], rounds: 2, round_gap: 1s}}",
    ),
    (
        f"request: {{{ENDS}, response: 1KB, requests: 2, think: exponential 1ms, repeat: 2, gap: 1s}}",
        f"request: {{{ENDS}, response: 1KB, requests: 2, gap: exponential 1ms, rounds: 2, round_gap: 1s}}",
    ),
    (
        f"stream: {{{ENDS}, message: 1KB, interval: 10ms, duration: 1s}}",
        f"stream: {{{ENDS}, message: 1KB, every: 10ms, duration: 1s}}",
    ),
    (
        f"udp: {{{ENDS}, packet: 1KB, interval: 10ms, duration: 1s, back: true}}",
        f"udp: {{{ENDS}, packet: 1KB, every: 10ms, duration: 1s, back: true}}",
    ),
    (
        f"prototype: {{{ENDS}, message: 1KB, messages: 3, interval: 10ms}}",
        f"prototype: {{{ENDS}, message: 1KB, messages: 3, every: 10ms}}",
    ),
    (
        f"on_off: {{{ENDS}, on: 1s, off: exponential 1s, duration: 3s, repeat: 2}}",
        f"on-off: {{{ENDS}, on: 1s, off: exponential 1s, duration: 3s, rounds: 2}}",
    ),
    (
        "pairs: {from: a, to: b, each: {bulk: {duration: 1s, bidirectional: true}}}",
        "pairs: {from: a, to: b, each: {bulk: {duration: 1s, back: true}}}",
    ),
]
TEXTS = [
    *((f"traffic:\n  - {old}\n", f"traffic:\n  - {new}\n") for old, new in FLOWS),
    ("programs: [{node: a, run: x, until: exit}]\n", "programs: [{node: a, run: x, wait: true}]\n"),
    (
        "programs: [{node: a, run: x, until: end}]\nuntil: 9s\n",
        "programs: [{node: a, run: x, wait: false}]\nuntil: 9s\n",
    ),
    (
        f"traffic: [{FLOWS[0][1]}]\nmonitors: {{trace: ['mptcp:*']}}\n",
        f"traffic: [{FLOWS[0][1]}]\nmonitors: {{tracepoints: ['mptcp:*']}}\n",
    ),
    (
        f"traffic: [{FLOWS[0][1]}]\nengine: machine\nmachine: {{memory: 2GiB}}\n",
        f"traffic: [{FLOWS[0][1]}]\nengine: machine\nmemory: 2GiB\n",
    ),
    (
        f"traffic: [{FLOWS[2][1]}]\nvary: {{traffic.0.transfer.repeat: [2, 3]}}\n",
        f"traffic: [{FLOWS[2][1]}]\nvary: {{traffic.0.transfer.rounds: [2, 3]}}\n",
    ),
    (
        f"traffic: [{FLOWS[4][1]}]\nvary: {{'traffic.*.request.think': [1ms, 2ms]}}\n",
        f"traffic: [{FLOWS[4][1]}]\nvary: {{'traffic.*.request.gap': [1ms, 2ms]}}\n",
    ),
    (
        f"traffic: [{FLOWS[8][1]}]\nvary: {{zip: {{traffic.0.on_off.on: [1s, 2s]}}}}\n",
        f"traffic: [{FLOWS[8][1]}]\nvary: {{zip: {{traffic.0.on-off.on: [1s, 2s]}}}}\n",
    ),
    (
        f"traffic: [{FLOWS[0][1]}]\nprograms: [{{node: a, run: x}}]\nvary: {{programs.0.until: [exit, end]}}\n",
        f"traffic: [{FLOWS[0][1]}]\nprograms: [{{node: a, run: x}}]\nvary: {{programs.0.wait: [true, false]}}\n",
    ),
]


def plans(scenario: Scenario) -> list[bytes]:
    return [plan_bytes(resolve(case.scenario, 1)) for case in expand(scenario)]


@pytest.mark.parametrize(
    ("old", "new"), TEXTS, ids=[new.splitlines()[-1].strip(" -")[:60] for _, new in TEXTS]
)
def test_an_old_spelling_plans_what_the_new_one_plans_and_names_it(old: str, new: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        today = parse(HEAD + new, "new.yaml")
    with pytest.warns(OldSpellingWarning, match=r"^old.yaml:[3-9]:\d+: .*; write ") as warned:
        former = parse(HEAD + old, "old.yaml")
    assert plans(former) == plans(today)
    assert all(str(warning.message).startswith("old.yaml") for warning in warned)


def test_a_caution_gives_the_place_and_the_new_line() -> None:
    with pytest.warns(OldSpellingWarning) as warned:
        parse(HEAD + f"traffic:\n  - {FLOWS[1][0]}\n", "old.yaml")
    assert [str(warning.message) for warning in warned] == [
        "old.yaml:4:57: traffic.0.transfer.gap: the next version refuses 'pause'; write gap: 200ms"
    ]


def test_results_of_the_last_version_stay_readable() -> None:
    flow = {"from": "a", "to": "b", "message": "1KB", "interval": "5ms", "duration": "1s"}
    stored = {
        "title": "t",
        "network": {"hosts": ["a", "b"], "links": {"a-b": {}}},
        "traffic": [{"stream": flow}],
        "vary": {"traffic.0.stream.interval": ["5ms", "9ms"]},
    }
    cases = expand(Scenario.model_validate(stored))
    assert [case.name for case in cases] == ["interval=5ms", "interval=9ms"], "names of results do not change"
    assert str(cases[1].scenario.traffic[0].stream.every) == "9ms"


def test_set_reads_an_old_path_and_an_old_value() -> None:
    text = HEAD + f"traffic:\n  - {FLOWS[2][1]}\n"
    with pytest.warns(OldSpellingWarning, match=r"^--set .*write traffic.0.transfer.rounds$"):
        varied = parse(text, "t.yaml", ("traffic.0.transfer.repeat=7",))
    with pytest.warns(OldSpellingWarning, match="write back: true"):
        replaced = parse(
            text, "t.yaml", ("traffic=[{bulk: {from: a, to: b, duration: 1s, bidirectional: true}}]",)
        )
    assert varied.traffic[0].flow.rounds == 7
    assert replaced.traffic[0].bulk is not None
    assert replaced.traffic[0].bulk.back


def test_a_mistake_in_an_old_spelling_has_its_place() -> None:
    text = HEAD + f"traffic:\n  - on_off: {{{ENDS}, on: 1sec, off: 1s, duration: 3s}}\n"
    with pytest.raises(ScenarioError, match=r"old.yaml:4:30: traffic.0.on-off.on: 'sec' is not a unit"):
        parse(text, "old.yaml")


def test_a_gap_that_changed_its_meaning_is_no_varied_field() -> None:
    text = HEAD + f"traffic:\n  - {FLOWS[4][0]}\nvary: {{traffic.0.request.gap: [1s, 2s]}}\n"
    with pytest.raises(ScenarioError, match="no time between repetitions any more; write round_gap"):
        parse(text, "old.yaml")


def test_back_true_returns_as_many_bytes() -> None:
    flows = [
        resolve(
            parse(f"{HEAD}traffic: [{{transfer: {{{ENDS}, bytes: 5KB, back: {back}}}}}]\n", "t.yaml"), 1
        ).flows
        for back in ("true", "5KB", "false")
    ]
    assert flows[0] == flows[1]
    assert [len(each) for each in flows] == [2, 2, 1]
    with pytest.raises(ScenarioError, match="back: true sends as many bytes back"):
        parse(f"{HEAD}traffic: [{{transfer: {{{ENDS}, file: x, back: true}}}}]\n", "t.yaml")
