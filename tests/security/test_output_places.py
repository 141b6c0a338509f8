"""A program that shares a folder with plait cannot make plait write elsewhere by the files and links that it leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from executing import run
from plait.files import Folder, Output, UnfitError

if TYPE_CHECKING:
    from pathlib import Path

KEY = "ssh-ed25519 chosen by the guest\n"
SCRIPT = """\
set -e; cd {shared}; ip netns add a; ip -n a link set lo up; ip netns exec a ping -c 1 127.0.0.1 > /dev/null
captures=/proc/1/root/job/pcap
"""


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Return a folder that no guest shares, with a file."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "mine").write_text("mine")
    return folder


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


def unchanged(outside: Path) -> bool:
    return {path.name: path.read_bytes() for path in outside.iterdir()} == {"mine": b"mine"}


def attack(shared: Path, outside: Path, script: str, *words: str) -> tuple[int, str]:
    """Run a program that shares a folder and is captured to `cap` in it; return the exit code and the messages."""
    script = (SCRIPT + script).replace("{shared}", str(shared)).replace("{outside}", str(outside))
    options = ("--rw", str(shared), "--pcap", str(shared / "cap"), *words)
    done = run(*options, "--", "sh", "-c", script)
    return done.returncode, " ".join(done.stderr.split())


@pytest.mark.guest
@pytest.mark.parametrize(
    "script",
    [
        f"rmdir cap; ln -s {{outside}} cap; printf '{KEY}' > $captures/authorized_keys",
        f"rmdir cap; ln -s {{outside}} cap; printf '{KEY}' > $captures/mine",
        f"rmdir cap; ln -s {{outside}} cap; printf '{KEY}' > $captures/x.pcapng",
        f"ln -s {{outside}}/mine cap/x.pcapng; printf '{KEY}' > $captures/x.pcapng",
        f"rmdir cap; mkdir cap; ln -s {{outside}}/mine cap/x.pcapng; printf '{KEY}' > $captures/x.pcapng",
    ],
    ids=["new file", "overwritten file", "capture's name", "linked file", "folder made again"],
)
def test_captures_do_not_follow_a_link_of_the_program(script: str, shared: Path, outside: Path) -> None:
    code, message = attack(shared, outside, script)
    assert unchanged(outside), message
    assert code == 1, message
    assert "completing the captures" in message


@pytest.mark.guest
def test_captures_go_to_the_folder_that_plait_made_wherever_the_program_moves_it(
    shared: Path, outside: Path
) -> None:
    code, message = attack(shared, outside, "mv cap gone; ln -s {outside} cap")
    assert unchanged(outside), message
    assert (code, [path.name for path in (shared / "gone").iterdir()]) == (0, ["a.pcapng"]), message


@pytest.mark.guest
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("mkdir $captures/x.pcapng; touch $captures/x.pcapng/x.pcapng", "is a folder"),
        ("ln -s /etc/passwd $captures/x.pcapng", "symbolic link"),
        ("touch $captures/.bashrc", "is no capture"),
        ("rm -r $captures; touch $captures", "not a folder"),
        ("for n in 1 2 3; do truncate -s 30M $captures/$n.pcapng; done", "holes"),
    ],
    ids=["folder", "link", "other file", "no folder", "sparse files"],
)
def test_captures_take_only_files_that_the_agent_can_have_made(
    script: str, reason: str, shared: Path, outside: Path
) -> None:
    code, message = attack(shared, outside, script, "--disk-limit", "64MiB")
    assert (code, list((shared / "cap").iterdir())) == (1, []), message
    assert reason in message


def test_an_output_below_a_shared_folder_is_not_reached_through_a_link(
    shared: Path, outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shared / "link").symlink_to(outside)
    (shared / "inside").mkdir()
    (tmp_path / "alias").symlink_to(shared)
    monkeypatch.chdir(shared)
    for path in (
        shared / "link",
        shared / "link" / "new",
        shared / "link" / ".." / "inside",
        tmp_path / "alias" / "link",
        tmp_path / "alias" / "inside" / ".." / "link",
        shared.relative_to(shared) / "link",
    ):
        with pytest.raises(UnfitError, match="which guests can change"):
            Folder.hold(path, make=True, shared=[shared])
    for path in (shared, shared / "inside", tmp_path / "alias" / "inside", outside):
        Folder.hold(path, shared=[shared]).names()
    assert unchanged(outside)


def test_an_output_is_a_file_and_no_link(shared: Path, outside: Path) -> None:
    (shared / "link").symlink_to(outside / "mine")
    (shared / "folder").mkdir()
    for name in ("link", "folder", "..", "/dev/null"):
        with pytest.raises(UnfitError):
            Output.at(shared / name)
    Output.at(shared / "new").write(b"")
    Output.at(shared / "new").write(b"again")
    with pytest.raises(FileExistsError):
        Output.at(shared / "new").write(b"", keep=True)
    assert (shared / "new").read_bytes() == b"again"


@pytest.mark.parametrize("swap", ["link", "moved", "removed"])
def test_what_replaces_a_held_folder_or_an_output_is_not_followed(
    swap: str, shared: Path, outside: Path
) -> None:
    (shared / "held").mkdir()
    folder, output = Folder.hold(shared / "held"), Output.at(shared / "held" / "mine")
    if swap == "link":
        (shared / "held" / "mine").symlink_to(outside / "mine")
    elif swap == "moved":
        (shared / "held").rename(shared / "gone")
        (shared / "held").symlink_to(outside)
    else:
        (shared / "held").rmdir()
        (shared / "held").symlink_to(outside)
        with pytest.raises(OSError, match=r"No such file|not permitted"):
            output.write(b"x")
        with pytest.raises(OSError, match=r"No such file|not permitted"):
            (folder / "sub").write("x", b"")
        assert unchanged(outside)
        return
    output.write(b"plait's")
    place = shared / ("gone" if swap == "moved" else "held")
    assert ((place / "mine").read_bytes(), (place / "mine").is_symlink()) == (b"plait's", False)
    assert folder.names() == ["mine"]
    assert unchanged(outside)
