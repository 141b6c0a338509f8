"""plait loads only intact programs of its own, only as root, and says what to do otherwise."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from plait.bpf import programs
from plait.cache import locked
from plait.cli import undo
from plait.cli.laboratory import doctor
from plait.engine.inventory import Inventory
from plait.engine.remote import lasting
from plait.errors import MachineError, RequestError, ScenarioError
from plait.scenario import parse
from plait.scenario.vary.cases import expand
from plait.study.preflight.kernel import refuse_what_is_missing

REPOSITORY = Path(__file__).parents[3]


def no_lock(_: str) -> int:
    return os.open(os.devnull, os.O_RDONLY)


class FakeKernel:
    """What bpftool shows and changes: algorithms, and maps, whose pins are files with the map's number."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.maps: dict[int, str] = {}
        self.loaded: list[str] = []
        self.bpffs = folder / "bpf"
        self.bpffs.mkdir()
        self.mounts = folder / "mountinfo"
        self.mounts.write_text(f"36 25 0:32 / {self.bpffs} rw,relatime - bpf bpf rw\n")
        monkeypatch.setattr(programs, "PINNED", self.bpffs / "plait")
        monkeypatch.setattr(programs, "_MOUNTS", self.mounts)
        monkeypatch.setattr(programs, "require_loading", lambda: Path("bpftool"))
        monkeypatch.setattr(programs, "object_of", lambda name: name.encode())
        monkeypatch.setattr(programs, "require_spare", lambda _: None)
        monkeypatch.setattr(programs, "available", lambda: ("reno", *self.loaded))
        monkeypatch.setattr(programs, "_run", self.run)

    def run(self, _: Path, *arguments: str, inherited: tuple[int, ...] = ()) -> str:  # noqa: ARG002 - as bpftool has it
        match [word for word in arguments if word != "-j"]:
            case ["struct_ops", "list"]:
                return json.dumps([{"name": programs.mark(name)} for name in self.loaded])
            case ["struct_ops", "register", path]:
                self.loaded.append(Path(path).name.removesuffix(".bpf.o"))
                self.maps[max(self.maps, default=0) + 1] = "plait_slots"
            case ["struct_ops", "unregister", "name", mark]:
                self.loaded.remove(mark.removeprefix("plait_"))
            case ["prog", "show", "name", _]:
                return json.dumps({"id": 1, "map_ids": [max(self.maps)]})
            case ["map", "show", "id", number]:
                return json.dumps({"name": self.maps[int(number)]})
            case ["map", "show", "pinned", path]:
                return json.dumps({"name": self.maps[int(Path(path).read_text())]})
            case ["map", "pin", "id", number, path]:
                with Path(path).open("x") as pin:
                    pin.write(number)
            case other:
                raise AssertionError(other)
        return ""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    """Return a kernel that takes every program."""
    return FakeKernel(tmp_path, monkeypatch)


def test_a_pin_shows_the_map_of_the_program_that_is_loaded_now(fake: FakeKernel) -> None:
    programs.load("olia", pin=True, take=no_lock)
    fake.loaded.clear()  # somebody unregistered it by hand
    assert programs.load("olia", pin=True, take=no_lock)
    assert (programs.PINNED / "olia").read_text() == "2"
    programs.unload("olia", no_lock)
    assert list(programs.PINNED.iterdir()) == []


def test_a_link_in_the_place_of_the_folder_of_pins_loses_no_file_of_its_target(
    fake: FakeKernel, tmp_path: Path
) -> None:
    fake.maps[7] = "plait_slots"
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "olia").write_text("7")
    programs.PINNED.symlink_to(tmp_path / "target")
    with pytest.raises(MachineError, match=r"bpf/plait is not plait's.*remove it"):
        programs.load("olia", pin=True, take=no_lock)
    assert fake.loaded == []
    programs.load("olia", take=no_lock)
    programs.unload("olia", no_lock)
    assert (tmp_path / "target" / "olia").exists()


@pytest.mark.parametrize("kind", ["map", "folder", "link"])
def test_what_somebody_else_has_in_the_place_of_a_pin_is_refused_and_stays(
    fake: FakeKernel, kind: str
) -> None:
    programs.PINNED.mkdir()
    place = programs.PINNED / "olia"
    if kind == "map":
        fake.maps[1] = "mine"
        place.write_text("1")
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to("/nowhere")
    with pytest.raises(MachineError, match=r"plait/olia is not plait's"):
        programs.load("olia", pin=True, take=no_lock)
    programs.load("olia", take=no_lock)
    programs.unload("olia", no_lock)
    assert fake.loaded == []
    assert os.path.lexists(place)


@pytest.mark.parametrize(
    "mounted", ["", "36 25 0:32 / PLACE rw - bpf bpf rw\n40 36 0:40 / PLACE rw - tmpfs none rw\n"]
)
def test_a_pin_needs_a_bpf_file_system_before_anything_is_loaded(fake: FakeKernel, mounted: str) -> None:
    fake.mounts.write_text(mounted.replace("PLACE", str(fake.bpffs)))
    with pytest.raises(MachineError, match=r"no bpf file system is mounted at .*mode=700"):
        programs.load("olia", pin=True, take=no_lock)
    assert (fake.loaded, programs.PINNED.exists()) == ([], False)


def test_a_folder_of_pins_that_cannot_be_made_is_named(
    fake: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "PINNED", fake.bpffs / ("n" * 300))
    with pytest.raises(MachineError, match=r"making .*: File name too long; load olia without --pin"):
        programs.load("olia", pin=True, take=no_lock)
    assert fake.loaded == []


@pytest.mark.usefixtures("fake")
def test_a_command_changes_no_program_while_a_trial_uses_it() -> None:
    def busy(name: str) -> int:
        raise MachineError(f"{name} is held")

    programs.load("olia", take=no_lock)
    for change in (
        lambda: programs.load("olia", take=busy),
        lambda: programs.unload("olia", busy),
        # The kernel has the program already, perhaps from a trial that takes it away.
        lambda: programs.loaded_for_a_trial(["olia"], busy).__enter__(),
    ):
        with pytest.raises(MachineError, match="host-bpf is held"):
            change()
    assert programs.loaded() == ("olia",)


@pytest.fixture
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in place of plait's own programs, with an object of OLIA."""
    (tmp_path / "olia.bpf.o").write_bytes(b"object")
    (tmp_path / programs.SUMS).write_text(f"{hashlib.sha256(b'object').hexdigest()}  olia.bpf.o\n")
    monkeypatch.setattr(programs, "PROGRAMS", tmp_path)
    return tmp_path


@pytest.mark.usefixtures("objects")
def test_an_intact_object_is_returned() -> None:
    assert programs.object_of("olia") == b"object"


def test_a_changed_object_is_refused(objects: Path) -> None:
    (objects / "olia.bpf.o").write_bytes(b"objecT")
    with pytest.raises(MachineError, match="SHA-256"):
        programs.object_of("olia")


@pytest.mark.usefixtures("objects")
def test_a_missing_object_names_its_remedy() -> None:
    with pytest.raises(MachineError, match="make bpf"):
        programs.object_of("lia")


@pytest.mark.parametrize("record", [b"zzz\n", b"\xff\n", b""])
def test_a_damaged_record_of_the_digests_is_refused(objects: Path, record: bytes) -> None:
    (objects / programs.SUMS).write_bytes(record)
    with pytest.raises(MachineError, match="make bpf"):
        programs.object_of("olia")
    assert not programs.has_object("olia")


@pytest.mark.parametrize("verb", [programs.load, programs.unload])
def test_an_unknown_name_gets_the_nearest_or_all(verb: Callable[[str], object]) -> None:
    with pytest.raises(RequestError, match=r"no BPF program of 'OLAI'; did you mean 'olia'\?"):
        verb("OLAI")
    with pytest.raises(RequestError, match="it has lia, olia, balia, wvegas"):
        verb("redundant")


def test_an_old_kernel_is_refused_before_anything_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "require_loading", lambda: Path("bpftool"))
    monkeypatch.setattr(programs, "object_of", lambda name: name.encode())
    monkeypatch.setattr(programs, "loaded", tuple)
    for release, can in (("6.1.0-56-amd64", False), ("6.12.118", True)):
        monkeypatch.setattr(platform, "release", lambda release=release: release)
        assert bool(programs.loadable()) == can
        assert ("can be loaded here" in doctor._bpf()) == can
        assert ("boot Linux 6.12" in doctor._bpf()) != can


def test_a_loader_that_only_names_its_package_is_cited_from_its_first_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As Ubuntu's, where the running kernel has no package of tools installed.
    loader = tmp_path / "bpftool"
    text = "WARNING: bpftool not found for kernel 6.14.0-37\\n\\n  Install:\\n    linux-tools-generic\\n"
    loader.write_text(f"#!/bin/sh\nprintf '{text}' >&2\nexit 2\n")
    loader.chmod(0o755)
    monkeypatch.setattr(programs, "require_loading", lambda: loader)
    monkeypatch.setattr(programs, "object_of", lambda name: name.encode())
    for asked in (programs.loaded, lambda: programs.load("olia"), lambda: programs.unload("olia")):
        with pytest.raises(MachineError, match=r"not found for kernel 6\.14\.0-37; .*install a bpftool"):
            asked()
    monkeypatch.setattr(platform, "release", lambda: "6.14.0-37-generic")
    assert "not found for kernel" in doctor._bpf()


def test_a_scheduler_is_refused_with_what_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_BTF", tmp_path / "none")
    with pytest.raises(MachineError, match=r"takes no schedulers by BPF.*--engine virtual"):
        programs.load("ecf")


def test_a_kernel_says_in_its_types_whether_it_takes_schedulers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_BTF", tmp_path / "vmlinux")
    monkeypatch.setattr(programs, "require_loading", lambda: Path("bpftool"))
    monkeypatch.setattr(programs, "object_of", lambda name: name.encode())
    monkeypatch.setattr(programs, "loaded_by", lambda _: programs.NAMES)
    for types, names in ((b"", programs.ALGORITHMS), (b"\0bpf_struct_ops_mptcp_sched_ops\0", programs.NAMES)):
        (tmp_path / "vmlinux").write_bytes(b"\0tcp_congestion_ops\0" + types)
        assert programs.loadable() == names


def test_a_scenario_with_a_scheduler_that_the_kernel_lacks_names_the_kernels_that_get_it() -> None:
    text = "title: T\nnetwork: {hosts: [a, b], links: {a-b: {}}}\nmptcp: {scheduler: ecf}\n"
    cases = expand(parse(text + "traffic: [{bulk: {from: a, to: b, duration: 1s}}]\n", "t.yaml"))
    kernel = Inventory(congestion_controls=("reno",), schedulers=("default",), sysctls={}, shared_sysctls={})
    with pytest.raises(ScenarioError, match=r"no MPTCP scheduler 'ecf'.*struct_ops mptcp_sched_ops"):
        refuse_what_is_missing(cases, lambda _: kernel)


def test_a_scenario_with_a_congestion_control_that_the_kernel_lacks_names_the_engine_that_loads_it() -> None:
    text = "title: T\nnetwork: {hosts: [a, b], links: {a-b: {}}}\ntcp: {congestion_control: cap}\n"
    cases = expand(parse(text + "traffic: [{bulk: {from: a, to: b, duration: 1s}}]\n", "t.yaml"))
    kernel = Inventory(congestion_controls=("reno",), schedulers=("default",), sysctls={}, shared_sysctls={})
    with pytest.raises(
        ScenarioError, match=r"no congestion control 'cap'.*--engine machine --kernel debian:6\.12"
    ):
        refuse_what_is_missing(cases, lambda _: kernel)


def test_the_kernel_keeps_the_whole_mark_of_each_algorithm() -> None:
    marks = {programs.mark(name) for name in programs.NAMES}
    assert len(marks) == len(programs.NAMES)
    assert all(len(mark) <= 15 for mark in marks)


def test_a_default_scheduler_stays_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mptcp").mkdir()
    (tmp_path / "mptcp" / "scheduler").write_text("blest\n")
    monkeypatch.setattr(programs, "_PROC", tmp_path)
    with pytest.raises(MachineError, match=r"default scheduler.*net\.mptcp\.scheduler=default"):
        programs.require_spare(["ecf", "blest"])


def test_an_inventory_names_schedulers_only_where_the_kernel_takes_them() -> None:
    taken = Inventory(congestion_controls=("reno",), schedulers=("default",), sysctls={}, shared_sysctls={})
    assert taken.with_programs(["olia", "ecf"]).schedulers == ("default",)
    with_both = taken.model_copy(update={"takes_schedulers": True}).with_programs(["olia", "ecf"])
    assert (with_both.congestion_controls, with_both.schedulers) == (("reno", "olia"), ("default", "ecf"))


@pytest.mark.usefixtures("objects")
def test_a_user_who_is_not_root_gets_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(MachineError, match="needs root"):
        programs.load("olia")
    assert programs.loadable() == ()


@pytest.mark.usefixtures("objects")
def test_the_default_of_the_machine_stays_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ipv4").mkdir()
    (tmp_path / "ipv4" / "tcp_congestion_control").write_text("olia\n")
    monkeypatch.setattr(programs, "_PROC", tmp_path)
    monkeypatch.setattr(programs, "require_loading", lambda: Path("bpftool"))
    monkeypatch.setattr(programs, "loaded", lambda: ("olia",))
    with pytest.raises(MachineError, match="default congestion control"):
        programs.unload("olia", no_lock)


def test_undo_takes_nothing_away_while_one_of_them_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ipv4").mkdir()
    (tmp_path / "ipv4" / "tcp_congestion_control").write_text("olia\n")
    (tmp_path / "ipv4" / "tcp_available_congestion_control").write_text("reno lia olia\n")
    taken: list[str] = []
    monkeypatch.setattr(programs, "_PROC", tmp_path)
    monkeypatch.setattr(programs, "loaded", lambda: ("lia", "olia"))
    monkeypatch.setattr(programs, "unload", lambda name, _: taken.append(name))
    monkeypatch.setattr(lasting, "undo", lambda host, **_: lasting.Applied(host.name, ()))
    with pytest.raises(MachineError, match="olia is this machine's default"):
        undo.command("localhost")
    assert taken == []


def test_a_preview_of_undo_takes_nothing_away_and_does_not_say_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(programs, "available", lambda: ("lia", "reno"))
    monkeypatch.setattr(programs, "loaded", lambda: ("lia",))
    monkeypatch.setattr(programs, "require_spare", lambda _: None)
    monkeypatch.setattr(programs, "unload", lambda name, _: pytest.fail(f"the preview took {name} away"))
    monkeypatch.setattr(lasting, "undo", lambda host, **_: lasting.Applied(host.name, ()))
    undo.command("localhost", printed=True)
    assert capsys.readouterr().out == "localhost: BPF program lia: loaded -> not loaded\n"


def test_a_trial_without_programs_needs_no_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ipv4").mkdir()
    (tmp_path / "ipv4" / "tcp_available_congestion_control").write_text("reno cubic\n")
    monkeypatch.setattr(programs, "_PROC", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with programs.loaded_for_a_trial(["cubic"]):
        pass


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")
def test_the_unit_of_the_page_is_valid_and_never_claims_that_a_program_is_loaded(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "how-to" / "coupled-congestion-control.md").read_text(encoding="utf-8")
    unit = page.split("```ini\n")[1].split("```")[0].replace("/usr/local/bin/plait", "/bin/true")
    # A unit that stays active after `plait undo` would not load the program again; what stops it stops at once.
    assert "RemainAfterExit" not in unit
    assert "ExecStop" not in unit
    file = tmp_path / "plait-bpf@olia.service"
    file.write_text(unit, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", file], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


LOADER = """#!/bin/sh
cd "${0%/*}"
if [ "$2" = register ]; then
    echo >started
    read -r _ <goon
fi
echo "$2" >>log
"""
HOLDER = """
import sys
from pathlib import Path
from plait.bpf import programs
from plait.cache import locked
programs.require_loading = lambda: Path(sys.argv[1])
programs.object_of = lambda name: b""
programs.available = lambda: ("reno",)
with programs.loaded_for_a_trial(["olia"], locked):
    pass
"""


def test_a_program_that_a_killed_plait_was_loading_is_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path))
    (tmp_path / "bpftool").write_text(LOADER)
    (tmp_path / "bpftool").chmod(0o755)
    for name in ("started", "goon"):
        os.mkfifo(tmp_path / name)
    with subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path / "bpftool"]) as holder:
        (tmp_path / "started").read_text()
        holder.kill()
    (tmp_path / "goon").write_text("\n")
    os.close(locked("host-bpf"))  # the process that takes the program away holds the lock until then
    assert (tmp_path / "log").read_text() == "register\nunregister\n"


@pytest.mark.parametrize(
    ("version", "loads"),
    [("v5.10.0", False), ("v7.1.0\\nusing libbpf v1.1", False), ("v7.5.0\\nusing libbpf v1.5", True)],
)
def test_an_old_loader_is_refused_for_schedulers_alone(
    version: str, *, loads: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian 12 has libbpf 1.1, which says `is not struct_ops BPF program` of a scheduler, which may sleep."""
    tool = tmp_path / "bpftool"
    tool.write_text(f"#!/bin/sh\nprintf 'bpftool {version}\\n'\n")
    tool.chmod(0o755)
    monkeypatch.setattr(programs, "takes_schedulers", lambda: True)
    monkeypatch.setattr(programs, "refused_by_verifier", lambda: None)
    monkeypatch.setattr(programs, "has_object", lambda _: True)
    monkeypatch.setattr(programs, "object_of", lambda _: b"")
    monkeypatch.setattr(programs, "require_loading", lambda: tool)
    assert programs.loadable() == (programs.NAMES if loads else programs.ALGORITHMS)
    if not loads:
        with pytest.raises(MachineError, match=r"loading ecf: .* is too old for schedulers; .*libbpf 1\.2"):
            programs.load("ecf", take=no_lock)
