"""`pause` halts a trial for a prompt, and its traffic sees what a user changes there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import polars as pl
import pytest

from plait.dataset.convert import convert
from plait.dataset.digest import trial_digest
from plait.engine.engine import Job
from plait.engine.interactive import ProgramStart
from plait.engine.virtual import pause
from plait.errors import TrialError
from plait.plan.resolve import resolve
from plait.prompt.live import PromptServer, Run
from plait.scenario import parse
from terminal import LIMIT_S, PLAIT, SOURCE, Terminal

if TYPE_CHECKING:
    from pathlib import Path

    from plait.engine.virtual.session import InteractiveGuest
    from plait.engine.virtual.trial import VirtualEngine
    from plait.plan.model.plan import PauseAt, Plan

pytestmark = pytest.mark.guest

TWO = """
title: Two paths and a prompt
network:
  hosts: [h1, h2]
  links: {h1-h2: {rate: 5mbit, delay: 10ms}, h1-h2#2: {rate: 5mbit, delay: 10ms}}
traffic: [{bulk: {name: bulk, from: h1, to: h2, duration: 4s}}]
monitors: {interfaces: 1s, counters: 1s}
pause: [before, after]
"""
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
FRAME = 1448 / 1514
"""Payload in a full frame of TCP with time stamps."""


class Halted:
    """A trial that was run with commands at its pauses, and what they printed."""

    def __init__(self, engine: VirtualEngine, folder: Path, **commands: list[str]) -> None:
        self.printed: dict[str, list[str]] = {"before": [], "after": []}
        self.plan: Plan = resolve(parse(TWO, "t.yaml"), 1)
        self._commands = commands
        self._folder = folder
        folder.mkdir(exist_ok=True)
        job = folder / "job"
        job.mkdir()
        engine.execute(Job(self.plan, {}, job, prompt=self.prompt))
        self.tables = convert(job / "data", folder / "tables")

    def prompt(self, at: PauseAt, guest: InteractiveGuest) -> None:
        path = self._folder / "socket"
        with PromptServer(guest, path):
            for command in self._commands.get(at, []):
                node, _, words = command.partition(" ")
                start = ProgramStart(0, ["/bin/sh", "-c", words], [("PATH", PATH)], netns=node)
                reader, writer = os.pipe()
                with os.fdopen(reader, encoding="utf-8") as printed:
                    end = Run(path, start, behind=words.endswith("&")).finish(writer)
                    os.close(writer)
                    self.printed[at].append(printed.read())
                assert end.code == 0, (command, self.printed[at])

    @property
    def goodput_bps(self) -> float:
        flow = self.tables["flows"].row(0, named=True)
        return 8e6 * int(flow["received_bytes"]) / int(flow["end_us"] - flow["start_us"])


@pytest.fixture(scope="module")
def unchanged_trial(engine: VirtualEngine, tmp_path_factory: pytest.TempPathFactory) -> Halted:
    """Return a trial that nobody changes, with looks at it when its traffic is over."""
    looks = [
        "h1 ss -tinOH",
        "h2 nstat -asz --json",
        "h1 ip -s -j link",
        "h1 ip mptcp endpoint",
        "h1 date +%s.%N",
    ]
    return Halted(engine, tmp_path_factory.mktemp("looked"), after=looks)


def test_a_link_that_the_user_takes_down_before_carries_no_traffic(
    engine: VirtualEngine, tmp_path: Path, unchanged_trial: Halted
) -> None:
    assert unchanged_trial.tables["subflows"]["local_address"].n_unique() == 4
    assert unchanged_trial.goodput_bps > 1.8 * 5e6 * FRAME
    halted = Halted(engine, tmp_path, before=["h1 ip link set h1-eth1 down"])
    assert halted.tables["subflows"]["local_address"].n_unique() == 2
    assert halted.goodput_bps < 5e6 * FRAME


def test_a_sysctl_and_a_qdisc_set_before_the_traffic_act_on_it(engine: VirtualEngine, tmp_path: Path) -> None:
    tbf = "root tbf rate 1mbit burst 3kb limit 30kb"
    commands = [
        "h1 sysctl -qw net.ipv4.tcp_congestion_control=reno",
        *(f"h1 tc qdisc add dev h1-eth{number} {tbf}" for number in (0, 1)),
    ]
    changed = Halted(engine, tmp_path, before=commands)
    assert changed.tables["flows"]["congestion_control"].to_list() == ["reno"]
    assert changed.goodput_bps < 2e6 * FRAME
    sent = changed.tables["interfaces"].filter(node="h1")
    for interface in ("h1-eth0", "h1-eth1"):
        after = dict(sent.filter(interface=interface).select("t_us", "sent_bytes").iter_rows())
        rate_bps = (after[4_000_000] - after[1_000_000]) * 8 / 3
        assert rate_bps == pytest.approx(1e6, rel=0.01), "from 1 s on, both subflows keep their qdiscs busy"


def test_tools_at_the_prompt_show_what_the_tables_have(unchanged_trial: Halted) -> None:
    ss, nstat, link, endpoints, _ = unchanged_trial.printed["after"]
    subflows = (
        unchanged_trial.tables["subflows"].filter(side="client").sort("t_us").group_by("subflow").last()
    )
    assert subflows.height == 2
    for row in subflows.iter_rows(named=True):
        line = next(
            entry for entry in ss.splitlines() if f"{row['local_address']}:{row['local_port']}" in entry
        )
        assert int(re.findall(r" bytes_acked:(\d+)", line)[0]) == row["acked_bytes"]
        assert int(re.findall(r" bytes_sent:(\d+)", line)[0]) == row["sent_bytes"]
    counted = unchanged_trial.tables["counters"].filter(pl.col("node") == "h2")
    counters = json.loads(nstat)["kernel"]
    for name in ("TcpExtTCPRcvCoalesce", "IpExtInOctets", "MPTcpExtMPJoinSynRx", "MPTcpExtMPCapableSYNRX"):
        (value,) = counted.filter(counter=name)["after"].to_list()
        assert value == counters[name], name
    last = (
        unchanged_trial.tables["interfaces"]
        .sort("t_us")
        .filter(node="h1", interface="h1-eth0")
        .row(-1, named=True)
    )
    (shown,) = [entry["stats64"] for entry in json.loads(link) if entry["ifname"] == "h1-eth0"]
    assert (shown["tx"]["bytes"], shown["rx"]["packets"]) == (last["sent_bytes"], last["received_packets"])
    assert "10.0.1.1 id" in endpoints


def test_the_clock_stops_between_commands_and_the_same_commands_give_the_same_bytes(
    engine: VirtualEngine, tmp_path: Path, unchanged_trial: Halted
) -> None:
    again = Halted(engine, tmp_path / "again", after=["h1 true"] * 4 + ["h1 date +%s.%N"])
    # Five programs were run, and nothing in them waits.
    assert float(again.printed["after"][-1]) == pytest.approx(
        float(unchanged_trial.printed["after"][-1]), abs=0.01
    )
    assert trial_digest(again.tables) == trial_digest(unchanged_trial.tables)
    commands = [
        "h1 ping -q -c3 10.0.0.2",
        "h2 date +%s.%N",
        "h2 ping -q -c2 -i.2 10.0.0.1 &",
        "h1 date +%s.%N",
    ]
    first, second = (Halted(engine, tmp_path / name, before=commands) for name in "ab")
    assert first.printed == second.printed
    assert trial_digest(first.tables) == trial_digest(second.tables)
    assert "3 received" in first.printed["before"][0]
    began_s, ended_s = (float(first.printed["before"][place]) for place in (1, 3))
    assert 1_700_000_003 < began_s < ended_s < began_s + 0.1


def test_a_command_that_stops_the_clock_fails_its_trial_with_the_reason(
    engine: VirtualEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pause, "_STALL_S", 2.0)
    with pytest.raises(TrialError, match="a command at the prompt computes, or polls without sleeping"):
        Halted(engine, tmp_path, before=["h1 while :; do :; done"])


def test_a_command_that_waits_for_a_processor_of_the_machine_does_not_stop_the_clock(
    engine: VirtualEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine with more work than processors: the guest would run, and may not."""
    computing = "h1 i=0; while [ $i -lt 1000000 ]; do i=$((i + 1)); done"
    monkeypatch.setattr(pause, "_STALL_S", 0.05)
    with pytest.raises(
        TrialError, match=r"virtual time did not advance for 0\.05 s in which the guest could run"
    ):
        Halted(engine, tmp_path / "runs", before=[computing])
    monkeypatch.setattr(pause, "waited_s", lambda _pid: time.monotonic())
    waiting = Halted(engine, tmp_path / "waits", before=[computing])
    assert waiting.tables["flows"]["received_bytes"].sum() > 0


def test_a_plan_with_a_pause_and_no_prompt_is_refused(engine: VirtualEngine, tmp_path: Path) -> None:
    with pytest.raises(TrialError, match="this run has no prompt"):
        engine.execute(Job(resolve(parse(TWO, "t.yaml"), 1), {}, tmp_path))


# --- the command -------------------------------------------------------------------------------------------


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "two.yaml"
    path.write_text(TWO.replace("4s", "1s").replace("pause: [before, after]", "pause: before\nrepeat: 3\n"))
    return path


def run(scenario: Path, commands: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PLAIT, "run", str(scenario), "--out", str(scenario.parent / "out"), *options],
        input=commands, capture_output=True, text=True, timeout=LIMIT_S, check=False,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )  # fmt: skip


def subflow_addresses(scenario: Path, trial: str) -> int:
    (folder,) = (scenario.parent / "out/trials").glob(f"*/{trial}")
    return pl.read_parquet(folder / "subflows.parquet")["local_address"].n_unique()


def test_each_trial_is_halted_until_no_more_are_wanted(scenario: Path) -> None:
    done = run(scenario, "nodes\nexit\nh1 ip link set h1-eth1 down\nskip\nnodes\n")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"#(\d) \(trial \d of 3\) is halted before its traffic", done.stderr) == ["0", "1"]
    assert done.stdout.splitlines()[0] == "h1 h2"
    assert [subflow_addresses(scenario, trial) for trial in ("000", "001", "002")] == [4, 2, 4]
    assert "Caution: every trial: halted for a prompt before its traffic" in done.stdout
    # Halted trials are not taken from the store, the last one is.
    again = run(scenario, "exit\nskip\n")
    assert again.stderr.count("from the store") == 1
    assert [subflow_addresses(scenario, trial) for trial in ("000", "001", "002")] == [4, 4, 4]
    plans = [
        json.loads(path.read_text())
        for path in sorted((scenario.parent / "out").glob("trials/*/*/plan.json"))
    ]
    assert [plan["pause"] for plan in plans] == [["before"], ["before"], []]


def test_a_link_that_went_down_at_the_prompt_and_came_up_carries_again(scenario: Path) -> None:
    words = "link h1-h2 up\nlink h1-h2 down\nlink h1-h2 up\nlink h1 h2 down\nlink h2 h1 up\nlink h1-h3 down\nskip\n"
    done = run(scenario, words, "--repeat", "1")
    assert done.returncode == 0, done.stderr
    assert "there is no link h1-h3; list the links with `links`" in done.stdout + done.stderr
    assert "did not go" not in done.stdout + done.stderr, "what is up already needs nothing"
    assert subflow_addresses(scenario, "000") == 4


def test_a_study_that_measured_nothing_fails(scenario: Path) -> None:
    done = run(scenario, "link h1 h2 down\nskip\n", "--repeat", "1")
    assert done.returncode == 1
    assert "nothing was measured" in done.stdout


def test_the_end_of_input_goes_on_and_abort_ends_the_study(scenario: Path) -> None:
    done = run(scenario, "")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("is halted") == 3
    done = run(scenario, "exit\nabort\n")
    assert done.returncode == 130
    assert "1 of 3 trials are finished and kept. The same command runs the halted trials again" in done.stderr


def test_impossible_pauses_are_refused_before_anything_runs(scenario: Path) -> None:
    done = run(scenario, "", "--json")
    assert (done.returncode, "the prompt needs standard output" in done.stderr) == (2, True)
    done = run(scenario, "", "--set", "pause=never")
    assert (done.returncode, "'never' is not a valid value; use one of: after, before" in done.stderr) == (
        2,
        True,
    )


def test_at_a_terminal_virtual_time_passes_as_fast_as_real_time(scenario: Path) -> None:
    terminal = Terminal("run", str(scenario), "--set", "pause=after", "--repeat", "1",
                        "--out", str(scenario.parent / "out"))  # fmt: skip
    terminal.until("(trial 1 of 1) is halted after its traffic")
    terminal.until("plait> ")
    began = time.monotonic()
    terminal.type("h1 ping -q -c3 h2\n")
    assert "3 received" in terminal.until("plait> ")
    assert time.monotonic() - began > 1.8  # two seconds lie between the first request and the last
    terminal.type("h1 ping h2\n")
    terminal.until("icmp_seq=1 ")
    terminal.type("\x03")
    assert "ping statistics" in terminal.until("plait> ")
    terminal.type("h2\n")
    terminal.until("h2# ")
    terminal.type("ip -o -4 addr show dev h2-eth1 | tr -s ' ' | cut -d' ' -f4\n")
    assert "10.0.1.2/24" in terminal.until("h2# ")
    terminal.type("exit\n")
    terminal.until("plait> ")
    terminal.type("\x04")
    assert terminal.end() == 0


def test_kill_9_at_the_prompt_leaves_no_guest(scenario: Path) -> None:
    out = scenario.parent / "out"
    terminal = Terminal("run", str(scenario), "--out", str(out))
    terminal.until("plait> ")
    (work,) = out.glob(".work-*")
    os.kill(terminal.pid, signal.SIGKILL)
    assert terminal.end() == -signal.SIGKILL
    deadline = time.monotonic() + LIMIT_S
    while work.exists():  # a janitor removes it; a guest would keep writing there
        assert time.monotonic() < deadline
