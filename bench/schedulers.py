"""Measure what docs/explanation/schedulers.md says of short transfers, messages, dying paths and small caps.

    python bench/schedulers.py [transfers | messages | failures | caps]..

Prints one table of Markdown for each; the columns are schedulers, and the cells are means over seeds.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import plait

if TYPE_CHECKING:
    from plait.analysis.model import CaseSummary

SCHEDULERS = ("default", "minrtt", "roundrobin", "redundant", "blest", "ecf", "balanced", "capped")
SHORT = {
    "10 Mbit/s 10 ms; 10 Mbit/s 200 ms": ((10, 10), (10, 200), ("1MB", "3MB")),
    "20 Mbit/s 20 ms; 2 Mbit/s 100 ms": ((20, 20), (2, 100), ("1MB", "3MB")),
    "50 Mbit/s 20 ms; 5 Mbit/s 20 ms": ((50, 20), (5, 20), ("3MB",)),
}
"""Rate in Mbit/s and RTT in ms of both paths, and the bytes of the transfers."""
FAILURES = {
    "initial path cut": "cut: h1-h2#1",
    "second path cut": "cut: h1-h2#2",
    "initial path down": "down: h1-h2#1",
    "second path down": "down: h1-h2#2",
}
SPLITS = (
    ((20, 100), (10, 10)),
    ((50, 100), (10, 10)),
    ((10, 10), (10, 10), (10, 10)),
    ((30, 10), (20, 40), (10, 80)),
    ((10, 10), (10, 10), (10, 10), (10, 10)),
    ((40, 10), (30, 30), (20, 60), (10, 100)),
)


def network(paths: tuple[tuple[float, float], ...], first: str = "") -> str:
    """Return a network with paths of (Mbit/s, ms of RTT), and further conditions of the first."""
    links = (
        f"h1-h2#{number}: {{rate: {rate}mbit, delay: {rtt / 2}ms{first if number == 1 else ''}}}"
        for number, (rate, rtt) in enumerate(paths, 1)
    )
    return f"hosts: [h1, h2], links: {{{', '.join(links)}}}"


def study(text: str, folder: Path, repeat: int) -> list[CaseSummary]:
    """Return the cases of a study with every scheduler, unless it varies something else."""
    vary = "" if "vary:" in text else f"vary: {{scheduler: [{', '.join(SCHEDULERS)}]}}\n"
    file = folder / "study.yaml"
    file.write_text(f"title: Schedulers\n{text}{vary}repeat: {repeat}\n", encoding="utf-8")
    return plait.run(file, out=Path(tempfile.mkdtemp(dir=folder)), progress=False).summary.cases


def mean(case: CaseSummary, metric: str, factor: float, digits: int) -> str:
    """Return the mean of a metric, times `factor`."""
    value = case.metrics.get(metric)
    return "" if value is None or value.mean is None else f"{value.mean * factor:.{digits}f}"


def row(*cells: str) -> None:
    """Print a row of a table."""
    print("| " + " | ".join(cells) + " |", flush=True)


def head(*names: str) -> None:
    """Print the first rows of a table."""
    row(*names, *SCHEDULERS)
    row(*("--" for _ in (*names, *SCHEDULERS)))


def transfers(folder: Path) -> None:
    """Completion times of short transfers, in ms."""
    head("paths", "bytes")
    for name, (one, other, sizes) in SHORT.items():
        for size in sizes:
            transfer = f"transfer: {{from: h1, to: h2, bytes: {size}}}"
            text = f"network: {{{network((one, other))}}}\ntraffic: [{{{transfer}}}]\n"
            row(name, size, *(mean(case, "completion_s", 1000, 0) for case in study(text, folder, 5)))


def messages(folder: Path) -> None:
    """Median and 99th percentile of the delays of messages, in ms."""
    head("loss")
    for loss in ("0%", "2%"):
        traffic = "stream: {from: h1, to: h2, rate: 4mbit, message: 20kB, duration: 30s}"
        text = f"network: {{{network(((10, 20), (10, 160)), f', loss: {loss}')}}}\ntraffic: [{{{traffic}}}]\n"
        cells = (
            " / ".join(mean(case, f"message_delay_{part}_us", 1e-3, 0) for part in ("p50", "p99"))
            for case in study(text, folder, 3)
        )
        row(loss, *cells)


def failures(folder: Path) -> None:
    """Completion times of 4 MB when a path dies after 0.8 s, in s."""
    head("event")
    for name, event in FAILURES.items():
        text = (
            f"network: {{{network(((10, 20), (10, 20)))}}}\nevents: [{{at: 800ms, {event}}}]\n"
            "traffic: [{transfer: {from: h1, to: h2, bytes: 4MB}}]\n"
        )
        row(name, *(mean(case, "completion_s", 1, 2) for case in study(text, folder, 1)))


def caps(folder: Path) -> None:
    """What `capped` reaches of what its cap allows, in percent, and the largest share of a path in any second."""
    row("paths, Mbit/s", "RTT, ms", "e = 0", "e = 5 %", "e = 20 %")
    row(*["--"] * 5)
    for paths in SPLITS:
        text = (
            f"network: {{{network(paths)}}}\nmptcp: {{scheduler: capped}}\n"
            "traffic: [{bulk: {from: h1, to: h2, duration: 30s}}]\n"
            "vary: {mptcp.capped.extra: [0%, 5%, 20%]}\n"
        )
        cells = (
            f"{mean(case, 'of_cap', 100, 0)} %, {mean(case, 'path_share_window_max', 1, 3)}"
            for case in study(text, folder, 1)
        )
        row(", ".join(str(rate) for rate, _ in paths), ", ".join(str(rtt) for _, rtt in paths), *cells)


TABLES = {"transfers": transfers, "messages": messages, "failures": failures, "caps": caps}


def main() -> None:
    """Measure the tables of the command line, or all."""
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or TABLES:
            TABLES[name](Path(folder))
            print()


if __name__ == "__main__":
    main()
