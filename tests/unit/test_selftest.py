"""Upstream's suites are prepared from a tree once, sharded by their letters, and their TAP is read with bounds."""

from __future__ import annotations

import shutil
import tarfile
from threading import Event
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from plait.cli import app
from plait.engine.engine import Interrupted
from plait.errors import MachineError, RequestError
from plait.kernel import Kernel
from plait.kernel.obtain import Sources
from plait.testing.selftest import run, suites, tap
from plait.testing.selftest.run import ShardResult
from plait.testing.selftest.suites import SuiteShard, prepare

if TYPE_CHECKING:
    from pathlib import Path

OUTPUT = """noise
TAP version 13
1..4
ok 1 - mptcp_join: signal address time=12ms
not ok 2 - mptcp_join: link failure
ok 3 - mptcp_join: fastclose # SKIP no match
ok 4 - mptcp_join: link failure
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "linux/tools/testing/selftests/net/mptcp"
    folder.mkdir(parents=True)
    (folder / "mptcp_lib.sh").write_text("")
    (folder / "diag.sh").write_text("exit 0\n")
    (folder / "mptcp_join.sh").write_text("all_tests_sorted=(\n\tf@subflows_tests\n\t6@ipv6_tests\n)\n")
    (folder / "helper.c").write_text(
        "#include <linux/mptcp.h>\nint main(void) { return MPTCP_OF_THE_TREE; }\n"
    )
    header = tmp_path / "linux/include/uapi/linux/mptcp.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define MPTCP_OF_THE_TREE 0\n")
    return tmp_path / "linux"


def test_results_are_read_by_name_with_skips_and_repeated_names() -> None:
    assert [(s.name, s.verdict) for s in tap.read("mptcp_join", 7, OUTPUT)] == [
        ("signal address time=12ms", "pass"),
        ("link failure", "fail"),
        ("fastclose", "skip"),
        ("link failure (2)", "pass"),
    ]


def test_a_skipped_subtest_has_the_reason_that_the_suite_printed() -> None:
    """Upstream prints it before or after the name, and not in the TAP."""
    output = """07 ....chk last_data_sent         [SKIP] Feature probably not supported
[SKIP] tproxy ipv4, could not load nft ruleset
ok 1 - diag: ....chk last_data_sent # SKIP time=524ms
ok 2 - diag: tproxy ipv4 # SKIP time=5ms
ok 3 - diag: tproxy ipv6 # SKIP
ok 4 - diag: tproxy
"""
    results = tap.read("diag", 1, output)
    reasons = ["Feature probably not supported", "could not load nft ruleset", "", ""]
    assert [subtest.reason for subtest in results] == reasons
    assert "ok 2 - diag: tproxy ipv4 (seed 1) # SKIP could not load nft ruleset\n" in tap.as_tap(results)
    assert b'<skipped message="could not load nft ruleset" />' in tap.as_junit(results)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="the helpers of the suites are compiled")
def test_a_group_of_a_suite_is_named_by_its_letter(tree: Path) -> None:
    prepared = prepare(tree)
    assert prepared.shards(("mptcp_join:f",)) == [SuiteShard("mptcp_join", "f")]
    for shard in prepared.shards(()):
        assert prepared.shards((shard.name,)) == [shard], "the name that a failure is repeated with"
    with pytest.raises(
        RequestError, match="selftest mptcp_join:x: the suite has no such group; it has: f, 6"
    ):
        prepared.shards(("mptcp_join:x",))
    with pytest.raises(RequestError, match="selftest diag:f: the suite has no groups; leave it out"):
        prepared.shards(("diag:f",))


FLAKY = """TAP version 13
ok 1 - simult_flows: balanced bwidth # time=7398ms
ok 2 - simult_flows: unbalanced bwidth # IGNORE Flaky time=12181ms
"""


def test_a_failure_that_the_suite_ignores_did_not_pass() -> None:
    results = tap.read("simult_flows", 3, FLAKY)
    assert [(s.verdict, s.reason) for s in results] == [("pass", ""), ("ignore", "Flaky time=12181ms")]
    assert "ok 2 - simult_flows: unbalanced bwidth (seed 3) # IGNORE Flaky" in tap.as_tap(results)
    assert [s.verdict for s in tap.read("simult_flows", 3, tap.as_tap(results))] == ["pass", "ignore"]
    junit = tap.as_junit(results)
    assert b'<skipped message="failed, ignored by the suite: Flaky time=12181ms" />' in junit
    assert b'tests="2" failures="0" skipped="1"' in junit


@pytest.mark.parametrize("directive", ["IGNORE", "TODO", "XFAIL"])
def test_an_expected_failure_is_neither_passed_nor_failed(directive: str) -> None:
    [result] = tap.read("diag", 1, f"not ok 1 - diag: listeners # {directive} known\n")
    assert (result.verdict, result.reason) == ("ignore", "known")


def whole(code: int | None, output: str) -> list[tuple[str, str]]:
    """Return the verdict and reason of what the end of a suite adds to its subtests."""
    subtests = tap.read("mptcp_join", 1, output)
    added = run._as_a_whole(SuiteShard("mptcp_join", "f"), 1, code, subtests, output)
    return [(subtest.verdict, subtest.reason) for subtest in added]


def test_a_suite_that_cannot_run_names_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    output = "[SKIP] Could not run all tests without iptables\n"
    monkeypatch.setattr(run, "missing_tools", lambda: ["iptables", "ip6tables"])
    reason = "Could not run all tests without iptables; install it (`apt-get install iptables`)"
    assert whole(4, output) == [("skip", reason)]
    monkeypatch.setattr(run, "missing_tools", list)
    assert whole(4, output) == [("skip", "Could not run all tests without iptables")]


def test_a_suite_without_a_single_result_is_not_tested() -> None:
    assert whole(0, "") == [("skip", "the suite ended without a result")]
    assert whole(0, "ok 1 - mptcp_join: one\n") == []
    assert whole(4, "") == [("skip", "the suite does not say why")]


def test_a_suite_that_fails_as_a_whole_says_how() -> None:
    passed = "ok 1 - mptcp_join: one\n"
    assert whole(2, passed) == [("fail", "it ended with exit code 2 and no failed subtest")]
    assert whole(None, f"{passed}\nplait: the guest's kernel panicked\n") == [
        ("fail", "the guest's kernel panicked")
    ]
    assert whole(1, "not ok 1 - mptcp_join: one\n") == []


def test_hostile_output_is_bounded_and_without_control_characters() -> None:
    text = "".join(f"ok {n} - \x1b[31m{'x' * 9000}{n}\n" for n in range(tap.MOST_SUBTESTS + 5))
    subtests = tap.read("diag", 1, text)
    assert len(subtests) == tap.MOST_SUBTESTS
    assert all(s.name.isprintable() and len(s.name) < 300 for s in subtests)


def test_written_tap_has_the_same_results() -> None:
    subtests = tap.read("mptcp_join", 7, OUTPUT)
    again = tap.read("mptcp_join", 7, tap.as_tap(subtests))
    assert [s.verdict for s in again] == [s.verdict for s in subtests]


def test_junit_counts_failures_and_skips() -> None:
    text = tap.as_junit(tap.read("mptcp_join", 7, OUTPUT)).decode()
    assert '<testsuite name="mptcp_join seed 7" tests="4" failures="1" skipped="1">' in text


def test_helpers_are_compiled_with_the_headers_of_their_tree_once(tree: Path) -> None:
    prepared = prepare(tree)
    helper = prepared.folder / "helper"
    changed = helper.stat().st_mtime_ns
    assert prepare(tree) == prepared
    assert helper.stat().st_mtime_ns == changed


def test_helpers_of_newer_trees_find_the_headers_of_tools(tree: Path) -> None:
    header = tree / "tools/include/linux/compiler.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define RETURNS 0\n")
    source = "#include <linux/compiler.h>\nint main(void) { return RETURNS; }\n"
    (tree / "tools/testing/selftests/net/mptcp/helper.c").write_text(source)
    assert (prepare(tree).folder / "helper").is_file()


def test_a_suite_that_selects_its_subtests_by_letters_is_sharded(tree: Path) -> None:
    assert prepare(tree).shards(()) == [
        SuiteShard("mptcp_join", "f"),
        SuiteShard("mptcp_join", "6"),
        SuiteShard("diag"),
    ]


def test_an_unknown_suite_is_refused_with_the_known_ones(tree: Path) -> None:
    with pytest.raises(RequestError, match="it has: mptcp_join, diag"):
        prepare(tree).shards(("join",))


def test_a_tree_without_suites_is_refused(tree: Path) -> None:
    with pytest.raises(RequestError, match="give a source tree of Linux"):
        prepare(tree / "include")


def test_a_missing_source_is_named_with_its_package(tree: Path) -> None:
    with pytest.raises(MachineError, match=r"apt-get install linux-source-6\.12(.|\n)*--tree"):
        prepare(None, sources=Sources(installed=(tree,), fetched=()))


def test_suites_of_the_distribution_are_read_from_its_archive_once(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "linux-source-6.12.tar.xz"
    with tarfile.open(archive, "w:xz") as target:
        target.add(tree, "linux-source-6.12")
    kernel = Kernel("a" * 64, "6.12.1", tmp_path / "linux", "b" * 64, 1000)
    monkeypatch.setattr(suites, "built_by_default", lambda: kernel)
    first = prepare(None, sources=Sources(installed=(tmp_path,), fetched=()))
    archive.unlink()
    again = prepare(None, sources=Sources(installed=(tmp_path,), fetched=()))
    assert again == first
    assert again.shards(("diag",)) == [SuiteShard("diag")]


@pytest.mark.parametrize(
    ("outputs", "code", "shown"),
    [
        (
            ["ok 1 - diag: a\n", "ok 1 - diag: a # SKIP\n"],
            3,
            "diag                     0 passed with every seed",
        ),
        (["ok 1 - diag: a\n", "not ok 1 - diag: a\n"], 1, "1/2 passed; failed with seed 2"),
        (["ok 1 - diag: a\n", "ok 1 - diag: a # IGNORE Flaky\n"], 0, "0 failed, 1 ignored, 0 skipped"),
        (
            [f"not ok 1 - diag: a # IGNORE Flaky time={ms}ms\n" for ms in (12216, 12034)],
            0,
            "0/2 passed; ignored with seed 1: Flaky time=12216ms; ignored with seed 2: Flaky time=12034ms",
        ),
        (
            ["not ok 1 - diag: a # IGNORE Flaky\n"] * 2,
            0,
            "0/2 passed; ignored with every seed: Flaky\n",
        ),
        (
            ["ok 1 - diag: a\n", "ok 1 - diag: a\nok 2 - diag: b # SKIP\n"],
            0,
            "1 passed with every seed, 0 failed",
        ),
    ],
)
def test_the_exit_code_says_what_was_tested(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, outputs: list[str], code: int, shown: str
) -> None:
    def ran(_: object, shard: SuiteShard, seed: int, *_more: object) -> ShardResult:
        subtests = tap.read("diag", seed, outputs[seed - 1])
        tested = any(subtest.verdict != "skip" for subtest in subtests)
        return ShardResult(shard, seed, subtests, "", 1.0, 1.0, tested)

    kernel = Kernel("a" * 64, "6.12.1", tmp_path / "linux", "b" * 64, 1000)
    monkeypatch.setattr("plait.cli.laboratory.selftest.chosen_kernel", lambda _: kernel)
    monkeypatch.setattr(run, "_run", ran)
    words = ["selftest", "diag", "--tree", str(tree), "--seeds", "2"]
    result = CliRunner().invoke(app, words, standalone_mode=False)
    assert result.return_value == code
    assert shown in result.stdout


def test_an_interrupted_run_shows_the_guests_that_ended_and_stops_the_others(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ran(_: object, shard: SuiteShard, seed: int, *more: object) -> ShardResult:
        if seed == 3:
            raise KeyboardInterrupt
        if seed > 3:
            stop = more[-1]
            assert isinstance(stop, Event)
            stop.wait()
            raise Interrupted
        return ShardResult(
            shard, seed, tap.read("diag", seed, "ok 1 - diag: listeners\n"), "", 1.0, 1.0, True
        )

    kernel = Kernel("a" * 64, "6.12.1", tmp_path / "linux", "b" * 64, 1000)
    monkeypatch.setattr("plait.cli.laboratory.selftest.chosen_kernel", lambda _: kernel)
    monkeypatch.setattr(run, "_run", ran)
    junit = tmp_path / "results.xml"
    words = ["selftest", "diag", "--tree", str(tree), "--seeds", "5", "--jobs", "1", "--junit", str(junit)]
    result = CliRunner().invoke(app, words, standalone_mode=False)
    assert "1 passed with every seed, 0 failed, 0 ignored, 0 skipped" in result.stdout
    assert "interrupted by SIGINT; 2 of 5 guests ended" in result.stderr
    assert junit.read_text().count("<testsuite ") == 2
    assert result.return_value == 130


def test_a_missing_compiler_is_named(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tree))
    with pytest.raises(MachineError, match="gcc is not installed"):
        prepare(tree)
