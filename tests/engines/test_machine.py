"""The parts of the machine engine that need no machine: modules, results, kernels, and what it refuses."""

from __future__ import annotations

import gzip
import lzma
import shutil
import struct
import subprocess
from typing import TYPE_CHECKING

import pytest

from fake_engine import FakeEngine
from plait.engine.machine import modules, qemu
from plait.engine.machine import trial as machine
from plait.engine.machine.modules import ModuleTree, wanted_modules
from plait.engine.support import lacking
from plait.engine.virtual import trial as virtual
from plait.errors import MachineError, RequestError, ScenarioError, TrialError
from plait.kernel import stock
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand
from plait.study.preflight.engines import refuse_what_engines_lack
from plait.study.study import plan_study

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from plait.plan.model.plan import Plan

TEXT = """\
title: One line
network:
  hosts: [a, b]
  links:
    a-b: {rate: 10mbit, delay: 5ms}
traffic:
  - bulk: {from: a, to: b, duration: 1s}
"""


def plan_of(text: str) -> Plan:
    return resolve(expand(parse(text, "t.yaml"))[0].scenario, 1)


def frame(name: str, part: bytes) -> bytes:
    return struct.pack("<II", len(name), len(part)) + name.encode() + part


@pytest.fixture
def guest(tmp_path: Path) -> Path:
    folder = tmp_path / "guest"
    folder.mkdir()
    return folder


def test_the_parts_of_a_file_are_put_together(guest: Path) -> None:
    sent = frame("data/flows.arrow", b"one") + frame("status.json", b"{}") + frame("data/flows.arrow", b"two")
    (guest / qemu.RESULTS).write_bytes(sent + frame("", b"") + b"what follows the end")
    machine.unpack_results(guest, guest.parent / "out", 1 << 20)
    assert (guest.parent / "out/data/flows.arrow").read_bytes() == b"onetwo"
    assert (guest.parent / "out/status.json").read_bytes() == b"{}"


def test_a_machine_that_ended_early_leaves_the_whole_parts(guest: Path) -> None:
    (guest / qemu.RESULTS).write_bytes(frame("status.json", b"{}") + frame("data/x", b"12345")[:-2])
    machine.unpack_results(guest, guest.parent / "out", 1 << 20)
    assert [path.name for path in (guest.parent / "out").iterdir()] == ["status.json"]


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", "a/../../b", "a//b", "a\nb", "", "a/b/c/d/e/f/g"])
def test_a_machine_cannot_name_a_file_elsewhere(name: str, guest: Path) -> None:
    (guest / qemu.RESULTS).write_bytes(frame(name, b"x"))
    if name:
        with pytest.raises(TrialError, match="invalid name"):
            machine.unpack_results(guest, guest.parent / "out", 1 << 20)
    else:
        machine.unpack_results(guest, guest.parent / "out", 1 << 20)
    assert not (guest.parent / "out").exists() or not list((guest.parent / "out").iterdir())


def test_results_beyond_the_limit_are_refused(guest: Path) -> None:
    (guest / qemu.RESULTS).write_bytes(frame("data/x", b"1" * 1000))
    with pytest.raises(TrialError):
        machine.unpack_results(guest, guest.parent / "out", 500)


def plain_module(needs: str) -> bytes:
    return b"\x7fELF..\0license=GPL\0depends=" + needs.encode() + b"\0name=x\0"


def module(needs: str) -> bytes:
    return lzma.compress(plain_module(needs))


@pytest.fixture
def tree(tmp_path: Path) -> ModuleTree:
    files = {
        "net/sched/sch_netem": "",
        "net/mptcp/mptcp_diag": "inet-diag",
        "net/ipv4/inet_diag": "",
        "net/ipv4/tcp_bbr": "",
        "net/ipv4/tcp_diag": "inet_diag",
        "drivers/net/veth": "",
        "drivers/virtio/virtio_pci": "virtio",
        "drivers/virtio/virtio": "",
        "drivers/char/virtio_console": "virtio",
    }
    for name, needs in files.items():
        path = tmp_path / "kernel" / f"{name}.ko.xz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(module(needs))
    return ModuleTree(tmp_path)


def test_modules_load_after_those_that_they_need(tree: ModuleTree) -> None:
    order = list(tree.load_order(["mptcp_diag", "veth", "built_in"]))
    assert order == ["inet_diag", "mptcp_diag", "veth"]


def test_a_plan_gets_its_qdiscs_and_every_congestion_control(tree: ModuleTree) -> None:
    assert tree.congestion_controls == ["tcp_bbr"]
    wanted = list(wanted_modules(plan_of(TEXT.replace("5ms}", "5ms, aqm: codel}")), tree))
    assert {"veth", "sch_netem", "sch_codel", "ifb", "tcp_bbr"} <= set(wanted)
    assert "openvswitch" not in wanted


def test_a_kernel_with_its_virtio_in_modules_gets_the_ports_first(tree: ModuleTree) -> None:
    """Debian's 6.1 has all of virtio in modules. Without them, nothing leaves the machine."""
    order = list(tree.load_order(wanted_modules(plan_of(TEXT), tree)))
    assert order[:3] == ["virtio", "virtio_pci", "virtio_console"]


def test_a_damaged_module_is_named(tmp_path: Path) -> None:
    path = tmp_path / "kernel/veth.ko.xz"
    path.parent.mkdir()
    path.write_bytes(b"no xz")
    with pytest.raises(MachineError, match=r"unpacking the kernel's module .*veth\.ko\.xz"):
        ModuleTree(tmp_path).load_order(["veth"])


def zstd(content: bytes) -> bytes:
    return subprocess.run(["zstd", "-qc"], input=content, capture_output=True, check=True, timeout=300).stdout


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".ko": bytes,
    ".ko.xz": lzma.compress,
    ".ko.gz": gzip.compress,
    ".ko.zst": zstd,
}
_NEEDS_ZSTD = pytest.mark.skipif(
    shutil.which("zstd") is None, reason="needs the program zstd; see docs/limitations.md"
)


@pytest.mark.parametrize("suffix", [".ko", ".ko.xz", ".ko.gz", pytest.param(".ko.zst", marks=_NEEDS_ZSTD)])
def test_modules_load_however_the_distribution_packs_them(suffix: str, tmp_path: Path) -> None:
    for name, needs in {"mptcp_diag": "inet_diag", "inet_diag": ""}.items():
        (tmp_path / f"{name}{suffix}").write_bytes(PACKERS[suffix](plain_module(needs)))
    loaded = ModuleTree(tmp_path).load_order(["mptcp_diag"])
    assert list(loaded.items()) == [
        ("inet_diag", plain_module("")),
        ("mptcp_diag", plain_module("inet_diag")),
    ]


@pytest.mark.parametrize("suffix", [".ko.gz", pytest.param(".ko.zst", marks=_NEEDS_ZSTD)])
def test_a_damaged_or_endless_module_is_refused(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"veth{suffix}"
    packed = PACKERS[suffix](plain_module("") + bytes(1 << 16))
    for content in (packed[:-20], b"nothing packed"):
        path.write_bytes(content)
        with pytest.raises(MachineError, match=rf"unpacking the kernel's module .*veth\{suffix}"):
            ModuleTree(tmp_path).load_order(["veth"])
    monkeypatch.setattr(modules, "_MAX_BYTES", 1 << 12)
    path.write_bytes(packed)
    with pytest.raises(MachineError, match="larger than 4096 bytes"):
        ModuleTree(tmp_path).load_order(["veth"])


def test_without_zstd_its_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "veth.ko.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MachineError, match="apt-get install zstd"):
        ModuleTree(tmp_path).load_order(["veth"])


def test_the_command_line_names_no_path_of_this_machine() -> None:
    line = [*qemu.command_line(512, 2, 4), *qemu.BOOT, *qemu.trial_arguments(7)]
    assert not [word for word in line if word.startswith("/")]
    assert "shift=2,sleep=off,align=off,rr=record,rrfile=/dev/null" in line
    assert line.index("7") == len(line) - line[::-1].index("-seed")


def test_without_qemu_its_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MachineError, match=r"apt-get install qemu-system-x86") as caught:
        qemu.find_emulator()
    assert caught.value.exit_code == 3


def test_a_file_that_is_no_kernel_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vmlinuz").write_bytes(b"x" * 4096)
    with pytest.raises(RequestError, match="not a kernel image"):
        stock.of_files(tmp_path / "vmlinuz", None)
    with pytest.raises(RequestError, match="--modules"):
        stock.of_files(tmp_path / "vmlinuz", tmp_path / "none")
    with pytest.raises(RequestError, match=r"debian:6\.12"):
        stock.of_distribution("bookworm")


def test_the_nearest_kernel_is_of_the_nearest_series(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = [
        *("linux-image-6.1.0-9-cloud-amd64", "linux-image-6.12.90+deb12-amd64"),
        *("linux-image-6.12.117+deb12-amd64", "linux-image-6.12.117+deb12-cloud-amd64"),
        *("linux-image-6.19.2-amd64", "linux-image-6.1.0-50-cloud-amd64", "linux-image-6.1.0-50-amd64"),
        *("linux-image-6.1.0-60-amd64-dbg", "linux-image-6.1.0-60-amd64-unsigned"),
    ]
    asked: list[str] = []
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path))
    monkeypatch.setattr(stock, "_run", lambda *_: "\n".join(known))
    monkeypatch.setattr(stock, "_fetch", lambda package, _: asked.append(package))
    stock.nearest("6.12.117")
    stock.of_distribution("6.1")
    stock.of_distribution("6.12")
    assert asked == [known[3], known[5], known[3]]
    with pytest.raises(MachineError, match=r"there is none for amd64.*--kernel PATH"):
        stock.of_distribution("5.4")


REFUSED = {
    "aqm: {red: {points: {5pkt: 0%, 50pkt: 10%}}}": "network.links.a-b: the engine machine has a stock "
    "kernel, without the queue plait_red; use --engine virtual, or leave it out",
}


@pytest.mark.parametrize("conditions", list(REFUSED))
def test_what_a_stock_kernel_lacks_is_refused_in_its_place(conditions: str) -> None:
    class Stock(FakeEngine):
        name = "machine"

        def unsupported(self, plan: Plan) -> list:
            return lacking(plan, machine.LACKS)

    text = TEXT.replace("5ms}", f"5ms, {conditions}}}") + "engine: machine\n"
    study = plan_study(parse(text, "t.yaml"), "t")
    with pytest.raises(ScenarioError) as caught:
        refuse_what_engines_lack(study, {"machine": Stock()})
    assert REFUSED[conditions] in str(caught.value)


def test_the_laboratory_kernel_has_neither_cost_nor_offloads() -> None:
    text = TEXT + "machine: {processors: 2, offloads: true, nanoseconds_per_instruction: 4}\n"
    lacks = {missing.use.name for missing in lacking(plan_of(text), virtual.LACKS)}
    assert lacks == {"processors", "offloads", "nanoseconds_per_instruction"}
    assert {missing.use.name for missing in lacking(plan_of(text), machine.LACKS)} == {"processors"}


def test_the_plan_of_a_machine_with_defaults_is_as_ever() -> None:
    machine_block = plan_of(TEXT).machine.model_dump(mode="json")
    assert not {"processors", "instruction_ns", "offloads"} & set(machine_block)
