"""Real sshd in virtual time: the hosts are namespaces of a guest (`plait exec`), so everybody can run this."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from guest_runs import NEEDS_SSHD, in_guest, measure, netem, run_scenario, tbf
from plait.report import build
from plait.results.read import read_study
from plait.scenario import load

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.guest, NEEDS_SSHD]
PLANTED: dict[str, tuple[float, float, float, float, float, tuple[int, float] | None]] = {
    # name: Mbit/s there and back, delay in ms there and back, loss in % there, bucket there (bytes, peak)
    "h1-h2": (20, 8, 10, 10, 0, None),
    "h1-h2#2": (2, 10, 5, 15, 0, (500_000, 10)),
    "h1-h2#3": (5, 3, 30, 20, 1, None),
}


def test_measure_recovers_planted_lines(tmp_path: Path) -> None:
    """`bench/lines/coverage.py` repeats this with many drawn lines."""
    lines = [
        [name, [netem(d1, loss=loss), tbf(there, bucket=bucket)], [netem(d2), tbf(back)]]
        for name, (there, back, d1, d2, loss, bucket) in PLANTED.items()
    ]
    lines[0][1].append("fq_codel")
    text = measure(tmp_path, lines, "40mbit")
    wrong = []
    links = load(tmp_path / "lines.yaml").network.links
    for name, (there, back, d1, d2, loss, bucket) in PLANTED.items():
        forward, backward = links[name].conditions(forward=True), links[name].conditions(forward=False)
        peak = there if bucket is None else bucket[1]
        rtt_ms = (int(forward.delay or 0) + int(backward.delay or 0)) / 1e6
        expectations = {
            "rate there": (forward.rate, peak * 1e6, 0.01 * peak * 1e6),
            "rate back": (backward.rate, back * 1e6, 0.01 * back * 1e6),
            "rtt": (rtt_ms, d1 + d2, 1.0),
            "queue": (int(str(backward.queue).removesuffix("B")) if backward.queue else None, 60_000, 3000),
        }
        if bucket is not None:
            kept = forward.bucket
            expectations["baseline"] = (kept and kept.baseline, there * 1e6, 0.01 * there * 1e6)
            expectations["burst"] = (kept and kept.burst, bucket[0], 0.03 * bucket[0])
        if bucket is None and forward.bucket is not None:  # what its shaper passes at once
            expectations["burst"] = (forward.bucket.burst, 5000, 250)
            wrong += [] if forward.bucket.baseline is None else [f"{name} has no baseline"]
        wrong += [
            f"{name} {what}: {value}, not {expected}"
            for what, (value, expected, most) in expectations.items()
            if value is None or abs(float(value) - expected) > most
        ]
        low, high = loss_interval(text, name)
        wrong += [] if low <= loss <= high else [f"{name} loss: {low} to {high} %, not {loss}"]
    assert not wrong, "\n".join([*wrong, text])
    assert text.count("aqm: fq_codel  # an active queue, it serves small packets of another flow first") == 1


def test_lines_between_hosts_leave_by_their_interfaces(tmp_path: Path) -> None:
    lines = [[name, [netem(7), tbf(3)], [netem(7), tbf(3)]] for name in ("h1-h2", "h1-h2#2")]
    output = in_guest(
        tmp_path,
        {
            "lines": lines,
            "limits": "rate: 20mbit, bytes: 1GB, time: 1h",
            "command": [
                "lines",
                "--hosts",
                "{hosts}",
                "--ssh-config",
                "{ssh_config}",
                "--out",
                "{folder}/l.yaml",
            ],
            "before": [["h1", "ip", "route", "add", "10.1.2.2/32", "dev", "l1"]],
        },
        code=2,
    )
    assert "h1-h2#2: h1 sends packets from 10.1.2.1 to 10.1.2.2 through l1" in output
    assert not (tmp_path / "l.yaml").exists()


def loss_interval(text: str, name: str) -> tuple[float, float]:
    """Return the interval of the loss there, in percent, from the comments of the scenario."""
    link = text.split(f"    {name}:\n")[1]
    line = next(line for line in link.splitlines() if "loss" in line)
    comment = line.split("#")[1]
    if "below" in comment:
        return 0.0, float(comment.split("below")[1].split("%")[0])
    low, high = comment.split("(")[1].split(")")[0].split(" to ")
    return float(low.removesuffix(" %")), float(high.removesuffix(" %"))


@pytest.mark.users  # root boots this guest in another way; what the other tests show lies inside of it
def test_a_transfer_over_a_token_bucket_gets_what_the_bucket_allows(tmp_path: Path) -> None:
    text = (
        "title: A file\nnetwork: {hosts: [h1, h2], links: {h1-h2: {}}}\n"
        "traffic: [{transfer: {from: h1, to: h2, bytes: 4MB}}]\nrepeat: 1\n"
    )
    bucket = (1_000_000, 20)
    metrics = run_scenario(
        tmp_path, text, [["h1-h2", [netem(10), tbf(4, bucket=bucket)], [netem(10), tbf(20)]]]
    )
    # All frames but those that the bucket covers pass at the baseline.
    expected_s = (4e6 * 1514 / 1448 - bucket[0]) * 8 / 4e6
    assert metrics["completion_s"]["mean"] == pytest.approx(expected_s, rel=0.05)


def test_every_kind_of_traffic_runs_between_two_clocks(tmp_path: Path) -> None:
    text = (
        "title: A call beside other traffic\nnetwork: {hosts: [h1, h2], links: {h1-h2: {}}}\n"
        "traffic:\n"
        "  - udp: {from: h1, to: h2, rate: 80kbit, packet: 200B, duration: 8s, back: true}\n"
        "  - stream: {from: h1, to: h2, message: 5KB, rate: 400kbit, duration: 8s}\n"
        "  - on-off: {from: h2, to: h1, on: 1s, off: 1s, duration: 8s, message: 2KB, rate: 160kbit}\n"
        "  - request: {from: h1, to: h2, response: 20KB, every: 200ms, requests: 10}\n"
        "  - page: {from: h1, to: h2, objects: [10KB, 20KB, 30KB], connections: 2}\n"
        "transport: tcp\nrepeat: 1\n"
    )
    metrics = run_scenario(
        tmp_path, text, [["h1-h2", [netem(10, loss=5), tbf(8)], [netem(10, loss=5), tbf(8)]]]
    )
    build(tmp_path / "out")
    assert (tmp_path / "out" / "report.html").exists()
    (folder,) = (tmp_path / "out" / "trials").glob("*/000")
    flows = pl.read_parquet(folder / "flows.parquet")
    assert flows["completed"].all(), flows
    assert flows["error"].null_count() == len(flows), flows
    messages = pl.read_parquet(folder / "messages.parquet").with_columns(
        arrived=pl.col("received_us").is_not_null()
    )
    of = {flow: part for (flow,), part in messages.partition_by("flow", as_dict=True).items()}
    one_way = flows.filter(pl.col("kind").is_in(["udp", "stream", "on_off"]))["flow"]
    sent_us = messages.filter(pl.col("flow").is_in(one_way.implode()))["sent_us"]
    assert sent_us.null_count() == len(sent_us) > 0, "a delay would compare two clocks"
    calls = [flow for flow, kind in flows.select("flow", "kind").rows() if kind == "udp"]
    assert len(calls) == 2, flows
    for call in calls:  # 400 packets, 5 % loss: 20, and more than 40 or fewer than 5 once in 10 000 trials
        assert len(of[call]) == 400
        assert 5 <= 400 - of[call]["arrived"].sum() <= 40
        assert of[call]["copies"].max() == 1
    (stream,) = flows.filter(pl.col("kind") == "stream")["flow"]
    assert (len(of[stream]), of[stream]["arrived"].all()) == (80, True)
    (bursts,) = flows.filter(pl.col("kind") == "on_off")["flow"]
    assert of[bursts]["arrived"].all()
    assert set(of[bursts]["bytes"]) == {2000}
    assert flows.filter(pl.col("flow") == bursts)["received_bytes"].item() == 2000 * len(of[bursts])
    lost = [value["mean"] for name, value in metrics.items() if name.endswith("udp_loss_ratio")]
    assert lost, metrics.keys()
    assert all(0.01 < ratio < 0.1 for ratio in lost)
    answered_us = (messages["received_us"] - messages["sent_us"]).drop_nulls()
    assert len(answered_us) >= 10
    assert answered_us.min() >= 20_000, "a response takes a round trip at least"
    delays = [name for name, value in metrics.items() if "_delay_p" in name and value["mean"] is not None]
    assert delays == []


def test_a_trial_finds_nothing_of_the_trial_before_on_the_line(tmp_path: Path) -> None:
    """Kernels went on sending what the sockets of an ended agent held: the next trial had half of the line."""
    text = (
        "title: two trials\nnetwork: {hosts: [h1, h2], links: {h1-h2: {rate: 3mbit}}}\n"
        "transport: mptcp\nrepeat: 2\n"
        "traffic: [{bulk: {from: h1, to: h2, duration: 5s}}]\n"
    )
    run_scenario(tmp_path, text, [["h1-h2", [netem(20), tbf(3, queue=250_000)], [netem(20), tbf(3)]]])
    first, second = (value for _, value in read_study(tmp_path / "out").cases[0].measured("goodput_bps"))
    assert second == pytest.approx(first, rel=0.02)
