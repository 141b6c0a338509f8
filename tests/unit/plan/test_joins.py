"""The agent gets the joins to open between one pair of addresses, and plait refuses impossible ones."""

from __future__ import annotations

import pytest

from plait.plan.shell.script import to_shell
from scenario_samples import MESH, TWO, mistakes_as_text, plan_of


def joins(text: str, *overrides: str) -> list[tuple[str, str, int, int]]:
    (flow,) = plan_of(text, *overrides).flows
    return [(j.client_address, j.server_address, j.id, j.count) for j in flow.joins]


def test_the_initial_subflow_is_one_of_those_on_its_pair() -> None:
    assert joins(TWO, "mptcp.subflows_per_path=4") == [
        ("10.0.0.1", "10.0.0.2", 0, 3),
        ("10.0.1.1", "10.0.1.2", 1, 4),
    ]


def test_an_address_keeps_its_id_on_every_pair() -> None:
    assert [(client, number) for client, _, number, _ in joins(MESH, "mptcp.subflows_per_path=2")] == [
        ("10.0.0.1", 0),
        ("10.0.1.1", 1),
        ("10.0.0.1", 0),
    ]


def test_the_agent_replaces_the_kernels_path_manager_only_when_asked() -> None:
    alone = plan_of(TWO)
    assert not alone.flows[0].joins
    assert alone.network.mptcp
    shared = plan_of(TWO, "mptcp.subflows_per_path=2")
    assert not shared.network.mptcp
    for plan, kind in ((alone, []), (shared, ["1"])):
        for space in plan.network.namespaces:
            if space.role == "host":
                assert [value for path, value in space.sysctls if path == "net/mptcp/pm_type"] == kind


def test_a_backup_endpoint_makes_backups_of_all_its_subflows() -> None:
    plan = plan_of(
        TWO, "mptcp.subflows_per_path=3", "mptcp.endpoints.h1=[{link: h1-s2, flags: [subflow, backup]}]"
    )
    assert [(j.backup, j.count) for j in plan.flows[0].joins] == [(False, 2), (True, 3)]
    assert "3 backup subflows from 10.0.1.1 (id 1)" in to_shell(plan)


def test_tcp_flows_have_no_joins() -> None:
    assert not joins(TWO, "mptcp.subflows_per_path=8", "transport=tcp")


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (("mptcp.subflows_per_path=0",), "out of range; write at least 1"),
        (("mptcp.subflows_per_path=33",), "out of range; write at most 32"),
        (("mptcp.subflows_per_path=17",), "17 subflows over each of the 2 pairs"),
        (("mptcp.subflows_per_path=two",), "is not a whole number"),
        (
            ("mptcp.subflows_per_path=2", "mptcp.limits.h1={subflows: 8}"),
            "mptcp.limits.h1: with subflows_per_path plait opens the subflows",
        ),
        (
            ("mptcp.subflows_per_path=2", "mptcp.endpoints.h2=[{link: s1-h2, flags: [signal], port: 7}]"),
            "mptcp.endpoints.h2.0.port: with subflows_per_path plait opens",
        ),
    ],
)
def test_meaningless_settings_are_refused(overrides: tuple[str, ...], expected: str) -> None:
    assert expected in mistakes_as_text(TWO, *overrides)
