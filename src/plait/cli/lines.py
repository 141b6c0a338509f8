"""`plait lines`: measures real lines, and writes a scenario that emulates them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plait.cli.shared.ending import notify
from plait.cli.shared.options import HostsOption, SshConfigOption
from plait.cli.shared.outputs import output_file, write_output
from plait.errors import MachineError, RequestError, TrialError, printable, shell_command

if TYPE_CHECKING:
    from plait.measure.run import Measured
    from plait.measure.survey import LinesRequest

_FROM_HERE = "From this machine to a server (--server)"
ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="HOST",
        help="Other end of the lines, as ssh names it; this machine opens all flows",
        rich_help_panel=_FROM_HERE,
    ),
]
InterfacesOption = Annotated[
    str | None,
    typer.Option(
        "--interfaces", metavar="NAME,..", help="Interfaces to measure", show_default="those with a default route",
        rich_help_panel=_FROM_HERE,
    ),
]  # fmt: skip
AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address", metavar="IP", help="Address of the server for the flows", show_default="that of ssh",
        rich_help_panel=_FROM_HERE,
    ),
]  # fmt: skip
PortsOption = Annotated[
    str,
    typer.Option(
        "--ports", metavar="FIRST-LAST", help="Ports on which the server listens", rich_help_panel=_FROM_HERE
    ),
]
RateOption = Annotated[
    str,
    typer.Option(
        "--rate", metavar="RATE", help="Highest rate that each side sends", rich_help_panel=_FROM_HERE
    ),
]
BytesOption = Annotated[
    str,
    typer.Option(
        "--bytes", metavar="SIZE", help="Most bytes that each side sends", rich_help_panel=_FROM_HERE
    ),
]
OutFile = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FILE", help="Scenario to write", show_default="lines.yaml, or lines-2.yaml, .."
    ),
]
_MOST_FILES = 1000
_TIME = "1h"
"""A bound for the time of sending; rates and phases bound it further."""


def command(
    *,
    server: ServerOption = None,
    interfaces: InterfacesOption = None,
    address: AddressOption = None,
    ports: PortsOption = "5001-5010",
    rate: RateOption = "300mbit",
    most_bytes: BytesOption = "2GB",
    hosts: HostsOption = None,
    out: OutFile = None,
    ssh_config: SshConfigOption = None,
) -> int:
    """Measure real lines, and write a scenario that emulates them.

    With --server, the lines are the interfaces of this machine that lead to the Internet. With --hosts, a line is a
    link name under which two hosts of the file have an address. plait sends UDP packets in both directions, and changes
    nothing on either side.
    """
    from plait.measure.survey import LinesRequest

    if (hosts is None) == (server is None):
        raise RequestError(
            "plait lines: name the other end of this machine's lines with --server HOST, or the file of several hosts "
            "with --hosts hosts.yaml"
        )
    out = _free_name() if out is None else out
    output = output_file(out, "--out", new=True)
    try:
        if server is None:
            assert hosts is not None
            measured = _between_hosts(hosts, ssh_config)
        else:
            names = tuple(name.strip() for name in (interfaces or "").split(",") if name.strip())
            limits = {"rate": rate, "bytes": most_bytes, "time": _TIME}
            measured = _from_here(LinesRequest(server, names, address, ports, limits, ssh_config))
    except TrialError as error:
        raise MachineError(f"measuring the lines of {server or hosts}: {error}") from error
    typer.echo(printable(measured.table()))
    write_output(output, "--out", measured.scenario().encode(), new=True)
    notify(f"wrote {out}; `{shell_command('plait', 'run', out)}` runs it")
    return 0


def _free_name() -> Path:
    """Return lines.yaml, or the first of lines-2.yaml, lines-3.yaml, .. that is free: a measurement replaces none."""
    names = ("lines.yaml", *(f"lines-{number}.yaml" for number in range(2, _MOST_FILES)))
    return next((path for path in map(Path, names) if not path.exists()), Path("lines.yaml"))


def _between_hosts(hosts: Path, ssh_config: Path | None) -> Measured:
    from plait.hosts.read import read_hosts
    from plait.measure.run import measured_between

    return measured_between(read_hosts(hosts), ssh_config, notify)


def _from_here(request: LinesRequest) -> Measured:
    from plait.measure.run import measured_from_here

    return measured_from_here(request, notify)
