"""A hunt plays its cases in guests: a clean kernel gives no fault, a case repeats, and wrong bytes would be seen."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from plait import kernel as kernels
from plait.cli import app
from plait.cli.shared.environment import environment_of
from plait.testing.hunt.case import HuntCase, HuntConnection, HuntEvent, HuntLink, as_text
from plait.testing.hunt.run import play, play_together

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.guest,
    pytest.mark.skipif(
        any(shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") is None for name in ("ip", "tc", "nft")),
        reason="the guest uses this machine's iproute2 and nftables",
    ),
]

LINK = HuntLink(rate_mbit=10, delay_ms=5)
BUSY = HuntCase(
    links=(LINK, LINK.model_copy(update={"loss_percent": 1, "mtu": 1400})),
    connections=(
        HuntConnection(up_bytes=1_000_000, down_bytes=3000),
        HuntConnection(up_bytes=3000, hold=True),
        HuntConnection(down_bytes=1_000_000),
    ),
    events=(
        HuntEvent(at_ms=300, do="link_down", link=1, for_ms=300),
        HuntEvent(at_ms=1000, do="destroy", connection=1),
        HuntEvent(at_ms=1500, do="close", connection=1),
        HuntEvent(at_ms=2000, do="flush"),
    ),
)


def test_all_bytes_arrive_over_several_subflows_and_nothing_is_left() -> None:
    result = play(BUSY, kernels.ensure(), environment_of([], terminal=False))
    assert result.violations == ()
    assert result.received_bytes == 2_006_000
    assert result.joined >= 3
    assert result == play(BUSY, kernels.ensure(), environment_of([], terminal=False))


def test_one_guest_plays_several_cases_until_one_fails() -> None:
    """Each has hosts, counters and a part of the kernel's log of its own."""
    stands_still = HuntCase(
        links=(LINK,),
        connections=(
            HuntConnection(up_bytes=1, down_bytes=1, hold=True, fast_open=True, writes_at_once=True),
        ),
    )
    played = [BUSY, BUSY, stands_still, BUSY]
    first, second, failed = play_together(played, kernels.ensure(), environment_of([], terminal=False))
    assert first == play(BUSY, kernels.ensure(), environment_of([], terminal=False))
    assert (second.violations, second.received_bytes, second.joined) == ((), 2_006_000, first.joined)
    assert ("Linux version" in first.log, "Linux version" in second.log) == (True, False)
    assert [violation.kind for violation in failed.violations] == ["progress"]


CHURN = HuntCase(
    links=(LINK, LINK, LINK),
    connections=(
        HuntConnection(up_bytes=100_000, down_bytes=3000, hold=True, fast_open=True, read_by="peek"),
    ),
    events=(
        HuntEvent(at_ms=300, do="announce", link=2),
        HuntEvent(at_ms=310, do="lose_announcements", link=0, for_ms=300),
        HuntEvent(at_ms=1000, do="remove_endpoint", link=1),
        HuntEvent(at_ms=1200, do="add_endpoint", link=1),
        HuntEvent(at_ms=1400, do="replace_endpoint", link=1, for_ms=2000),
        HuntEvent(at_ms=1450, do="replace_endpoint", side="server", link=2, for_ms=2000),
        HuntEvent(at_ms=1500, do="backup", link=2, for_ms=300),
        HuntEvent(at_ms=1600, do="share", for_ms=2000),
    ),
)


@pytest.mark.parametrize("ipv6", [False, True])
@pytest.mark.parametrize("user_paths", [False, True])
def test_each_endpoint_has_its_subflow_after_churn(*, ipv6: bool, user_paths: bool) -> None:
    (connection,) = CHURN.connections
    case = CHURN.model_copy(
        update={
            "ipv6": ipv6,
            "checksums": ipv6,
            "user_paths": user_paths,
            "connections": (connection.model_copy(update={"fast_open": not ipv6}),),
        }
    )
    result = play(case, kernels.ensure(), environment_of([], terminal=False))
    assert result.violations == ()
    assert result.received_bytes == 103_000
    assert result.joined >= 2


def test_a_path_manager_in_user_space_opens_no_subflow_of_a_later_connection() -> None:
    case = HuntCase(
        user_paths=True,
        links=(LINK, LINK.model_copy(update={"endpoint": "none"})),
        connections=tuple(HuntConnection(start_ms=start, up_bytes=100, hold=True) for start in (0, 3000)),
        events=(HuntEvent(at_ms=1500, do="add_endpoint", link=1),),
    )
    result = play(case, kernels.ensure(), environment_of([], terminal=False))
    assert (result.violations, result.joined) == ((), 1)


def test_what_changes_a_full_mesh_is_no_fault() -> None:
    """It keeps its priority and flags, and takes the subflows to all announced addresses with it."""
    meshed = LINK.model_copy(update={"endpoint": "subflow fullmesh"})
    links = (LINK, meshed.model_copy(update={"signal": True}), meshed)
    events = (
        HuntEvent(at_ms=1000, do="backup", link=1, for_ms=300),
        HuntEvent(at_ms=2000, do="remove_endpoint", link=2),
    )
    for some in (events[:1], events):
        case = HuntCase(links=links, connections=(HuntConnection(down_bytes=1, hold=True),), events=some)
        assert play(case, kernels.ensure(), environment_of([], terminal=False)).violations == ()


@pytest.mark.parametrize("last", [("withdraw", "client"), ("flush", "server"), ("flush", "client")])
def test_what_goes_with_an_announced_address_is_no_fault(last: tuple[str, str]) -> None:
    """With the initial one go all subflows to it. Linux makes endpoints for others, which a flush ends."""
    do, side = last
    events = (
        HuntEvent(at_ms=1000, do="flush"), HuntEvent(at_ms=4000, do="announce"),
        HuntEvent(at_ms=4100, do="announce", link=1), HuntEvent(at_ms=5000, do="add_endpoint", link=1),
        HuntEvent(at_ms=9000, do=do, side=side),
    )  # fmt: skip
    case = HuntCase(links=(LINK, LINK), connections=(HuntConnection(down_bytes=1, hold=True),), events=events)
    assert play(case, kernels.ensure(), environment_of([], terminal=False)).violations == ()


def test_a_path_that_goes_for_good_is_no_fault() -> None:
    """The client hears over the other link that its address is withdrawn, or the sender goes on there."""
    announced = LINK.model_copy(update={"endpoint": "none", "signal": True})
    hears = HuntCase(
        links=(LINK, announced),
        connections=(HuntConnection(up_bytes=3000, hold=True),),
        events=(
            HuntEvent(at_ms=4000, do="unplug", link=1),
            HuntEvent(at_ms=8000, do="withdraw", link=1),
        ),
    )
    goes_on = HuntCase(
        links=(LINK, LINK),
        connections=(HuntConnection(up_bytes=1_000_000, hold=True),),
        events=(HuntEvent(at_ms=300, do="unplug"),),
    )
    results = play_together([hears, goes_on], kernels.ensure(), environment_of([], terminal=False))
    assert [(result.violations, result.joined) for result in results] == [((), 1), ((), 1)]


def test_a_first_subflow_that_cannot_end_is_not_counted() -> None:
    """The server's address is gone, so nothing acknowledges its FIN."""
    case = HuntCase(
        links=(LINK,),
        connections=(HuntConnection(hold=True),),
        events=(
            HuntEvent(at_ms=4000, do="announce"),
            HuntEvent(at_ms=4000, do="unplug", side="server"),
            HuntEvent(at_ms=4000, do="flush", side="server"),
        ),
    )
    assert play(case, kernels.ensure(), environment_of([], terminal=False)).violations == ()


def test_a_backup_without_its_endpoint_may_carry_bytes() -> None:
    """Linux then opens a subflow to an announced address from there, which is no backup."""
    backup = LINK.model_copy(update={"endpoint": "subflow backup", "signal": True})
    case = HuntCase(
        links=(LINK, backup),
        connections=(HuntConnection(start_ms=2000, up_bytes=1_000_000, hold=True),),
        events=(HuntEvent(at_ms=1000, do="flush"),),
    )
    result = play(case, kernels.ensure(), environment_of([], terminal=False))
    assert (result.violations, result.joined) == ((), 1)


def test_a_slow_reader_of_a_single_path_gets_each_byte_once() -> None:
    """MPTCP tells the sender of each window that opens, so a timer sends nothing again."""
    case = HuntCase(
        receive_buffer=32_768,
        links=(LINK.model_copy(update={"rate_mbit": 50}),),
        connections=(HuntConnection(down_bytes=1_000_000, read_every_ms=150, hold=True),),
    )
    assert play(case, kernels.ensure(), environment_of([], terminal=False)).violations == ()


def test_lost_questions_for_the_neighbour_end_no_connection() -> None:
    """With these seeds a link lost three, after which Linux gives up."""
    lossy = LINK.model_copy(update={"rate_mbit": 50, "delay_ms": 5, "loss_percent": 30})
    for seed in (21, 24, 31):
        case = HuntCase(
            seed=seed,
            ipv6=bool(seed % 2),
            most_subflows=0,
            links=(lossy,),
            connections=(HuntConnection(up_bytes=1, hold=True),),
        )
        assert play(case, kernels.ensure(), environment_of([], terminal=False)).violations == ()


def test_hosts_whose_joins_refuse_each_other_are_no_fault() -> None:
    """At the limit, each has opened its own one."""
    links = (LINK, LINK.model_copy(update={"endpoint": "subflow signal"}))
    for most in (1, 2):
        case = HuntCase(
            most_subflows=most, links=links, connections=(HuntConnection(down_bytes=1_000_000, hold=True),)
        )
        result = play(case, kernels.ensure(), environment_of([], terminal=False))
        assert (result.violations, result.joined > 0) == ((), most > 1)


def test_an_address_that_is_announced_before_the_first_data_arrive_is_no_fault() -> None:
    """The queue drops the server's first packets, so that the client is not established when it hears the address."""
    links = (
        LINK.model_copy(update={"delay_ms": 0, "queue_packets": 5}),
        LINK.model_copy(update={"signal": True, "endpoint": "none"}),
    )
    connections = (HuntConnection(down_bytes=100_000, hold=True),)
    case = HuntCase(ipv6=True, links=links, connections=connections, seed=670_907)
    result = play(case, kernels.ensure(), environment_of([], terminal=False))
    assert (result.violations, result.joined) == ((), 0)


@pytest.mark.parametrize("ipv6", [False, True])
def test_low_limits_and_announced_ports_are_no_fault(*, ipv6: bool) -> None:
    """With IPv6 the announcement of a port does not fit into a packet; the next one still arrives."""
    announced = LINK.model_copy(update={"endpoint": "none", "own_port": True})
    both = LINK.model_copy(update={"endpoint": "subflow signal"})
    connections = (HuntConnection(down_bytes=1, hold=True),)
    case = HuntCase(
        ipv6=ipv6, links=(LINK, announced, LINK), connections=connections,
        events=(HuntEvent(at_ms=1000, do="announce", link=1), HuntEvent(at_ms=5000, do="announce", link=2)),
    )  # fmt: skip
    result = play(case, kernels.ensure(), environment_of([], terminal=False))
    assert (result.violations, result.joined) == ((), 3 - ipv6)
    limited = HuntCase(
        ipv6=ipv6, links=(LINK, both), connections=connections, most_subflows=0,
        events=(HuntEvent(at_ms=1000, do="remove_endpoint", link=1),),
    )  # fmt: skip
    result = play(limited, kernels.ensure(), environment_of([], terminal=False))
    assert (result.violations, result.joined) == ((), 0)


def test_a_client_that_met_the_limit_may_refuse_a_later_address() -> None:
    """Endpoints and announced addresses ask for four subflows; later on there is room for the only one."""
    link = LINK.model_copy(update={"rate_mbit": 10, "signal": True})
    links = (link.model_copy(update={"signal": False}), link.model_copy(update={"delay_ms": 1}), link)
    case = HuntCase(
        seed=7_702_976, most_subflows=2, links=links, connections=(HuntConnection(up_bytes=1, hold=True),),
        events=(
            HuntEvent(at_ms=6000, do="flush", side="server"), HuntEvent(at_ms=11_000, do="flush"),
            HuntEvent(at_ms=15_000, do="announce", link=2),
        ),
    )  # fmt: skip
    assert play(case, kernels.ensure(), environment_of([], terminal=False)).violations == ()


def test_a_client_at_the_limit_may_refuse_an_address_whose_subflow_ended_before_its_removal_was_heard() -> (
    None
):
    """The removal takes the slow link, and the subflow over the fast one ends at once."""
    announced = LINK.model_copy(update={"rate_mbit": 10, "delay_ms": 5, "endpoint": "none", "signal": True})
    case = HuntCase(
        most_subflows=2,
        links=(LINK.model_copy(update={"rate_mbit": 10, "delay_ms": 50}), announced, announced),
        connections=(HuntConnection(down_bytes=1, hold=True),),
        events=(
            HuntEvent(at_ms=4000, do="withdraw", side="server", link=1),
            HuntEvent(at_ms=8000, do="announce", link=1),
        ),
    )
    environment = environment_of([], terminal=False)
    refused, opened = (
        play(case.model_copy(update={"most_subflows": most}), kernels.ensure(), environment)
        for most in (2, 3)
    )
    assert (refused.violations, opened.violations) == ((), ())
    assert (refused.joined, opened.joined) == (2, 3)


def test_a_backup_carries_nothing_and_ended_connections_close_their_subflows() -> None:
    case = HuntCase(
        links=(LINK, LINK.model_copy(update={"endpoint": "subflow backup"})),
        connections=(
            HuntConnection(up_bytes=1_000_000, hold=True), HuntConnection(up_bytes=100_000, down_bytes=3000),
        ),
    )  # fmt: skip
    assert play(case, kernels.ensure(), environment_of([], terminal=False)).violations == ()


@pytest.mark.parametrize("do", ["flush", "remove_endpoint"])
def test_who_removes_an_endpoint_also_removes_its_subflow_to_an_announced_address(do: str) -> None:
    """The peer does not announce again, so that is no fault."""
    case = HuntCase(
        links=(LINK, LINK.model_copy(update={"signal": True})),
        connections=(HuntConnection(down_bytes=1, hold=True),),
        events=(HuntEvent(at_ms=1000, do=do, link=1),),
    )
    result = play(case, kernels.ensure(), environment_of([], terminal=False))
    assert (result.violations, result.joined > 0) == ((), True)


def test_a_middlebox_in_the_middle_of_a_connection_costs_no_byte() -> None:
    case = HuntCase(
        checksums=True,
        links=(LINK, LINK),
        connections=(HuntConnection(up_bytes=1_000_000, read_by="splice"),),
        events=(
            HuntEvent(at_ms=300, do="rewrite", link=1, for_ms=300),
            HuntEvent(at_ms=700, do="strip", link=1, for_ms=2000),
        ),
    )
    result = play(case, kernels.ensure(), environment_of([], terminal=False))
    assert (result.violations, result.received_bytes) == ((), 1_000_000)


def test_middleboxes_of_one_kind_may_overlap() -> None:
    events = tuple(HuntEvent(at_ms=at_ms, do="lose_announcements", for_ms=300) for at_ms in (300, 400))
    case = HuntCase(links=(LINK,), connections=(HuntConnection(up_bytes=1, hold=True),), events=events)
    assert play(case, kernels.ensure(), environment_of([], terminal=False)).violations == ()


def test_a_server_that_answers_a_fast_open_at_once_stands_still() -> None:
    """Linux 6.12 and 7.3 send what it writes before the handshake's last ACK only with later bytes."""
    patient = HuntConnection(up_bytes=1, down_bytes=1, fast_open=True)
    kernel, environment = kernels.ensure(), environment_of([], terminal=False)
    case = HuntCase(links=(LINK,), connections=(patient,))
    assert play(case, kernel, environment).violations == ()
    hasty = patient.model_copy(update={"writes_at_once": True})
    result = play(case.model_copy(update={"connections": (hasty,)}), kernel, environment)
    assert [violation.kind for violation in result.violations] == ["progress"]


def test_after_a_reset_the_other_side_sees_an_error_instead_of_an_end() -> None:
    case = HuntCase(
        links=(LINK, LINK),
        connections=(HuntConnection(up_bytes=3000, hold=True),),
        events=(HuntEvent(at_ms=2000, do="reset"),),
    )
    assert play(case, kernels.ensure(), environment_of([], terminal=False)).violations == ()


def test_a_file_repeats_its_case(tmp_path: Path) -> None:
    (tmp_path / "case.yaml").write_text(as_text(BUSY))
    result = CliRunner().invoke(app, ["hunt", str(tmp_path / "case.yaml")], standalone_mode=False)
    assert result.return_value == 0, result.output
    assert f"no fault in {kernels.ensure().name}: 2006000 bytes arrived" in result.stdout


def test_a_connection_without_its_only_subflow_is_no_standstill() -> None:
    case = HuntCase(
        links=(LINK,),
        connections=(HuntConnection(up_bytes=3_000_000),),
        events=(HuntEvent(at_ms=500, do="destroy"),),
    )
    result = play(case, kernels.ensure(), environment_of([], terminal=False))
    assert result.violations == ()
    assert 0 < result.received_bytes < 3_000_000


def test_a_receiver_whose_memory_is_full_of_data_beyond_a_gap_stands_still() -> None:
    """Linux 6.12 does, for data that its subflows have; with this buffer five of eight seeds met it."""
    case = HuntCase(
        receive_buffer=32_768,
        congestion_control="olia",
        links=(
            HuntLink(rate_mbit=10, delay_ms=5, loss_percent=3, mtu=576),
            HuntLink(rate_mbit=10, delay_ms=20),
        ),
        connections=(
            HuntConnection(up_bytes=3000),
            HuntConnection(up_bytes=1_000_000, write_bytes=400, write_every_ms=1),
        ),
    )
    kernel = kernels.ensure()
    assert kernel.version.startswith("6.12."), "later versions differ"
    for seed in range(1, 9):
        result = play(case.model_copy(update={"seed": seed}), kernel, environment_of([], terminal=False))
        assert result.violations == ()
        if result.standstills:
            break
    assert result.standstills == 1
    assert 3000 < result.received_bytes < 1_003_000
