"""Keeps an observation as a result folder: a study of one case and one trial."""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import platform
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from plait.cache import cache_root
from plait.dataset.study_file import CaseEntry, KernelFacts, StudyFile
from plait.dataset.trial import StoredTables, making_sense, trial_folder
from plait.engine.engine import Engine, EngineIdentity
from plait.engine.workspace import Workspace
from plait.errors import DataError, MachineError, RequestError
from plait.files import Folder
from plait.hosts.model import HostsFile
from plait.observe.captures.engine import CaptureReader
from plait.observe.remote import open_hosts
from plait.observe.seen import with_paths
from plait.observe.watching import Observer, Selection, observing_plan
from plait.plan.identity import plan_bytes, trial_identity
from plait.plan.model.plan import Plan
from plait.study.executors.execution import execute
from plait.study.executors.task import TrialTask, pack_plan
from plait.study.result_folder import cannot_write
from plait.study.study import TrialKey
from plait.version import __version__

CASE = "observed"
_OFF = "MPTCP is off on "
"""What the agent says on its console of a host (agent/src/sample/programs)."""
_SIOCGIFADDR = 0x8915
"""`linux/sockios.h`: the address of an interface."""
_NODE_LENGTH = 60


def observe(
    folder: Path,
    selection: Selection,
    *,
    duration_s: float,
    interval_s: float,
    command: str,
    over: threading.Event,
    watch: Callable[[Path], None] = lambda _: None,
) -> None:
    """Observe connections of this machine, and write them to the new result folder `folder`.

    `over` ends the observation early. `watch` gets the folder in which the tables grow. Raises RequestError if
    `folder` holds something, MachineError if this machine cannot observe or nothing was seen.
    """
    check_new(folder)
    engine = Observer(over, selection.namespace)
    plan = observing_plan(_node(), selection, duration_s, interval_s)
    names = {} if selection.namespace else interface_names()
    keep(folder, engine, plan, title=f"Connections of {_node()}", command=command, names=names, watch=watch)


def read_captures(
    folder: Path,
    files: Iterable[Path],
    selection: Selection,
    *,
    interval_s: float,
    command: str,
    progress: Callable[[str], None] = lambda _: None,
) -> None:
    """Derive an observation from captures of one end or of both, and write it to the new result folder `folder`.

    Raises RequestError if `folder` holds something or a file is no capture, MachineError without tshark or packets.
    """
    check_new(folder)
    engine = CaptureReader(files, selection, progress)
    plan = observing_plan(engine.node, selection, interval_s, interval_s)
    keep(folder, engine, plan, title=f"Captured connections of {engine.node}", command=command, names={})


def observe_hosts(
    folder: Path,
    hosts: HostsFile,
    names: Iterable[str],
    selection: Selection,
    *,
    ssh_config: Path | None,
    duration_s: float,
    interval_s: float,
    command: str,
    over: threading.Event,
) -> None:
    """Observe connections on one host of `hosts` or on both their ends, and write them to the result folder `folder`.

    `over` ends the observation early. Raises RequestError, or MachineError if a host cannot be used.
    """
    check_new(folder)
    with open_hosts(hosts, names, ssh_config, selection, over) as engine:
        node = engine.node
        plan = observing_plan(node, selection, duration_s, interval_s)
        keep(folder, engine, plan, title=f"Connections of {node}", command=command, names=engine.interfaces)


def check_new(folder: Path) -> None:
    """Raise RequestError unless `folder` is missing or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RequestError(f"writing the observation to {folder}: it holds something; give another --out")


def keep(
    folder: Path,
    engine: Engine,
    plan: Plan,
    *,
    title: str,
    command: str,
    names: Mapping[str, str],
    watch: Callable[[Path], None] = lambda _: None,
) -> None:
    """Let `engine` observe what `plan` asks for, and write it to `folder`.

    `names` has the name of the interface of local addresses. Raises RequestError, MachineError.
    """
    identity = engine.identity()
    task = TrialTask(
        TrialKey(CASE, 0),
        trial_identity(plan, *identity.parts),
        engine.name,
        identity,
        (),
        0,
        pack_plan(plan),
    )
    with Workspace(cache_root() / "observe", ".work-") as work:
        watch(work.path)
        result = execute(engine, task, {}, work, stop=threading.Event())
        if result.error is not None:
            raise MachineError(f"observing connections: {result.error}")
        assert isinstance(result.content, Path)
        content = result.content
        try:
            lasted_us = round((result.virtual_s or 0) * 1e6)
            whole = plan.model_copy(update={"end_us": max(plan.end_us, lasted_us)})
            with making_sense(content):
                seen = _with_seen_paths(whole, content, names)
            Folder(content).write("plan.json", plan_bytes(seen))
        except DataError as error:
            raise MachineError(f"reading the observation: {error}") from error
        _keep(folder, content, _study_file(identity, title, command))


def _with_seen_paths(plan: Plan, content: Path, names: Mapping[str, str]) -> Plan:
    """Return the plan with the paths that were seen (MachineError if there was no connection, DataError)."""
    tables = StoredTables(Folder(content))
    if tables["program_flows"].is_empty():
        console = (Folder(content) / "logs").read("console.log").decode(errors="replace")
        nothing = (
            "observing connections: none was seen that matches; start the transfer first, or widen --port, --peer, "
            "--pid and --netns"
        )
        raise MachineError("\n".join([nothing, *disabled_mptcp(console)]))
    return with_paths(plan, tables, names)


def disabled_mptcp(console: str) -> list[str]:
    """Return what agents say of hosts on which MPTCP is off."""
    lines = (line[line.index(_OFF) :] for line in console.splitlines() if _OFF in line)
    return [f"{line}." for line in lines]


def _study_file(identity: EngineIdentity, title: str, command: str) -> StudyFile:
    return StudyFile(
        name=CASE,
        title=title,
        command=command,
        seed=0,
        repeat=1,
        plait_version=__version__,
        engine=identity.engine,
        kernel=KernelFacts(identity=identity.kernel, version=identity.kernel_version),
        agent_sha256=identity.agent_sha256,
        baseline=CASE,
        cases=(CaseEntry(name=CASE, settings={}),),
    )


def _keep(folder: Path, content: Path, study: StudyFile) -> None:
    """Make `folder` a result folder with one trial (MachineError)."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        *parents, name = trial_folder(folder, CASE, 0).inside
        Folder(folder, tuple(parents)).take(content, name)
        Folder(folder).write("study.json", study.text().encode())
    except OSError as error:
        raise MachineError(cannot_write(folder, error)) from error


def _node() -> str:
    """Return the name of this machine as a node."""
    return platform.node().partition(".")[0][:_NODE_LENGTH] or "here"


def interface_names() -> dict[str, str]:
    """Return the name of the interface of each address of this machine: the first IPv4 address and all IPv6 ones."""
    names: dict[str, str] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                answer = fcntl.ioctl(handle, _SIOCGIFADDR, struct.pack("256s", name.encode()))
                names[socket.inet_ntoa(answer[20:24])] = name
    with contextlib.suppress(OSError):
        for line in Path("/proc/net/if_inet6").read_text(encoding="ascii").splitlines():
            digits, *_, name = line.split()
            names[str(ipaddress.IPv6Address(int(digits, 16)))] = name
    return names
