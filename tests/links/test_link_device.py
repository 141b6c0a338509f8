"""The laboratory kernel's link against its model: every packet arrives at the nanosecond that 20 lines of Python say.

One guest runs all cases. In each, 10 000 packets of random sizes enter at random times, some at the same instant. Taps
on both ends give the times at which they entered and arrived, and `link_model.Model` gets the former.
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from plait import kernel as kernels
from plait.plan.links.distributions import table

from .link_model import ALL, Conditions, Model

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.guest

PACKETS = 10_000
NO_BUCKET = 2**64 - 1
SAMPLED = "bucket that is sampled"
MS = 10**6
GUEST = Path(__file__).with_name("link_guest.py")
INIT = """#!/bin/sh
PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc none /proc; mount -t sysfs none /sys; mount -t hostfs -o {folder} none {folder}
exec {python} {guest} {folder}/cases.json {folder}/results.json
"""

DSL = Conditions(rate=7_777_777, delay=10 * MS)
"""A rate at which most packets take no whole number of nanoseconds."""
FAST = Conditions(rate=1_000_000_000, delay=2 * MS)
GE = (ALL // 50, ALL // 4, ALL // 2, ALL // 1000)
NORMAL = table("normal").values
CASES: dict[str, tuple[Conditions, int]] = {
    # name: conditions, offered load in bit/s
    "rate": (DSL, 6_000_000),
    "delay": (Conditions(delay=10 * MS), 50_000_000),
    "gigabit": (FAST, 900_000_000),
    "queue in packets": (replace(DSL, queue_packets=20), 9_000_000),
    "queue in bytes": (replace(DSL, queue_bytes=30_000), 9_000_000),
    "jitter in order": (replace(DSL, jitter=5 * MS), 4_000_000),
    "jitter that overtakes": (replace(DSL, jitter=5 * MS, overtaking=True), 4_000_000),
    "jitter of a table": (replace(DSL, jitter=MS, table=NORMAL), 4_000_000),
    "jitter of a table that overtakes": (replace(FAST, jitter=MS, table=NORMAL, overtaking=True), 500_000_000),
    "loss": (replace(DSL, loss=ALL // 20), 6_000_000),
    "bursts of losses": (replace(DSL, ge=GE), 6_000_000),
    "duplicates": (replace(DSL, duplicate=ALL // 10), 5_000_000),
    "reordering": (replace(DSL, reorder=ALL // 10), 5_000_000),
    "corruption": (replace(DSL, corrupt=ALL // 10), 5_000_000),
    "bucket": (replace(FAST, bucket_rate=20_000_000, bucket_burst=200_000), 18_000_000),
    "bucket, queue": (
        replace(FAST, bucket_rate=5_000_000, bucket_burst=100_000, queue_packets=50), 9_000_000
    ),
    "jitter, loss, queue": (
        replace(DSL, jitter=5 * MS, loss=ALL // 50, queue_packets=30), 9_000_000
    ),
    "all in order": (
        replace(
            DSL, jitter=MS, table=NORMAL, ge=GE, duplicate=ALL // 20, corrupt=ALL // 20,
            queue_bytes=60_000, bucket_rate=5_000_000, bucket_burst=300_000,
        ),
        7_000_000,
    ),
    "all that overtakes": (
        replace(
            DSL, jitter=5 * MS, overtaking=True, reorder=ALL // 20, loss=ALL // 50, duplicate=ALL // 20,
            queue_packets=100,
        ),
        9_000_000,
    ),
    "lost duplicates in a full queue": (
        replace(DSL, duplicate=ALL // 3, loss=ALL // 3, queue_packets=5), 9_000_000
    ),
}  # fmt: skip


def traffic(name: str, load_bps: int, mtu: int = 1500) -> list[tuple[int, int]]:
    """Return gaps and sizes: at least half of the packets follow another at once."""
    draw = random.Random(name)
    out = []
    for _ in range(PACKETS):
        size = draw.choice((60, draw.randint(60, mtu + 14), mtu + 14))
        gap = draw.choice((0, draw.randint(0, 4)))
        out.append((int(gap * 800 * 8e9 / load_bps), size))
    return out


def case(name: str, link: Conditions, load_bps: int, **more: Any) -> dict[str, Any]:
    return {
        "name": name, "mtu": 1500, "link": asdict(link), "seed": sum(name.encode()) * 10**13 + 7,
        "packets": traffic(name, load_bps) if load_bps else [], "wait_s": 60,
    } | more  # fmt: skip


CODEL = ("codel", [(1, 10**8), (2, 10_000), (3, 10**8)])
"""CoDel with a target of 100 s and 10 000 packets, so that it drops nothing."""
FIFO = ("pfifo_fast", [])
"""It counts what it holds per processor."""
CHANGES = {
    "a slower line with packets waiting": (
        replace(DSL, queue_packets=200), replace(DSL, rate=1_000_000, queue_packets=200)
    ),
    "a shorter delay overtakes nothing": (replace(FAST, delay=50 * MS), replace(FAST, delay=MS)),
    "a cut": (DSL, replace(DSL, loss=ALL)),
    "a bucket keeps its tokens": (
        replace(FAST, bucket_rate=7_000_000, bucket_burst=300_000),
        replace(FAST, bucket_rate=5_500_000, bucket_burst=900_000),
    ),
    "an empty bucket stays empty": (
        replace(FAST, bucket_rate=1_000_000, bucket_burst=100_000),
        replace(FAST, bucket_rate=50_000_000, bucket_burst=900_000),
    ),
    "a smaller bucket spills": (
        replace(FAST, bucket_rate=50_000_000, bucket_burst=900_000),
        replace(FAST, bucket_rate=5_500_000, bucket_burst=30_000),
    ),
    "a new bucket is full": (FAST, replace(FAST, bucket_rate=5_500_000, bucket_burst=300_000)),
    "a bucket goes": (replace(FAST, bucket_rate=1_000_000, bucket_burst=100_000), FAST),
    "a rate changes under a bucket": (
        replace(FAST, bucket_rate=5_500_000, bucket_burst=300_000),
        replace(FAST, rate=6_000_000, bucket_rate=5_500_000, bucket_burst=300_000),
    ),
}  # fmt: skip


def all_cases() -> list[dict[str, Any]]:
    out = [case(name, link, load) for name, (link, load) in CASES.items()]
    out.append(case("mtu", FAST, 900_000_000, mtu=65_535, packets=traffic("mtu", 900_000_000, 65_000)[:500]))
    out.append(case("codel", DSL, 9_000_000, qdisc=CODEL))
    out.append(case("pfifo_fast", DSL, 9_000_000, qdisc=FIFO))
    drained = replace(FAST, bucket_rate=7_000_000, bucket_burst=200_000)
    out.append(case(SAMPLED, drained, 7_600_000, sample=20))
    burst = [(0, 1000)] * 100
    for end in ("la", "lb"):
        out.append(case(f"{end} goes down", DSL, 0, packets=burst, down=end))
        out.append(case(f"{end} goes down, codel", DSL, 0, packets=burst, qdisc=CODEL, down=end))
    for name, (before, after) in CHANGES.items():
        change = {"after": PACKETS // 2, "link": asdict(after)}
        out.append(case(name, before, 6_000_000, change=change))
    return out


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return each case and what the guest saw, by name."""
    cases = all_cases()
    folder = tmp_path_factory.mktemp("links")
    results_of = run_guest(folder, cases)
    return {case["name"]: (case, result) for case, result in zip(cases, results_of, strict=True)}


def run_guest(folder: Path, cases: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run the cases in a guest whose root is the host's, read-only."""
    (folder / "cases.json").write_text(json.dumps(cases))
    init = folder / "init"
    init.write_text(INIT.format(folder=folder, python=sys.executable, guest=GUEST))
    init.chmod(0o755)
    parameters = (
        "mem=1G root=/dev/root rootfstype=hostfs rootflags=/ ro quiet time-travel=inf-cpu um_rng_seed=1 con=null "
        f"con0=null,fd:1 uml_dir=. umid=guest init={init}"
    ).split()
    command = [
        "setpriv",
        "--pdeathsig=KILL",
        "--",
        "setarch",
        "-R",
        str(kernels.ensure().binary),
        *parameters,
    ]
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=300,
        check=False,
    )
    results_file = folder / "results.json"
    if not results_file.exists():
        pytest.fail(done.stdout[-3000:])
    return json.loads(results_file.read_text())


def modelled(case: dict[str, Any], result: dict[str, Any]) -> Model:
    """Return the model after the packets that the sender's interface saw."""
    model = Model(case["seed"])
    link = Conditions(**case["link"])
    for entry, number, size in result["entries"]:
        if case.get("change") and case["change"]["after"] == number:
            model.advance(result["changed"], link)
            after = Conditions(**case["change"]["link"])
            model.change_bucket(result["changed"], link, after)
            link = after
        model.send(number, entry, size, link)
    model.advance(2**63, link)
    model.arrivals.sort(key=lambda arrival: arrival[0])
    return model


@pytest.mark.parametrize("name", [*CASES, SAMPLED, "mtu", "codel", "pfifo_fast", *CHANGES])
def test_every_packet_arrives_at_the_nanosecond_of_the_model(
    name: str, results: dict[str, tuple[dict[str, Any], dict[str, Any]]]
) -> None:
    case, result = results[name]
    assert "error" not in result, result
    assert len(result["entries"]) == len(case["packets"])
    model = modelled(case, result)
    kernel = [(at, number) for at, number, _ in result["arrivals"]]
    assert len(kernel) == len(model.arrivals)
    wrong = [
        (there, here)
        for there, here in zip(kernel, model.arrivals, strict=True)
        if there[0] != here[0] or there[1] not in (here[1], -1)
    ]
    assert not wrong, f"{len(wrong)} of {len(kernel)}, first {wrong[:3]}"
    assert result["counters"]["packets"] == len(kernel)
    assert result["counters"]["sojourn_ns"] == model.sojourn
    assert {time: packets for time, packets in enumerate(result["sojourns"]) if packets} == model.sojourns
    assert result["counters"]["overflow"] == model.overflow
    assert result["counters"]["lost"] == model.lost


def test_a_bucket_reports_its_level_at_any_moment(
    results: dict[str, tuple[dict[str, Any], dict[str, Any]]],
) -> None:
    case, result = results[SAMPLED]
    link, model = Conditions(**case["link"]), Model(case["seed"])
    expected, entries = [], iter(result["entries"])
    for at, _ in result["levels"]:
        for entry, number, size in itertools.islice(entries, case["sample"] if expected else 0):
            model.send(number, entry, size, link)
        model.advance(at, link)
        expected.append(model.level(at, link))
    assert [level for _, level in result["levels"]] == expected
    assert len(expected) == PACKETS // case["sample"]
    assert len({level for level in expected if 0 < level < link.bucket_burst}) > 100
    assert 0 in expected


@pytest.mark.parametrize("name", [name for name in CHANGES if "bucket" in name])
def test_a_bucket_tells_its_level_before_and_after_a_change(
    name: str, results: dict[str, tuple[dict[str, Any], dict[str, Any]]]
) -> None:
    case, result = results[name]
    assert "error" not in result, result
    before, after = Conditions(**case["link"]), Conditions(**case["change"]["link"])
    model = Model(case["seed"])
    for entry, number, size in result["entries"][: case["change"]["after"]]:
        model.send(number, entry, size, before)
    model.advance(result["changed"], before)
    levels = [model.level(result["changed"], before) if before.bucket_rate else NO_BUCKET]
    model.change_bucket(result["changed"], before, after)
    levels.append(model.level(result["changed"], after) if after.bucket_rate else NO_BUCKET)
    assert result["held"] == levels
    if before.bucket_rate and after.bucket_rate:
        assert levels[1] == min(levels[0], after.bucket_burst)


@pytest.mark.parametrize("queue", ["", ", codel"])
def test_a_sender_that_goes_down_loses_what_waits_and_not_what_has_started(
    queue: str, results: dict[str, tuple[dict[str, Any], dict[str, Any]]]
) -> None:
    """The line has 10 ms of packets on the way; what waits for it never arrives."""
    case, result = results[f"la goes down{queue}"]
    assert "error" not in result, result
    model = Model(case["seed"])
    for entry, number, size in result["entries"]:
        model.send(number, entry, size, Conditions(**case["link"]))
    model.advance(result["changed"], Conditions(**case["link"]))
    assert 0 < len(model.arrivals) < len(case["packets"])
    assert [(at, number) for at, number, _ in result["arrivals"]] == model.arrivals
    assert result["counters"]["packets"] == len(model.arrivals)
    assert result["counters"]["down"] == len(model.waiting) == len(case["packets"]) - len(model.arrivals)


@pytest.mark.parametrize("queue", ["", ", codel"])
def test_a_receiver_that_is_down_loses_what_arrives(
    queue: str, results: dict[str, tuple[dict[str, Any], dict[str, Any]]]
) -> None:
    case, result = results[f"lb goes down{queue}"]
    assert "error" not in result, result
    assert result["arrivals"] == []
    assert result["counters"]["packets"] == 0
    assert result["counters"]["down"] == len(case["packets"])
