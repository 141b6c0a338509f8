"""These functions recompute messages, requests, pages, packets, probes and queues by docs/reference/results.md."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from recorded import Flow, Trial, percentile

if TYPE_CHECKING:
    from collections.abc import Callable

MESSAGES, REQUESTS, PACKETS = {"stream", "on_off"}, {"request"}, {"udp"}


def records(trial: Trial, flows: list[Flow]) -> list[dict[str, Any]]:
    wanted = {flow.id for flow in flows}
    return [row for row in trial.rows("messages") if row["flow"] in wanted]


def delays(trial: Trial, flows: list[Flow]) -> list[float]:
    return [
        row["received_us"] - row["sent_us"] for row in records(trial, flows) if row["received_us"] is not None
    ]


def delay(kinds: set[str], share: float) -> Callable[[Trial, list[Flow]], float | None]:
    """Return percentiles of the delay (nearest rank); null when such a flow did not complete."""

    def figure(trial: Trial, flows: list[Flow]) -> float | None:
        mine = [flow for flow in flows if flow.kind in kinds]
        if not all(flow.row["completed"] for flow in mine):
            return None
        return percentile(delays(trial, mine), share)

    return figure


def page_loads(trial: Trial, flows: list[Flow]) -> list[float] | None:
    """Return times from a page's first connect() to the last byte of its last object."""
    loads = []
    for flow in flows:
        if flow.kind == "page":
            objects = [row["received_us"] for row in records(trial, [flow])]
            if None in objects or len(objects) < len(flow.plan["application"]["objects"]):
                return None
            loads.append((max(objects) - flow.row["start_us"]) / 1e6)
    return loads or None


def page_load_s(trial: Trial, flows: list[Flow]) -> float | None:
    loads = page_loads(trial, flows)
    return sum(loads) / len(loads) if loads else None


def page_load_p95_s(trial: Trial, flows: list[Flow]) -> float | None:
    """Return the smallest load time that at least 95 % of the pages do not exceed."""
    loads = page_loads(trial, flows)
    return sorted(loads)[math.ceil(0.95 * len(loads)) - 1] if loads else None


def page_load_max_s(trial: Trial, flows: list[Flow]) -> float | None:
    loads = page_loads(trial, flows)
    return max(loads) if loads else None


def udp_loss_ratio(trial: Trial, flows: list[Flow]) -> float | None:
    """Return the share of UDP packets that did not arrive; null when a flow was cut off."""
    mine = [flow for flow in flows if flow.kind == "udp"]
    packets = records(trial, mine)
    if not packets or not all(flow.row["completed"] for flow in mine):
        return None
    return sum(row["received_us"] is None for row in packets) / len(packets)


def udp_jitter_us(trial: Trial, flows: list[Flow]) -> float | None:
    """Return the mean of |D| over packets that arrived one after the other, D the difference of their delays."""
    differences: list[float] = []
    for flow in flows:
        if flow.kind == "udp":
            if not flow.row["completed"]:
                return None
            arrived = [row for row in records(trial, [flow]) if row["received_us"] is not None]
            arrived.sort(key=lambda row: (row["received_us"], row["index"]))
            late = [row["received_us"] - row["sent_us"] for row in arrived]
            differences += [abs(b - a) for a, b in itertools.pairwise(late)]
    return sum(differences) / len(differences) if differences else None


def iperf3_figures(trial: Trial) -> list[tuple[float, float, float]] | None:
    """Return packets, lost packets and jitter of each program that tells of them; null when one does not say it."""
    by_program: dict[str, dict[str, float]] = {}
    for row in trial.rows("program_figures"):
        by_program.setdefault(row["program"], {})[row["figure"]] = row["value"]
    names = ("iperf3_packets", "iperf3_lost_packets", "iperf3_jitter_us")
    udp = [figures for figures in by_program.values() if "iperf3_udp_bps" in figures]
    if not udp or any(figures.get(name) is None for figures in udp for name in names):
        return None
    return [(figures[names[0]], figures[names[1]], figures[names[2]]) for figures in udp]


def iperf3_udp_loss_ratio(trial: Trial) -> float | None:
    figures = iperf3_figures(trial)
    return (
        sum(lost for _, lost, _ in figures) / sum(packets for packets, _, _ in figures) if figures else None
    )


def iperf3_udp_jitter_us(trial: Trial) -> float | None:
    """Return the mean of `iperf3_jitter_us`, weighted by packets."""
    figures = iperf3_figures(trial)
    return (
        sum(packets * jitter for packets, _, jitter in figures) / sum(packets for packets, _, _ in figures)
        if figures
        else None
    )


def probe_rtt(share: float) -> Callable[[Trial], float | None]:
    """Return round-trip times of the answered probes (percentiles by nearest rank)."""

    def figure(trial: Trial) -> float | None:
        return percentile([row["rtt_us"] for row in trial.rows("probes") if row["rtt_us"] is not None], share)

    return figure


def probe_loss_ratio(trial: Trial) -> float | None:
    """Return the share of those without an answer."""
    probes = trial.rows("probes")
    return sum(row["rtt_us"] is None for row in probes) / len(probes) if probes else None


def queues(trial: Trial) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {}
    for row in trial.rows("links"):
        if row["queue_bytes"] is not None:
            samples.setdefault(row["link"], []).append(row["queue_bytes"])
    return samples


def fullest(trial: Trial) -> list[float]:
    """Return the samples of the direction of a link whose queue is fullest on average over the samples."""
    return max(queues(trial).values(), key=lambda samples: sum(samples) / len(samples), default=[])


def queue_mean_bytes(trial: Trial) -> float | None:
    samples = fullest(trial)
    return sum(samples) / len(samples) if samples else None


def queue_max_bytes(trial: Trial) -> float | None:
    return max(fullest(trial), default=None)


def dropped_packets(trial: Trial) -> float | None:
    """Return the drops of all links by overflow, queue management and random loss."""
    last: dict[str, float] = {}
    for row in sorted(trial.rows("links"), key=lambda row: row["t_us"]):
        last[row["link"]] = row["dropped_packets"]
    return sum(last.values()) if last else None


def queueing_delay(share: float, link: str | None = None) -> Callable[[Trial], float | None]:
    """Return how to get a percentile (nearest rank) of the times in one queue; without a link, the largest."""

    def value(trial: Trial) -> float | None:
        waits: dict[str, list[tuple[int, int | None]]] = {}
        for row in trial.rows("queueing_delays"):
            bins = [(row["at_least_ns"], row["below_ns"])] * row["packets"]
            waits.setdefault(row["link"], []).extend(bins)
        percentiles = []
        for name, bins in waits.items():
            if link is None or name == link:
                first, end = sorted(bins, key=lambda place: place[0])[
                    math.ceil(round(share * len(bins), 6)) - 1
                ]
                if end is None:
                    return None
                percentiles.append((first + end - 1) / 2 / 1000)
        return max(percentiles, default=None)

    return value
