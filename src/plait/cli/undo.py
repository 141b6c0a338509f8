"""`plait undo`: restores what plait found on a host before it changed settings that stay."""

from __future__ import annotations

from typing import Annotated

import typer

from plait.cli.shared.options import HostsOption, SshConfigOption
from plait.errors import printable


def command(
    host: Annotated[
        str,
        typer.Argument(metavar="HOST", help="Host of the hosts file, or as ssh names it, or localhost"),
    ],
    *,
    hosts: HostsOption = None,
    ssh_config: SshConfigOption = None,
    printed: Annotated[
        bool, typer.Option("--print", help="Print what would be restored, and change nothing")
    ] = False,
) -> int:
    """Restore the settings that plait found on a host before it changed them.

    These are MPTCP endpoints and limits, sysctls, queueing disciplines, and on localhost what `plait bpf` loaded.
    What somebody else has changed since stays as it is, and plait names it. It needs root on the host, or sudo
    without a password.
    """
    from plait.engine.remote.lasting import RemoteHost, undo
    from plait.hosts.read import read_hosts

    target = RemoteHost.named(host, None if hosts is None else read_hosts(hosts), ssh_config)
    answer = undo(target, preview=printed)
    for line in answer.changed:
        typer.echo(f"{host}: {printable(line)}")
    for line in answer.left:
        typer.echo(f"{host}: left as it is: {printable(line)}")
    unloaded = _unload(preview=printed) if host == "localhost" else []
    for name in unloaded:
        typer.echo(f"{host}: BPF program {name}: loaded -> not loaded")
    if not answer.changed and not answer.left and not unloaded:
        typer.echo(f"{host}: there is nothing to undo")
    return 0


def _unload(*, preview: bool) -> list[str]:
    """Take away the algorithms that `plait bpf` loaded, and return their names (MachineError)."""
    from plait.bpf import programs
    from plait.cli.laboratory.bpf import take_aloud

    if not set(programs.NAMES) & set(programs.available()):
        return []
    names = list(programs.loaded())
    programs.require_spare(names)
    for name in () if preview else names:
        programs.unload(name, take_aloud)
    return names
