"""Comments with commands that approximate the traffic of a plan, to run by hand.

They use common programs: iperf3 (under mptcpize for MPTCP), and netperf for requests. The comments also name what
these programs cannot do.
"""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from plait.plan.model.applications import Bulk, OnOff, Page, PageConnection, Request, Stream, Transfer, Udp

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plait.plan.model.applications import Gap
    from plait.plan.model.plan import Flow, Plan


def traffic(flows: Sequence[Flow]) -> Iterator[str]:
    """Yield comment lines for every flow."""
    for flow in flows:
        yield f"# {flow.name}, {_when(flow, flows)}{', in the background' if flow.background else ''}:"
        if flow.connection is not None:
            shared = "sockets" if flow.transport == "udp" else "connection"
            yield f"#   the other direction of {flows[flow.connection].name}'s {shared} (iperf3 --bidir uses two)"
            continue
        for line in _example(flow, flows):
            yield f"#   {line}"


def programs(plan: Plan) -> Iterator[str]:
    """Yield comment lines for every program."""
    for program in plan.programs:
        waits = f" after {', '.join(program.after)}" if program.after else ""
        yield f"# program {program.name}, at {program.start_us / 1e6:g} s{waits}, in {program.directory}:"
        command = " ".join(quote(word) for word in program.argv).replace("\n", "\n#   ")
        prefix = "mptcpize run " if program.transport == "mptcp" else ""
        yield f"#   ip netns exec {quote(program.netns)} {prefix}{command}"


def _when(flow: Flow, flows: Sequence[Flow]) -> str:
    seconds = f"{flow.start_us / 1e6:g} s"
    if not flow.after:
        return f"from {seconds} on"
    names = [flows[number].name for number in flow.after]
    shown = names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]}"
    return f"{seconds} after the end of {shown}"


def _example(flow: Flow, flows: Sequence[Flow]) -> Iterator[str]:
    match flow.application:
        case Bulk(duration_us=lasts):
            if lasts is None:
                yield "until all other flows have ended; stop it by hand"
            yield from _iperf(flow, f"-t {lasts / 1e6:g}" if lasts is not None else "-t 0")
        case Transfer(bytes=size, first=first):
            if first is not None:
                yield (
                    f"(each side writes {first.bytes} bytes, waits {first.pause_us / 1e6:g} s, and then writes the "
                    "rest; iperf3 cannot do that)"
                )
            yield from _iperf(flow, f"-n {size}")
        case Stream(message_bytes=size, interval_ns=pace, count=count):
            yield f"{count} messages of {size} bytes, one every {pace / 1e6:g} ms; iperf3 does not measure their delays"
            yield from _iperf(flow, f"-b {size * 8 * 10**9 // pace} -l {size} -n {size * count}")
        case Udp(packet_bytes=size, interval_ns=pace, count=count):
            yield f"{count} packets of {size} bytes, one every {pace / 1e6:g} ms"
            yield from _iperf(flow, f"-u -b {size * 8 * 10**9 // pace} -l {size} -t {pace * count / 1e9:g}")
        case OnOff():
            yield from _on_off(flow, flow.application)
        case Request():
            yield from _requests(flow, flow.application)
        case Page(objects=objects, request_bytes=asked):
            yield (
                f"{len(objects)} objects of {sum(objects)} bytes in all, the first one alone, then over parallel "
                f"connections; requests have {asked} bytes (a web server and curl --parallel are similar)"
            )
        case PageConnection(page=page):
            yield f"a further connection of {flows[page].name}"
    yield from _unsupported_options(flow)


def _iperf(flow: Flow, how: str) -> Iterator[str]:
    prefix = "mptcpize run " if flow.transport == "mptcp" else ""
    server, client = quote(flow.server.netns), quote(flow.client.netns)
    at = f"{flow.server.address} -p {flow.server.port}"
    reverse = " -R" if flow.sender == "server" else ""
    options = "".join(
        f" {option} {value}"
        for option, value in (
            ("-C", flow.socket.congestion_control),
            ("-M", flow.socket.mss),
            ("--dscp", flow.socket.dscp),
        )
        if value is not None
    )
    options += " -N" if flow.socket.nodelay else ""
    yield f"ip netns exec {server} {prefix}iperf3 -s -1 -B {at} &"
    yield f"ip netns exec {client} {prefix}iperf3 -c {at} -B {flow.client.address} {how}{reverse}{options}"
    for join in flow.joins:
        kind = "backup subflows" if join.backup else "subflows"
        yield (
            f"then, in user space (mptcpd; ip mptcp cannot): {join.count} {kind} "
            f"from {join.client_address} (id {join.id}) to {join.server_address}"
        )
    if flow.transport == "mptcp":
        yield f"ip netns exec {client} ss -iaM"


def _on_off(flow: Flow, job: OnOff) -> Iterator[str]:
    rate = ""
    if job.message_bytes is not None and job.interval_ns is not None:
        rate = f"-b {job.message_bytes * 8 * 10**9 // job.interval_ns} -l {job.message_bytes} "
    lasts = job.duration_us / 1e6
    yield f"for {lasts:g} s: on for {_gap(job.on)}, off for {_gap(job.off)}, on one connection; repeat:"
    yield from _iperf(flow, f"{rate}-t {job.on.mean_us / 1e6:g}")


def _requests(flow: Flow, job: Request) -> Iterator[str]:
    prefix = "mptcpize run " if flow.transport == "mptcp" else ""
    server, client = quote(flow.server.netns), quote(flow.client.netns)
    long = f"-{job.count}" if job.count is not None else f"{(job.duration_us or 0) / 1e6:g}"
    if job.gap is not None:
        pause = (
            "after each answer, a pause of"
            if job.loop == "closed"
            else "without waiting for answers, one every"
        )
        yield f"{pause} {_gap(job.gap)}; netperf sends the next request at once"
    yield f"ip netns exec {server} {prefix}netserver -p {flow.server.port}"
    yield (
        f"ip netns exec {client} {prefix}netperf -H {flow.server.address} -p {flow.server.port} "
        f"-L {flow.client.address} -t TCP_RR -l {long} -- -r {job.request_bytes},{job.response_bytes}"
    )


def _gap(gap: Gap) -> str:
    return f"{'exponential, ' if gap.exponential else ''}{gap.mean_us / 1e6:g} s"


def _unsupported_options(flow: Flow) -> Iterator[str]:
    """Yield the socket options for which those programs have no argument."""
    options = flow.socket
    given = [
        f"{name} {value}"
        for name, value in (
            ("net.mptcp.scheduler, while it creates its sockets, to", options.scheduler),
            ("SO_SNDBUF", options.send_buffer),
            ("SO_RCVBUF", options.receive_buffer),
            ("SO_MARK", options.mark),
            ("TCP_NOTSENT_LOWAT", options.notsent_lowat),
        )
        if value is not None
    ]
    if given:
        yield f"(a trial also sets {', '.join(given)})"
