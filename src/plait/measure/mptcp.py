"""MPTCP of the hosts that a scenario stands for: its part of the scenario, and what keeps it from using the lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from plait.engine.remote.answers import LARGEST_LIMIT
from plait.errors import shell_command
from plait.measure.named import NamedLine
from plait.measure.settings import ENABLED, LABORATORY_SCHEDULERS, HostSettings, common_scheduler


def mptcp_text(lines: Sequence[NamedLine], settings: Mapping[str, HostSettings]) -> Iterator[str]:
    """Yield the lines of `mptcp`: the scheduler, and limits and endpoints of all hosts if they could be listed."""
    body = [*_scheduler(settings), *_path_manager(settings), *_endpoints(lines, settings)]
    if not all(text.startswith("  #") for text in body):
        yield "mptcp:"
        yield from body
    else:
        yield from (text.removeprefix("  ") for text in body)


def _scheduler(settings: Mapping[str, HostSettings]) -> Iterator[str]:
    """Yield the scheduler if all hosts have the same; otherwise each host has its own (`hosts_text`)."""
    scheduler = common_scheduler(settings)
    if scheduler in LABORATORY_SCHEDULERS:
        yield f"  scheduler: {scheduler}"
    elif scheduler is not None:
        yield f"  # scheduler: {scheduler}, which plait's kernel lacks; its default stands for it"


def _path_manager(settings: Mapping[str, HostSettings]) -> Iterator[str]:
    programs = [name for name, host in settings.items() if host.has_program_for_paths]
    if programs:
        yield f"  # path manager: on {', '.join(programs)} a program opens subflows, which plait does not see"
    else:
        yield "  # path manager: that of the kernel"


def _endpoints(lines: Sequence[NamedLine], settings: Mapping[str, HostSettings]) -> Iterator[str]:
    hosts = _hosts(lines)
    if any(settings[name].has_program_for_paths for name in hosts):
        yield "  # endpoints and limits: plait derives some that use all lines"
        return
    is_home = has_one_address(lines)
    needed = [lines[0].client.host] if is_home else hosts
    if any(settings[name].endpoints is None for name in needed):
        yield "  # endpoints and limits: not listed, which needs root; plait derives some that use all lines"
    elif is_home:
        yield from _endpoints_of_home(lines, settings)
    else:
        yield from _endpoints_between(hosts, lines, settings)


def _endpoints_of_home(lines: Sequence[NamedLine], settings: Mapping[str, HostSettings]) -> Iterator[str]:
    """Yield limits and endpoints of a client whose lines all lead to one address.

    The scenario gives the server an address on each line, where the real one has one address. An endpoint that
    announces it takes the place of the join that the client's kernel makes to the server's only address.
    """
    client, server = lines[0].client.host, lines[0].server.host
    flags = used_flags(lines, settings[client])
    subflows = min(LARGEST_LIMIT, settings[client].subflows or 0)
    accepted = min(LARGEST_LIMIT, max(settings[client].add_addr_accepted or 0, len(flags)))
    yield "  limits:"
    yield f"    {client}: {{subflows: {subflows}, add_addr_accepted: {accepted}}}"
    # the server of a home joins nothing, so its own limit counts what it accepts
    if (accepting := settings[server].subflows) is not None:
        yield f"    {server}: {{subflows: {min(LARGEST_LIMIT, accepting)}, add_addr_accepted: 0}}"
    yield "  endpoints:  # those of the server stand for its only address, which all lines reach"
    yield f"    {client}: {_listed(flags)}"
    yield f"    {server}: {_listed(dict.fromkeys(flags, ('signal',)))}"


def _endpoints_between(
    hosts: Sequence[str], lines: Sequence[NamedLine], settings: Mapping[str, HostSettings]
) -> Iterator[str]:
    """Yield limits and endpoints of hosts that have an address on each line."""
    yield "  limits:"
    for name in hosts:
        subflows, accepted = (
            min(LARGEST_LIMIT, limit or 0)
            for limit in (settings[name].subflows, settings[name].add_addr_accepted)
        )
        yield f"    {name}: {{subflows: {subflows}, add_addr_accepted: {accepted}}}"
    yield "  endpoints:"
    for name in hosts:
        yield f"    {name}: {_listed(_flags_of(name, lines, settings[name]))}"


def _flags_of(name: str, lines: Sequence[NamedLine], host: HostSettings) -> dict[str, tuple[str, ...]]:
    """Return the flags of a host's endpoints, by the link that has the address."""
    ends = ((line.name, end) for line in lines for end in line.ends if end.host == name)
    endpoints = host.endpoints or {}
    flags = {link: endpoints.get(end.address) or endpoints.get(end.public or "") for link, end in ends}
    return {link: words for link, words in flags.items() if words}


def _listed(flags: Mapping[str, tuple[str, ...]]) -> str:
    endpoints = (f'{{link: "{name}", flags: [{", ".join(words)}]}}' for name, words in flags.items())
    return f"[{', '.join(endpoints)}]"


def _hosts(lines: Sequence[NamedLine]) -> list[str]:
    return list(dict.fromkeys(end.host for line in lines for end in line.ends))


def has_one_address(lines: Sequence[NamedLine]) -> bool:
    """Return whether all lines lead from one client to one address of one server."""
    return len({(line.client.host, line.server.host, line.server.public) for line in lines}) == 1


def used_flags(lines: Sequence[NamedLine], client: HostSettings) -> dict[str, tuple[str, ...]]:
    """Return the flags of the client's endpoints that open subflows, by link, without the line of the first subflow."""
    listed = {line.name: (client.endpoints or {}).get(line.client.address, ()) for line in lines[1:]}
    opening = {name: tuple(flag for flag in flags if flag != "signal") for name, flags in listed.items()}
    return {name: flags for name, flags in opening.items() if {"subflow", "fullmesh"} & set(flags)}


def remarks(lines: Sequence[NamedLine], settings: Mapping[str, HostSettings]) -> Iterator[str]:
    """Yield what keeps MPTCP of these hosts from using the lines, with the commands that change it."""
    for name, host in settings.items():
        enabled = host.values.get(ENABLED)
        if enabled is None:
            yield f"the kernel of {name} has no MPTCP; it needs Linux 5.6 or later with CONFIG_MPTCP"
        elif enabled != "1":
            yield f"{name} has MPTCP disabled; enable it there: `sudo sysctl -w net.mptcp.enabled=1`"
        if host.has_program_for_paths:
            yield (
                f"on {name} a program opens the subflows (net.mptcp.pm_type is 1), so the kernel ignores its MPTCP "
                "endpoints; unless mptcpd does it on purpose: `sudo sysctl -w net.mptcp.pm_type=0`"
            )
    pairs: dict[tuple[str, str], list[NamedLine]] = {}
    for line in lines:
        pairs.setdefault((line.client.host, line.server.host), []).append(line)
    for between in pairs.values():
        yield from _idle_lines(between, settings)


def _idle_lines(lines: Sequence[NamedLine], settings: Mapping[str, HostSettings]) -> Iterator[str]:
    """Yield what keeps MPTCP from using the lines between two hosts, if their endpoints could be listed."""
    name = lines[0].client.host
    client, server = settings[name], settings[lines[0].server.host]
    if client.endpoints is None or client.has_program_for_paths:
        return
    used = set(used_flags(lines, client))
    if not has_one_address(lines):
        used |= {line.name for line in lines[1:] if _is_joined(line, client, server)}
    for line in lines[1:]:
        if line.name not in used:
            device = () if line.interface is None else ("dev", line.interface)
            add = ("sudo", "ip", "mptcp", "endpoint", "add", line.client.address, *device, "subflow")
            yield (
                f"{name} has no MPTCP endpoint for {line.label}, so MPTCP leaves it idle; add one: "
                f"`{shell_command(*add)}`"
            )
    if client.subflows is not None and client.subflows < len(used):
        raised = shell_command("sudo", "ip", "mptcp", "limits", "set", "subflows", str(len(used)))
        yield (
            f"the MPTCP limits of {name} allow {client.subflows} additional subflows, and its endpoints "
            f"need {len(used)}: `{raised}`"
        )


def _is_joined(line: NamedLine, client: HostSettings, server: HostSettings) -> bool:
    """Return whether an announcement of one end, or an endpoint of the server, lets a subflow use the line."""
    ends = ((server, line.server, client), (client, line.client, server))
    for host, end, peer in ends:
        flags = (host.endpoints or {}).get(end.address) or (host.endpoints or {}).get(end.public or "") or ()
        if "signal" in flags and (peer.add_addr_accepted or 0) > 0:
            return True
    return bool({"subflow", "fullmesh"} & set((server.endpoints or {}).get(line.server.address, ())))
