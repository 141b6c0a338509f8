"""The label of a link in drawings and tables: every condition, and each direction where they differ."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from plait.analysis.labels.study_labels import ARROW, StudyLabels
from plait.analysis.wording import plain, rate, significant, size
from plait.frames import DEFAULT_MTU
from plait.plan.model.links import EFFECTS, Link, LinkDirection
from plait.plan.model.plan import Plan
from plait.plan.model.qdiscs import PlaitTrace
from plait.plan.network.model import WIRE

MOST_NOTES = 12


@dataclass(frozen=True)
class LinkWords:
    """The conditions of a link in words: those of both directions, and those that only one of them has."""

    common: tuple[str, ...]
    forward: tuple[str, ...] = ()
    backward: tuple[str, ...] = ()


class LinkLabels:
    """The labels of the links of one plan."""

    def __init__(self, plan: Plan, called: StudyLabels | None = None) -> None:
        """Collect what the records of links leave to other records: traces, middleboxes, MTUs.

        Links of `plan` already have their labels as names; `called` says which do, and what to call nodes.
        """
        self.called = called or StudyLabels()
        self._named = set(self.called.links.values())
        network = plan.network
        # Plans of earlier versions have traces as qdiscs.
        self._traces = {
            qdisc.ifname: qdisc.options.file.name
            for qdisc in network.qdiscs
            if qdisc.netns == WIRE and isinstance(qdisc.options, PlaitTrace)
        }
        self._mtus = {veth.b.ifname: veth.mtu for veth in network.veths if veth.b.netns == WIRE}
        self._middleboxes = {
            box.target: " and ".join(
                words
                for words, acts in (("strips MPTCP options", box.strip), ("rewrites payload", box.rewrite))
                if acts
            )
            for box in network.middleboxes
        }

    def words(self, link: Link) -> LinkWords:
        """Return a link's label, and what it does in both directions, and in only one."""
        words = self._conditions(link)
        name = self.name(link)
        if not name:
            return words
        first, *further = words.common or ("",)
        return replace(words, common=(f"{name}: {first}" if first else name, *further))

    def name(self, link: Link) -> str:
        """Return a link's label; empty without one."""
        return link.name if link.name in self._named else ""

    def _conditions(self, link: Link) -> LinkWords:
        forward, backward = (self._direction(direction) for direction in link.directions)
        return LinkWords(
            tuple(words for words in forward if words in backward),
            tuple(words for words in forward if words not in backward),
            tuple(words for words in backward if words not in forward),
        )

    def label(self, link: Link) -> str:
        """Return all conditions of a link as one text: "5 Mbit/s, 10 ms, queue 100 pkt"."""
        words = self._conditions(link)
        parts = [", ".join(words.common)]
        for direction, one_way in zip(link.directions, (words.forward, words.backward), strict=True):
            if one_way:
                ends = (self.called.node(direction.source), self.called.node(direction.target))
                parts.append(f"{ARROW.join(ends)}: {', '.join(one_way)}")
        return "; ".join(part for part in parts if part)

    def direction(self, direction: LinkDirection) -> str:
        """Return the conditions of one direction as one text."""
        return ", ".join(self._direction(direction))

    def _direction(self, direction: LinkDirection) -> tuple[str, ...]:
        trace = self._traces.get(direction.ifname) if direction.trace is None else direction.trace.file.name
        words = (
            _rate(direction.rate_bps) if trace is None else f"rate of {trace}",
            _delay(direction),
            _loss(direction),
            _queue(direction),
            _bucket(direction),
            *(_share(getattr(direction, name), effect.word) for name, effect in EFFECTS.items()),
            _mtu(self._mtus.get(direction.ifname, DEFAULT_MTU)),
            self._middleboxes.get(direction.ifname, ""),
        )
        return tuple(word for word in words if word)


def wrapped(words: Iterable[str], longest: int, *, first: str = "") -> list[str]:
    """Return words as lines of at most about `longest` letters, the first of which begins with `first`."""
    lines: list[str] = []
    line = first
    for word in words:
        if line.strip() and line != first and len(line) + 2 + len(word) > longest:
            lines.append(f"{line},")
            line = word
        else:
            line = f"{line}, {word}" if line and line != first else f"{line}{word}"
    return [*lines, line] if line.strip() else lines


def _rate(value: int | None) -> str:
    """Return a configured rate without digits that say nothing: "5 Mbit/s", not "5.00 Mbit/s"."""
    return "" if value is None else plain(rate(value))


def _delay(direction: LinkDirection) -> str:
    if direction.delay_ns < 1000:  # netem carries every link; a nanosecond is no delay
        return ""
    ms = f"{direction.delay_ns / 1e6:.3f}".rstrip("0").rstrip(".")
    if not direction.jitter_ns:
        return f"{ms} ms"
    jitter = plain(f"{significant(direction.jitter_ns / 1e6)} ms")
    if direction.jitter_distribution is None:
        return f"{ms} \N{PLUS-MINUS SIGN} {jitter}"
    return f"{ms} ms with {jitter} of {direction.jitter_distribution} jitter"


def _loss(direction: LinkDirection) -> str:
    loss = _share(direction.loss_ratio, "loss")
    burst = direction.loss_burst_packets
    return f"{loss} in bursts of {plain(significant(burst))}" if loss and burst is not None else loss


def _queue(direction: LinkDirection) -> str:
    managed = f" {direction.aqm.removeprefix('plait_')}" if direction.aqm is not None else ""
    if direction.queue_packets is not None:
        return f"queue {direction.queue_packets} pkt{managed}"
    if direction.queue_bytes is not None:
        return f"queue {plain(size(direction.queue_bytes))}{managed}"
    return managed.strip()


def _bucket(direction: LinkDirection) -> str:
    if direction.burst_bytes is None:
        return ""
    if direction.baseline_bps is None:
        return f"bursts of {plain(size(direction.burst_bytes))}"
    return f"bucket {plain(size(direction.burst_bytes))} at {plain(rate(direction.baseline_bps))}"


def _share(ratio: float, effect: str) -> str:
    return f"{ratio * 100:.4g} % {effect}" if ratio else ""


def _mtu(value: int) -> str:
    return f"MTU {value}" if value != DEFAULT_MTU else ""


def node_notes(plan: Plan, called: StudyLabels) -> list[str]:
    """Return what nodes do to packets: address translation, and token buckets that several links share.

    `called` says what people call nodes.
    """
    outside = {
        (nat.netns, port): next(
            (d.target for link in plan.links for d in link.directions if (d.source, d.interface) == (nat.netns, port)),
            port,
        )
        for nat in plan.network.nats
        for port in nat.outside
    }  # fmt: skip
    notes = [
        f"{called.node(router)}: NAT towards {called.node(towards)}"
        for (router, _), towards in outside.items()
    ]
    for bucket in plan.buckets:
        limit = f"{plain(rate(bucket.peak_bps))} while its token bucket of {plain(size(bucket.burst_bytes))} lasts"
        node, _, rest = bucket.name.partition(" ")
        notes.append(f"{called.node(node)} {rest}: {limit}, then {plain(rate(bucket.baseline_bps))}")
    if len(notes) > MOST_NOTES:
        notes[MOST_NOTES:] = [f"{len(notes) - MOST_NOTES} more notes on NAT and token buckets are not drawn"]
    return notes
