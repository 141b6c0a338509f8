"""`plait undo` restores what `apply` found: histories with the death of the agent, and a session on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from namespaces import in_namespaces
from plait.engine.remote.lasting import (
    Change,
    LastingEndpoint,
    LastingLimits,
    LastingQdisc,
    LastingSysctl,
    RemoteHost,
    apply,
)
from plait.engine.remote.ssh import THIS_MACHINE
from plait.errors import RequestError
from plait.hosts.read import parse_hosts

HISTORIES = 80
PROGRAM = Path(__file__).with_name("lasting_histories.py")
SESSION = """
import subprocess, sys
from plait.engine.remote.lasting import *
subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
here = RemoteHost.named("localhost")
changes = [
    LastingSysctl("net.ipv4.tcp_sack", "0"), LastingLimits(subflows=5),
    LastingEndpoint("127.0.0.1", ("subflow", "backup")),
    LastingQdisc("lo", "tbf", ("rate", "9Mbit", "burst", "64k", "limit", "90k")),
]
print(*apply(here, changes).changed, sep="\\n")
assert apply(here, changes).changed == ()
print("-- preview", flush=True)
plait = [sys.executable, "-c", "from plait.cli import main; main()", "undo", "localhost"]
subprocess.run([*plait, "--print"], check=True)
subprocess.run(["ip", "mptcp", "limits", "set", "subflows", "3"], check=True)
for step in ("undo", "again"):
    print("--", step, flush=True)
    subprocess.run(plait, check=True)
"""

ADVISED = """
import subprocess, sys
from plait.advice.candidates import candidates
from plait.advice.result import Advice
from plait.advice.situation import Situation
from plait.cli.results.advise import _apply, _Target
from plait.engine.remote.lasting import RemoteHost
from plait.scenario import parse
subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
link = "{rate: 10mbit, delay: 9ms, queue: 20KB}"
text = f"title: t\\nnetwork: {{hosts: [home, vps], links: {{home-vps: {link}, home-vps#2: {link}}}}}\\n"
text += "traffic: [{bulk: {from: vps, to: home, reverse: true, duration: 9s}}]"
advice = Advice("t", "home", "vps", 1, (), tuple(candidates(Situation.of(parse(text, "t", ())))))
for _ in range(2):
    _apply(advice, _Target("home", RemoteHost.named("localhost")), "buffers", printed=False)
print("-- undo", flush=True)
subprocess.run([sys.executable, "-c", "from plait.cli import main; main()", "undo", "localhost"], check=True)
"""

HELD = """
import json, os, subprocess, tempfile
from pathlib import Path
from plait.binaries import AGENT
subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
sack = Path("/proc/sys/net/ipv4/tcp_sack")
folder = Path(tempfile.mkdtemp(), "plait-session")
def held():
    folder.mkdir()
    os.mkfifo(folder / "alive")
    return os.open(folder / "alive", os.O_RDONLY | os.O_NONBLOCK)
def agent(verb):
    done = subprocess.run([AGENT, "--settings", verb, folder], capture_output=True, text=True, timeout=300)
    return done.returncode, sack.read_text().strip()
session = held()
wanted = {"sysctls": {"net/ipv4/tcp_sack": "0"}, "limits": None, "endpoints": []}
(folder / "wanted.json").write_text(json.dumps(wanted))
print(*agent("configure"))
print(*agent("undo"))
os.close(session)
folder.rename(folder.with_name("ended"))
other = held()
print(*agent("undo"))
"""


def test_a_pipe_in_the_place_of_an_ended_sessions_does_not_delay_undo() -> None:
    """Whoever read a pipe at the path of a killed session kept `undo` from restoring its settings."""
    assert in_namespaces("-c", HELD).splitlines() == ["0 0", "1 0", "0 1"]


def test_undo_restores_what_apply_found_wherever_the_agent_dies() -> None:
    counts = json.loads(in_namespaces(str(PROGRAM), str(HISTORIES)).splitlines()[-1])
    assert counts["histories"] >= HISTORIES
    assert counts["apply done"] > 0
    assert counts["died in apply"] > 0
    assert counts["died in undo"] > 0


def test_changes_outlive_the_session_and_undo_leaves_what_a_user_changed_since() -> None:
    applied, preview, undone, again = in_namespaces("-c", SESSION).split("-- ")
    assert applied.splitlines() == [
        "sysctl net.ipv4.tcp_sack: 1 -> 0",
        "MPTCP limits: subflows 2 -> 5, add_addr_accepted 0 -> 0",
        "MPTCP endpoint 200 (127.0.0.1): added",
        "qdisc of lo: tbf rate 9Mbit burst 64k limit 90k",
    ]
    assert preview.splitlines()[1:] == [
        "localhost: sysctl net.ipv4.tcp_sack: 0 -> 1",
        "localhost: MPTCP limits: subflows 5 -> 2, add_addr_accepted 0 -> 0",
        "localhost: MPTCP endpoint 200 (127.0.0.1): removed",
        "localhost: qdisc of lo: the kernel's own returns",
    ]
    assert undone.splitlines()[1:] == [
        "localhost: sysctl net.ipv4.tcp_sack: 0 -> 1",
        "localhost: MPTCP endpoint 200 (127.0.0.1): removed",
        "localhost: qdisc of lo: the kernel's own returns",
        "localhost: left as it is: MPTCP limit subflows = 3: it was changed after plait had set 5",
    ]
    assert again.splitlines()[1:] == ["localhost: there is nothing to undo"]


@pytest.mark.parametrize(
    "change",
    [
        LastingSysctl("kernel.core_pattern", "x"),
        LastingSysctl("net.ipv4.tcp_../../../kernel.panic", "1"),
        LastingSysctl("net.ipv4.tcp_sack", "1\n0"),
        LastingSysctl("net.ipv4.tcp_sack", " "),
        LastingEndpoint("10.0.0.1; reboot", ("subflow",)),
        LastingEndpoint("10.0.0.1", ("laminar",)),
        LastingEndpoint("10.0.0.1", ()),
        LastingLimits(subflows=9),
        LastingQdisc("-l1", "cake"),
        LastingQdisc("l1", "cake", ("$(reboot)",)),
        LastingEndpoint(None, ("subflow",)),
        LastingEndpoint("10.0.0.1", ("subflow",), "../l1"),
        LastingQdisc("l1", "cake", through="-x"),
    ],
    ids=str,
)
def test_a_change_that_plait_does_not_make_is_refused_before_it_connects(
    change: Change,
) -> None:
    with pytest.raises(RequestError, match="is no change that plait makes"):
        apply(RemoteHost("h1", "-oProxyCommand=false"), [change])


def test_a_host_is_one_of_the_file_or_of_ssh_or_this_machine() -> None:
    text = (
        "limits: {rate: 5mbit, bytes: 1MB, time: 10s}\n"
        "hosts: {a: {ssh: me@a.example, addresses: {x: 192.0.2.1}}, b: {ssh: b, addresses: {x: 192.0.2.2}}}\n"
    )
    hosts = parse_hosts(text, "hosts.yaml")
    assert RemoteHost.named("a", hosts).destination == "me@a.example"
    assert RemoteHost.named("me@b.example").destination == "me@b.example"
    assert RemoteHost.named("localhost").destination == THIS_MACHINE
    with pytest.raises(RequestError, match="has no host c; it has a, b"):
        RemoteHost.named("c", hosts)
    with pytest.raises(RequestError, match="is not a destination of ssh"):
        RemoteHost.named("-oProxyCommand=false")


def test_an_advised_change_is_made_once_and_taken_back() -> None:
    applied, undone = in_namespaces("-c", ADVISED).split("-- undo\n")
    large, _, already = applied.splitlines()
    assert large.endswith("-> 4096 131072 16777216")
    assert already == "localhost: buffers is set already"
    assert undone.splitlines()[-1].startswith("localhost: sysctl net.ipv4.tcp_")
    assert len(undone.splitlines()) == 2
