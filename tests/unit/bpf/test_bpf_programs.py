"""plait loads only intact programs of its own, only as root, and says what to do otherwise."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from plait.bpf import programs
from plait.cli import undo
from plait.engine.remote import lasting
from plait.errors import MachineError, RequestError

REPOSITORY = Path(__file__).parents[3]


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


def test_an_unknown_name_lists_the_algorithms() -> None:
    with pytest.raises(RequestError, match="lia, olia, balia, wvegas"):
        programs.load("../olia")


def test_a_scheduler_is_refused_with_what_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_BTF", tmp_path / "none")
    with pytest.raises(RequestError, match=r"takes no schedulers by BPF.*--engine virtual"):
        programs.load("ecf")


@pytest.mark.usefixtures("objects")
def test_a_user_who_is_not_root_gets_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(MachineError, match="needs root"):
        programs.load("olia")
    assert programs.loadable() == ()


@pytest.mark.usefixtures("objects")
def test_the_default_of_the_machine_stays_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tcp_congestion_control").write_text("olia\n")
    monkeypatch.setattr(programs, "_PROC", tmp_path)
    monkeypatch.setattr(programs, "require_loading", lambda: Path("bpftool"))
    monkeypatch.setattr(programs, "loaded", lambda: ("olia",))
    with pytest.raises(MachineError, match="default congestion control"):
        programs.unload("olia")


def test_undo_takes_nothing_away_while_one_of_them_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tcp_congestion_control").write_text("olia\n")
    (tmp_path / "tcp_available_congestion_control").write_text("reno lia olia\n")
    taken: list[str] = []
    monkeypatch.setattr(programs, "_PROC", tmp_path)
    monkeypatch.setattr(programs, "loaded", lambda: ("lia", "olia"))
    monkeypatch.setattr(programs, "unload", taken.append)
    monkeypatch.setattr(lasting, "undo", lambda host, **_: lasting.Applied(host.name, ()))
    with pytest.raises(MachineError, match="olia is this machine's default"):
        undo.command("localhost")
    assert taken == []


def test_a_trial_without_programs_needs_no_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tcp_available_congestion_control").write_text("reno cubic\n")
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
