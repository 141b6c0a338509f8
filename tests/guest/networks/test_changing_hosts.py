"""Each host event takes effect at its time on the real kernel, and a control run shows that it is the cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    from conftest import Ran, RunTrial

pytestmark = pytest.mark.guest

PAIR = """
title: Two separate paths
network:
  hosts: [c, s]
  links:
    c-s: {rate: 4mbit, delay: 5ms}
    c-s#2: {rate: 4mbit, delay: 5ms}
traffic:
  - bulk: {from: c, to: s, duration: 4s, start_jitter: 0s}
"""
MESH = """
title: Two interfaces at either end of a router, and less to send than either of them carries
network:
  hosts: [c, s]
  routers: [r]
  links:
    c-r: {rate: 5mbit, delay: 1ms}
    c-r#2: {rate: 5mbit, delay: 2ms}
    r-s: {rate: 8mbit, delay: 3ms}
    r-s#2: {rate: 9mbit, delay: 4ms}
mptcp:
  endpoints: {c: [], s: []}
  limits: {c: {subflows: 8, add_addr_accepted: 8}, s: {subflows: 8}}
traffic:
  - stream: {from: c, to: s, message: 1250B, rate: 1mbit, duration: 3s, start_jitter: 0s}
"""
TURNS = (
    MESH
    + """
  - stream: {from: c, to: s, message: 1250B, rate: 1mbit, duration: 1s, start: 2s, start_jitter: 0s}
"""
)
C1, C2, S1, S2 = "10.0.0.1", "10.0.1.1", "10.0.2.1", "10.0.3.1"
MESHED = "{link: 'c-r#2', flags: [subflow, fullmesh]}"


def events(*lines: str) -> str:
    return f"events=[{', '.join(lines)}]"


def pm_events(ran: Ran, event: str, node: str = "c") -> list[tuple[int, str | None, str | None]]:
    """Return time, local and remote address of the path manager's events of one kind."""
    rows = ran.tables["events"].filter((pl.col("event") == event) & (pl.col("node") == node))
    return list(rows.select("t_us", "local_address", "remote_address").iter_rows())


def acked(ran: Ran, address: str, begin_s: int, end_s: int) -> int:
    """Return bytes that were acknowledged on the subflow from an address within a time, by its samples."""
    rows = ran.series("subflows", side="client", local_address=address)
    rows = rows.filter(pl.col("t_us").is_between(begin_s * 1_000_000, end_s * 1_000_000))
    return 0 if rows.is_empty() else int(rows["acked_bytes"].max() - rows["acked_bytes"].min())


@pytest.mark.parametrize("host", ["c", "s"])
def test_the_load_leaves_a_subflow_that_becomes_backup_and_comes_back_when_it_no_longer_is(
    run_trial: RunTrial, host: str
) -> None:
    change = "{{at: {0}, endpoints: {{{1}: {{change: {{link: c-s, backup: {2}}}}}}}}}"
    ran = run_trial(
        PAIR, overrides=(events(change.format("1s", host, "true"), change.format("3s", host, "false")),)
    )
    before = acked(ran, C1, 0, 1)
    assert before > 350_000
    # What was in the subflow's own queue by then still leaves on it, in less than half a second.
    assert acked(ran, C1, 2, 3) == 0
    assert acked(ran, "10.0.1.1", 2, 3) > 400_000
    assert acked(ran, C1, 3, 4) > 350_000
    other = "s" if host == "c" else "c"
    priorities = ran.tables["events"].filter((pl.col("event") == "sub_priority") & (pl.col("node") == other))
    assert priorities["backup"].to_list() == [True, False]
    # The message rides on the next packet of the subflow, behind what is queued there.
    assert 1_005_000 < priorities["t_us"][0] < 1_500_000
    assert 3_005_000 <= priorities["t_us"][1] < 3_010_000


def test_an_endpoint_that_comes_opens_its_subflow_within_a_round_trip_and_closes_it_as_it_goes(
    run_trial: RunTrial,
) -> None:
    come = "{at: 1s, endpoints: {c: {add: {link: 'c-r#2', flags: [subflow]}}}}"
    go = "{at: 2s, endpoints: {c: {remove: 'c-r#2'}}}"
    ran = run_trial(MESH, overrides=(events(come, go),))
    ((up_us, local, remote),) = pm_events(ran, "sub_established")
    assert (local, remote) == (C2, S1)
    # ARP on the client's second link (2 x 2 ms), then SYN and SYN/ACK (2 + 3 ms each way), and at most three frames
    # of other traffic before them.
    assert 1_014_000 <= up_us < 1_019_000
    assert [(t_us, local) for t_us, local, _ in pm_events(ran, "sub_closed")][:1] == [
        (pytest.approx(2_000_000, abs=5), C2)
    ]
    assert pm_events(run_trial(MESH), "sub_established") == []


def test_an_address_that_is_announced_later_is_joined_and_left_as_it_goes(run_trial: RunTrial) -> None:
    come = "{at: 1s, endpoints: {s: {add: {link: 'r-s#2', flags: [signal]}}}}"
    go = "{at: 2s, endpoints: {s: {remove: 'r-s#2'}}}"
    ran = run_trial(MESH, overrides=(events(come, go),))
    ((announced_us, _, address),) = pm_events(ran, "announced")
    assert address == S2
    assert 1_004_000 <= announced_us < 1_010_000
    ((up_us, _, remote),) = pm_events(ran, "sub_established")
    assert remote == S2
    # ARP of the router on the server's second link, then the handshake (1 + 4 ms each way).
    assert announced_us + 10_000 <= up_us < announced_us + 30_000
    ((removed_us, *_),) = pm_events(ran, "removed")
    assert 2_004_000 <= removed_us < 2_010_000
    assert pm_events(ran, "sub_closed")[0][2] == S2


def test_the_initial_subflow_can_be_taken_away(run_trial: RunTrial) -> None:
    second = "mptcp.endpoints.c=[{link: 'c-r#2', flags: [subflow]}]"
    ran = run_trial(MESH, overrides=(second, events("{at: 1s, endpoints: {c: {remove: c-r}}}")))
    t_us, local, remote = pm_events(ran, "sub_closed")[0]
    assert (t_us, local, remote) == (pytest.approx(1_000_000, abs=5), C1, S1)
    assert acked(ran, C2, 1, 3) > 240_000


def test_fullmesh_can_be_turned_on_and_off(run_trial: RunTrial) -> None:
    def change(at: str, value: str) -> str:
        return f"{{at: {at}, endpoints: {{c: {{change: {{link: 'c-r#2', fullmesh: {value}}}}}}}}}"

    announced = "mptcp.endpoints.s=[{link: 'r-s#2', flags: [signal]}]"
    plain = "mptcp.endpoints.c=[{link: 'c-r#2', flags: [subflow]}]"
    ran = run_trial(MESH, overrides=(announced, plain, events(change("1s", "true"), change("2s", "false"))))
    came = pm_events(ran, "sub_established")
    assert sorted(ends[1:] for ends in came if ends[0] < 1_000_000) == [(C1, S2), (C2, S1)]
    # The kernel closes the endpoint's subflows and opens them anew, to all addresses that the connection uses.
    assert sorted(ends[1:] for ends in came if 1_000_000 < ends[0] < 2_000_000) == [(C2, S1), (C2, S2)]
    assert sorted(ends[1:] for ends in came if ends[0] > 2_000_000) == [(C2, S1)]


@pytest.mark.parametrize("limit", [0, 1])
def test_a_connection_begins_with_the_limits_of_its_time_and_earlier_ones_keep_what_they_have(
    run_trial: RunTrial, limit: int
) -> None:
    endpoint = "mptcp.endpoints.c=[{link: 'c-r#2', flags: [subflow]}]"
    start = f"mptcp.limits.c={{subflows: {1 - limit}, add_addr_accepted: 8}}"
    change = f"{{at: 1s, limits: {{c: {{subflows: {limit}}}}}}}"
    ran = run_trial(TURNS, overrides=(endpoint, start, events(change)))
    came = ran.tables["events"].filter((pl.col("event") == "sub_established") & (pl.col("node") == "c"))
    assert came["flow"].to_list() == [limit]  # only the flow whose limit was 1 when it began
    closed = ran.tables["events"].filter((pl.col("event") == "sub_closed") & (pl.col("t_us") < 2_900_000))
    assert closed.is_empty()


@pytest.mark.parametrize("accepted", [0, 1])
def test_announcements_are_accepted_as_the_limit_of_the_connections_time_says(
    run_trial: RunTrial, accepted: int
) -> None:
    endpoint = "mptcp.endpoints.s=[{link: 'r-s#2', flags: [signal]}]"
    start = f"mptcp.limits.c={{subflows: 8, add_addr_accepted: {1 - accepted}}}"
    change = f"{{at: 1s, limits: {{c: {{add_addr_accepted: {accepted}}}}}}}"
    ran = run_trial(TURNS, overrides=(endpoint, start, events(change)))
    came = ran.tables["events"].filter((pl.col("event") == "sub_established") & (pl.col("node") == "c"))
    assert came["flow"].to_list() == [accepted]


def test_what_events_have_changed_by_then_holds_for_a_flow_that_starts(run_trial: RunTrial) -> None:
    """Its socket is made then: the kernel notes endpoints and settings as it makes a socket."""
    come = "{at: 1s, endpoints: {c: {add: {link: 'c-r#2', flags: [subflow]}}}}"
    other = "{at: 1s, sysctls: {c: {net.ipv4.tcp_congestion_control: reno, net.mptcp.scheduler: redundant}}}"
    ran = run_trial(TURNS, overrides=(events(come, other),))
    assert ran.tables["flows"]["congestion_control"].to_list() == ["cubic", "reno"]
    came = ran.tables["events"].filter((pl.col("event") == "sub_established") & (pl.col("node") == "c"))
    assert came["flow"].to_list() == [0, 1]
    sent = ran.series("subflows", side="client").group_by("flow", "subflow").agg(pl.col("sent_bytes").max())
    both = dict(sent.group_by("flow").agg(pl.col("sent_bytes").sum()).iter_rows())
    assert both[0] < 1.05 * 375_000
    assert both[1] > 1.8 * 125_000  # each byte on both subflows


def test_settings_change_at_their_time_in_hosts_and_routers(run_trial: RunTrial) -> None:
    deaf = "{at: 1s, sysctls: {s: {net.ipv4.icmp_echo_ignore_all: 1}}}"
    stop = "{at: 2s, sysctls: {r: {net.ipv4.ip_forward: 0}}}"
    ran = run_trial(MESH, overrides=(events(deaf, stop), "monitors={ping: 100ms}"))
    probes = ran.tables["probes"]
    assert probes.filter(pl.col("t_us") < 900_000)["rtt_us"].null_count() == 0
    assert probes.filter(pl.col("t_us") > 1_000_000)["rtt_us"].drop_nulls().is_empty()
    assert acked(ran, C1, 1, 2) > 100_000
    rows = ran.series("subflows", side="server", local_address=S1)
    late = rows.filter(pl.col("t_us") >= 2_100_000)["received_bytes"]
    assert late.min() == late.max()


def test_the_same_events_leave_the_same_bytes(run_trial: RunTrial) -> None:
    come = f"{{at: 1s, endpoints: {{c: {{add: {MESHED}}}}}}}"
    stop = "{at: 2s, sysctls: {r: {net.ipv4.ip_forward: 0}}}"
    assert (
        run_trial(MESH, overrides=(events(come, stop),)).digest
        == run_trial(MESH, overrides=(events(come, stop),)).digest
    )
