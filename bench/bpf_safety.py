"""Tries the BPF programs on this machine's kernel with many connections, and takes each away under traffic.

Run as root, after `make bpf`: `python bench/bpf_safety.py [--connections N] [NAME..]`. Everything happens in a network
namespace of its own, over loopback with two MPTCP endpoints. With `--kernel IMAGE`, it happens in an emulated machine
that boots this kernel and has this machine's programs; a kernel with MPTCP's struct_ops also runs schedulers.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import resource
import shlex
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plait.bpf import programs

IPPROTO_MPTCP = 262
CONGESTION = 13
BATCH = 500
PART_BYTES = 64_000
Pair = tuple[socket.socket, socket.socket]
_LIMIT_S, _SETTLE_S, _PATIENCE_S = 300, 15, 120
BPFTOOL = str(programs.find_loader())
STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")
LIBC = ctypes.CDLL(None, use_errno=True)
_SYS_BPF, _UPDATE, _DELETE, _MAP_BY_ID, _EXISTS = 321, 2, 3, 14, 2
_FAULT = re.compile(r"WARNING:|BUG:|Oops|leaked|hung task|stall|refcount_t")
_SEARCH = "/usr/sbin:/usr/bin:/sbin:/bin"
_INIT = """#!/bin/sh
export PATH={search} PYTHONPATH={modules} PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
ulimit -n 65536
{command} 2>&1
{python} -c 'import ctypes; ctypes.CDLL(None).reboot(0x1234567)'
"""


def tool(*arguments: str) -> str:
    """Return what a program prints."""
    return subprocess.run(arguments, capture_output=True, text=True, timeout=_LIMIT_S, check=True).stdout


def program_of(name: str) -> dict[str, Any]:
    """Return what the kernel says of the program that handles ACKs, the one loaded last."""
    shown = json.loads(tool(BPFTOOL, "-j", "prog", "show", "name", f"{name}_on_ack"))
    return (shown if isinstance(shown, list) else [shown])[-1]


def map_of(name: str) -> str:
    """Return the number of the map with the subflows of an algorithm."""
    for number in program_of(name)["map_ids"]:
        if json.loads(tool(BPFTOOL, "-j", "map", "show", "id", str(number)))["name"] == "plait_slots":
            return str(number)
    raise SystemExit(f"the program of {name} has no map plait_slots")


def slots(name: str) -> int:
    """Return the number of subflows in the map of an algorithm."""
    return len(json.loads(tool(BPFTOOL, "-j", "map", "dump", "id", map_of(name))))


def spoil(name: str) -> int:
    """Overwrite each entry of the map with ones, and return how many there are."""
    entries = json.loads(tool(BPFTOOL, "-j", "map", "dump", "id", map_of(name)))
    for entry in entries:
        value = ["0xff"] * len(entry["value"])
        tool(BPFTOOL, "map", "update", "id", map_of(name), "key", *entry["key"], "value", *value, "exist")
    return len(entries)


def crowd(name: str) -> None:
    """Fill the map with entries of connections that do not exist, as subflows leave them that end without release()."""
    number = map_of(name)
    entry = json.loads(tool(BPFTOOL, "-j", "map", "dump", "id", number))[0]
    size = json.loads(tool(BPFTOOL, "-j", "map", "show", "id", number))["max_entries"]
    with tempfile.NamedTemporaryFile("w", encoding="ascii") as batch:
        for dead in range(1, size + 1):
            key = " ".join(str(byte) for byte in dead.to_bytes(len(entry["key"]), "little"))
            batch.write(f"map update id {number} key {key} value {' '.join(entry['value'])}\n")
        batch.flush()
        tool(BPFTOOL, "batch", "file", batch.name)


def living(name: str) -> tuple[int, int]:
    """Return how many entries the map has, and how many whose connection is an address (0xffff88..)."""
    dump = tool(BPFTOOL, "map", "dump", "id", map_of(name))
    return dump.count('"connection": '), dump.count('"connection": 184466')


def nanoseconds(name: str) -> float:
    """Return what the program takes for an ACK, on average."""
    program = program_of(name)
    return program["run_time_ns"] / max(program["run_cnt"], 1)


def namespace() -> None:
    """Prepare the network namespace in which the script runs: loopback and a second MPTCP endpoint."""
    for command in (
        "ip link set lo up",
        "ip address add 10.9.0.1/32 dev lo",
        # The programs' rules run in congestion avoidance only, so connections start there.
        "ip link set lo mtu 1500",
        "ip route replace local 127.0.0.1 dev lo table local ssthresh lock 4",
        "ip route replace local 10.9.0.1 dev lo table local ssthresh lock 4",
        "sysctl -q net.ipv4.tcp_no_ssthresh_metrics_save=0",
        "ip mptcp limits set subflow 2 add_addr_accepted 2",
        "ip mptcp endpoint add 10.9.0.1 dev lo subflow",
    ):
        tool(*command.split())


def connect(server: socket.socket, name: str, count: int) -> list[Pair]:
    """Open MPTCP connections whose clients use the congestion control `name`, or the scheduler of the namespace."""
    pairs = []
    for _ in range(count):
        client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
        if name in programs.ALGORITHMS:
            client.setsockopt(socket.IPPROTO_TCP, CONGESTION, name.encode())
        client.connect(server.getsockname())
        pairs.append((client, server.accept()[0]))
    return pairs


def exchange(pairs: list[Pair], size: int, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Send `size` bytes over each connection and check that they arrive; `meanwhile`: after the first part is sent."""
    for start in range(0, size, PART_BYTES):
        part = bytes(min(PART_BYTES, size - start))
        for client, _ in pairs:
            client.settimeout(_PATIENCE_S)
            client.sendall(part)
        if start == 0:
            meanwhile()
        for _, peer in pairs:
            peer.settimeout(_PATIENCE_S)
            left = len(part)
            while left:
                received = len(peer.recv(left))
                if not received:
                    raise SystemExit("a connection ended before its data arrived")
                left -= received


def close(pairs: list[Pair]) -> None:
    """Close both ends of each connection."""
    for pair in pairs:
        for end in pair:
            end.close()


def settle(name: str, least: int) -> int:
    """Wait until at most `least` slots are left (TIME_WAIT has none, but orphans have one); return how many are."""
    for _ in range(_SETTLE_S):
        if slots(name) <= least:
            break
        time.sleep(1)
    return slots(name)


def sockets(name: str) -> int:
    """Return the number of sockets that still have the algorithm, those without an owner included."""
    return tool("ss", "-tani").count(f" {name} ")


def try_congestion_control(server: socket.socket, name: str, count: int, rounds: int) -> str:
    """Try a congestion control, and return what happened."""
    pairs = connect(server, name, count)
    exchange(pairs, 20_000)
    most = slots(name)
    close(pairs)
    after = settle(name, 0)
    churn(server, name, rounds)
    churned, remain = settle(name, 0), sockets(name)
    pairs = connect(server, name, 8)
    former = STATISTICS.read_text()
    STATISTICS.write_text("1")
    try:
        exchange(pairs, 20_000_000)
        cost = nanoseconds(name)
    finally:
        STATISTICS.write_text(former)
    spoilt = slots(name)
    exchange(pairs, 1_000_000, lambda: spoil(name))
    crowd(name)
    fresh = connect(server, name, BATCH)
    exchange(fresh, 5_000)
    whole, alive = living(name)
    close(fresh)
    exchange(pairs, 1_000_000, lambda: programs.unload(name))
    close(pairs)
    return (
        f"{count} connections had {most} slots, {after} after they closed; "
        f"{rounds * BATCH} more in rounds left {churned} ({remain} sockets close); data arrived with "
        f"{spoilt} spoilt entries, and after an unload under traffic; a map full of dead entries held {whole}, "
        f"{alive} of {spoilt + 2 * BATCH} living subflows among them; {cost:.0f} ns an ACK"
    )


def churn(server: socket.socket, name: str, rounds: int) -> None:
    """Open and close BATCH connections in each round."""
    for _ in range(rounds):
        batch = connect(server, name, BATCH)
        exchange(batch, 5_000)
        close(batch)


def bpf(command: int, attribute: bytes) -> int:
    """Return what the kernel answers to the command with this union bpf_attr (OSError)."""
    buffer = ctypes.create_string_buffer(attribute, len(attribute))
    result = int(LIBC.syscall(_SYS_BPF, command, buffer, len(attribute)))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf command {command}")
    return result


def states() -> list[dict[str, Any]]:
    """Return what the kernel says of the maps with the states of connections."""
    shown = json.loads(tool(BPFTOOL, "-j", "map", "show"))
    return [entry for entry in shown if entry.get("name") == "plait_states"]


def change_states(pairs: list[Pair], *, removed: bool) -> int:
    """Overwrite the state of each connection with ones, or remove it; return how many there were."""
    (entry,) = states()
    number = bpf(_MAP_BY_ID, struct.pack("=III", entry["id"], 0, 0))
    value = ctypes.create_string_buffer(b"\xff" * entry["bytes_value"], entry["bytes_value"])
    changed = 0
    for client, _ in pairs:
        key = ctypes.c_int(client.fileno())
        place = struct.pack("=IIQQQ", number, 0, ctypes.addressof(key), ctypes.addressof(value), _EXISTS)
        bpf(_DELETE if removed else _UPDATE, place[:16] if removed else place)
        changed += 1
    os.close(number)
    return changed


def come_and_go() -> None:
    """Take the second endpoint away and announce it again, so that each connection loses a subflow and makes one."""
    for command in ("delete id 1", "add 10.9.0.1 id 1 dev lo subflow"):
        tool("ip", "mptcp", "endpoint", *command.split())


def try_scheduler(server: socket.socket, name: str, count: int, rounds: int) -> str:
    """Try a scheduler, and return what happened."""
    tool("sysctl", "-q", f"net.mptcp.scheduler={name}")
    pairs = connect(server, name, count)
    exchange(pairs, 20_000)
    close(pairs)
    churn(server, name, rounds)
    pairs = connect(server, name, BATCH)
    for _ in range(4):
        exchange(pairs, 2 * PART_BYTES, come_and_go)
    port = f"sport = :{server.getsockname()[1]}"
    subflows = tool("ss", "-tnH", "state", "established", port).count("\n")
    spoilt = change_states(pairs, removed=False)
    exchange(pairs, 2 * PART_BYTES, lambda: change_states(pairs, removed=False))
    removed = change_states(pairs, removed=True)
    exchange(pairs, 2 * PART_BYTES, lambda: change_states(pairs, removed=True))

    def unload() -> None:
        tool("sysctl", "-q", "net.mptcp.scheduler=default")
        programs.unload(name)

    exchange(pairs, 4 * PART_BYTES, unload)
    close(pairs)
    for _ in range(_SETTLE_S):
        if not left_of(name):
            break
        time.sleep(1)
    return (
        f"{count} connections and {rounds * BATCH} in rounds got their data; {BATCH} also while subflows came and went "
        f"({subflows} at the end), with {spoilt} spoilt and {removed} removed states, and after an unload under "
        f"traffic; left: {left_of(name) or 'nothing'}"
    )


def left_of(name: str) -> list[str]:
    """Return the programs and the maps that the kernel still has of a scheduler that was taken away."""
    shown = json.loads(tool(BPFTOOL, "-j", "prog", "show"))
    found = [str(entry["name"]) for entry in shown if str(entry.get("name", "")).startswith(f"{name}_on")]
    return found + [f"map {entry['id']}" for entry in states()]


def complaints() -> list[str]:
    """Return the lines of the kernel's log that name a fault."""
    return [line for line in tool("dmesg").splitlines() if _FAULT.search(line)]


def in_machine(kernel: Path, arguments: list[str]) -> None:
    """Run this script in an emulated machine that boots `kernel`, and print what its console says."""
    imported = {Path(file) for module in sys.modules.values() if (file := getattr(module, "__file__", None))}
    packages = {path.parent for path in imported if "site-packages" in path.parts[:-2]}
    from plait.engine.machine.host_files import HostFiles
    from plait.engine.machine.libraries import Libraries
    from plait.engine.virtual.initramfs import ArchiveEntry, pack

    files = HostFiles()
    libraries = Libraries(files)
    python, script = os.path.realpath(sys.executable), Path(__file__).resolve()
    for name in ("/bin/sh", "mount", "unshare", "ip", "ss", "sysctl", "dmesg", "bpftool", python):
        found = files.add(shutil.which(name, path=_SEARCH) or name)
        if found is None:
            raise SystemExit(f"{name} is missing")
        libraries.add(found, required=True)
    package = Path(programs.__file__).parents[1]
    for folder in (Path(os.__file__).parent, package, *sorted(packages)):
        for file in files.add_tree(str(folder), ("dist-packages", "site-packages", "test", "__pycache__")):
            if file.suffix == ".so":
                libraries.add(file, required=False)
    files.add(str(script))
    modules = ":".join(sorted({str(package.parent), *(str(folder.parent) for folder in packages)}))
    command = shlex.join([python, str(script), *arguments])
    init = _INIT.format(search=_SEARCH, modules=modules, command=command, python=python)
    entries = [
        *files.copies(""),
        *(ArchiveEntry(name, stat.S_IFDIR | 0o755) for name in ("proc", "sys", "dev", "tmp", "run")),
        ArchiveEntry("init", stat.S_IFREG | 0o755, init.encode()),
    ]
    with tempfile.NamedTemporaryFile() as root:
        root.write(pack(entries))
        root.flush()
        emulator = shlex.split(
            "qemu-system-x86_64 -accel tcg -cpu max -m 4096 -nodefaults -no-reboot -display none -serial stdio"
        )
        emulator += ["-kernel", str(kernel), "-initrd", root.name]
        subprocess.run([*emulator, "-append", "console=ttyS0 quiet panic=-1 rdinit=/init"], check=True)


def main() -> None:
    """Try each program, and print a line for it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20, help="of churn: BATCH connections open and close")
    parser.add_argument("--kernel", type=Path, help="boot this image in an emulated machine")
    parser.add_argument("names", nargs="*", help="programs [default: all that the kernel takes]")
    arguments = parser.parse_args()
    if arguments.kernel is not None:
        counts = [f"--connections={arguments.connections}", f"--rounds={arguments.rounds}"]
        in_machine(arguments.kernel, [*counts, *arguments.names])
        return
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(arguments.connections, (hard - 200) // 2)
    if os.environ.get("BPF_SAFETY") is None:  # Python 3.11 has no unshare
        own = ["unshare", "--net", sys.executable, *sys.argv]
        os.execvpe("unshare", own, os.environ | {"BPF_SAFETY": "1"})  # noqa: S606 - an argument list
    namespace()
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    server.bind(("127.0.0.1", 0))
    server.listen(1024)
    for name in arguments.names or programs.loadable():
        programs.load(name)
        started = time.monotonic()
        attempt = try_scheduler if name in programs.SCHEDULERS else try_congestion_control
        happened = attempt(server, name, count, arguments.rounds)
        sys.stdout.write(f"{name}: {happened}; {time.monotonic() - started:.0f} s\n")
        sys.stdout.flush()
    sys.stdout.write("".join(f"the kernel's log: {line}\n" for line in complaints()))


if __name__ == "__main__":
    main()
