"""Writes a scenario that resembles what an observation saw, with intervals and with what nobody could see."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from plait.analysis.wording import micros, percent, rate
from plait.dataset.model import Tables
from plait.errors import MachineError
from plait.frames import DSS, ETHERNET_HEADER, FULL_PAYLOAD, IPV4_HEADER, IPV6_HEADER, TCP_HEADER, TIMESTAMPS
from plait.observe.seen import subflows_of
from plait.plan.model.plan import Path, Peers, Plan

_TAIL = 0.005
"""The chance that a true value is below its interval, and that it is above: that of measured lines."""
_IDLE_PART = 0.01
"""A path that carried less of all bytes shows no rate."""
_BUSY_PART = 0.5
"""An interval belongs to the rate of a path if it carried this part of the fastest one."""
_WAYS = {"received_bytes": "from the other end", "acked_bytes": "to the other end"}


@dataclass(frozen=True)
class _Carrier:
    """A path, and the samples of its subflows."""

    path: Path
    samples: pl.DataFrame
    """Rows of the table subflows, with the columns `elapsed_us`, `received`, `acked`, `sent` and `retransmitted`: how
    much they grew since the sample before."""

    def carried(self, column: str) -> int:
        """Return the bytes that `column` counted during the observation."""
        return int(self.samples[_GROWTH[column]].sum() or 0)


_GROWTH = {
    "received_bytes": "received",
    "acked_bytes": "acked",
    "sent_bytes": "sent",
    "retransmitted_segments": "retransmitted",
}


def twin_text(plan: Plan, tables: Tables) -> str:
    """Return the text of a scenario that resembles the lines to the other end with which most bytes were exchanged.

    `plan` and `tables` are those of an observation. Raises MachineError if no connection carried data.
    """
    peers = _busiest(plan, tables)
    carriers = _carriers(plan, peers, tables)
    column = max(_WAYS, key=lambda name: sum(carrier.carried(name) for carrier in carriers))
    total = sum(carrier.carried(column) for carrier in carriers)
    if not total:
        raise MachineError(
            "resembling what was seen: no connection carried data in this time, so no line shows its rate; "
            "observe while a transfer runs"
        )
    used = [carrier for carrier in carriers if carrier.carried(column) >= _IDLE_PART * total]
    mptcp = peers.transport == "mptcp"
    parts = [
        "# `plait observe --twin` wrote this file from connections that it watched. It resembles their lines; it does",
        "# not measure them, as `plait lines` does. Intervals have a confidence of 99 % if samples are independent.",
        "# Rates count Ethernet frames without their check sequence.",
        f"# Most bytes went {_WAYS[column]}. Not visible: other traffic on the lines, their queues (plait's default",
        "# stands for them), jitter, middleboxes, and the settings of the other end.",
        *(
            f"# Left out: {carrier.path.name}, which carried too little to show its rate."
            for carrier in carriers
            if carrier not in used
        ),
        f"title: {json.dumps(f'What was seen between {peers.source} and {peers.target}')}",
        "network:",
        "  hosts: [here, there]",
        "  links:",
    ]
    for number, carrier in enumerate(used, 1):
        parts += _link(carrier, number, column, mptcp=mptcp)
    sender, receiver = ("there", "here") if column == "received_bytes" else ("here", "there")
    reverse = ", reverse: true" if _opener(tables, peers) == receiver else ""
    parts += [
        f"transport: {peers.transport}",
        "traffic:",
        f"  - bulk: {{from: {sender}, to: {receiver}, duration: 10s{reverse}}}",
        "repeat: 5",
    ]
    return "\n".join(parts) + "\n"


def _busiest(plan: Plan, tables: Tables) -> Peers:
    """Return the paths from here to the other end with which most bytes were exchanged."""
    node = plan.network.namespaces[0].name
    grown = _grown(subflows_of(node, tables))

    def carried(peers: Peers) -> int:
        rows = grown.filter(pl.col("flow").is_in(_flows(tables, peers)))
        return sum(int(rows[name].sum() or 0) for name in ("received", "acked"))

    return max((peers for peers in plan.peers if peers.source == node), key=carried)


def _flows(tables: Tables, peers: Peers) -> list[int]:
    """Return the connections between two nodes, whichever opened them."""
    ends = {peers.source, peers.target}
    rows = tables["program_flows"].select("flow", "client", "server").iter_rows()
    return [flow for flow, client, server in rows if {client, server} == ends]


def _opener(tables: Tables, peers: Peers) -> str:
    """Return which end opened most of the connections."""
    flows = tables["program_flows"].filter(pl.col("flow").is_in(_flows(tables, peers)))
    return "here" if 2 * (flows["client"] == peers.source).sum() >= flows.height else "there"


def _grown(subflows: pl.DataFrame) -> pl.DataFrame:
    """Return the samples with how much each counter grew since the sample of that subflow before."""
    keys = ("flow", "subflow", "side")
    return subflows.sort("t_us", maintain_order=True).with_columns(
        pl.col("t_us").diff().over(keys).alias("elapsed_us"),
        *(
            pl.col(column).diff().over(keys).clip(lower_bound=0).alias(name)
            for column, name in _GROWTH.items()
        ),
    )


def _carriers(plan: Plan, peers: Peers, tables: Tables) -> list[_Carrier]:
    grown = _grown(subflows_of(peers.source, tables)).filter(
        pl.col("flow").is_in(_flows(tables, peers)), pl.col("elapsed_us") >= plan.sample_interval_us / 2
    )
    return [
        _Carrier(
            path,
            grown.filter(
                pl.col("local_address") == path.client_address,
                pl.col("remote_address") == path.server_address,
            ),
        )
        for path in peers.paths
    ]


def _link(carrier: _Carrier, number: int, busy: str, *, mptcp: bool) -> Iterator[str]:
    """Yield the lines of a link."""
    path = carrier.path
    yield f"    here-there{'' if number == 1 else f'#{number}'}:"
    yield f"      label: {json.dumps(path.name)}"
    yield f"      # {path.client_address} here, {path.server_address} there"
    median_us = carrier.samples["rtt_us"].median()
    under = f"; the median was {micros(float(median_us))}" if isinstance(median_us, int | float) else ""
    if path.base_rtt_us:
        yield f"      # base RTT: at most {micros(path.base_rtt_us)}, the lowest that TCP saw{under}"
    else:
        yield "      # base RTT: not seen"
    for name, column in (("forward", "acked_bytes"), ("backward", "received_bytes")):
        conditions = [
            *_rate(carrier, column, mptcp=mptcp, busy=column == busy),
            *_delay(path),
            *_loss(carrier, outwards=name == "forward", mptcp=mptcp),
        ]
        written = any(not condition.startswith("#") for condition in conditions)
        yield f"      {name}:" if written else f"      # {name}:"
        yield from (f"        {condition}" for condition in conditions)


def _delay(path: Path) -> Iterator[str]:
    if path.base_rtt_us:
        yield f"delay: {round(path.base_rtt_us / 2)}us  # half of the base RTT"


def _rate(carrier: _Carrier, column: str, *, mptcp: bool, busy: bool) -> Iterator[str]:
    """Yield the rate of one direction: the median of what the path carried while it was busy."""
    if not busy:
        yield "# rate: not seen, and so without a limit; few bytes went this way"
        return
    _, frame = _sizes(carrier, mptcp=mptcp)
    rates = sorted(_rates(carrier, column, frame))
    busy_rates = [bps for bps in rates if bps >= _BUSY_PART * rates[-1]]
    middle = float(pl.Series(busy_rates).median())  # type: ignore[arg-type]  # there is at least one number
    interval = _median_interval(busy_rates)
    bounds = "too few for an interval" if interval is None else f"{rate(interval[0])} to {rate(interval[1])}"
    samples = f"{len(busy_rates)} sample{'' if len(busy_rates) == 1 else 's'}"
    yield (
        f"rate: {max(1, round(middle / 1000))}kbit  # {rate(middle)} ({bounds}), the median of {samples}; the line may "
        "be faster than its sender"
    )


def _rates(carrier: _Carrier, column: str, per_byte: float) -> list[float]:
    """Return the rate of a path in each sample, in bit/s of frames."""
    grown = (pl.col(_GROWTH[column]) * 8e6 * per_byte / pl.col("elapsed_us")).sum()
    return carrier.samples.group_by("t_us").agg(grown.alias("bps"))["bps"].to_list()


def _sizes(carrier: _Carrier, *, mptcp: bool) -> tuple[float, float]:
    """Return the payload of a full segment in bytes, and the bytes of frames for each byte of payload."""
    segment = int(carrier.samples["mss_bytes"].max() or FULL_PAYLOAD)  # type: ignore[arg-type]  # a column of integers
    header = IPV6_HEADER if ":" in carrier.path.client_address else IPV4_HEADER
    payload = max(1, segment - (DSS if mptcp else 0))
    return payload, (segment + TIMESTAMPS + TCP_HEADER + header + ETHERNET_HEADER) / payload


def _loss(carrier: _Carrier, *, outwards: bool, mptcp: bool) -> Iterator[str]:
    """Yield the loss of one direction by the retransmissions: the sender alone knows them.

    The interval is that of Clopper and Pearson (1934).
    """
    payload, _ = _sizes(carrier, mptcp=mptcp)
    segments = round(carrier.carried("sent_bytes") / payload)
    if not outwards:
        yield "# loss: not seen; the sender alone knows it, and it is the other end"
        return
    if not segments:
        yield "# loss: not seen; nothing was sent this way"
        return
    from scipy.special import betaincinv  # type: ignore[import-untyped]  # scipy ships no types

    again = min(segments, carrier.carried("retransmitted_segments"))
    high = 1.0 if again == segments else float(betaincinv(again + 1, segments - again, 1 - _TAIL))
    if not again:
        yield f"# loss: no retransmission of {segments} segments, so below {percent(high)}"
        return
    low = float(betaincinv(again, segments - again + 1, _TAIL))
    yield (
        f"loss: {again / segments * 100:.4g}%  # {percent(low)} to {percent(high)}: {again} retransmissions of "
        f"{segments} segments; a full queue's are among them, so remove this line if the queue should drop"
    )


def _median_interval(ordered: list[float]) -> tuple[float, float] | None:
    """Return the interval of a median by order statistics (David and Nagaraja, 2003); None if it needs more values."""
    from scipy.stats import binom  # type: ignore[import-untyped]  # scipy ships no types

    rank = int(binom.ppf(_TAIL, len(ordered), 0.5))
    return (ordered[rank - 1], ordered[-rank]) if rank else None
