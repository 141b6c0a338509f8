"""Topologies of other tools become scenarios with the right figures, and the importer names what it drops."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from plait.cli import import_
from plait.errors import RequestError, ScenarioError
from plait.importers import mininet, minitopo, recorder
from plait.plan.resolve import resolve
from plait.prompt.view import view
from plait.scenario import load, parse
from plait.scenario.vary.cases import expand

TWO_PATHS = """\
# two paths
leftSubnet:10.0.
rightSubnet:10.1.
path_c2r_0:10,20,5
path_c2r_1:40,30,4,1.5,1
changeNetem:yes
netemAt_c2r_0:5,loss 5%
topoType:MultiIf
"""


def test_a_minitopo_file_becomes_paths_with_their_rates_delays_loss_and_backup() -> None:
    text = minitopo.draft(TWO_PATHS, "topo").text()
    scenario = parse(text, "t.yaml")
    plan = resolve(expand(scenario)[1].scenario, 1)
    links = {link.name: link.directions[0] for link in plan.links}
    assert list(links) == ["Client-Router", "Client-Router#2", "Router-Server"]
    first, second, last = links.values()
    assert (first.rate_bps, first.delay_ns, first.loss_ratio) == (5_000_000, 10_000_000, 0)
    assert (second.rate_bps, second.delay_ns, second.loss_ratio) == (4_000_000, 40_000_000, 0.015)
    assert last.rate_bps is None
    backups = [
        endpoint for node in plan.network.mptcp for endpoint in node.endpoints if "backup" in endpoint.flags
    ]
    assert [endpoint.address for endpoint in backups] == [view(plan).interfaces["Client"][1].addresses[0]]


def test_the_buffer_is_the_one_that_minitopo_makes() -> None:
    """9 frames of bandwidth-delay product, and what waits 45 ms: 20 frames at 5 * 2^20 bit/s take 45.8 ms."""
    plan = resolve(expand(parse(minitopo.draft(TWO_PATHS, "topo").text(), "t.yaml"))[0].scenario, 1)
    assert plan.links[0].directions[0].queue_bytes == 9 * 1500 + 5 * 1000 * 45 // 8


def test_what_is_not_carried_over_stands_in_the_scenario() -> None:
    text = minitopo.draft(TWO_PATHS, "topo").text()
    assert "#   - netemAt_c2r_0: 5,loss 5%" in text
    assert "#   - leftSubnet 10.0.: plait assigns its own addresses" in text


def test_all_mistakes_in_a_minitopo_file_are_reported_with_their_lines() -> None:
    wrong = "path_c2r_0:10,x,5\ntopoType:ECMPLike\npath_c2r_1:1\nwords\n"
    with pytest.raises(ScenarioError) as caught:
        minitopo.draft(wrong, "topo")
    assert [(mistake.line, mistake.path) for mistake in caught.value.mistakes] == [
        (1, "path_c2r_0"), (2, "topoType"), (3, "path_c2r_1"), (4, "words"),
    ]  # fmt: skip


TOPO = """\
from mininet.topo import Topo
from mininet.cli import CLI
class Two(Topo):
    def build(self, n=2):
        h1, h2 = self.addHost('h1', ip='10.9.0.1/24'), self.addHost('h2')
        for i in range(1, n + 1):
            s = self.addSwitch('s%d' % i)
            self.addLink(h1, s, bw=5, delay='10ms', max_queue_size=50)
            self.addLink(s, h2, bw=5, loss=1, use_htb=True)
"""


def record(text: str, tmp_path: Path, *words: str, python: str = sys.executable) -> dict[str, object]:
    file = tmp_path / "topo.py"
    file.write_text(text)
    done = subprocess.run(
        [python, recorder.__file__, str(file), *words], capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_a_mininet_topology_becomes_hosts_switches_and_links_with_their_conditions(tmp_path: Path) -> None:
    text = mininet.draft(record(TOPO, tmp_path), "topo.py").text()
    plan = resolve(expand(parse(text, "t.yaml"))[0].scenario, 1)
    links = {link.name: link.directions[0] for link in plan.links}
    assert list(links) == ["h1-s1", "s1-h2", "h1-s2", "s2-h2"]
    assert (links["h1-s1"].rate_bps, links["h1-s1"].delay_ns, links["h1-s1"].queue_packets) == (
        5_000_000, 10_000_000, 50,
    )  # fmt: skip
    assert links["s1-h2"].loss_ratio == 0.01
    assert "#   - h1: ip=10.9.0.1/24" in text


@pytest.mark.parametrize(
    ("options", "differs"),
    [({"bw": 5}, True), ({"bw": 5, "max_queue_size": 1000}, False), ({"delay": "5ms"}, False)],
)
def test_another_default_queue_than_mininets_is_named(options: dict[str, object], differs: bool) -> None:
    nodes = [("h1", False, {}), ("h2", False, {})]
    text = mininet.draft({"nodes": nodes, "links": [("h1", "h2", options)]}, "topo.py").text()
    line = (
        "#   - queues: without max_queue_size, a link of Mininet queues up to 1000 packets; plait's queue is"
    )
    assert (line in text) is differs


def test_of_several_topologies_one_must_be_named(tmp_path: Path) -> None:
    several = TOPO + "class Three(Two):\n    def build(self):\n        Two.build(self, 3)\n"
    assert record(several, tmp_path) == {"classes": ["Three", "Two"]}
    assert len(record(several, tmp_path, "Three")["links"]) == 6


@pytest.mark.parametrize(
    ("topo", "reason"),
    [
        (None, "this file has several topologies; write --topo one or --topo two"),
        ("on", "it has no topology 'on'; write --topo one"),
    ],
)
def test_a_topology_that_the_file_lacks_is_refused_with_those_that_it_has(
    topo: str | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_, "_record", lambda *_: {"classes": ["one", "two"]})
    with pytest.raises(RequestError, match=reason):
        import_._mininet_draft(Path("a.py"), topo)


def test_a_python_file_as_a_scenario_is_refused_with_the_verbs_that_take_it(tmp_path: Path) -> None:
    path = tmp_path / "two paths.py"
    path.write_text(TOPO, encoding="utf-8")
    with pytest.raises(ScenarioError) as refused:
        load(path)
    assert f"plait import '{path}' converts" in str(refused.value)
    assert f"plait exec -- python3 '{path}' runs" in str(refused.value)


def test_a_file_without_a_topology_says_so(tmp_path: Path) -> None:
    assert record("from mininet.net import Mininet\n", tmp_path) == {"classes": []}


@pytest.mark.parametrize(
    "printed",
    [
        b"", b"words", b"null", b"[1]", b'{"nodes": 1}', b'{"nodes": [["h1", false]]}', b"[" * 100_000,
        b'{"nodes": [], "links": [["h1", "h2", {}]]}', b'{"nodes": [["h1", false, {"a": []}]]}',
    ],
)  # fmt: skip
def test_what_is_no_topology_is_refused(printed: bytes) -> None:
    with pytest.raises(ValueError, match=r"no topology|not both nodes"):
        mininet.recorded(b"first\n" + printed)


def test_words_of_the_file_end_no_line_of_the_scenario_and_reach_no_terminal() -> None:
    hostile = "x\ntraffic: []\x1b[2J"
    nodes = [("h1", False, {"ip": hostile}), ("h2", False, {})]
    links = [("h1", "h2", {"bw": "much", "delay": hostile, "max_queue_size": 1e999, "loss": hostile})]
    record = mininet.recorded(json.dumps({"nodes": nodes, "links": links}).encode())
    for text in (
        mininet.draft(record, f"{hostile}.py").text(),
        minitopo.draft(f"{TWO_PATHS}path_x_0: \x1b[2J\nother: \x1b[2J\n", hostile).text(),
    ):
        assert all(line.isprintable() for line in text.split("\n"))
        assert sum(line.startswith("traffic:") for line in text.split("\n")) == 1
    assert "#   - link h1-h2: bw=much" in mininet.draft(record, "topo.py").text()


def test_a_file_without_an_end_is_refused_after_a_bounded_part() -> None:
    with pytest.raises(RequestError, match="more than 16 MiB"):
        import_.command([Path("/dev/zero")])


def test_a_script_with_the_line_ends_of_windows_is_the_same_script(tmp_path: Path) -> None:
    script = "ip netns add a\nip netns add b\nip link add x \\\n netns a type veth peer y netns b\n"
    for number, text in enumerate((script, script.replace("\n", "\r\n"))):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "s.sh").write_bytes(text.encode())
        import_.command([tmp_path / f"{number}" / "s.sh"], out=tmp_path / f"{number}.yaml")
    assert (tmp_path / "0.yaml").read_bytes() == (tmp_path / "1.yaml").read_bytes()
