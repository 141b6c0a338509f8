"""plait reports a missing program before anything runs where it can be certain, and only there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plait.engine.virtual.services import iperf_settings
from plait.scenario import parse
from plait.study.preflight.programs import missing_programs

if TYPE_CHECKING:
    from pathlib import Path

SCENARIO = """\
title: Programs
network: {hosts: [h1, h2], links: {h1-h2: {rate: 10mbit}}}
until: 1s
programs:
  - {node: h1, %s}
"""


def refusals(program: str) -> list[tuple[object, str]]:
    return list(missing_programs(parse(SCENARIO % program, "t.yaml").programs))


@pytest.mark.parametrize(
    ("program", "where", "expected"),
    [
        (
            "run: [no-such-program, -x]",
            ("programs", 0, "run", 0),
            "there is no program 'no-such-program' on this machine",
        ),
        ("run: [plait-quic, server]", ("programs", 0, "run", 0), "build it (`make quic` in plait's source"),
        ("run: no-such-program -x", ("programs", 0, "run"), "install it, or give its path"),
        (
            "run: [iperf3, -s], environment: {PATH: /nowhere}",
            ("programs", 0, "run", 0),
            "`apt-get install iperf3`",
        ),
        (
            "run: [/opt/nowhere/server]",
            ("programs", 0, "run", 0),
            "there is no file /opt/nowhere/server on this machine",
        ),
        ("run: [/etc/passwd]", ("programs", 0, "run", 0), "/etc/passwd is not executable; chmod +x it"),
        ("run: [slep, 1], environment: {PATH: /usr/bin}", ("programs", 0, "run", 0), "did you mean 'sleep'?"),
    ],
)
def test_a_program_that_cannot_start_is_reported_at_its_place(
    program: str, where: object, expected: str
) -> None:
    ((place, message),) = refusals(program)
    assert place == where
    assert expected in message


@pytest.mark.parametrize(
    "program",
    [
        "run: [sh, -c, 'true']",
        "run: sleep 1",
        "run: 'no-such-program || true'",
        "run: 'if no-such-program; then :; fi'",
        "run: 'cd /tmp'",
        "run: 'A=1 sleep 1'",
        "run: '$HOME/program'",
        "run: no-such-program, exit_code: any",
        "run: no-such-program, exit_code: 127",
        "run: [./made-when-it-runs]",
        "run: [/tmp/made-when-it-runs]",
        "run: [made-when-it-runs], environment: {PATH: '/tmp/bin:/bin'}",
    ],
)
def test_a_program_that_may_exist_later_is_left_to_the_trial(program: str) -> None:
    assert refusals(program) == []


def test_mininets_own_throughput_test_gets_what_it_needs_of_iperf(tmp_path: Path) -> None:
    calls, iperf_calls = tmp_path / "calls.py", tmp_path / "own.py"
    calls.write_text("from mininet.net import Mininet\nnet.iperf((h1, h2))\n")
    iperf_calls.write_text("from mininet.net import Mininet\nh1.cmd('iperf -c h2')\n")
    assert iperf_settings(["python3", str(calls)]) == {"IPERF_COMPAT": "1", "IPERF_SINGLECLIENT": "1"}
    assert iperf_settings(["python3", str(iperf_calls)]) == {}
