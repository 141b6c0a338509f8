"""`plait observe`: watches connections that exist, and keeps what it saw as a result folder."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plait.cli.shared.ending import notify
from plait.cli.shared.options import HostsOption, SshConfigOption, parsed
from plait.cli.shared.outputs import output_file, write_output
from plait.errors import Ended, RequestError, printable, shell_command

if TYPE_CHECKING:
    from rich.table import Table

    from plait.observe.live import CarriedNow, LiveRates
    from plait.observe.watching import Selection

ForOption = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="TIME",
        help="Duration of the observation; Ctrl-C ends it early",
        show_default="60s",
    ),
]
EveryOption = Annotated[
    str | None,
    typer.Option(
        "--every", metavar="TIME", help="Time between two samples", show_default="1s; 100ms with --pcap"
    ),
]
PortOption = Annotated[
    list[int] | None,
    typer.Option(
        "--port", metavar="N", min=1, max=65535, help="Only connections with this local or remote port"
    ),
]
PeerOption = Annotated[
    list[str] | None, typer.Option("--peer", metavar="ADDRESS", help="Only connections to this address")
]
PidOption = Annotated[
    list[int] | None, typer.Option("--pid", metavar="N", min=1, help="Only connections of this process")
]
NetnsOption = Annotated[
    str | None,
    typer.Option(
        "--netns", metavar="NAME", help="Observe in this network namespace (`ip netns`); needs root"
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="New result folder", show_default="results/observed-DATE-TIME"),
]
TwinOption = Annotated[
    Path | None,
    typer.Option("--twin", metavar="FILE", help="Also write a scenario that resembles what was seen"),
]
PcapOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--pcap",
        metavar="FILE",
        help="Read this capture instead of this machine's sockets; repeat it for further interfaces and the other end",
    ),
]
HostOption = Annotated[
    list[str] | None,
    typer.Option(
        "--host", metavar="NAME", help="Observe on this host of --hosts; repeat it for the other end"
    ),
]
_ROWS = 12
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def command(
    *,
    for_: ForOption = None,
    every: EveryOption = None,
    port: PortOption = None,
    peer: PeerOption = None,
    pid: PidOption = None,
    netns: NetnsOption = None,
    hosts: HostsOption = None,
    host: HostOption = None,
    ssh_config: SshConfigOption = None,
    pcap: PcapOption = None,
    out: OutOption = None,
    twin: TwinOption = None,
) -> int:
    """Observe connections that exist, without changing them.

    plait reads the kernel's counters of TCP and MPTCP sockets of this machine or of hosts, or packet captures of one
    end or of both. As root it also gets path-manager events and the last counters of sockets that close. The result
    folder works with report, explain, compare, view and export.
    """
    from plait.cli.shared.report import report_with_progress
    from plait.hosts.read import read_hosts
    from plait.observe.study import observe_hosts
    from plait.observe.watching import Selection

    folder = out or Path("results") / f"observed-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    selection = Selection(tuple(port or ()), tuple(map(_address, peer or ())), tuple(pid or ()), netns)
    twin_file = None if twin is None else output_file(twin, "--twin", new=True)
    interval_s = _interval_s(every or ("100ms" if pcap else "1s"))
    typed = shell_command("plait", *sys.argv[1:]) if sys.argv[1:2] == ["observe"] else "plait observe"
    if (hosts is None) != (not host) or (hosts is not None and pcap):
        raise RequestError(
            "plait observe: --hosts FILE and --host NAME belong together, and exclude --pcap; write for example "
            "--hosts hosts.yaml --host h1"
        )
    if pcap and for_ is not None:
        raise RequestError("--for: captures last as long as they do; leave out --for with --pcap")
    if pcap:
        _read(folder, pcap, selection, interval_s, typed)
    elif hosts is not None:
        duration_s, over = _duration_s(for_ or "60s", interval_s), threading.Event()
        notify(f"observing {', '.join(host or ())} for {duration_s:g} s; Ctrl-C ends it early")
        with _signals_end(over, folder):
            observe_hosts(
                folder, read_hosts(hosts), host or [], selection=selection, duration_s=duration_s,
                interval_s=interval_s, command=typed, ssh_config=ssh_config, over=over,
            )  # fmt: skip
    else:
        _watch(folder, selection, for_ or "60s", interval_s, typed)
    report_with_progress(folder)
    _print_summary(folder)
    if twin_file is not None:
        write_output(twin_file, "--twin", _twin(folder).encode(), new=True)
        typer.echo(f"Twin: {shell_command('plait', 'run', twin)}")
    return 0


def _watch(folder: Path, selection: Selection, for_: str, interval_s: float, typed: str) -> None:
    """Observe the sockets of this machine, and show what goes on if standard error is a terminal."""
    from rich.console import Console
    from rich.live import Live

    from plait.observe.study import observe

    duration_s = _duration_s(for_, interval_s)
    over = threading.Event()
    screen = _Screen(duration_s)
    console = Console(stderr=True)
    if not console.is_terminal:
        notify(f"observing for {duration_s:g} s")
    live = Live(screen, console=console, refresh_per_second=2, transient=True)
    with _signals_end(over, folder), live if console.is_terminal else nullcontext():
        observe(
            folder,
            selection,
            duration_s=duration_s,
            interval_s=interval_s,
            command=typed,
            over=over,
            watch=screen.watch,
        )


def _duration_s(for_: str, interval_s: float) -> float:
    from plait.observe.watching import LONGEST_S
    from plait.units import Duration

    duration_s = parsed("--for", for_, Duration).us / 1e6
    if not 2 * interval_s <= duration_s <= LONGEST_S:
        raise RequestError(
            f"--for {for_}: an observation needs at least two samples ({2 * interval_s:g} s) and at most 24 h"
        )
    return duration_s


def _read(folder: Path, files: list[Path], selection: Selection, interval_s: float, typed: str) -> None:
    """Read captures."""
    from rich.console import Console

    from plait.observe.study import read_captures

    console = Console(stderr=True)
    with console.status("reading captures") as status:
        read_captures(
            folder,
            files,
            selection,
            interval_s=interval_s,
            command=typed,
            progress=lambda text: status.update(f"reading {printable(text)}"),
        )


def _interval_s(every: str) -> float:
    from plait.units import Duration

    interval_s = parsed("--every", every, Duration).us / 1e6
    if not 0.1 <= interval_s <= 60:
        raise RequestError(f"--every {every}: a sample needs 0.1 to 60 s; write for example --every 1s")
    return interval_s


def _twin(folder: Path) -> str:
    """Return the scenario that resembles what the observation in `folder` saw (MachineError)."""
    from plait.dataset.trial import read_trial, trial_folder
    from plait.observe.study import CASE
    from plait.observe.twin import twin_text

    trial = read_trial(trial_folder(folder, CASE, 0))
    return twin_text(trial.plan, trial.tables)


def _address(text: str) -> str:
    import ipaddress

    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        raise RequestError(
            f"--peer {text}: not an IP address; write for example --peer 198.51.100.7"
        ) from error


@contextmanager
def _signals_end(over: threading.Event, folder: Path) -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and SIGHUP end the observation, which completes its data; the next ends plait.

    After SIGTERM or SIGHUP, raise Ended as soon as `folder` has the data.
    """
    first: list[signal.Signals] = []
    before = {number: signal.getsignal(number) for number in _ENDING}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def end(number: int, _: object) -> None:
        first.append(signal.Signals(number))
        over.set()
        restore()

    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, end)
    try:
        yield
    finally:
        restore()
    if first and first[0] != signal.SIGINT:
        report = shell_command("plait", "report", folder)
        notify(f"{folder} has what was observed until then; `{report}` writes its report")
        raise Ended(first[0])


class _Screen:
    """A table of what goes on, which rich asks for again and again."""

    def __init__(self, duration_s: float) -> None:
        self._duration_s = duration_s
        self._folder: Path | None = None
        self._rates: LiveRates | None = None
        self._table: Table | str = ""

    def watch(self, folder: Path) -> None:
        """Begin to show the tables that grow in a subfolder of `folder`."""
        self._folder = folder

    def __rich__(self) -> Table | str:
        from plait.observe.live import LiveRates

        data = None if self._folder is None else next(self._folder.glob("*/data"), None)
        if self._rates is None and data is not None:
            self._rates = LiveRates(data)
        now = None if self._rates is None else self._rates.rates()
        if self._rates is not None and now is not None:
            self._table = _table(now, self._rates.t_s, self._duration_s)
        return self._table


def _table(rates: list[CarriedNow], t_s: float, duration_s: float) -> Table:
    from rich.table import Table

    table = Table(title=f"{t_s:.0f} of {duration_s:.0f} s; Ctrl-C ends", title_justify="left", box=None)
    for name, justify in (
        ("connection", "left"),
        ("Mbit/s", "right"),
        ("RTT ms", "right"),
        ("subflows", "left"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]  # one of rich's words
    for rate in rates[:_ROWS]:
        shares = "\n".join(f"{share:4.0%} {name}" for name, share in rate.shares)
        table.add_row(rate.peer, f"{rate.bits_per_s / 1e6:.2f}", f"{rate.rtt_ms:.1f}", shares)
    if len(rates) > _ROWS:
        table.add_row(f"and {len(rates) - _ROWS} more", "", "", "")
    return table


def _print_summary(folder: Path) -> None:
    """Print what was seen of each connection that carried most, and where to look next."""
    from plait.observe.words import sentences

    for line in sentences(folder):
        typer.echo(printable(line, keep=""))  # a program of another user chooses its name
    typer.echo(f"Report: {folder / 'report.html'}")
    typer.echo(f"Next: {shell_command('plait', 'explain', folder)}")
