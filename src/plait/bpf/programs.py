"""Loads congestion controls and schedulers into this machine's kernel, lists them, and takes them away again.

`make bpf` compiles the objects beside plait's own programs, with their SHA-256. `bpftool` loads them (`struct_ops`), so
this machine needs no compiler. The kernel keeps a loaded object until `unload` or a reboot, and is itself the record
of what plait loaded: every object registers under its `mark`. The kernel still lists one that was taken away while
a connection uses it or a network namespace has it as its default, but offers it to nobody else.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
import platform
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from plait.binaries import PROGRAMS
from plait.errors import MachineError, RequestError, printable, shell_command
from plait.janitor import locked_for_all, undone_by

ALGORITHMS = ("lia", "olia", "balia", "wvegas", "cap")
SCHEDULERS = ("minrtt", "roundrobin", "blest", "ecf")
NAMES = (*ALGORITHMS, *SCHEDULERS)
LOADER_OF_SCHEDULERS = (
    "a bpftool with libbpf 1.2 or newer (`bpftool version`), as that of the kernel's own tree"
)
PINNED = Path("/sys/fs/bpf/plait")
"""`load` pins the map with the windows of the subflows here, on request."""
SUMS = "bpf.sha256"
_WINDOWS = "plait_slots"
"""The name of an algorithm's map of windows."""
_LOCK = "host-bpf"
_MOUNTS = Path("/proc/self/mountinfo")
_BTF = Path("/sys/kernel/btf/vmlinux")
_PROC = Path("/proc/sys/net")
_AVAILABLE = ("ipv4/tcp_available_congestion_control", "mptcp/available_schedulers")
_LIMIT_S = 120
_MOST_NAME = 15
_UNLOADING = 'for mark; do "$0" struct_ops unregister name "$mark" >/dev/null 2>&1; done'


def title(name: str) -> str:
    """Return what an algorithm of plait is."""
    return "scheduler" if name in SCHEDULERS else "congestion control"


def setting(name: str) -> str:
    """Return the sysctl that makes an algorithm the default of new connections."""
    return "net.mptcp.scheduler" if name in SCHEDULERS else "net.ipv4.tcp_congestion_control"


def mark(name: str) -> str:
    """Return the name under which the kernel lists the object of an algorithm; it cuts long ones."""
    return f"plait_{name}"[:_MOST_NAME]


def require_known(name: str) -> None:
    """Raise RequestError unless plait has an algorithm of this name."""
    if name not in NAMES:
        close = difflib.get_close_matches(name[:40].lower(), NAMES, n=1)
        guess = f"did you mean '{close[0]}'?" if close else f"it has {', '.join(NAMES)}"
        raise RequestError(f"plait has no BPF program of {name[:40]!r}; {guess}")


def object_of(name: str) -> bytes:
    """Return the object of an algorithm.

    Raises RequestError: plait has no such algorithm; MachineError: the object is missing or damaged.
    """
    require_known(name)
    try:
        content = (PROGRAMS / f"{name}.bpf.o").read_bytes()
        sums = (PROGRAMS / SUMS).read_bytes().splitlines()
    except OSError as error:
        raise MachineError(
            f"reading the BPF program of {name}: {error.strerror} ({error.filename}); install plait's wheel, or run "
            "`make bpf`"
        ) from error
    if f"{hashlib.sha256(content).hexdigest()}  {name}.bpf.o".encode() not in sums:
        raise MachineError(
            f"reading the BPF program of {name}: its SHA-256 is not the one in {PROGRAMS / SUMS}; install plait again, "
            "or run `make bpf`"
        )
    return content


def has_object(name: str) -> bool:
    """Return whether the object of an algorithm is here, undamaged."""
    try:
        object_of(name)
    except MachineError:
        return False
    return True


def accepts(release: str) -> bool:
    """Return whether the verifier of this kernel (`6.12.117-amd64`) accepts the programs (see bpf/README.md)."""
    version = re.match(r"(\d+)\.(\d+)", release)
    return version is not None and (int(version[1]), int(version[2])) >= (6, 12)


def refused_by_verifier() -> str | None:
    """Return why the verifier of this machine's kernel refuses the programs, with the remedy; None if it does not."""
    release = platform.release()
    if accepts(release):
        return None
    return (
        f"Linux {release} is too old, and its verifier refuses the program; boot Linux 6.12 or a newer one (on Debian "
        "12: `apt-get install linux-image-6.12-amd64`)"
    )


def find_loader() -> Path:
    """Return the program `bpftool` (MachineError)."""
    path = shutil.which("bpftool", path=f"{os.environ.get('PATH') or os.defpath}:/usr/sbin:/sbin")
    if path is None:
        raise MachineError(
            "bpftool, which loads BPF programs, is missing; install it (`apt-get install bpftool`)"
        )
    return Path(path)


def loaded_by(tool: Path) -> tuple[str, ...]:
    """Return what this `bpftool` can load (MachineError): a scheduler may sleep, and libbpf has that from 1.2 on."""
    libbpf = re.search(r"libbpf v(\d+)\.(\d+)", _run(tool, "version"))
    return NAMES if libbpf is not None and (int(libbpf[1]), int(libbpf[2])) >= (1, 2) else ALGORITHMS


def require_loading() -> Path:
    """Return `bpftool`. Raises MachineError with the remedy if this machine or this user cannot load BPF programs."""
    if os.geteuid() != 0:
        raise MachineError(
            "loading BPF programs into this machine's kernel needs root, because they run for every user; use sudo"
        )
    if not _BTF.exists():
        raise MachineError(
            f"this machine's kernel has no type information ({_BTF}), by which the programs find its fields; boot a "
            "kernel with CONFIG_DEBUG_INFO_BTF, such as Debian's"
        )
    return find_loader()


def loadable() -> tuple[str, ...]:
    """Return the algorithms that plait can load into this machine's kernel; none if something is missing."""
    try:
        tool = require_loading()
        names = loaded_by(tool) if takes_schedulers() else ALGORITHMS
    except MachineError:
        return ()
    return names if refused_by_verifier() is None and all(map(has_object, names)) else ()


def takes_schedulers() -> bool:
    """Return whether this machine's kernel takes schedulers of MPTCP as BPF programs."""
    return _BTF.exists() and b"\0bpf_struct_ops_mptcp_sched_ops\0" in _BTF.read_bytes()


def available() -> tuple[str, ...]:
    """Return the congestion controls and the schedulers of this machine's kernel (MachineError)."""
    return tuple(name for path in _AVAILABLE for name in _value(path).split())


def loaded() -> tuple[str, ...]:
    """Return the algorithms that plait has loaded and not taken away (MachineError; needs root)."""
    entries = json.loads(_run(require_loading(), "-j", "struct_ops", "list") or "[]")
    listed = {str(entry.get("name", "")) for entry in entries if isinstance(entry, dict)}
    offered = available()
    return tuple(name for name in NAMES if mark(name) in listed and name in offered)


def load(name: str, *, pin: bool = False, take: Callable[[str], int] = locked_for_all) -> bool:
    """Load an algorithm; return whether it was absent. `pin`: show its map of windows below `PINNED`.

    It waits for the end of a trial that has loaded programs, by the lock that `take` takes.
    Raises RequestError: plait has no such algorithm; MachineError: this machine or its kernel refuses it.
    """
    if name in SCHEDULERS and not takes_schedulers():
        raise MachineError(
            f"{name} is a scheduler of MPTCP, and this machine's kernel takes no schedulers by BPF (it has no "
            "struct_ops mptcp_sched_ops); boot a kernel of MPTCP's development tree (mptcp_net-next), or use "
            "`plait run --engine virtual`, which runs it in plait's kernel"
        )
    object_of(name)
    tool = require_loading()
    if name in SCHEDULERS and name not in loaded_by(tool):
        raise MachineError(
            f"loading {name}: {tool} is too old for schedulers; they need {LOADER_OF_SCHEDULERS} "
            "(`make -C tools/bpf/bpftool`)"
        )
    if pin and name in SCHEDULERS:
        raise RequestError(f"--pin shows the windows of a congestion control, and {name} is a scheduler")
    with _alone(take):
        if pin:
            _make_place(tool, name)
        is_new = name not in loaded()
        if is_new:
            _register(tool, name)
        if pin:
            _pin(tool, name)
    return is_new


def unload(name: str, take: Callable[[str], int] = locked_for_all) -> None:
    """Take an algorithm away, and its pin. Connections that use it keep it until they close. It waits as `load` does.

    Raises RequestError: plait has not loaded it; MachineError: new connections would still need it.
    """
    require_known(name)
    tool = require_loading()
    with _alone(take):
        if name not in loaded():
            raise RequestError(f"plait has loaded no {name}; `plait bpf list` shows what it has loaded")
        require_spare((name,))
        try:
            _run(tool, "struct_ops", "unregister", "name", mark(name))
        except MachineError:  # bpftool also tries the ones of that name that open connections keep
            if name in available():
                raise
        with contextlib.suppress(MachineError):  # what is not plait's stays
            _remove_pin(tool, name)


@contextlib.contextmanager
def _alone(take: Callable[[str], int]) -> Iterator[None]:
    """Let no other plait load programs or take them away during the block."""
    lock = take(_LOCK)
    try:
        yield
    finally:
        os.close(lock)


def require_spare(names: Iterable[str]) -> None:
    """Raise MachineError if one of these algorithms is what new connections of this machine get."""
    for name in names:
        path = setting(name)
        if _value(path.removeprefix("net.").replace(".", "/")) == name:
            other = "default" if name in SCHEDULERS else "cubic"
            raise MachineError(
                f"{name} is this machine's default {title(name)}; choose another one first "
                f"(`{shell_command('sysctl', '-w', f'{path}={other}')}`)"
            )


@contextlib.contextmanager
def loaded_for_a_trial(names: Iterable[str], take: Callable[[str], int] = locked_for_all) -> Iterator[None]:
    """Load those of plait's algorithms that this machine's kernel lacks, and take these away at the end (MachineError).

    A process of its own takes them away when plait's end of a pipe closes, so `kill -9` leaves none. It also holds the
    lock that lets one trial at a time use programs; `take` takes it. A trial that needs to load none holds it too: what
    the kernel has may be another trial's, and nobody may take it away meanwhile.
    """
    wanted = set(names) & set(NAMES)
    if not wanted:
        yield
        return
    tool = require_loading()
    missing: list[str] = []

    def arguments() -> list[str]:
        missing.extend(sorted(wanted - set(available())))
        return [str(tool), *map(mark, missing)]

    with undone_by(_UNLOADING, _LOCK, arguments, take) as alive:
        for name in missing:
            object_of(name)
            _register(tool, name, alive)
        yield


def _register(tool: Path, name: str, *inherited: int) -> None:
    if name in available():
        raise MachineError(f"this machine's kernel has a {title(name)} {name} of its own; use that one")
    try:
        _run(tool, "struct_ops", "register", str(PROGRAMS / f"{name}.bpf.o"), inherited=inherited)
    except MachineError as error:
        if (refused := refused_by_verifier()) is None:
            raise
        raise MachineError(f"loading {name}: {refused}") from error


def _make_place(tool: Path, name: str) -> None:
    """Make the folder of pins, without a pin of the algorithm. It may be that of a map that the kernel has no more."""
    kinds = [
        system.split(" ")[0]
        for mount, _, system in (line.partition(" - ") for line in _MOUNTS.read_text().splitlines())
        if mount.split(" ")[4] == str(PINNED.parent)
    ]
    if kinds[-1:] != ["bpf"]:  # elsewhere bpftool would mount file systems of its own
        raise MachineError(
            f"pinning: no bpf file system is mounted at {PINNED.parent}; mount it "
            f"(`mount -t bpf -o mode=700 bpf {PINNED.parent}`)"
        )
    try:
        with contextlib.suppress(FileExistsError):
            PINNED.mkdir(mode=0o700)
    except OSError as error:
        raise MachineError(
            f"pinning: making {PINNED}: {error.strerror}; load {name} without --pin"
        ) from error
    _remove_pin(tool, name)


def _remove_pin(tool: Path, name: str) -> None:
    """Remove the pin of an algorithm's windows if there is one.

    Every user may write to the file system of pins if its mount has the kernel's default mode, so neither the folder
    nor the pin is plait's only because of its name. Raises MachineError if one is something else.
    """
    place = PINNED / name
    for path, is_kind in ((PINNED, stat.S_ISDIR), (place, stat.S_ISREG)):
        try:
            seen = path.lstat()
        except FileNotFoundError:
            return
        mine = seen.st_uid == os.geteuid() and seen.st_dev == PINNED.parent.stat().st_dev
        if not mine or not is_kind(seen.st_mode):
            raise _foreign(path)
    try:
        shown = json.loads(_run(tool, "-j", "map", "show", "pinned", str(place)))
    except MachineError as error:  # a program
        raise _foreign(place) from error
    if shown.get("name") != _WINDOWS:
        raise _foreign(place)
    try:
        place.unlink()
    except OSError as error:
        raise MachineError(f"removing the pin {place}: {error.strerror}") from error


def _foreign(path: Path) -> MachineError:
    command = shell_command("rm", "-r", str(path))
    return MachineError(f"pinning: {path} is not plait's; look at it, and remove it (`{command}`)")


def _pin(tool: Path, name: str) -> None:
    programs = json.loads(_run(tool, "-j", "prog", "show", "name", f"{name}_on_ack"))
    latest = max(programs if isinstance(programs, list) else [programs], key=lambda program: program["id"])
    for number in latest.get("map_ids", ()):
        if json.loads(_run(tool, "-j", "map", "show", "id", str(number))).get("name") == _WINDOWS:
            _run(tool, "map", "pin", "id", str(number), str(PINNED / name))
            return
    raise MachineError(f"pinning the windows of {name}: the loaded program has no map {_WINDOWS}")


def _value(path: str) -> str:
    """Return the value of a setting; nothing for one of MPTCP that an older kernel lacks (MachineError)."""
    try:
        return (_PROC / path).read_text(encoding="ascii").strip()
    except OSError as error:
        if path.startswith("mptcp/") and isinstance(error, FileNotFoundError):
            return ""
        raise MachineError(f"reading {_PROC / path}: {error.strerror}") from error


def _run(tool: Path, *arguments: str, inherited: tuple[int, ...] = ()) -> str:
    command = [str(tool), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_LIMIT_S, check=False, pass_fds=inherited
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MachineError(f"running {' '.join(command)}: {error}") from error
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
        registers = arguments[:2] == ("struct_ops", "register")
        # What registers ends with its error; a wrapper such as Ubuntu's begins with it, and lists packages then.
        remedy = (
            "run it by hand with the option -d to see what the kernel's verifier says"
            if registers
            else "run it by hand, and install a bpftool that works for this kernel if it does not"
        )
        raise MachineError(
            f"running {' '.join(command)}: {printable(lines[-1 if registers else 0])}; {remedy}"
        )
    return done.stdout
