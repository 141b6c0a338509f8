"""The kernel's windows equal those of the independent reference model, for one and for many users.

Both sides are deterministic: the bounds hold the difference between the model and the kernel, and the seeds' noise.
"""

from __future__ import annotations

from statistics import fmean

import pytest
from coupling_kernel import path_groups, user_groups
from coupling_networks import Group, Groups, Run, empty, lossy, scenario_c
from coupling_rules import BALIA, LIA, OLIA, Rule
from coupling_sender import LINUX
from coupling_vegas import VegasConnection

from plait.engine.request import links_of_environment

pytestmark = pytest.mark.guest

USERS = """
title: Scenario C
network: {generator: khalili-c, n1: 15, n2: 5, c1: 1mbit, c2: 1mbit}
mptcp: {scheduler: minrtt}
traffic:
  - pairs: {from: server, to: multi*, each: {bulk: {duration: 36s, reverse: true, start_jitter: 5s}}}
  - pairs:
      from: server
      to: single*
      each: {bulk: {duration: 36s, reverse: true, start_jitter: 5s, transport: tcp, congestion_control: reno}}
tcp: {congestion_control: CC}
sample: 100ms
"""
LOSSY = """
title: Random loss of data, not of ACKs
network:
  hosts: [h1, h2]
  links:
    h1-h2: {rate: 1gbit, delay: 20ms, forward: {loss: LOSS0}}
    h1-h2#2: {rate: 1gbit, delay: 20ms, forward: {loss: LOSS1}}
mptcp: {scheduler: minrtt}
tcp: {receive_buffer_max: 16MiB, send_buffer_max: 16MiB, congestion_control: CC}
traffic: [{bulk: {from: h1, to: h2, duration: 101s}}]
sample: 100ms
"""
EMPTY = """
title: Two paths without other users
network: {generator: n-paths, rates: [10mbit, 20mbit], delays: 20ms}
mptcp: {scheduler: minrtt}
tcp: {congestion_control: wvegas}
traffic: [{bulk: {from: h1, to: h2, duration: 21s}}]
sample: 100ms
"""


def assert_alike(kernel: Group, model: Group, rel: float) -> None:
    """Compare windows and rates; of ssthresh and the round-trip time as well, where they are given."""
    for field in ("rate", "cwnd", "ssthresh", "srtt"):
        assert getattr(kernel, field) == pytest.approx(getattr(model, field), rel=rel), (field, kernel, model)


@pytest.mark.parametrize("rule", [LIA, OLIA, BALIA], ids=lambda rule: rule.name)
def test_many_users_on_a_congested_queue_have_the_models_windows(run_trial, rule: Rule) -> None:
    kernel = user_groups(run_trial(USERS.replace("CC", rule.name)).tables, 10, 35)
    model = scenario_c(rule, Run(10, 35, behaviour=LINUX), 15, 5)
    for group in ("private", "shared", "tcp"):
        assert_alike(kernel[group], model[group], 0.12)


def lossy_kernel(run_trial, rule: Rule, losses: tuple[float, float], repeat: int = 0) -> Groups:
    text = LOSSY.replace("CC", rule.name)
    for number, loss in enumerate(losses):
        text = text.replace(f"LOSS{number}", f"{100 * loss:g}%")
    return path_groups(run_trial(text, repeat=repeat).tables, 10, 100)


@pytest.mark.parametrize("rule", [LIA, OLIA, BALIA], ids=lambda rule: rule.name)
def test_one_user_with_tens_of_segments_has_the_models_windows(run_trial, rule: Rule) -> None:
    kernel = lossy_kernel(run_trial, rule, (0.002, 0.002))
    model = lossy(rule, Run(10, 130, behaviour=LINUX, delay=0.02), (0.002, 0.002))
    totals = [sum(path.cwnd for path in paths.values()) for paths in (kernel, model)]
    assert totals[0] == pytest.approx(totals[1], rel=0.2), (kernel, model)


@pytest.mark.parametrize("rule", [LIA, OLIA, BALIA], ids=lambda rule: rule.name)
def test_a_path_that_waits_for_a_timeout_still_holds_the_other_back(run_trial, rule: Rule) -> None:
    """A window of one seed deviates by 7 %, so each side is the mean of four."""
    losses, seeds = (0.05, 0.2), range(4)
    kernel = [lossy_kernel(run_trial, rule, losses, seed) for seed in seeds]
    model = [lossy(rule, Run(10, 100, 1 + seed, LINUX, delay=0.02), losses) for seed in seeds]
    for path in ("path0", "path1"):
        windows = [fmean(groups[path].cwnd for groups in side) for side in (kernel, model)]
        assert windows[0] == pytest.approx(windows[1], rel=0.15), (path, windows)


def test_wvegas_without_other_users_has_the_models_windows(run_trial) -> None:
    """The model acknowledges each frame. Linux acknowledges two, so that the first waits for the other one.

    A chain carries two frames and their acknowledgement at once, so neither is in its least round-trip time.
    """
    kernel = path_groups(run_trial(EMPTY).tables, 10, 20)
    ack_frames = 0.0 if links_of_environment() == "chain" else 1 + 78 / 1514
    model = empty(VegasConnection(LINUX), Run(10, 20, delay=0.02), (10e6, 20e6), ack_frames=ack_frames)
    for path in ("path0", "path1"):
        assert kernel[path].cwnd == pytest.approx(model[path].cwnd, rel=0.03), (kernel, model)
        assert kernel[path].rate == pytest.approx(model[path].rate, rel=0.02)
