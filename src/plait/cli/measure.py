"""`plait measure`: measures real lines, and writes a scenario that emulates them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plait.cli.shared.ending import notify
from plait.cli.shared.options import HostsOption, SshConfigOption
from plait.cli.shared.outputs import output_file, write_output
from plait.errors import shell_command

OutFile = Annotated[Path, typer.Option("--out", metavar="FILE", help="Scenario to write")]


def command(*, hosts: HostsOption, out: OutFile, ssh_config: SshConfigOption = None) -> int:
    """Measure real lines, and write a scenario that emulates them.

    A line is a link name under which two hosts of the hosts file have an address. plait sends UDP packets in both
    directions, up to the limits of the file, to the first four ports of a host that the other one can reach.
    """
    from plait.errors import MachineError, RequestError, TrialError
    from plait.hosts.read import read_hosts
    from plait.measure.run import measured_lines
    from plait.measure.written import scenario_text

    if hosts is None:
        raise RequestError("plait measure: name the file of the hosts with --hosts hosts.yaml")
    output = output_file(out, "--out", new=True)
    try:
        lines = measured_lines(read_hosts(hosts), ssh_config, notify)
    except TrialError as error:
        raise MachineError(f"measuring the lines of {hosts}: {error}") from error
    text = scenario_text(lines)
    write_output(output, "--out", text.encode(), new=True)
    typer.echo(text)
    notify(f"wrote {out}; `{shell_command('plait', 'run', out)}` runs it")
    return 0
