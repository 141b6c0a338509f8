"""`plait bpf`: loads congestion controls and schedulers into this machine's kernel, and takes them away."""

from __future__ import annotations

from typing import Annotated

import typer

from plait.cli.shared.verbs import Verbs

app = typer.Typer(
    cls=Verbs,
    help="Load congestion controls and schedulers of MPTCP into this machine's kernel.",
    no_args_is_help=True,
)
NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="lia, olia, balia, wvegas or cap; minrtt, roundrobin, blest or ecf (schedulers)"
    ),
]


def take_aloud(name: str) -> int:
    """Return the descriptor of the lock `name`; name the process for whose end plait waits (MachineError)."""
    from plait.cli.shared.ending import notify
    from plait.janitor import locked_for_all

    return locked_for_all(name, lambda holder: notify(f"waiting for {holder} that uses programs for a trial"))


@app.command("load")
def load(
    name: NameArgument,
    *,
    pin: Annotated[
        bool, typer.Option("--pin", help="Show the windows of its subflows in /sys/fs/bpf/plait/NAME")
    ] = False,
) -> None:
    """Load a congestion control or a scheduler, until `plait bpf unload` or the next boot.

    It needs root, bpftool and a kernel with BTF, and for a scheduler one with the struct_ops mptcp_sched_ops.
    Connections use it once you choose it: as the default, and a congestion control also for a route
    (`ip route .. congctl NAME`), or for a socket.
    """
    from plait.bpf import programs

    is_new = programs.load(name, pin=pin, take=take_aloud)
    typer.echo(f"{name} {'is loaded' if is_new else 'was loaded already'}")
    if pin:
        typer.echo(f"See the windows of its subflows: bpftool map dump pinned {programs.PINNED / name}")
    typer.echo(f"Use it for new connections: sysctl -w {programs.setting(name)}={name}")


@app.command("list")
def show() -> None:
    """List the congestion controls and schedulers that plait has, and whether each is loaded."""
    from plait.bpf import programs

    loaded = programs.loaded()
    for name in programs.NAMES:
        typer.echo(f"{name:<10} {'loaded' if name in loaded else 'not loaded'}")


@app.command("unload")
def unload(name: NameArgument) -> None:
    """Take a congestion control or a scheduler away.

    Open connections keep it until they close. A network namespace whose default it is keeps it for new connections,
    too, until another default is chosen there.
    """
    from plait.bpf import programs

    programs.unload(name, take_aloud)
    typer.echo(f"{name} is not loaded any more")
