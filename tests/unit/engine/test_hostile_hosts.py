"""A host that answers wrongly, or slowly without end, fails its trial with a sentence: plait does not trust it."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from threading import Event
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from test_remote_preflight import HOSTS, planned

from plait.dataset.convert import read_stream
from plait.dataset.model import ALL_TABLES, TABLES
from plait.engine.engine import Job
from plait.engine.remote import channel, merge, ssh
from plait.engine.remote.answers import (
    global_address,
    interface_of,
    interfaces_with,
    mptcp_in,
    whole_number,
)
from plait.engine.remote.clocks import Zero
from plait.engine.remote.exchange import Exchange, Participant, longest_status
from plait.engine.remote.merge import FETCHED, merged
from plait.engine.remote.spent import Spent
from plait.engine.remote.ssh import HostSession
from plait.engine.remote.trial import RemoteEngine
from plait.errors import DataError, TrialError
from plait.hosts.read import parse_hosts
from plait.measure import survey
from plait.measure.crossing import _crossing
from plait.measure.probing import LineEnd, LineProber, PacketBurst, _packets
from plait.observe.remote import _TABLES as OBSERVED
from plait.observe.remote import HostsObserver
from plait.observe.watching import Selection, observing_plan
from plait.observe.words import _rows_left_out

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUPERSCRIPT = "\N{SUPERSCRIPT TWO}"
"""A digit by `str.isdigit`, and no number by `int`."""


@contextmanager
def session(tmp_path: Path, script: str) -> Iterator[HostSession]:
    """Yield a session with a shell script in place of ssh."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssh, "keeper_command", lambda *_: ["sh", "-c", script])
        host = HostSession("h1", "h1.example", tmp_path)
    try:
        yield host
    finally:
        host.process.kill()
        host.end()


@pytest.mark.parametrize("text", [SUPERSCRIPT, "1" * 20, "-1", "", "1_0"])
def test_only_ascii_digits_are_a_number(text: str) -> None:
    assert whole_number(text) is None


@pytest.mark.parametrize("answer", ["time x", f"time {SUPERSCRIPT}", f"zero {SUPERSCRIPT}"])
def test_a_time_that_is_no_number_fails_the_trial(tmp_path: Path, answer: str) -> None:
    with session(tmp_path, f"echo '{answer}'; cat") as host:
        participant = Participant(host, asked_ns=[0])
        with pytest.raises(TrialError, match="instead of a time"):
            participant.wait_for("ready", 20)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (SUPERSCRIPT, "h1: the host did not send status.json"),
        ("101", "h1: status.json has 101 bytes; plait accepts 100"),
    ],
)
def test_a_size_that_is_no_number_or_too_large_fails_the_trial(
    tmp_path: Path, size: str, message: str
) -> None:
    with (
        session(tmp_path, f"echo '{size} status.json'; echo ok; cat") as host,
        pytest.raises(TrialError, match=message),
    ):
        host.fetch({"status.json": 100}, tmp_path)


def test_a_host_brings_no_file_that_nobody_asked_for(tmp_path: Path) -> None:
    target = tmp_path / "brought"
    target.mkdir()
    with session(tmp_path, "echo '3 ../left'; echo '2 status.json'; echo ok; printf '{}'; cat") as host:
        host.fetch({"console.log": 100, "status.json": 100}, target)
    assert {path.name: path.read_text() for path in tmp_path.rglob("*") if path.is_file()} == {
        "status.json": "{}"
    }


def test_a_host_that_talks_without_end_fails_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = iter(range(1_000_000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(passed)))  # a second at each look
    with (
        session(tmp_path, "yes word") as host,
        pytest.raises(TrialError, match="did not say 'ready' within 60 s"),
    ):
        Participant(host).wait_for("ready", 60)
    with session(tmp_path, "yes word") as host:
        with pytest.raises(TrialError):
            host.order("facts")
        assert next(passed) < 1000


@pytest.mark.parametrize(
    "status", ["{}", '{"virtual_us": null}', '{"virtual_us": "7"}', '{"virtual_us": []}']
)
def test_a_status_without_a_time_fails_the_trial(tmp_path: Path, status: str) -> None:
    for name, text in (("h1", '{"virtual_us": 7}'), ("h2", status)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "status.json").write_text(text)
    with pytest.raises(TrialError, match=r"^h2: the agent does not report how long the trial lasted$"):
        longest_status(tmp_path, ["h1", "h2"])
    assert json.loads(longest_status(tmp_path, ["h1"])) == {"virtual_us": 7}


def test_rows_of_flows_that_a_host_was_not_given_count_for_no_flow() -> None:
    plan, real = planned()
    tables = {name: pl.DataFrame(schema=ALL_TABLES[name]) for name in FETCHED}
    row = {"flow": 7, "local_address": "192.0.2.1", "local_port": 1, "remote_address": "192.0.2.2"}
    empty = dict.fromkeys(ALL_TABLES["subflows"])
    tables["subflows"] = pl.DataFrame([{**empty, **row}], schema=ALL_TABLES["subflows"])
    rows = merged(plan, real, {"h1": tables, "h2": tables})["subflows"]
    assert rows["flow"].to_list() == [None, None]


@pytest.mark.parametrize("received_us", [1 << 62, -(1 << 62)])
def test_packets_at_impossible_times_fail_the_measurement(tmp_path: Path, received_us: int) -> None:
    ends = (LineEnd("h1", "192.0.2.1", "192.0.2.1", 5001), LineEnd("h2", "192.0.2.2", "192.0.2.2", 5001))
    burst = PacketBurst(*ends, 0, 64, 1000, 2)
    for host, sent, received in (("h1", 5, None), ("h2", None, received_us)):
        rows = [{"flow": 0, "index": 0, "sent_us": sent, "received_us": received, "bytes": 64, "copies": 1}]
        (tmp_path / host).mkdir()
        frame = pl.DataFrame(rows, schema=ALL_TABLES["messages"])
        frame.write_ipc_stream(tmp_path / host / "messages.arrow", compat_level=pl.CompatLevel.oldest())
    with pytest.raises(TrialError, match=r"^h2 reports a packet at a time that is not of the trial"):
        _packets(tmp_path, 0, burst, 10_000_000)


@pytest.mark.parametrize("info", ["5", '"x"', "{}", "[5]", "null", '[{"local": 5}]'])
def test_addresses_that_are_none_belong_to_no_interface(info: str) -> None:
    assert interfaces_with("10.0.0.1", f'[{{"ifname": "eth0", "addr_info": {info}}}]') == set()


@pytest.mark.parametrize("flags", ["1e999", "null", '"x"', "9" * 5000])
def test_endpoints_with_impossible_flags_fail_with_a_sentence(flags: str) -> None:
    with pytest.raises(TrialError, match="instead of its endpoints"):
        mptcp_in(f'{{"endpoints": [{{"address": "10.0.0.1", "flags": {flags}}}]}}', "h1")


@pytest.mark.parametrize("address", ["x", "192.0.2.1\\ntraffic: []", "fe80::1%x `reboot`", "::", 7])
def test_endpoints_without_an_address_fail_with_a_sentence(address: str) -> None:
    with pytest.raises(TrialError, match="instead of its endpoints"):
        mptcp_in(f'{{"endpoints": [{{"address": "{address}", "flags": 2}}]}}', "h1")


def test_the_name_of_an_interface_has_no_words_of_the_host() -> None:
    """JSON can hold what a line cannot: newlines and escapes."""
    odd = json.dumps("-x\ntraffic: []\x1b[2J`reboot`")
    held = interfaces_with("10.0.0.1", f'[{{"ifname": {odd}, "addr_info": [{{"local": "10.0.0.1"}}]}}]')
    assert held == {"?x?traffic:????"} == {interface_of(f'[{{"dev": {odd}}}]')}
    assert interface_of('[{"dev": "eth0.5-up@x"}]') == "eth0.5-up@x"


@pytest.mark.parametrize("local", ["192.0.2.1\ntraffic: []", "fe80::1%eth0", "", "x"])
def test_an_address_of_a_table_is_an_address(tmp_path: Path, local: str) -> None:
    schema = ALL_TABLES["subflows"]
    rows = [dict.fromkeys(schema) | {"local_address": text} for text in ("::ffff:192.0.2.1", None, local)]
    path = tmp_path / "subflows.arrow"
    pl.DataFrame(rows[:2], schema=schema).write_ipc_stream(path, compat_level=pl.CompatLevel.oldest())
    assert read_stream(path, "subflows").height == 2
    pl.DataFrame(rows, schema=schema).write_ipc_stream(path, compat_level=pl.CompatLevel.oldest())
    with pytest.raises(
        DataError, match="`local_address` of table `subflows` has a text that is no IP address"
    ):
        read_stream(path, "subflows")


def test_a_file_that_comes_a_byte_now_and_then_ends_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = iter(range(0, 1_000_000, 10))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(passed)))  # ten seconds at each look
    with session(tmp_path, "while echo x; do :; done") as host:
        monkeypatch.setattr(channel, "_CHUNK", 1)  # as if each byte came alone
        with pytest.raises(TrialError, match="less than 16 KiB/s"):
            list(host.channel.chunks(1 << 20, 60))


def test_a_word_that_another_host_sent_cannot_become_an_order(tmp_path: Path) -> None:
    with session(tmp_path, 'while read -r line; do echo "$line" >>orders; echo ok; done') as host:
        for address in ("192.0.2.1\nundo", "192.0.2.1 from", "", "2001:db8::1%\N{NO-BREAK SPACE}"):
            with pytest.raises(TrialError, match=r"route: .* is not one word"):
                host.route("192.0.2.1", address)


@pytest.mark.parametrize("reached", ["2001:db8::1%eth0 x", "::", "224.0.0.1", "x", ""])
def test_a_host_that_reached_no_address_of_an_interface_has_its_public_one(reached: str) -> None:
    host = SimpleNamespace(facts={"reached": reached}, route=lambda *_: (set(), None))
    assert survey._server_local(host, "192.0.2.1", "192.0.2.2") == "192.0.2.1"
    assert global_address([{"addr_info": [{"scope": "global", "local": reached}]}]) is None


@pytest.fixture
def exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a trial end at once, ten seconds after its start, with the status and the tables that the test wrote."""
    zeros = {"h1": Zero(0, 0), "h2": Zero(0, 0)}
    monkeypatch.setattr(Exchange, "run", lambda *_: zeros)
    monkeypatch.setattr(Exchange, "lasted_s", lambda _: 10.0)


def write_hosts(folder: Path, frames: dict[str, pl.DataFrame]) -> None:
    for host in ("h1", "h2"):
        (folder / host).mkdir(parents=True)
        for name, frame in frames.items():
            frame.write_ipc_stream(folder / host / f"{name}.arrow", compat_level=pl.CompatLevel.oldest())


@pytest.fixture
def remote() -> Iterator[RemoteEngine]:
    engine = RemoteEngine(parse_hosts(HOSTS, "hosts.yaml"))
    engine._sessions |= {name: SimpleNamespace(name=name) for name in ("h1", "h2")}
    yield engine
    engine._sessions.clear()
    engine.close()


@pytest.mark.usefixtures("exchanged")
@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("flow",), "column `name` of table `flows` is missing"),
        (tuple(ALL_TABLES["flows"]), r"its files contradict one another \(KeyError: 'h2'\)"),
    ],
)
def test_a_trial_whose_tables_are_damaged_counts_against_the_limits(
    remote: RemoteEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    names: tuple[str, ...],
    message: str,
) -> None:
    """The first table is damaged by itself; tables that contradict one another end whatever joins them."""
    plan, real = planned()
    frames = {name: pl.DataFrame(schema=ALL_TABLES[name]) for name in TABLES}
    write_hosts(tmp_path, frames | {"flows": frames["flows"].select(names)})
    monkeypatch.setattr(merge, "merged", lambda *_: {}["h2"])
    with pytest.raises(DataError, match=message):
        remote._exchange(plan, real, tmp_path, lambda _: None)
    assert remote._spent.arguments()[1] == str(10**9 - 50_000_000 * 10 // 8)
    assert remote._spent.check(plan) == 590_000_000


def observing(*names: str, route: object = None) -> HostsObserver:
    facts = {"net/mptcp/enabled": "1"}
    hosts: Any = {name: SimpleNamespace(name=name, facts=facts, route=route) for name in names}
    return HostsObserver(hosts, Selection(), Event())


PAIRS = [("192.0.2.1", "192.0.2.2"), ("....", "192.0.2.2"), ("224.0.0.1", "192.0.2.2"), ("ff:", "::"),
         ("192.0.2.1", None), ("192.0.2.1", "::")]  # fmt: skip
"""The addresses of six samples, of which only the first are those of a subflow."""


@pytest.mark.usefixtures("exchanged")
def test_samples_between_other_things_than_addresses_are_counted_and_left_out(tmp_path: Path) -> None:
    """The first host is asked for the interfaces of addresses, which the other one may have reported."""
    frames = {name: pl.DataFrame(schema=ALL_TABLES[name]) for name in OBSERVED}
    empty = dict.fromkeys(ALL_TABLES["subflows"])
    rows = [{**empty, "t_us": 0, "local_address": local, "remote_address": remote} for local, remote in PAIRS]
    frames["subflows"] = pl.DataFrame(rows, schema=ALL_TABLES["subflows"])
    write_hosts(tmp_path, frames)
    (tmp_path / "h1" / "status.json").write_text('{"virtual_us": 7}')
    (tmp_path / "h2" / "status.json").write_text('{"virtual_us": 7}')
    asked: list[tuple[str, str]] = []
    facts: dict[str, object] = {}
    observer = observing("h1", "h2", route=lambda *pair: (asked.append(pair), ({"eth0"}, None))[1])
    monitored = Job(observing_plan("h1", Selection(), 1, 1), {}, tmp_path, note=facts.__setitem__)
    observer.execute(monitored)
    assert asked == PAIRS[:1]
    assert observer.interfaces == {"192.0.2.1": "eth0"}
    kept = pl.read_ipc_stream(tmp_path / "data" / "subflows.arrow")
    assert kept.select("local_address", "remote_address").rows() == PAIRS[:1] * 2
    assert facts["h1.rows_left_out"] == len(PAIRS) - 1
    trial: Any = SimpleNamespace(provenance=SimpleNamespace(host=facts))
    assert list(_rows_left_out(trial)) == [
        f"plait left out 5 samples of subflows that {host} reports: not between two unicast IP addresses"
        for host in ("h1", "h2")
    ]


@pytest.mark.usefixtures("exchanged")
def test_observed_tables_that_contradict_one_another_fail_the_observation(tmp_path: Path) -> None:
    frames = {name: pl.DataFrame(schema=ALL_TABLES[name]) for name in OBSERVED}
    flow = dict.fromkeys(ALL_TABLES["flows"]) | {"flow": 0}
    frames["flows"] = pl.DataFrame([flow], schema=ALL_TABLES["flows"])
    write_hosts(tmp_path, frames)
    observer = observing("h1", "h2")
    job = Job(observing_plan("h1", Selection(), 1, 1), {}, tmp_path)
    with pytest.raises(DataError, match="its files contradict one another"):
        observer.execute(job)


@pytest.mark.usefixtures("exchanged")
def test_a_measurement_without_the_rows_that_it_needs_fails(tmp_path: Path) -> None:
    hosts = {name: SimpleNamespace(name=name) for name in ("h1", "h2")}
    limits = parse_hosts(HOSTS, "hosts.yaml").limits
    prober = LineProber(hosts, tmp_path, Spent(limits))
    line = SimpleNamespace(client=SimpleNamespace(host="h1"))

    def measure() -> None:
        with prober.trial(["h1", "h2"], lambda _: (), 1_000_000, 0) as folder:
            write_hosts(folder, {"flows": pl.DataFrame(schema=ALL_TABLES["flows"])})
            _crossing(folder, 0, line, timestamps=True, mptcp=True)

    with pytest.raises(DataError, match="its files contradict one another"):
        measure()
