"""Comments with commands that approximate the traffic of a plan, to run by hand.

They use common programs: iperf3 (under mptcpize for MPTCP), and netperf for requests. The comments also name what
these programs cannot do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

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
    for step in flow.application.by_hand([other.name for other in flows]):
        if isinstance(step, str):
            yield step
        else:
            program, options = step
            yield from _COMMANDS[program](flow, options)
    yield from _unsupported_options(flow)


def _iperf3(flow: Flow, amount: str) -> Iterator[str]:
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
    yield f"ip netns exec {client} {prefix}iperf3 -c {at} -B {flow.client.address} {amount}{reverse}{options}"
    for join in flow.joins:
        kind = "backup subflows" if join.backup else "subflows"
        yield (
            f"then, in user space (mptcpd; ip mptcp cannot): {join.count} {kind} "
            f"from {join.client_address} (id {join.id}) to {join.server_address}"
        )
    if flow.transport == "mptcp":
        yield f"ip netns exec {client} ss -iaM"


def _netperf(flow: Flow, amount: str) -> Iterator[str]:
    prefix = "mptcpize run " if flow.transport == "mptcp" else ""
    server, client = quote(flow.server.netns), quote(flow.client.netns)
    yield f"ip netns exec {server} {prefix}netserver -p {flow.server.port}"
    yield (
        f"ip netns exec {client} {prefix}netperf -H {flow.server.address} -p {flow.server.port} "
        f"-L {flow.client.address} -t TCP_RR {amount}"
    )


_COMMANDS = {"iperf3": _iperf3, "netperf": _netperf}


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
