"""`plait undo` restores what `apply` found, wherever a process dies: histories that hypothesis draws.

    unshare -Urnm python lasting_histories.py COUNT

A history has endpoints, limits, sysctls and a qdisc of the host, a shaper of what arrives where the kernel has `ifb`
and `matchall`, two sets of changes, of which the agent makes one or both, its death at a system call in either of them
or in the undo, and what a user changes afterwards. The program prints a line of JSON with what the histories did.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from plait.binaries import AGENT
from settings_histories import (
    ADDRESSES,
    FLAGS,
    SYSCTLS,
    die_at_call,
    differences,
    run,
)
from settings_histories import snapshot as snapshot_of_mptcp

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTROL = "net/ipv4/tcp_congestion_control"
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text(encoding="utf-8").split()
"""Root of a user namespace may set these."""
VALUES = {**SYSCTLS, CONTROL: ALLOWED}
QDISCS = [
    ["pfifo", "limit", "50"],
    ["pfifo", "limit", "60"],
    ["tbf", "rate", "9Mbit", "burst", "9k", "limit", "90k"],
]
SHAPERS = [
    {
        "device": "l2",
        "through": "plait-ifb2",
        "kind": "tbf",
        "options": ["rate", rate, "burst", "9k", "limit", "90k"],
    }
    for rate in ("9Mbit", "7Mbit")
]
DEATHS = ("nobody", "first", "second", "undo")
COUNTS: Counter[str] = Counter()


@dataclass
class History:
    endpoints: list[tuple[int, str, list[str]]]
    limits: tuple[int, int]
    sysctls: dict[str, str]
    changes: list[dict[str, Any]]
    death: str
    call: int
    """The system call of the agent at which it dies."""
    users: dict[str, str]
    """Sysctls that a user sets after the changes."""


@cache
def can_shape() -> bool:
    """Return whether this kernel shapes what an interface receives: `ifb` and the classifier `matchall`."""
    filters = "tc qdisc add dev lo ingress && tc filter add dev lo parent ffff: matchall action pass"
    attempts = ("ip link add plait-ifb9 type ifb", filters)
    worked = [
        subprocess.run(["sh", "-c", words], capture_output=True, check=False).returncode for words in attempts
    ]
    for undo in ("tc qdisc delete dev lo ingress", "ip link delete plait-ifb9"):
        subprocess.run(["sh", "-c", undo], capture_output=True, check=False)
    return worked == [0, 0]


def changes() -> st.SearchStrategy[dict[str, Any]]:
    sysctls = st.fixed_dictionaries({}, optional={name: st.sampled_from(v) for name, v in VALUES.items()})
    limit = st.one_of(st.none(), st.integers(0, 8))
    endpoint = st.fixed_dictionaries(
        {"address": st.sampled_from(ADDRESSES[:3]), "flags": st.sampled_from(FLAGS)}
    )
    qdisc = st.sampled_from(QDISCS).map(lambda q: {"device": "l1", "kind": q[0], "options": q[1:]})
    return st.fixed_dictionaries(
        {
            "sysctls": sysctls,
            "subflows": limit,
            "add_addr_accepted": limit,
            "endpoints": st.lists(endpoint, max_size=3, unique_by=lambda wanted: wanted["address"]),
            "qdiscs": st.lists(qdisc, max_size=1),
            "ingress": st.lists(st.sampled_from(SHAPERS), max_size=1) if can_shape() else st.just([]),
        }
    )


@st.composite
def histories(draw: st.DrawFn) -> History:
    addresses = draw(st.lists(st.sampled_from(ADDRESSES), unique=True, max_size=4))
    ids = draw(st.lists(st.integers(1, 255), unique=True, min_size=len(addresses), max_size=len(addresses)))
    values = st.fixed_dictionaries({}, optional={name: st.sampled_from(v) for name, v in VALUES.items()})
    users = {"net/mptcp/add_addr_timeout": st.just("77"), "net/mptcp/stale_loss_cnt": st.just("9")}
    return History(
        [
            (number, address, draw(st.sampled_from(FLAGS)))
            for number, address in zip(ids, addresses, strict=True)
        ],
        draw(st.tuples(st.integers(0, 8), st.integers(0, 8))),
        draw(values),
        draw(st.lists(changes(), min_size=1, max_size=2)),
        draw(st.sampled_from(DEATHS)),
        draw(st.integers(1, 200)),
        draw(st.one_of(st.just({}), st.fixed_dictionaries({}, optional=users))),
    )


def set_up(history: History) -> None:
    """Make the state of the history."""
    run("ip", "mptcp", "endpoint", "flush")
    for name, values in VALUES.items():
        Path("/proc/sys", name).write_text(values[-1], encoding="utf-8")
    for number, address, flags in history.endpoints:
        run("ip", "mptcp", "endpoint", "add", address, "id", str(number), *flags)
    subflows, accepted = map(str, history.limits)
    run("ip", "mptcp", "limits", "set", "subflows", subflows, "add_addr_accepted", accepted)
    for name, value in history.sysctls.items():
        Path("/proc/sys", name).write_text(value, encoding="utf-8")


def snapshot() -> dict[str, Any]:
    """Return endpoints, limits, sysctls of MPTCP and TCP, queueing disciplines, filters and interfaces."""
    filters = run("tc", "filter", "show", "dev", "l2", "ingress")
    return {
        **snapshot_of_mptcp(),
        "qdiscs": run("tc", "qdisc", "show") + filters + run("ip", "-brief", "link"),
    }


def agent(verb: str, folder: Path, call: int | None) -> str | None:
    """Run the agent, which dies at a system call if `call` is one; return what it said, None if it failed."""
    if call is not None:
        code = die_at_call(call, str(AGENT), "--settings", verb, str(folder))
        COUNTS[f"died in {verb}" if code == -9 else "outran its death"] += 1
        return None
    done = subprocess.run(
        [str(AGENT), "--settings", verb, str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    COUNTS[f"{verb} {'done' if done.returncode == 0 else 'refused'}"] += 1
    assert verb == "apply" or done.returncode == 0, done.stderr
    return done.stdout if done.returncode == 0 else None


@given(histories())
def check(history: History) -> None:
    with tempfile.TemporaryDirectory(prefix="lasting-") as name:
        folder = Path(name)
        set_up(history)
        before = snapshot()
        COUNTS["histories"] += 1
        for order, wanted in zip(DEATHS[1:], history.changes, strict=False):
            (folder / "wanted.json").write_text(json.dumps(wanted), encoding="utf-8")
            dies = history.death == order
            COUNTS["shapers of what arrives"] += len(wanted["ingress"])
            output = agent("apply", folder, history.call if dies else None)
            if output is not None and not dies:
                made = snapshot()
                assert agent("apply", folder, None) == ""
                assert snapshot() == made, "the same changes again changed something"
        users = set_by_user(history.users, before)
        if history.death == "undo":
            agent("undo", folder, history.call)
        present = snapshot()
        agent("preview", folder, None)
        assert snapshot() == present, "a preview changed something"
        agent("undo", folder, None)
        after = snapshot()
        for path, value in users.items():
            before["sysctls"][path] = value
        assert after == before, differences(before, after) + before["qdiscs"] + after["qdiscs"]
        assert agent("undo", folder, None) == ""
        assert not list(Path("/run/plait").glob("applied-*"))


def set_by_user(sysctls: Mapping[str, str], before: Mapping[str, Any]) -> dict[str, str]:
    """Set the sysctls; return what the snapshot has of each from now on."""
    users = {}
    for name, value in sysctls.items():
        path = Path("/proc/sys", name)
        path.write_text(value, encoding="utf-8")
        assert str(path) in before["sysctls"]
        users[str(path)] = path.read_text(encoding="utf-8")
        COUNTS["values of a user"] += 1
    return users


def main() -> None:
    run("mount", "-t", "tmpfs", "none", "/run")
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "l1", "type", "veth", "peer", "name", "l2")
    for link in ("l1", "l2"):
        run("ip", "link", "set", link, "up")
    for line, address in enumerate(ADDRESSES):
        with suppress(subprocess.CalledProcessError):
            run("ip", "addr", "add", f"{address}/{64 if ':' in address else 24}", "dev", f"l{1 + line % 2}")
    limited = settings(
        max_examples=int(sys.argv[1]),
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        phases=[Phase.explicit, Phase.generate],
    )
    limited(check)()
    sys.stdout.write(json.dumps(dict(sorted(COUNTS.items()))) + "\n")


if __name__ == "__main__":
    main()
