"""The log of a trial's kernel: messages of the trial, and none of the network's construction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import RunTrial

pytestmark = pytest.mark.guest

TEXT = """
title: A bridge loses a port
network:
  hosts: [h1, h2]
  switches: [s1]
  links:
    h1-s1: {rate: 10mbit}
    s1-h2: {rate: 10mbit}
traffic: [bulk: {from: h1, to: h2, duration: 2s}]
events: [{at: 1s, down: h1-s1}]
"""


def test_a_message_of_the_kernel_during_a_trial_is_in_its_log(run_trial: RunTrial) -> None:
    log = run_trial(TEXT).console
    assert "port 1(s1-eth0) entered disabled state" in log
    assert "entered blocking state" not in log, "that was while the network was built"
