"""The exported shell commands build the plan's network in the laboratory kernel.

`tests/unit/plan/shell/test_shell_host.py` does the same on the host's kernel, which may lack netem; here nothing is.
The guest's root is the host's file system, read-only, for the sake of `ip` and `tc`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from plait import kernel as kernels
from plait.plan.identity import plan_bytes
from plait.plan.links.chain import with_chains
from plait.plan.resolve import resolve
from plait.plan.shell.script import to_shell
from plait.scenario import load
from plait.scenario.vary.cases import expand
from plait.seeds import trial_seed

if TYPE_CHECKING:
    from plait.plan.model.plan import Plan

pytestmark = [
    pytest.mark.guest,
    pytest.mark.skipif(
        shutil.which("tc", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None, reason="needs tc"
    ),
]

PERFORM = Path(__file__).parents[2] / "support" / "shell_host.py"
MARK = "the guest tells: "
INIT = """#!/bin/sh
export PATH={path}:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc none /proc; mount -t sysfs none /sys
told=$({python} {perform} {folder}/plan.json {folder}/network.sh)
printf '%s%s\\n' '{mark}' "$told"
exec {python} -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
"""


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, dict[str, Any]]:
    """Return the plan of two-paths by MPTCP, and what the guest's kernel said after the export had run."""
    folder = tmp_path_factory.mktemp("shell")
    model = load("two-paths", ())
    plan = resolve(expand(model)[1].scenario, trial_seed(model.seed, 0))
    (folder / "plan.json").write_bytes(plan_bytes(plan))
    (folder / "network.sh").write_text(to_shell(plan), encoding="utf-8")
    init = folder / "init"
    words = {
        "path": os.environ["PATH"],
        "python": sys.executable,
        "perform": PERFORM,
        "folder": folder,
        "mark": MARK,
    }
    init.write_text(INIT.format(**words), encoding="utf-8")
    init.chmod(0o755)
    parameters = [
        "mem=512M",
        "root=/dev/root",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        f"init={init}",
        "quiet",
    ]
    parameters += [
        "time-travel=inf-cpu",
        "um_rng_seed=1",
        "con=null",
        "con0=null,fd:1",
        "uml_dir=.",
        "umid=guest",
    ]
    command = [
        "setpriv",
        "--pdeathsig=KILL",
        "--",
        "setarch",
        "-R",
        str(kernels.ensure().binary),
        *parameters,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    (report,) = [line for line in done.stdout.splitlines() if line.startswith(MARK)] or pytest.fail(
        done.stdout
    )
    return plan, json.loads(report.removeprefix(MARK))


def test_the_laboratory_kernel_lacks_nothing_for_the_export(applied: tuple[Plan, dict[str, Any]]) -> None:
    assert set(applied[1]["lacking"]) <= {"ethtool"}  # the program may be missing on the host


def test_delays_are_the_planned_ones(applied: tuple[Plan, dict[str, Any]]) -> None:
    plan, state = applied
    delays = {
        (q["dev"], q["handle"]): q["options"].get("delay", {"delay": 0})["delay"]
        for q in state["state"]["wire"]["qdiscs"]
        if q["kind"] == "netem"
    }
    qdiscs = with_chains(plan).network.qdiscs
    planned = {(q.ifname, q.handle): q.options.delay_ns / 1e9 for q in qdiscs if q.options.kind == "netem"}
    assert delays == pytest.approx(planned, abs=1e-9)


def test_the_tree_of_qdiscs_is_the_planned_one(applied: tuple[Plan, dict[str, Any]]) -> None:
    plan, state = applied
    shown = state["state"]["wire"]["qdiscs"]
    tree = {
        (q["dev"], q["kind"], q["handle"], q.get("parent", "root"))
        for q in shown
        if q["kind"] not in ("clsact", "noqueue")
    }
    qdiscs = with_chains(plan).network.qdiscs
    assert {(q.ifname, q.options.kind, q.handle, q.parent) for q in qdiscs} == tree


def test_the_kernel_opens_exactly_the_planned_subflows(applied: tuple[Plan, dict[str, Any]]) -> None:
    plan, state = applied
    assert state["joined"] == sorted(
        [path.client_address, path.server_address] for path in plan.flows[0].paths
    )
