"""QEMU: its files, gathered for the sandbox, and its command line.

The sandbox holds no file of this machine but the guest's inputs, so plait copies QEMU's program, the libraries that it
needs, its accelerator and its firmware to the cache, once for each version. The dynamic loader is the one file that the
sandbox may execute.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from plait.cache import CACHE_REMEDY, alone, scratch, used_folder
from plait.engine.virtual.outcome import MACHINE_CONSOLE
from plait.errors import MachineError, shell_command
from plait.files import Folder
from plait.kernel.unpack import file_sha256

PROGRAM, PACKAGE = "qemu-system-x86_64", "qemu-system-x86"
FOLDER = "emulator"
"""The name of the input with QEMU's files (contain/src/root.rs)."""
PROGRESS, RESULTS, CONSOLE = "progress", "results.frames", MACHINE_CONSOLE
"""The files that the guest writes, in the folder that it may write to."""
IMAGE, ROOT, JOB = "vmlinuz", "root.cpio", "job.cpio"
"""The files that it boots from, and the one with its job, beside its other inputs."""
_DATE = "2023-11-14T22:13:20"
"""The date of every guest at boot, as `plait.engine.virtual.boot_inputs.EPOCH_NS`."""
_FIRMWARE = ("bios-256k.bin", "kvmvapic.bin", "linuxboot_dma.bin")
_DATA = ("/usr/share/qemu", "/usr/share/seabios", "/usr/local/share/qemu", "/usr/lib/ipxe/qemu")
_MODULE_FOLDERS = ("/usr/lib/x86_64-linux-gnu/qemu", "/usr/lib64/qemu", "/usr/lib/qemu")
_ACCELERATOR = "accel-tcg-x86_64.so"
_LIBRARY = re.compile(r"^\s*(\S+) => (/\S+) \(0x", re.MULTILINE)
KERNEL_ARGUMENTS = (
    "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable no_timer_check random.trust_cpu=on "
    "rdinit=/init"
)
PROCESSOR = "max,-erms"
"""QEMU executes `rep movsb` byte by byte; without `erms`, Linux copies words."""
_LOADER = re.compile(r"^\s*(/\S*ld-linux\S*) \(0x", re.MULTILINE)


@dataclass(frozen=True)
class Emulator:
    """QEMU's files in the cache."""

    folder: Path
    loader: Path
    version: str
    identity: str
    """A hash of the program, its accelerator and its firmware."""


def find_emulator() -> Emulator:
    """Return this machine's QEMU, gathered in the cache (MachineError if it is missing or incomplete)."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise MachineError(
            f"starting a machine: {PROGRAM} is not installed; install it "
            f"(`{shell_command('apt-get', 'install', PACKAGE)}`)"
        )
    files = dict(_files(Path(program).resolve()))
    stamp = "\n".join(
        f"{name} {path} {path.stat().st_size} {path.stat().st_mtime_ns}" for name, path in files.items()
    )
    folder = used_folder("emulator") / hashlib.sha256(stamp.encode()).hexdigest()[:32]
    if not (folder / "complete").is_file():
        with alone("emulator"):
            if not (folder / "complete").is_file():
                _gather(files, folder)
    identity, _, version = (folder / "complete").read_text(encoding="utf-8").strip().partition(" ")
    return Emulator(folder / FOLDER, folder / "loader", version, identity)


def _files(program: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files that QEMU needs, by their names in the sandbox."""
    yield f"{FOLDER}/qemu", program
    accelerators = [Path(folder, _ACCELERATOR) for folder in _MODULE_FOLDERS]
    modules = [path for path in accelerators if path.is_file()][:1]
    for path in modules:  # without one, TCG is in the program itself
        yield f"{FOLDER}/modules/{path.name}", path
    for listing in [_linked(path) for path in (program, *modules)]:
        for name, path in _LIBRARY.findall(listing):
            yield f"{FOLDER}/lib/{name}", Path(path).resolve()
        for path in _LOADER.findall(listing):
            yield "loader", Path(path).resolve()
    for name in _FIRMWARE:
        files = [Path(folder, name) for folder in _DATA if Path(folder, name).is_file()]
        if not files:
            raise MachineError(
                f"starting a machine: QEMU's firmware {name} is missing; reinstall {PACKAGE} and seabios"
            )
        yield f"{FOLDER}/firmware/{name}", files[0].resolve()


def _linked(path: Path) -> str:
    listed = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False, timeout=60)
    missing = re.findall(r"(\S+) => not found", listed.stdout)
    if listed.returncode != 0 or missing:
        reason = f"{missing[0]} is missing" if missing else listed.stderr.strip()
        raise MachineError(f"looking for the libraries of {path}: {reason}; reinstall {PACKAGE}")
    return listed.stdout


def _gather(files: dict[str, Path], folder: Path) -> None:
    try:
        with scratch(folder.parent, ".gathering-") as place:
            new = place / "new"
            for inside, path in files.items():
                *folders, file = inside.split("/")
                Folder(new, tuple(folders)).bring(path, file)
            (new / FOLDER / "modules").mkdir(exist_ok=True)
            (new / "loader").chmod(0o755)
            parts = [file_sha256(new / inside) for inside in sorted(files) if "/lib/" not in inside]
            identity = hashlib.sha256("\n".join(parts).encode()).hexdigest()
            Folder(new).write("complete", f"{identity} {_version(files[f'{FOLDER}/qemu'])}\n".encode())
            if folder.exists():
                shutil.rmtree(folder)
            Folder(folder.parent).take(new, folder.name)
    except OSError as error:
        raise MachineError(f"copying QEMU to {folder}: {error.strerror}; {CACHE_REMEDY}") from error


def _version(program: Path) -> str:
    answer = subprocess.run(
        [str(program), "--version"], capture_output=True, text=True, check=False, timeout=60
    )
    match = re.search(r"version (\S+)", answer.stdout)
    return match[1] if match else "unknown"


def command_line(memory_mib: int, processors: int, instruction_ns: int) -> list[str]:
    """Return the arguments of the loader that starts QEMU with such a machine, the same everywhere.

    With `icount` a clock in QEMU counts instructions, and jumps ahead while all processors wait. Without
    `ioeventfd=off`, another thread of QEMU would handle what the guest sends, after a number of instructions that
    differs each time. QEMU records for a replay, because only then its main loop and the processor take turns.
    Otherwise the main loop may take a processor that is just halting for one that waits: it moves the clock ahead from
    before the instructions that the processor has executed last. No one replays what it records.
    """
    shift = instruction_ns.bit_length() - 1
    return [
        *("--library-path", f"{FOLDER}/lib", f"{FOLDER}/qemu"),
        *("-L", f"{FOLDER}/firmware", "-nodefaults", "-no-user-config", "-no-reboot"),
        *("-machine", "hpet=off"),  # its state would have the time at which it was saved
        *("-accel", "tcg,thread=single"),
        *("-icount", f"shift={shift},sleep=off,align=off,rr=record,rrfile=/dev/null"),
        *("-rtc", f"base={_DATE},clock=vm"),
        *("-cpu", PROCESSOR, "-smp", str(processors), "-m", str(memory_mib)),
        *("-display", "none", "-chardev", f"file,id=console,path={CONSOLE}", "-serial", "chardev:console"),
        *("-device", "virtio-serial-pci,ioeventfd=off"),
        *("-chardev", f"file,id=progress,path={PROGRESS}"),
        *("-device", "virtserialport,chardev=progress,nr=1"),
        *("-chardev", f"file,id=results,path={RESULTS}"),
        *("-device", "virtserialport,chardev=results,nr=2"),
        *("-device", "pvpanic", "-kernel", IMAGE),
    ]


BOOT = (
    *("-seed", "0", "-initrd", ROOT, "-append", KERNEL_ARGUMENTS),
    *("-action", "panic=pause"),
    *("-chardev", "stdio,id=orders,signal=off", "-mon", "chardev=orders,mode=control"),
)
"""The further arguments of a machine that boots. Its agent reports a panic to pause it."""


def trial_arguments(seed: int) -> list[str]:
    """Return the further arguments of a machine that continues from its state, descriptor 0, with its job."""
    return [
        *("-seed", str(seed), "-monitor", "none", "-fw_cfg", f"name=opt/plait/job,file={JOB}"),
        *("-incoming", "fd:0"),
    ]
