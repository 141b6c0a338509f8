"""In networks of many links each link has its configured rate and delay, and carries packets from the start.

Linux's link watch sees to a hundred devices at once (200 where it is urgent) and then waits for a second
(net/core/link_watch.c): what it has not seen to has no queue yet, and drops whatever is sent.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from result_folders import run_unreported

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.guest

LINKS = 60
"""Two devices each; four as chains."""
PROBE, ARP = 142, 42
"""Bytes of frames."""


def scenario() -> str:
    names = ["a-b", *(f"a-b#{number}" for number in range(2, LINKS + 1))]
    links = [f"    {name}: {{rate: {i + 1}mbit, delay: {i + 1}ms}}" for i, name in enumerate(names)]
    flows = [
        f"  - udp: {{from: a, to: b, via: {name}, packet: 100B, every: 10ms, duration: 10ms, start: {start}, "
        "start_jitter: 0s}"
        for name in names
        for start in ("0s", "300ms")
    ]
    lines = ["title: Many links", "network:", "  hosts: [a, b]", "  links:", *links, "traffic:", *flows]
    program = "programs: [{name: tc, node: a, run: [ip, netns, exec, wire, tc, -j, qdisc]}]"
    return "\n".join([*lines, "transport: tcp", "system_call: 0s", program, ""])


def run(folder: Path) -> tuple[list[dict[str, Any]], pl.DataFrame]:
    """Return the qdiscs and the messages of a trial."""
    (folder / "many.yaml").write_text(scenario(), encoding="utf-8")
    study = run_unreported(folder / "many.yaml", folder / "out", fresh=True)
    assert not study.failed
    trial_folder: Path = next((folder / "out/trials").glob("*/000"))
    log = next((trial_folder / "programs").glob("tc.*"))
    return json.loads(log.read_text(encoding="utf-8")), pl.read_parquet(trial_folder / "messages.parquet")


def test_every_link_has_its_configured_rate_and_delay_as_a_chain_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_LINKS", "chain")
    shown, messages = run(tmp_path)
    assert messages["received_us"].null_count() == 0
    qdiscs = {(qdisc["dev"], qdisc["kind"]): qdisc["options"] for qdisc in shown}
    for number in range(LINKS):
        for end in "ab":
            device = f"w{number}{end}"
            assert qdiscs[device, "netem"]["delay"]["delay"] == pytest.approx((number + 1) / 1000, abs=1e-9)
            assert qdiscs[device, "tbf"]["rate"] == (number + 1) * 1_000_000 / 8


def test_every_link_carries_packets_from_the_start_with_its_own_rate_and_delay(tmp_path: Path) -> None:
    """The first packet asks for the address, one round trip more; the second takes the link's own times alone.

    Sixty that leave at once read the clock one after the other, which takes virtual time.
    """
    messages = run(tmp_path)[1].sort("flow")
    took = (messages["received_us"] - messages["sent_us"]).to_list()
    assert None not in took
    second = [1000 * mbit + PROBE * 8 / mbit for mbit in range(1, LINKS + 1)]
    first = [us + 2000 * mbit + 2 * ARP * 8 / mbit for mbit, us in enumerate(second, 1)]
    assert took[0::2] == pytest.approx(first, abs=50)
    assert took[1::2] == pytest.approx(second, abs=10)
