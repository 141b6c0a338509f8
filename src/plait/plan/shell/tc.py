"""The conditions of links as commands of tc.

Three things differ from the agent's qdiscs: a `tc` without netem's `seed` argument cannot set it, tc computes by
itself how red's average decays while the queue is empty, and no tc supports plait_red and plait_trace: there the
script fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from plait.plan.model.links import EFFECTS
from plait.plan.model.plan import Network
from plait.plan.model.qdiscs import Bfifo, Codel, FqCodel, Netem, Pfifo, PlaitRed, PlaitTrace, Qdisc, Red, Tbf
from plait.units import Duration, Rate

IN_ORDER_RATE = "8000tbit"
"""netem's own rate, at which the largest frame takes less than a nanosecond."""


def command_in(netns: str, tool: str, *words: object) -> str:
    """Return a command of `ip`, `bridge` or `tc` in a namespace."""
    return " ".join([tool, "-n", quote(netns), *(quote(str(word)) for word in words)])


def conditions(network: Network) -> Iterator[str]:
    """Yield the commands that shape all links of a network."""
    for ifb in network.ifbs:
        yield command_in(ifb.netns, "ip", "link", "add", ifb.ifname, "address", ifb.mac, "type", "ifb")
        yield command_in(ifb.netns, "ip", "link", "set", ifb.ifname, "up")
    yield from _redirects(network)
    yield from _distributions(network)
    for qdisc in network.qdiscs:
        yield from qdisc_command("add", qdisc)
    if network.distributions:
        yield 'rm -r "$TC_LIB_DIR"; unset TC_LIB_DIR'


def _redirects(network: Network) -> Iterator[str]:
    prepared = set()
    for redirect in network.redirects:
        if (redirect.netns, redirect.source) not in prepared:
            yield command_in(redirect.netns, "tc", "qdisc", "add", "dev", redirect.source, "clsact")
        prepared.add((redirect.netns, redirect.source))
        action = ("matchall", "action", "mirred", "egress", "redirect", "dev", redirect.target)
        where = ("dev", redirect.source, redirect.hook)
        yield command_in(redirect.netns, "tc", "filter", "add", *where, *action)


def _distributions(network: Network) -> Iterator[str]:
    """Yield commands that write the files from which tc reads distributions."""
    if network.distributions:
        yield "TC_LIB_DIR=$(mktemp -d); export TC_LIB_DIR"
    for distribution in network.distributions:
        yield f'cat > "$TC_LIB_DIR/plait-{distribution.name}.dist" <<END'
        for line in _lines(distribution.values):
            yield " ".join(map(str, line))
        yield "END"


def _lines(values: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return (values[start : start + 20] for start in range(0, len(values), 20))


def qdisc_command(verb: str, qdisc: Qdisc) -> Iterator[str]:
    """Yield the command that adds or changes a qdisc."""
    options = qdisc.options
    if isinstance(options, (PlaitRed, PlaitTrace)):
        kind = f"the qdisc {options.kind}, which only plait's kernel has and no tc supports"
        message = f"{qdisc.ifname} in {qdisc.netns} needs {kind}"
        yield f"# {message}"
        yield f'echo "{message}; stopping here" >&2; exit 1'
        return
    parent = ("root",) if qdisc.parent == "root" else ("parent", qdisc.parent)
    where = ("dev", qdisc.ifname, *parent, "handle", qdisc.handle)
    yield command_in(qdisc.netns, "tc", "qdisc", verb, *where, *_options(options))


def _options(options: Netem | Tbf | Red | Codel | FqCodel | Pfifo | Bfifo) -> tuple[object, ...]:
    if isinstance(options, Netem):
        return _netem(options)
    if isinstance(options, Tbf):
        return _tbf(options)
    if isinstance(options, Red):
        return _red(options)
    if isinstance(options, (Codel, FqCodel)):
        return _codel(options)
    if isinstance(options, Pfifo):
        return ("pfifo", "limit", options.limit_packets)
    return ("bfifo", "limit", options.limit_bytes)


def _percent(ratio: float) -> str:
    return f"{ratio * 100:.12g}%"


def _netem(options: Netem) -> tuple[object, ...]:
    words: list[object] = ["netem", "limit", options.limit_packets, "delay", Duration(options.delay_ns)]
    words += [Duration(options.jitter_ns)] if options.jitter_ns else []
    words += ["distribution", f"plait-{options.distribution}"] if options.distribution is not None else []
    words += ["loss", _percent(options.loss_ratio)] if options.loss_ratio else []
    if options.gemodel is not None:
        model = options.gemodel
        words += ["loss", "gemodel", *map(_percent, (model.p, model.r, model.loss_bad, model.loss_good))]
    for name, ratio in options:
        words += [name.removesuffix("_ratio"), _percent(ratio)] if name in EFFECTS and ratio else []
    words += ["rate", IN_ORDER_RATE] if options.in_order else []
    words += ["rate", Rate(options.rate_bps)] if options.rate_bps is not None else []
    return tuple(words)


def _tbf(options: Tbf) -> tuple[object, ...]:
    words: tuple[object, ...] = ("tbf", "rate", Rate(options.rate_bps), "burst", options.burst_bytes)
    words += ("limit", options.limit_bytes)
    if options.peak_bps is not None and options.peak_burst_bytes is not None:
        words += ("peakrate", Rate(options.peak_bps), "mtu", options.peak_burst_bytes)
    return words


def _codel(options: Codel | FqCodel) -> tuple[object, ...]:
    words: tuple[object, ...] = (options.kind, "limit", options.limit_packets)
    words += ("target", Duration(options.target_us * 1000), "interval", Duration(options.interval_us * 1000))
    words += ("ecn" if options.ecn else "noecn",)
    if isinstance(options, FqCodel):
        words += ("flows", options.flows, "quantum", options.quantum_bytes)
    return words


_AVERAGE_PACKET = 1000


def _red(options: Red) -> tuple[object, ...]:
    """Return the arguments of red; tc takes the averaging weight as the size of a burst that may pass."""
    size = ("limit", options.limit_bytes, "min", options.min_bytes, "max", options.max_bytes)
    weight = ("avpkt", _AVERAGE_PACKET, "burst", _burst(options.weight_log, options.min_bytes))
    ecn = ("ecn",) if options.ecn else ()
    return ("red", *size, *weight, "probability", f"{options.probability:.12g}", *ecn)


def _burst(weight_log: int, min_bytes: int) -> int:
    """Return the least burst from which tc computes this weight, or a larger one if no burst gives it.

    iproute2's tc_red.c: the least n with burst + 1 - min / avpkt <= (1 - (1 - 2^-n)^burst) * 2^n.
    """
    burst = max(1, round(min_bytes / _AVERAGE_PACKET))
    while _weight_log(burst, min_bytes) < weight_log:
        burst += 1
    return burst


def _weight_log(burst: int, min_bytes: int) -> int:
    needed = burst + 1 - min_bytes / _AVERAGE_PACKET
    return next((n for n in range(1, 32) if needed <= (1 - (1 - 2.0**-n) ** burst) * 2.0**n), 32)
