"""`plait selftest` runs a small suite of a tree in guests, and a subtest that fails for one seed fails again."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from plait.cli import app
from plait.errors import RequestError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.guest

DIAG = """\
. ./mptcp_lib.sh
echo "TAP version 13"
ip netns add a && ip -n a link set lo up && result 0 "namespace" || result 1 "namespace"
ip netns exec a ./helper && result 0 "MPTCP socket of the helper" || result 1 "MPTCP socket of the helper"
byte=$(od -An -N1 -tu1 /dev/urandom)
result $((byte % 2)) "even byte"
echo "ok 4 - diag: absent match # SKIP"
exit $failed
"""
LIBRARY = """\
number=0
failed=0
result() {
    number=$((number + 1))
    if [ "$1" = 0 ]; then echo "ok $number - diag: $2"; else echo "not ok $number - diag: $2"; failed=1; fi
}
"""
HELPER = """\
#include <linux/mptcp.h>
#include <sys/socket.h>
int main(void) { return socket(AF_INET, SOCK_STREAM, PROTOCOL) < 0; }
"""
SEEDS = 8


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "linux/tools/testing/selftests/net/mptcp"
    folder.mkdir(parents=True)
    for name, text in {"mptcp_lib.sh": LIBRARY, "diag.sh": DIAG, "helper.c": HELPER}.items():
        (folder / name).write_text(text)
    header = tmp_path / "linux/include/uapi/linux/mptcp.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define PROTOCOL 262\n")
    return tmp_path / "linux"


def selftest(tree: Path, *words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["selftest", "diag", "--tree", str(tree), *words], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return int(result.return_value or 0), result.stdout


needs_programs = pytest.mark.skipif(
    any(shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") is None for name in ("ip", "gcc")),
    reason="the guest uses this machine's iproute2, and the suite has a helper in C",
)


@needs_programs
def test_each_seed_has_its_verdict_and_keeps_it(tree: Path, tmp_path: Path) -> None:
    junit, logs = tmp_path / "results.xml", tmp_path / "logs"
    code, shown = selftest(tree, "--seeds", str(SEEDS), "--junit", str(junit), "--logs", str(logs))
    suites = ET.parse(junit).getroot().findall("testsuite")  # noqa: S314 - plait wrote it just now
    verdicts = {
        int((suite.get("name") or "").split()[-1]): suite.find("testcase[@name='even byte']/failure") is None
        for suite in suites
    }
    assert len(verdicts) == SEEDS
    assert len(set(verdicts.values())) == 2, "the byte depends on the seed"
    assert code == 1
    assert "diag                     2 passed with every seed, 1 failed, 0 ignored, 1 skipped" in shown
    assert f"{sum(verdicts.values())}/{SEEDS} passed; failed with seed" in shown
    assert f"To repeat: plait selftest diag --seed {min(s for s in verdicts if not verdicts[s])}" in shown
    assert len(list(logs.iterdir())) == SEEDS
    for seed in (min(s for s in verdicts if not verdicts[s]), min(s for s in verdicts if verdicts[s])):
        code, shown = selftest(tree, "--seed", str(seed), "--tap")
        assert code == (0 if verdicts[seed] else 1)
        assert f"{'ok' if verdicts[seed] else 'not ok'} 3 - diag: even byte (seed {seed})" in shown
        assert f"ok 4 - diag: absent match (seed {seed}) # SKIP" in shown


@needs_programs
def test_the_packets_of_one_guest_are_captured(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="--pcap with 2 guests: it observes one"):
        selftest(tree, "--seeds", "2", "--pcap", str(tmp_path / "pcap"))
    _, shown = selftest(tree, "--pcap", str(tmp_path / "pcap"), "--tap")
    assert "ok 1 - diag: namespace" in shown
    assert [path.name for path in (tmp_path / "pcap").iterdir()] == ["a.pcapng"]


@needs_programs
def test_commands_of_packetdrill_set_values_without_a_program(tmp_path: Path) -> None:
    """A program in place of packetdrill runs each line of a script as a command, as packetdrill does."""
    program = tmp_path / "bin" / "packetdrill"
    program.parent.mkdir()
    program.write_text('#!/bin/bash\nwhile read -r line; do sh -c "$line" || exit; done <"${!#}"\n')
    program.chmod(0o755)
    folder = tmp_path / "scripts"
    folder.mkdir()
    commands = folder / "commands.sh"
    commands.write_text(
        "#!/bin/bash\nset -e\nPATH=/absent\ncd /proc/sys/net/ipv4\n"
        'sysctl -q net.ipv4.tcp_sack=0 net.ipv4.tcp_rmem="4096 540000 15728640"\n'
        'read -r sack <tcp_sack\nread -ra rmem <tcp_rmem\n[ "$sack ${rmem[*]}" = "0 4096 540000 15728640" ]\n'
        "for rest in '-q net.ipv4.tcp_sack=many' '-q net.ipv4.absent=1' '-n net.ipv4.tcp_sack'; do\n"
        "    if sysctl $rest; then exit 1; fi  # the program is absent\ndone\n"
    )
    commands.chmod(0o755)
    (folder / "a_v4.pkt").write_text("./commands.sh\n")
    words = ["selftest", "packetdrill", str(folder), "--packetdrill", str(program), "--tap"]
    result = CliRunner().invoke(app, words, standalone_mode=False)
    assert result.return_value == 0, result.output
    assert "ok 1 - packetdrill: scripts/a_v4 ipv4 (seed 1)\nok 2" in result.output


def test_a_script_waits_for_ticks_in_few_calls_and_in_mounts_of_its_own(tmp_path: Path) -> None:
    """The program asks times(2) until ten ticks have passed, some 14 000 times if nothing lets it sleep."""
    program = tmp_path / "bin" / "packetdrill"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable} -IS\n"
        "import ctypes, os, time\n"
        "assert [d.name for d in os.scandir('/sys/class/net') if d.is_dir()] == ['lo'], 'of its namespace'\n"
        "name, = os.listdir('/run/netns')\n"
        "assert os.stat(f'/run/netns/{name}').st_ino == os.stat('/proc/self/ns/net').st_ino\n"
        "assert ctypes.CDLL(None).umount2(b'/sys', 2) == 0, 'later scripts still have it'\n"
        "times, began, ticks = ctypes.CDLL(None).times, time.monotonic(), set()\n"
        "for _ in range(11):\n"
        "    ticks.add(times(None))\n"
        "assert len(ticks) == 11, ticks\n"
        "assert 0.1 <= time.monotonic() - began < 0.112, 'as long as ten or eleven ticks'\n"
        "assert os.times().elapsed > 0, 'another call of it does not wait'\n"
    )
    program.chmod(0o755)
    (tmp_path / "a_v4.pkt").write_text("")
    words = ["selftest", "packetdrill", str(tmp_path / "a_v4.pkt"), "--packetdrill", str(program), "--tap"]
    result = CliRunner().invoke(app, words, standalone_mode=False)
    assert result.return_value == 0, result.output


def test_a_script_that_waits_for_ever_ends_with_what_it_started(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "packetdrill"
    program.parent.mkdir()
    program.write_text('#!/bin/bash\n[ -z "$(pgrep sleep)" ] || exit 3\nsleep infinity & wait\n')
    program.chmod(0o755)
    (tmp_path / "a_v4.pkt").write_text("")
    words = ["selftest", "packetdrill", str(tmp_path / "a_v4.pkt"), "--packetdrill", str(program), "--tap"]
    result = CliRunner().invoke(app, [*words, "--logs", str(tmp_path / "logs")], standalone_mode=False)
    assert result.return_value == 1
    [log] = (tmp_path / "logs").iterdir()
    assert log.read_text().count("# FAIL it did not end within 300 s of virtual time") == 2, "both families"
