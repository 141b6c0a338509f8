"""`plait measure`: measures real lines, and writes a scenario that emulates them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plait.cli.shared.ending import notify
from plait.cli.shared.options import HostsOption, SshConfigOption

OutFile = Annotated[Path, typer.Option("--out", metavar="FILE", help="Scenario to write")]


def command(*, hosts: HostsOption, out: OutFile, ssh_config: SshConfigOption = None) -> int:
    """Measure the lines between real hosts, and write a scenario that emulates them.

    A line is a link name under which two hosts of the hosts file have an address. plait sends UDP packets in both
    directions, up to the limits of the file; each host must be able to reach the first two ports of the other.
    """
    from plait.errors import MachineError, RequestError, TrialError
    from plait.hosts.read import read_hosts
    from plait.measure.run import measured_lines
    from plait.measure.written import scenario_text

    if hosts is None:
        raise RequestError("plait measure: name the file of the hosts with --hosts hosts.yaml")
    if out.exists():
        raise RequestError(f"--out {out}: this file exists, and plait does not replace it; name another one")
    try:
        lines = measured_lines(read_hosts(hosts), ssh_config, notify)
    except TrialError as error:
        raise MachineError(f"measuring the lines of {hosts}: {error}") from error
    text = scenario_text(lines)
    out.write_text(text, encoding="utf-8")
    typer.echo(text)
    notify(f"wrote {out}; `plait run {out}` runs it")
    return 0
