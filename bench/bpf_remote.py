"""Runs `plait run --engine remote --configure` with OLIA between hosts on a stock kernel, and says what it left there.

The hosts are network namespaces with an sshd each, in one emulated machine (QEMU) that boots Debian's kernel and has
programs of this machine; plait runs here. It needs `make bpf`, qemu-system-x86, bpftool and openssh-server.
"""

from __future__ import annotations

import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from plait.bpf.programs import PROGRAMS
from plait.engine.machine.host_files import HostFiles
from plait.engine.machine.libraries import Libraries
from plait.engine.machine.modules import ModuleTree
from plait.engine.virtual.initramfs import ArchiveEntry, pack
from plait.kernel.stock import of_distribution

PORTS = {"h1": 22801, "h2": 22802}
_SERIES, _WAIT_S, _MACHINE_S, _SEARCH = "6.12", 300, 3600, "/usr/sbin:/usr/bin:/sbin:/bin"
_TOOLS = """sh mount insmod ip ss tc bpftool nsenter sshd env mktemp mkfifo setsid id cat rm mkdir head cut sha256sum
gzip chmod sed tr wc timeout df tail grep uname true sleep ls"""
_MODULES = "virtio_pci virtio_net veth bridge sch_tbf inet_diag tcp_diag mptcp_diag"
_USERS = "root:x:0:0::/:/bin/sh\nsshd:x:99:99::/:/bin/sh\n"
_SCENARIO = (
    "title: OLIA\nnetwork: {hosts: [h1, h2], links: {h1-h2: {}, h1-h2#2: {}}}\nrepeat: 1\ntransport: mptcp\n"
    "traffic: [{bulk: {from: h1, to: h2, duration: %s}}]\ntcp: {congestion_control: olia}\n"
)
_INIT = f"""#!/bin/sh
export PATH={_SEARCH}
mount -t proc none /proc; mount -t sysfs none /sys; mount -t devtmpfs none /dev
mkdir -p /dev/pts /run/netns /run/sshd /run/plait; mount -t devpts none /dev/pts
for module in /modules/*; do insmod $module; done
ip link add br0 up type bridge; ip link set eth0 master br0 up
for n in 1 2; do
    ip netns add h$n; mkdir -m 1777 /tmp/h$n
    ip link add m$n type veth peer name m0 netns h$n; ip link set m$n master br0 up
    ip -n h$n address add 10.0.2.1$n/24 dev m0; ip -n h$n link set m0 up
done
for n in 1 2; do
    ip -n h1 link add l$n type veth peer name l$n netns h2
    for h in 1 2; do
        ip -n h$h address add 10.1.$n.$h/24 dev l$n; ip -n h$h link set l$n up
        tc -n h$h qdisc add dev l$n root tbf rate 4mbit burst 5k limit 40k
    done
    nsenter --net=/run/netns/h$n /usr/sbin/sshd -f /dev/null -h /keys/host -o AuthorizedKeysFile=/keys/user.pub \\
        -o StrictModes=no -o PermitRootLogin=yes -o SetEnv=TMPDIR=/tmp/h$n
done
echo ready
while :; do sleep 1000; done
"""
_STATE = """cd /proc/sys/net; grep '' ipv4/tcp_*congestion* mptcp/*; ip mptcp endpoint; ip mptcp limits
ls -A /run/plait $TMPDIR"""
# What removes the folder of a session dies here too.
_KILL = r"""for p in /proc/[0-9]*; do case "$(ls -l $p/exe) $(tr '\0' ' ' <$p/cmdline)" in
*/tmp/h*/plait*|*keeper*) [ $p = /proc/$$ ] || l="$l ${p#/proc/}";; esac; done 2>/dev/null; kill -9 $l
sleep 1; rm -r $TMPDIR/*"""


def archive(modules: Path | None, keys: Path) -> bytes:
    """Return the root of the machine."""
    files = HostFiles()
    libraries = Libraries(files)
    for name in _TOOLS.split():
        found = files.add(shutil.which(name, path=_SEARCH) or name)
        libraries.add(found or sys.exit(f"{name} is missing"), required=True)
    brought = (keys / "host", keys / "user.pub", PROGRAMS / "olia.bpf.o")
    contents = {f"keys/{path.name}": path.read_bytes() for path in brought}
    for number, module in enumerate(ModuleTree(modules).load_order(_MODULES.split(), {})):
        contents[f"modules/{number:02}"] = module.content
    contents |= {"etc/passwd": _USERS.encode(), "init": _INIT.encode()}
    folders = ("etc", "keys", "modules", "proc", "sys", "dev", "tmp", "run")
    entries = {name: ArchiveEntry(name, stat.S_IFDIR | 0o755) for name in folders}
    entries |= {entry.name: entry for entry in files.copies("")}
    entries |= {name: ArchiveEntry(name, stat.S_IFREG | 0o700, text) for name, text in contents.items()}
    return pack(entries.values())


def boot(folder: Path) -> subprocess.Popen[str]:
    """Start the machine, wait for its hosts, and write the files by which plait finds them."""
    kernel = of_distribution(_SERIES)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    (folder / "root").write_bytes(archive(kernel.modules, folder))
    ports = "".join(f",hostfwd=tcp:127.0.0.1:{port}-10.0.2.1{host[1]}:22" for host, port in PORTS.items())
    emulator = (
        "qemu-system-x86_64 -accel tcg -cpu max,-erms -smp 2 -m 1024 -nodefaults -display none -serial stdio "
        f"-nic user,model=virtio-net-pci{ports} -kernel {kernel.image} -initrd {folder}/root -append"
    )
    bound = ["timeout", str(_MACHINE_S)]
    command = [*bound, *emulator.split(), "console=ttyS0 quiet panic=-1 mitigations=off rdinit=/init"]
    machine = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert machine.stdout is not None
    if not any("ready" in line for line in machine.stdout):
        sys.exit("the machine ended before its hosts were ready")
    common = f"IdentityFile {folder}/user\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n"
    hosts = "".join(f"Host {host}\nHostName 127.0.0.1\nPort {port}\n" for host, port in PORTS.items())
    (folder / "ssh").write_text(f"{hosts}Host *\nUser root\n{common}")
    lines = [
        f"  {h}: {{ssh: {h}, addresses: {{h1-h2: 10.1.1.{h[1]}, h1-h2#2: 10.1.2.{h[1]}}}}}\n" for h in PORTS
    ]
    (folder / "hosts.yaml").write_text(
        "limits: {rate: 20mbit, bytes: 1GB, time: 1h}\nhosts:\n" + "".join(lines)
    )
    return machine


def on(folder: Path, host: str, command: str) -> str:
    """Return what a command prints on a host."""
    ssh = ["ssh", "-F", folder / "ssh", host, f"export PATH={_SEARCH}; {command}"]
    return subprocess.run(ssh, capture_output=True, text=True, timeout=_WAIT_S, check=False).stdout


def start(folder: Path, duration: str) -> subprocess.Popen[str]:
    """Start plait with a transfer of this duration."""
    (folder / "olia.yaml").write_text(_SCENARIO % duration)
    options = f"--engine remote --configure --hosts {folder}/hosts.yaml --ssh-config {folder}/ssh --out {folder}/out"
    command = [Path(sys.executable).with_name("plait"), "run", folder / "olia.yaml", *options.split()]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def attempt(folder: Path, case: str) -> str:
    """Run a case, and return what happened: a run that ends, is killed, or finds the algorithm of somebody else."""
    if case == "foreign":
        on(folder, "h1", "bpftool struct_ops register /keys/olia.bpf.o")
    before = {host: on(folder, host, _STATE) for host in PORTS}
    run, seen = start(folder, "5s" if case in ("end", "foreign") else "60s"), ""
    while run.poll() is None and seen.count(" olia ") < 2:
        seen = on(folder, "h1", "ss -tinHO dst 10.1.0.0/16; bpftool struct_ops list")
    if case == "hosts":
        for host in PORTS:
            on(folder, host, _KILL)
        run.kill()
        run = start(folder, "2s")
    elif case in ("int", "kill"):
        run.send_signal(signal.SIGINT if case == "int" else signal.SIGKILL)
    output, ended_s = run.communicate(timeout=_WAIT_S)[0], time.monotonic()
    while (after := {host: on(folder, host, _STATE) for host in PORTS}) != before:
        if time.monotonic() - ended_s > _WAIT_S:
            return f"hosts were left otherwise: {before} {after}\n{output}"
    on(folder, "h1", "bpftool struct_ops unregister name plait_olia")
    subflows, objects = seen.count(" olia "), seen.count("plait_olia")
    after_s = time.monotonic() - ended_s
    return f"exit code {run.returncode}, olia in {subflows} subflows, {objects} object; as found {after_s:.0f} s later"


def main() -> None:
    """Run the cases, and print a line for each."""
    with tempfile.TemporaryDirectory() as name, boot(Path(name)) as machine:
        try:
            for case in sys.argv[1:] or ("end", "int", "kill", "hosts", "foreign"):
                print(f"{case}: {attempt(Path(name), case)}", flush=True)
        finally:
            machine.terminate()  # `timeout` ends the emulator too


if __name__ == "__main__":
    main()
