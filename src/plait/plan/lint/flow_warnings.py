"""Findings about flows: buffers that cannot fill their paths, and durations that are too short."""

from __future__ import annotations

from collections.abc import Iterator

from plait.cautions import Code
from plait.frames import FULL_PAYLOAD
from plait.plan.finding import LintFinding
from plait.plan.model.plan import Flow, Path, Plan
from plait.plan.traffic.flow_slots import slots
from plait.scenario import Scenario
from plait.scenario.mistakes import Where
from plait.traffic.bulk import Bulk
from plait.traffic.transfer import Transfer

INITIAL_WINDOW_BYTES = 10 * FULL_PAYLOAD
"""RFC 6928: ten segments."""
BURST_BYTES = 2**16
"""Linux's default scheduler gives a subflow up to 64 KB at once, which fill the window while other paths are idle."""
STEADY_FACTOR = 5
"""The least ratio of the duration of a run to that of its start."""
LEAST_SAMPLES = 10
"""A series of fewer samples does not show a development over time."""


def lint(scenario: Scenario, plan: Plan) -> Iterator[LintFinding]:
    """Yield the findings: first that flows are not sampled, then flow by flow in the order of the plan."""
    yield from _unsampled(plan)
    for flow, slot in zip(plan.flows, slots(scenario), strict=True):
        here: Where = ("traffic", slot.entry, scenario.traffic[slot.entry].key)
        if isinstance(flow.application, (Bulk, Transfer)):
            yield from _buffers(plan, flow, here)
        late = list(_until(plan, flow))
        short = [] if late else list(_duration(flow, here))
        yield from late
        yield from short
        if not late and not short and not flow.unsampled:
            yield from _samples(plan, flow)
        yield from _short_transfer(flow, here)


def _buffers(plan: Plan, flow: Flow, here: Where) -> Iterator[LintFinding]:
    """Yield buffers below sum(rate) * max(RTT), with which one path waits for another (Raiciu et al., NSDI 2012)."""
    paths = [path for path in flow.paths if not path.backup] or flow.paths
    if any(path.rate_bps is None for path in paths) or flow.ideal_rate_bps is None:
        return
    needed = int(flow.ideal_rate_bps * max(path.base_rtt_us for path in paths) / 8e6)
    bursts = BURST_BYTES * len(paths) if flow.transport == "mptcp" and len(paths) > 1 else 0
    sender, receiver = flow.client.netns, flow.server.netns
    if flow.sender == "server":
        sender, receiver = receiver, sender
    for code, word, host, socket_buffer, sysctl in (
        (Code.RECEIVE_BUFFER, "receive", receiver, flow.socket.receive_buffer, "net/ipv4/tcp_rmem"),
        (Code.SEND_BUFFER, "send", sender, flow.socket.send_buffer, "net/ipv4/tcp_wmem"),
    ):
        usable = socket_buffer if socket_buffer is not None else _largest(plan, host, sysctl) // 2
        least = needed + (bursts if code is Code.RECEIVE_BUFFER else 0)
        if usable < least:
            setting = f"{word}_buffer" if socket_buffer is not None else f"tcp.{word}_buffer_max"
            more = (
                f", and the scheduler gives each of them {_size(BURST_BYTES)} at once"
                if least > needed
                else ""
            )
            yield LintFinding(
                code,
                flow.name,
                f"the {word} buffer allows about {_size(usable)} in flight, but its paths hold {_size(needed)} "
                f"(the sum of their rates times the largest RTT){more}, so it cannot always fill the links",
                f"raise {setting} to at least {_setting(2 * least)}",
                (*here, setting) if socket_buffer is not None else ("tcp", f"{word}_buffer_max"),
                {"usable_bytes": usable, "needed_bytes": least},
            )


def _size(count: int) -> str:
    """Return bytes as "262 kB" or "1.22 MB"."""
    return f"{count / 1e3:.3g} kB" if count < 999_500 else f"{count / 1e6:.3g} MB"


def _setting(least: int) -> str:
    """Return a size of at least `least` bytes as a scenario has it, in steps of 10 KB."""
    steps = -(-least // 10_000)
    return f"{steps * 10}KB" if steps < 100 else f"{steps / 100:g}MB"


def _largest(plan: Plan, host: str, sysctl: str) -> int:
    """Return the bytes up to which the kernel grows a buffer by itself: half for data, half for bookkeeping."""
    return int(plan.sysctls[host][sysctl].split()[-1])


def _duration(flow: Flow, here: Where) -> Iterator[LintFinding]:
    """Yield bulk flows that are too short for slow start.

    Slow start doubles the window every round trip, from ten segments to one bandwidth-delay product.
    """
    lasts_us = _lasts_us(flow)
    if lasts_us is None:
        return
    start_us = max((_slow_start_us(path) for path in flow.paths), default=0)
    needed_us = STEADY_FACTOR * start_us
    if lasts_us < needed_us:
        yield LintFinding(
            Code.DURATION,
            flow.name,
            f"it lasts {lasts_us / 1e6:g} s, and slow start alone takes about {start_us / 1e6:.2g} s; "
            "its goodput will mostly reflect the start",
            f"set a duration of at least {needed_us / 1e6:.2g} s",
            (*here, "duration"),
            {"duration_us": lasts_us, "slow_start_us": round(start_us)},
        )


def _lasts_us(flow: Flow) -> int | None:
    """Return the duration of a bulk flow; None: another kind of flow, or no end of its own."""
    return flow.application.duration_us if isinstance(flow.application, Bulk) else None


def _slow_start_us(path: Path) -> float:
    """Return the duration of slow start in us.

    It consists of connection set-up (two round trips for a joined subflow) and the doublings up to one BDP.
    """
    if path.rate_bps is None:
        return 2 * path.base_rtt_us
    product = path.rate_bps * path.base_rtt_us / 8e6
    doublings = max(0, int(product / INITIAL_WINDOW_BYTES)).bit_length()
    return (2 + doublings) * path.base_rtt_us


def _until(plan: Plan, flow: Flow) -> Iterator[LintFinding]:
    """Yield flows that cannot end before the trial does."""
    job, lasts_us = flow.application, _lasts_us(flow)
    if flow.after:
        return
    if lasts_us is not None:
        needed_us = flow.start_us + lasts_us
    elif isinstance(job, Transfer) and flow.ideal_rate_bps:
        needed_us = flow.start_us + int(job.bytes * 8e6 / flow.ideal_rate_bps)
    else:
        needed_us = flow.start_us + 1
    if needed_us > plan.end_us:
        yield LintFinding(
            Code.UNTIL,
            flow.name,
            f"it cannot be complete before {needed_us / 1e6:.3g} s, but the trial ends at {plan.end_us / 1e6:g} s: it "
            "will count as failed",
            "raise until, or leave until out",
            ("until",),
            {"end_us": plan.end_us, "needed_us": needed_us},
        )


def _samples(plan: Plan, flow: Flow) -> Iterator[LintFinding]:
    lasts_us = _lasts_us(flow)
    if lasts_us is not None and lasts_us < LEAST_SAMPLES * plan.sample_interval_us:
        yield LintFinding(
            Code.SAMPLE,
            flow.name,
            f"it lasts {lasts_us / 1e6:g} s, and plait samples it every {plan.sample_interval_us / 1e6:g} s; that is "
            "too few samples to show its development over time",
            f"set sample to {max(1, lasts_us // 50_000)}ms, for example",
            ("sample",),
            {"duration_us": lasts_us, "sample_us": plan.sample_interval_us},
        )


def _unsampled(plan: Plan) -> Iterator[LintFinding]:
    known, count = plan.sampled_flows
    if known < count:
        yield LintFinding(
            Code.UNSAMPLED,
            "traffic",
            f"{known} of {count} flows sampled; the others have no curves and no explanation, and metrics that need "
            "all samples are null",
            "leave flows out of sample to sample all",
            ("sample", "flows"),
            {"sampled": known, "flows": count},
        )


def _short_transfer(flow: Flow, here: Where) -> Iterator[LintFinding]:
    """Yield transfers that fit into the first window, which leaves before a second subflow exists."""
    size = flow.application.bytes if isinstance(flow.application, Transfer) else INITIAL_WINDOW_BYTES + 1
    if flow.transport == "mptcp" and len(flow.paths) > 1 and size <= INITIAL_WINDOW_BYTES:
        yield LintFinding(
            Code.SHORT_TRANSFER,
            flow.name,
            f"its {size} bytes fit into the first window ({INITIAL_WINDOW_BYTES}), which leaves before another "
            "subflow can join: MPTCP will behave like TCP on the initial path",
            "send more bytes, or choose the initial path with via",
            (*here, "bytes"),
            {"bytes": size, "window_bytes": INITIAL_WINDOW_BYTES},
        )
