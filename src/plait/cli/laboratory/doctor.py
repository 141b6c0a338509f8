"""`plait doctor`: checks whether this machine can run trials, and names the remedy of what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from plait.binaries import AGENT
from plait.errors import MachineError, PlaitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from plait.kernel import Kernel

_PROBE = """
title: Two hosts that exchange 10 kB
network: {hosts: [a, b], links: {a-b: {delay: 1ms}}}
traffic: [{transfer: {from: a, to: b, bytes: 10KB}}]
"""
_TRIAL_MIB = 300
"""Memory that one trial may need: that of the guest, and its files."""


def command() -> int:
    """Check whether this machine can run trials.

    One check runs a small trial. Exit code 3: this machine cannot run trials in virtual time. What `plait bpf` and
    other parts need is checked all the same.
    """
    checks: tuple[tuple[str, Callable[[], str]], ...] = (
        ("sandbox", _sandbox),
        ("memory", _memory),
        ("agent", _agent),
        ("kernel", lambda: _kernel().name),
        ("a trial", _trial),
    )
    exit_code = 0
    for name, check in checks:
        try:
            typer.echo(f"{name:<10} {check()}")
        except PlaitError as error:
            typer.echo(f"{name:<10} failed: {error}")
            exit_code = MachineError.exit_code
            break
    for name, tell in (("host", _host), ("bpf", _bpf), ("selftests", _selftests), ("captures", _captures)):
        typer.echo(f"{name:<10} {tell()}")
    return exit_code


def _captures() -> str:
    from shutil import which

    from plait.engine.packages import install_hint

    if which("tshark") is None:
        return f"`plait observe --pcap` needs tshark, which is missing; {install_hint('tshark')}"
    return "`plait observe --pcap` finds tshark"


def _sandbox() -> str:
    from plait.engine.virtual.containment import LAYERS, layer_title
    from plait.engine.virtual.guest import probe

    lines = []
    missing = 0
    for layer, reason in probe().items():
        missing += reason is not None
        state = "present" if reason is None else f"MISSING ({reason}): {LAYERS[layer]}"
        lines.append(f"\n{'':<10}   {layer_title(layer):<18} {state}")
    summary = f"{len(LAYERS) - missing} of {len(LAYERS)} layers of the sandbox are present"
    if missing:
        summary += "; a guest with untrusted code needs all layers but Landlock, or --unconfined"
    return summary + "".join(lines)


def _memory() -> str:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    free_mib = next(int(line.split()[1]) >> 10 for line in lines if line.startswith("MemAvailable:"))
    if free_mib < _TRIAL_MIB:
        raise MachineError(
            f"only {free_mib} MiB of memory are available, and a trial may need {_TRIAL_MIB} MiB; end another program"
        )
    return f"{free_mib} MiB available"


def _agent() -> str:

    path = AGENT
    if not path.is_file():
        raise MachineError(f"{path} is missing; run `make setup`")
    return f"{path.stat().st_size >> 10} KiB"


def _kernel() -> Kernel:
    from plait.kernel import built_by_default, ensure, list_built

    if built_by_default() is None and all(kernel.engine == "machine" for kernel, _ in list_built()):
        raise MachineError(
            "no laboratory kernel is built yet; run `plait kernel build` (a few minutes, once), "
            "or install a built one with `pip install 'plait[kernel]'`"
        )
    return ensure()


def _host() -> str:
    """Return whether the engine `host` could run on this machine; nothing else needs it."""
    from plait.engine.host.probe import ALL, Prober

    lacks = Prober().lacks(ALL)
    if not lacks:
        return "the engine host can run here"
    lines = [f"\n{'':<10}   {lack}" for lack in lacks]
    return "the engine host cannot run every scenario here:" + "".join(lines)


def _bpf() -> str:
    """Return whether `plait bpf` could load congestion controls and schedulers into this machine's kernel."""
    from plait.bpf import programs

    try:
        for name in programs.NAMES:
            programs.object_of(name)
        if (refused := programs.refused_by_verifier()) is not None:
            return f"coupled congestion controls cannot be loaded here: {refused}"
        schedulers = "schedulers of MPTCP cannot"
        tool = programs.require_loading()
        if programs.takes_schedulers():
            needs = f"schedulers need {programs.LOADER_OF_SCHEDULERS}"
            schedulers = needs if programs.loaded_by(tool) == programs.ALGORITHMS else "schedulers too"
        programs.loaded()  # some distributions have a `bpftool` that only names the package with it
    except MachineError as error:
        return f"coupled congestion controls cannot be loaded here: {error}"
    return f"coupled congestion controls can be loaded here, by {tool}; {schedulers}"


def _selftests() -> str:
    """Return which suites of `plait selftest` lack programs of this machine; nothing else needs these."""
    from plait.engine.packages import install_hint
    from plait.testing.selftest.suites import TOOLS, missing_tools

    lacking = missing_tools()
    if not lacking:
        return "all programs that upstream's suites run are installed"
    lines = [
        f"\n{'':<10}   {tool} is missing for {', '.join(TOOLS[tool])}; {install_hint(tool)}"
        for tool in lacking
    ]
    return "some of upstream's suites cannot run here:" + "".join(lines)


def _trial() -> str:
    from plait.cache import temporary
    from plait.dataset.convert import convert
    from plait.engine.engine import Job
    from plait.engine.virtual.trial import VirtualEngine
    from plait.engine.virtual.watch import TrialLimits
    from plait.plan.resolve import resolve
    from plait.scenario import parse
    from plait.scenario.vary.cases import expand

    plan = resolve(expand(parse(_PROBE, "the scenario of plait doctor"))[0].scenario, 1)
    with temporary("doctor") as folder:
        engine = VirtualEngine(_kernel(), AGENT, TrialLimits(total_s=60, stall_s=30))
        engine.execute(Job(plan, {}, folder))
        flow = convert(folder / "data", folder / "tables")["flows"].row(0, named=True)
    if not flow["completed"]:
        raise MachineError(
            f"a small trial ran, but its transfer did not complete: {flow['error']}; report this as a bug of plait"
        )
    return f"ran: {flow['received_bytes']} bytes arrived"
