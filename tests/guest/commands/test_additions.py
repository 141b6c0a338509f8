"""Check `plait kernel add` on the real kernel: the documented example works, and mistakes in a file are reported."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from plait import kernel as kernels
from plait.api.additions import add
from plait.binaries import AGENT
from plait.cli.shared.environment import environment_of
from plait.errors import RequestError
from plait.kernel import additions
from plait.scenario import load
from plait.study.study import plan_study
from plait.testing.hunt.case import HuntCase, HuntConnection, HuntLink
from plait.testing.hunt.run import play
from result_folders import fresh_cache, run_unreported

if TYPE_CHECKING:
    from plait.engine.virtual.trial import VirtualEngine

pytestmark = pytest.mark.guest


HOW_TO = Path(__file__).parents[3] / "docs" / "how-to" / "write-a-scheduler.md"
PLAIT = Path(sys.executable).parent / "plait"


def block(language: str) -> str:
    match = re.search(
        rf"^```{language}\n(.*?)^```", HOW_TO.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert match is not None
    return match[1]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache of its own, with the user's kernels."""
    return fresh_cache(monkeypatch, tmp_path / "cache", with_kernels=True)


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.users
def test_the_example_of_the_documentation_is_added_chosen_by_name_and_does_what_it_says(
    cache: Path, tmp_path: Path, engine: VirtualEngine
) -> None:
    done = subprocess.run(
        [str(PLAIT), "kernel", "add", "spill.c"], cwd=write(tmp_path, "spill.c", block("c")).parent,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "spill  added; select it with `scheduler: spill`\n  a transfer of 1 MB over two"
    )
    text = block("yaml").replace("20s", "3s").replace("repeat: 3", "")
    study = run_unreported(write(tmp_path, "spill.yaml", text), tmp_path / "out", engine=engine)
    mobile = dict(
        study.metrics.filter(metric="phone-lte-server.path_share").select("case", "mean").iter_rows()
    )
    assert mobile["scheduler=spill"] == 0
    assert mobile["scheduler=roundrobin"] > 0.1


@pytest.mark.users
def test_plait_reports_a_crash_with_its_line_and_runs_the_other_trials(
    cache: Path, tmp_path: Path, engine: VirtualEngine
) -> None:
    good = block("c")
    crashing = good.replace(
        "if (option[i].room)",
        "if (option[i].carried > 99999) *(volatile int *)8 = 1;\n\t\telse if (option[i].room)",
    )
    line = 1 + next(i for i, text in enumerate(crashing.splitlines()) if "volatile" in text)
    added = add(write(tmp_path, "spill.c", crashing), kernels.ensure(), AGENT)
    assert "panicked" in added.tried["spill"]
    text = block("yaml").replace("20s", "1s").replace("repeat: 3", "")
    study = run_unreported(write(tmp_path, "s.yaml", text), tmp_path / "out", engine=engine)
    assert list(study.failed) == ["scheduler=spill"]
    error = study.failed["scheduler=spill"][0].error
    assert re.search(r"\n  at spill_pick\+0x\w+/0x\w+ \(spill\.c:(\d+)\)", error)[1] == str(line)


def test_plait_reports_a_compile_error_at_the_lines_of_the_users_file(cache: Path, tmp_path: Path) -> None:
    path = write(tmp_path, "spill.c", block("c").replace("return NULL;\n}", "return NULLL;\n}"))
    line = 1 + next(i for i, text in enumerate(path.read_text().splitlines()) if "NULLL" in text)
    with pytest.raises(RequestError, match=rf"{path}:{line}:\d+: error: .NULLL. undeclared"):
        add(path, kernels.ensure(), AGENT)
    assert additions.added() == []


def test_a_name_that_the_kernel_has_and_a_file_that_brings_nothing_are_refused(
    cache: Path, tmp_path: Path
) -> None:
    taken = write(tmp_path, "mine.c", block("c").replace("PLAIT_SCHEDULER(spill,", "PLAIT_SCHEDULER(minrtt,"))
    with pytest.raises(RequestError, match=r"EEXIST"):
        add(taken, kernels.ensure(), AGENT)
    nothing = write(tmp_path, "nothing.c", '#include <linux/module.h>\nMODULE_LICENSE("GPL");\n')
    with pytest.raises(RequestError, match="registers neither"):
        add(nothing, kernels.ensure(), AGENT)


CONGESTION_CONTROL = """
#include <linux/module.h>
#include <net/tcp.h>

static struct tcp_congestion_ops ops = {
	.ssthresh = tcp_reno_ssthresh, .undo_cwnd = tcp_reno_undo_cwnd, .cong_avoid = tcp_reno_cong_avoid,
	.name = "myreno", .owner = THIS_MODULE,
};
static int __init myreno_init(void) { return tcp_register_congestion_control(&ops); }
static void __exit myreno_exit(void) { tcp_unregister_congestion_control(&ops); }
module_init(myreno_init);
module_exit(myreno_exit);
MODULE_LICENSE("GPL");
"""


def test_a_congestion_control_is_added_and_renos_rules_give_renos_bytes(
    cache: Path, tmp_path: Path, engine: VirtualEngine
) -> None:
    added = add(write(tmp_path, "my-reno.c", CONGESTION_CONTROL), kernels.ensure(), AGENT)
    assert added.record.congestion_controls == ("myreno",)
    text = """
title: x
network: {hosts: [a, b], links: {a-b: {rate: 5mbit, delay: 20ms}}}
traffic: [{transfer: {from: a, to: b, bytes: 1MB}}]
transport: tcp
vary: {congestion_control: [reno, myreno]}
"""
    study = run_unreported(write(tmp_path, "cc.yaml", text), tmp_path / "out", engine=engine)
    goodputs = dict(study.metrics.filter(metric="goodput_bps").select("case", "mean").iter_rows())
    assert goodputs["congestion_control=myreno"] == goodputs["congestion_control=reno"]
    assert set(study.table("flows")["congestion_control"]) == {"reno", "myreno"}


def test_only_trials_that_name_an_addition_know_of_it(cache: Path, tmp_path: Path) -> None:
    before = plan_study(load("two-paths"), "x")
    add(write(tmp_path, "spill.c", block("c")), kernels.ensure(), AGENT)
    after = plan_study(load("two-paths"), "x")
    assert before.cases[0].plan(1) == after.cases[0].plan(1)


def test_prompts_and_hunts_have_what_was_added(cache: Path, tmp_path: Path) -> None:
    add(write(tmp_path, "spill.c", block("c")), kernels.ensure(), AGENT)
    file = write(tmp_path, "spill.yaml", block("yaml"))
    asked = subprocess.run(
        [str(PLAIT), "shell", str(file), "--case", "scheduler=spill"],
        input="phone sysctl -n net.mptcp.scheduler\n", capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert "spill" in asked.stdout.split(), asked.stderr
    case = HuntCase(
        scheduler="spill",
        links=(HuntLink(rate_mbit=10, delay_ms=5), HuntLink(rate_mbit=10, delay_ms=5)),
        connections=(HuntConnection(up_bytes=1_000_000),),
    )
    result = play(case, kernels.ensure(), environment_of([], terminal=False))
    assert (result.violations, result.received_bytes) == ((), 1_000_000)
