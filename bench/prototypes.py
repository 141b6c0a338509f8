"""Compare prototype schedulers with those of the kernel: `python bench/prototypes.py [NETWORK ..]`.

Seven schedulers exist in both worlds. Each of ten networks carries the same bytes with the same scheduler, once over
MPTCP and once over the prototype's transport, both with Reno on each path and one seed. The table has, for each network
and scheduler, the time (completion, or the 95th percentile of message delay) and the share of the first path's observer
in both, and the difference of times in percent.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import plait

SCHEDULERS = ("balanced", "blest", "capped", "ecf", "minrtt", "redundant", "roundrobin")
BULK = ("transfer: {from: h1, to: h2, bytes: 6MB}", "prototype: {from: h1, to: h2, bytes: 6MB}")
SHARED = """\
hosts: [h1, h2], routers: [in, out], links: {h1-in: {delay: 1ms}, h1-in#2: {delay: 1ms}, in-out: {rate: 20mbit,
  delay: 10ms}, out-h2: {delay: 1ms}}"""


def two(first: str, second: str) -> str:
    """Return the network of two hosts with two links."""
    return f"hosts: [h1, h2], links: {{h1-h2#1: {{{first}}}, h1-h2#2: {{{second}}}}}"


class Comparison(NamedTuple):
    """A network, what it carries over MPTCP and over the prototype, and further fields of the scenario."""

    network: str
    traffic: tuple[str, str] = BULK
    more: str = ""
    metric: str = "completion_s"
    bits: tuple[float, float] | None = None
    """What each side receives; then the time follows from the goodput."""


EQUAL = two("rate: 10mbit, delay: 10ms", "rate: 10mbit, delay: 10ms")
UNEQUAL = two("rate: 10mbit, delay: 5ms", "rate: 10mbit, delay: 50ms")
NETWORKS = {
    "equal": Comparison(EQUAL),
    "unequal rates": Comparison(two("rate: 20mbit, delay: 10ms", "rate: 5mbit, delay: 10ms")),
    "unequal delays": Comparison(UNEQUAL),
    "lossy": Comparison(two("rate: 10mbit, delay: 10ms", "rate: 10mbit, delay: 10ms, loss: 1%")),
    "shared bottleneck": Comparison(SHARED),
    "small windows": Comparison(UNEQUAL, more="tcp: {receive_buffer_max: 200KB}\n"),
    "handover": Comparison(EQUAL, more="events: [{at: 1s, cut: h1-h2#1}]\n"),
    "requests": Comparison(
        UNEQUAL,
        (
            "request: {from: h1, to: h2, request: 50KB, response: 8B, requests: 40, nodelay: true}",
            "prototype: {from: h1, to: h2, message: 50KB, messages: 40}",
        ),
        metric="goodput_bps",
        bits=(40 * 8 * 8, 40 * 50_000 * 8),
    ),
    "streams": Comparison(
        UNEQUAL,
        (
            "stream: {from: h1, to: h2, message: 10KB, rate: 12mbit, duration: 4s, nodelay: true}",
            "prototype: {from: h1, to: h2, message: 10KB, messages: 600, interval: 6667us}",
        ),
        metric="message_delay_p95_us",
    ),
    "five paths": Comparison(
        "hosts: [h1, h2], links: {"
        + ", ".join(f"h1-h2#{i}: {{rate: 4mbit, delay: {5 * i}ms}}" for i in range(1, 6))
        + "}",
    ),
}


def scenario(name: str, *, prototype: bool) -> str:
    """Return the scenario of a network, with all schedulers as cases."""
    chosen = NETWORKS[name]
    field = "traffic.0.prototype.scheduler" if prototype else "mptcp.scheduler"
    vary = f"tcp.congestion_control: [reno], {field}: [{', '.join(SCHEDULERS)}]"
    return (
        f"title: {name}\nnetwork: {{{chosen.network}}}\n{chosen.more}"
        f"traffic:\n  - {chosen.traffic[prototype]}\nvary: {{{vary}}}\nrepeat: 1\n"
    )


def measured(name: str, folder: Path, *, prototype: bool) -> dict[str, tuple[float | None, float | None]]:
    """Return by scheduler the metric of a network, and what an observer of the fullest path sees of the stream."""
    file = folder / f"{name.replace(' ', '-')}-{'prototype' if prototype else 'kernel'}.yaml"
    file.write_text(scenario(name, prototype=prototype), encoding="utf-8")
    study = plait.run(file, out=file.with_suffix(""), jobs=1, progress=False)
    values = {}
    for case in study.summary.cases:
        metrics = case.metrics
        time, seen = (metrics.get(key) for key in (NETWORKS[name].metric, "observed_1path_share"))
        scheduler = str(list(case.settings.values())[-1])
        value = time and time.mean
        bits = NETWORKS[name].bits
        if value is not None and bits is not None:
            value = bits[prototype] / value
        values[scheduler] = (value, seen and seen.mean)
    return values


def main() -> None:
    """Measure the networks of the command line, or all, and print one table of Markdown."""
    names = sys.argv[1:] or list(NETWORKS)
    print("| network | scheduler | kernel | prototype | difference | seen, kernel | seen, prototype |")
    print("| -- | -- | --: | --: | --: | --: | --: |")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            kernel, prototype = (measured(name, Path(folder), prototype=each) for each in (False, True))
            for scheduler in SCHEDULERS:
                (time, seen), (its_time, its_seen) = kernel[scheduler], prototype[scheduler]
                off = "" if not time or its_time is None else f"{100 * (its_time / time - 1):+.1f} %"
                shares = (" " if share is None else f"{100 * share:.0f} %" for share in (seen, its_seen))
                cells = (name, scheduler, shown(time), shown(its_time), off, *shares)
                print("| " + " | ".join(cells) + " |", flush=True)


def shown(value: float | None) -> str:
    """Return a number with four digits."""
    return "" if value is None else f"{value:.4g}"


if __name__ == "__main__":
    main()
