"""Run two-paths on processors that QEMU imitates as a whole machine, and compare the digest with the golden one.

A machine with a stock Linux kernel boots from memory. Its root is a clean distribution with the wheels of `make dist`
installed. There an ordinary user runs a short study. QEMU translates every instruction, so a study takes minutes. On a
busy machine, start the script with `nice -n -10`: a guest that stands still for two minutes fails its trial.

    make dist
    python bench/emulated_processor.py --kernel VMLINUZ Haswell EPYC
    python bench/emulated_processor.py --kernel VMLINUZ --with 'polars[rtcompat]' Nehalem

VMLINUZ is a distribution's kernel for x86-64, such as /boot/vmlinuz-*.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 1800
MEMORY_MIB = 6144
_NEEDED = ("mmdebstrap", "bwrap", "cpio", "qemu-system-x86_64")
_NETWORK = ("/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt")
_INIT = """#!/bin/sh
export PATH=/opt/plait/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/home/user LC_ALL=C.UTF-8
if [ $$ = 1 ] && [ -z "$MOVED" ]; then # no process can change its root away from the initial one
  mount -t proc proc /proc && mount --bind / /mnt && cd /mnt && mount --move . / && MOVED=1 exec chroot . /init
fi
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmp /tmp; mount -t tmpfs shm /dev/shm; mount -t devpts pts /dev/pts
ip link set lo up 2>/dev/null
echo "EMULATED model $(grep -m1 'model name' /proc/cpuinfo)"
cd /home/user
setpriv --reuid=1000 --regid=1000 --clear-groups plait run two-paths --out short --json --repeat 2 --jobs 1 \\
  --set traffic.0.bulk.duration=2s > /tmp/out.json 2> /tmp/err.txt
echo "EMULATED exit $?"
sed 's/^/EMULATED said /' /tmp/err.txt | tail -n 40
grep -o '"identity": *"[0-9a-f]*"' short/study.json | sed 's/^/EMULATED kernel /'
grep -o '"digest": *"sha256:[0-9a-f]*"' short/summary.json | sed 's/^/EMULATED digest /'
sleep 2
echo o > /proc/sysrq-trigger
while :; do sleep 1; done
"""


def machine(folder: Path, wheels: Path, extra: list[str]) -> Path:
    """Return a compressed archive of a root with plait installed, and /init that runs the study."""
    root = folder / "root"
    packages = "--include=python3,python3-venv,ca-certificates,libstdc++6,iproute2"
    subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", packages, "trixie", str(root)], check=True)
    install = (
        "useradd --create-home --uid 1000 user && python3 -m venv /opt/plait && /opt/plait/bin/pip install --quiet "
        "--no-cache-dir --find-links /mnt 'plait[kernel]' " + " ".join(f"'{name}'" for name in extra)
    )
    enter = [
        "bwrap", "--bind", str(root), "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp",  # noqa: S108
        "--ro-bind", str(wheels), "/mnt", *(word for file in _NETWORK for word in ("--ro-bind", file, file)),
        "--setenv", "PATH", "/usr/sbin:/usr/bin:/sbin:/bin",
    ]  # fmt: skip
    subprocess.run([*enter, "sh", "-c", install], check=True)
    (root / "init").write_text(_INIT)
    (root / "init").chmod(0o755)
    archive = folder / "root.cpio"
    with archive.open("wb") as target:
        names = subprocess.run(
            ["find", ".", "-xdev", "-print0"], cwd=root, stdout=subprocess.PIPE, check=True
        )
        command = ["cpio", "--quiet", "--null", "--create", "--format=newc"]
        subprocess.run(command, cwd=root, input=names.stdout, stdout=target, check=True)
    return archive


def measure(processor: str, kernel: Path, archive: Path) -> bool:
    """Boot a machine with this processor, print what its study gave, and return whether the digest is golden."""
    started = time.monotonic()
    command = [
        "qemu-system-x86_64", "-accel", "tcg", "-cpu", processor, "-m", str(MEMORY_MIB), "-nographic",
        "-no-reboot", "-nic", "none", "-kernel", str(kernel), "-initrd", str(archive),
        "-append", "console=ttyS0 quiet panic=-1 tsc=unstable",
    ]  # fmt: skip
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=LIMIT_S,
        check=False,
    )
    lines = [
        line.strip().partition("EMULATED ")[2] for line in done.stdout.splitlines() if "EMULATED " in line
    ]
    values = dict(line.split(" ", 1) for line in lines if " " in line)
    taken = f"{time.monotonic() - started:.0f} s"
    if values.get("exit") != "0":
        said = [line.removeprefix("said ") for line in lines if line.startswith("said ")]
        end = "\n  ".join(said or done.stdout.splitlines()[-20:])
        sys.stdout.write(f"{processor}: the study ended with {values.get('exit')}, {taken}:\n  {end}\n")
        return False
    digest, identity = (values[name].split('"')[3] for name in ("digest", "kernel"))
    golden = json.loads((ROOT / "tests" / "data" / "golden-digests.json").read_text()).get(identity)
    verdict = "golden" if digest == golden else f"{digest}, golden is {golden}"
    sys.stdout.write(f"{processor} ({values['model']}), {taken}: digest {verdict}\n")
    sys.stdout.flush()
    return bool(digest == golden)


def main() -> int:
    """Measure each processor."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("processors", nargs="+", help="names that `qemu-system-x86_64 -cpu help` lists")
    parser.add_argument("--kernel", type=Path, required=True, help="a distribution's kernel image")
    parser.add_argument(
        "--dist", type=Path, default=ROOT / "dist", help="folder with the wheels [default: dist]"
    )
    parser.add_argument("--with", dest="extra", action="append", default=[], help="a further package for pip")
    chosen = parser.parse_args()
    if missing := [name for name in _NEEDED if shutil.which(name) is None]:
        sys.exit(f"this measurement needs {', '.join(missing)}; install them from the distribution")
    with tempfile.TemporaryDirectory(prefix="plait-emulated-") as folder:
        archive = machine(Path(folder), chosen.dist.resolve(), chosen.extra)
        held = [measure(processor, chosen.kernel, archive) for processor in chosen.processors]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
