"""The kernel falls back, refuses a join or closes a subflow when a middlebox strips options or changes data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plait.analysis.cautions.mptcp import Observation, findings

if TYPE_CHECKING:
    from conftest import Ran, RunTrial

pytestmark = pytest.mark.guest

BOXED = """
title: A box on the first path
network:
  hosts: [h1, h2]
  links:
    h1-h2: {rate: 20mbit, delay: 5ms, middlebox: {strip: syn}}
    h1-h2#2: {rate: 20mbit, delay: 5ms}
traffic:
  - bulk: {from: h1, to: h2, duration: 1s}
"""
SECOND = """
title: A box on the second path
network:
  hosts: [h1, h2]
  links:
    h1-h2: {rate: 20mbit, delay: 5ms}
    h1-h2#2: {rate: 20mbit, delay: 5ms, middlebox: {%s}}
%s
traffic:
  - bulk: {from: h1, to: h2, duration: 1s}
"""
CHECKSUM = "sysctls: {net.mptcp.checksum_enabled: 1}"
ROUND_TRIP_US = 10_000


def mptcp_findings(ran: Ran) -> list[Observation]:
    return findings(ran.plan, ran.tables)


@pytest.mark.parametrize(
    ("strip", "reasons", "in_handshake"),
    [
        ("syn", {"h1 MPCapableFallbackSYNACK"}, True),
        ("synack", {"h1 MPCapableFallbackSYNACK", "h2 MPCapableFallbackACK"}, True),
        ("ack", {"h1 MPCapableDataFallback", "h2 MPCapableFallbackACK"}, False),
        ("data", {"h1 MPCapableDataFallback", "h2 DssFallback"}, False),
        ("all", {"h1 MPCapableFallbackSYNACK"}, True),
    ],
)
def test_a_stripped_connection_falls_back_and_says_when_and_why(
    run_trial: RunTrial, strip: str, reasons: set[str], in_handshake: bool
) -> None:
    ran = run_trial(BOXED, overrides=(f"network.links.h1-h2.middlebox.strip={strip}",))
    flow = ran.tables["flows"].row(0, named=True)
    assert (flow["fallback"], flow["completed"]) == (True, True)
    (fallback,) = mptcp_findings(ran)
    assert (fallback.code, set(fallback.reasons)) == ("FELL_BACK", reasons)
    assert fallback.t_us is not None
    if in_handshake:
        assert fallback.t_us == flow["connected_us"]
    else:
        assert flow["connected_us"] < fallback.t_us <= flow["connected_us"] + 200_000
    assert ran.series("subflows", side="client")["subflow"].n_unique() == 1


def test_stripping_one_direction_suffices_for_a_fallback(run_trial: RunTrial) -> None:
    strip_syn = "network.links.h1-h2.middlebox={strip: syn, direction: %s}"
    assert [
        caution.code for caution in mptcp_findings(run_trial(BOXED, overrides=(strip_syn % "forward",)))
    ] == ["FELL_BACK"]
    assert mptcp_findings(run_trial(BOXED, overrides=(strip_syn % "backward",))) == []


def test_a_join_that_is_stripped_is_refused_and_the_connection_goes_on(run_trial: RunTrial) -> None:
    ran = run_trial(SECOND % ("strip: syn", ""))
    (refused,) = mptcp_findings(ran)
    assert (refused.code, refused.reasons) == ("JOIN_REFUSED", ("h1 MPJoinSynTxConnectErr",))
    assert "10.0.1.1 to 10.0.1.2" in refused.text
    start_us = ran.tables["flows"]["connected_us"][0]
    # established one round trip after connect, refused another one (and one for ARP) later
    assert start_us + 2 * ROUND_TRIP_US <= (refused.t_us or 0) <= start_us + 4 * ROUND_TRIP_US
    assert ran.tables["flows"]["fallback"].to_list() == [False]


def test_data_that_lose_their_mapping_on_a_joined_subflow_close_it_alone(run_trial: RunTrial) -> None:
    ran = run_trial(SECOND % ("strip: data", ""))
    (closed,) = mptcp_findings(ran)
    assert closed.code == "SUBFLOW_CLOSED"
    assert "(MPTCP-specific error)" in closed.text


def test_only_the_checksum_detects_changed_data(run_trial: RunTrial) -> None:
    assert mptcp_findings(run_trial(SECOND % ("rewrite: true", ""))) == []
    ran = run_trial(SECOND % ("rewrite: true", CHECKSUM))
    (closed,) = mptcp_findings(ran)
    assert closed.code == "SUBFLOW_CLOSED"
    assert closed.text.endswith(" (middlebox interference)")
    only = ("traffic.0.bulk.via='h1-h2#2'", "mptcp.limits.h1={subflows: 0}")
    alone = run_trial(SECOND % ("rewrite: true", CHECKSUM), overrides=only)
    assert (
        "h2 DataCsumErr"
        in next(caution for caution in mptcp_findings(alone) if caution.code == "FELL_BACK").reasons
    )


def test_plait_reports_an_announcement_that_the_peer_ignores(run_trial: RunTrial) -> None:
    plain = SECOND.replace(", middlebox: {%s}", "").replace("%s\n", "")
    assert mptcp_findings(run_trial(plain)) == []
    (unused,) = mptcp_findings(
        run_trial(plain, overrides=("mptcp.limits.h1={subflows: 0, add_addr_accepted: 0}",))
    )
    assert unused.code == "ADD_ADDR_UNUSED"
    assert "10.0.1.2 was announced" in unused.text
