"""Scripts of packetdrill are found with their address families, and refused with a sentence if they cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.cli.laboratory.selftest import _prepared, _show
from plait.errors import MachineError, RequestError
from plait.testing.selftest import packetdrill_driver, tap
from plait.testing.selftest.packetdrill import Scripts, prepare
from plait.testing.selftest.suites import SuiteShard


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Return a program in place of packetdrill."""
    path = tmp_path / "packetdrill"
    path.write_text("#!/bin/true\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout/tests/join"
    folder.mkdir(parents=True)
    (tmp_path / "checkout/.git").mkdir()
    for name in ("a.pkt", "b_v4.pkt", "c_v6.pkt"):
        (folder / name).write_text("")
    return folder


def test_each_script_runs_over_the_families_of_its_name(scripts: Path, program: Path) -> None:
    prepared, [shard] = prepare([scripts.parent], program=program, tree=None, tolerance_us=None)
    words, _ = prepared.command(shard)
    assert words[4:6] == [str(program), ""]
    assert words[6::3] == [
        "join/a ipv4", "join/a ipv4-mapped-v6", "join/a ipv6",
        "join/b_v4 ipv4", "join/b_v4 ipv4-mapped-v6", "join/c_v6 ipv6",
    ]  # fmt: skip
    assert prepared.readable == (program.parent, scripts.parents[1]), "scripts run commands of the checkout"
    assert shard.words == ("packetdrill", str(scripts))
    assert shard.title == "packetdrill join"
    part = SuiteShard("packetdrill", scripts=shard.scripts[:2])
    assert part.words == ("packetdrill", *shard.scripts[:2]), "earlier scripts shift the times of later ones"


def test_a_tolerance_is_0_or_a_time(scripts: Path, program: Path) -> None:
    def tolerance_us(text: str) -> int | None:
        prepared, _ = _prepared(["packetdrill", str(scripts)], None, program, text)
        return prepared.tolerance_us if isinstance(prepared, Scripts) else None

    assert [tolerance_us(text) for text in ("0", "500ns", "4ms")] == [0, 1, 4000]


def test_a_guest_does_not_see_a_home_directory(
    scripts: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(scripts.parents[1]))
    prepared, _ = prepare([scripts], program=program, tree=None, tolerance_us=None)
    assert prepared.folders == (scripts,)
    monkeypatch.setenv("HOME", str(program.parent))
    assert prepared.readable == (program, scripts)


def test_scripts_of_a_tree_get_the_addresses_of_their_runner(tmp_path: Path, program: Path) -> None:
    folder = tmp_path / "linux/tools/testing/selftests/net/packetdrill"
    folder.mkdir(parents=True)
    for name in ("a.pkt", "ksft_runner.sh"):
        (folder / name).write_text("")
    prepared, [shard] = prepare([], program=program, tree=tmp_path / "linux", tolerance_us=0)
    words, _ = prepared.command(shard)
    assert words[5] == "0"
    assert "--local_ip=192.168.0.1 " in words[8]
    assert shard.words == ("packetdrill", str(folder / "a.pkt"))


def test_an_absent_packetdrill_has_its_sentence(
    scripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv("PLAIT_PACKETDRILL", raising=False)
    with pytest.raises(MachineError, match="it is not on PATH; build it from its repository"):
        prepare([scripts], program=None, tree=None, tolerance_us=None)
    monkeypatch.setenv("PLAIT_PACKETDRILL", "/nowhere/packetdrill")
    with pytest.raises(MachineError, match="/nowhere/packetdrill is no program"):
        prepare([scripts], program=None, tree=None, tolerance_us=None)


def test_what_cannot_run_is_refused(tmp_path: Path, program: Path) -> None:
    with pytest.raises(RequestError, match="name scripts"):
        prepare([], program=program, tree=None, tolerance_us=None)
    with pytest.raises(RequestError, match=r"it has no script \(\*\.pkt\)"):
        prepare([tmp_path], program=program, tree=None, tolerance_us=None)
    with pytest.raises(RequestError, match="there is no such file or folder"):
        prepare([tmp_path / "absent"], program=program, tree=None, tolerance_us=None)
    with pytest.raises(RequestError, match="--tolerance 0: it concerns `plait selftest packetdrill`"):
        _prepared(["diag"], None, None, "0")


class Late(packetdrill_driver.ScriptRunner):
    """Runs nothing: its events are 10 and 30 us late."""

    def __init__(self, program: str) -> None:
        """Ask the kernel for nothing."""
        assert program == "packetdrill"

    def attempt(self, name: str, script: str, options: list[str]) -> tuple[int, str]:
        """Return what packetdrill would say with the tolerance of the options."""
        allowed = next((int(word.split("=")[1]) for word in options if word.startswith("--tolerance")), 99)
        late = next((us for us in (10, 30) if allowed < us), None)
        assert (name, script, options[0]) == ("join/a ipv4", "/x/a.pkt", "--ip_version=ipv4")
        expected = "a.pkt:3: timing error: expected outbound packet at 0.000000 sec but happened at"
        return (0, "") if late is None else (1, f"{expected} {late / 1e6:.6f} sec")


def test_the_driver_finds_the_smallest_tolerance(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(packetdrill_driver, "ScriptRunner", Late)

    def driven(tolerance: str) -> tuple[int, list[tap.Subtest]]:
        code = packetdrill_driver.main(
            ["packetdrill", tolerance, "join/a ipv4", "/x/a.pkt", "--ip_version=ipv4"]
        )
        return code, tap.read("packetdrill", 1, capsys.readouterr().out)

    assert driven("0") == (0, [tap.Subtest("packetdrill", "join/a ipv4", 1, "pass", slack_us=30)])
    assert driven("") == (0, [tap.Subtest("packetdrill", "join/a ipv4", 1, "pass")])
    code, [late] = driven("20")
    assert (code, late.verdict) == (1, "fail")
    assert late.reason.startswith("a.pkt:3: timing error: expected outbound packet")


def test_the_driver_reads_what_packetdrill_says() -> None:
    ranged = "expected inbound packet in relative time range +0.1~+0.200000 sec but happened at +0.200050 sec"
    assert packetdrill_driver.missed_by_us(f"a.pkt:7: timing error: {ranged}; tolerance 0.000001 sec") == 50
    assert packetdrill_driver.missed_by_us("a.pkt:7: bad outbound TCP options") is None
    assert packetdrill_driver.reason_of(
        1, "warning: x\na.pkt:7: error handling packet: live\nscript: {}"
    ) == ("a.pkt:7: error handling packet: live")
    assert packetdrill_driver.reason_of(1, "first\nlast") == "last"
    assert packetdrill_driver.reason_of(-11, "") == "it ended with exit code -11"


def test_the_slack_is_in_every_output(capsys: pytest.CaptureFixture[str]) -> None:
    subtests = tap.read(
        "packetdrill", 1, "ok 1 - join/a ipv4 # SLACK 35 us\nnot ok 2 - b # FAIL b.pkt:1: no\n"
    )
    assert [(s.slack_us, s.reason) for s in subtests] == [(35, ""), (None, "b.pkt:1: no")]
    assert "ok 1 - packetdrill: join/a ipv4 (seed 1) # SLACK 35 us\n" in tap.as_tap(subtests)
    assert b'<property name="slack_us" value="35" />' in tap.as_junit(subtests)
    _show(subtests, [], "0")
    assert "35 us  join/a ipv4" in capsys.readouterr().out


def test_shards_of_suites_keep_their_words() -> None:
    assert SuiteShard("mptcp_join", "f").words == ("mptcp_join:f",)
