"""Interface names fit the kernel and show the node that they belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from plait.cli import app
from plait.plan.network import ifnames
from scenario_samples import direct, plan_of

if TYPE_CHECKING:
    from pathlib import Path

LONG = direct("a-very-long-name-1-a-very-long-name-2: {}").replace(
    "[a, b]", "[a-very-long-name-1, a-very-long-name-2]"
)
LONG = LONG.replace("from: a,", "from: a-very-long-name-1,").replace("to: b,", "to: a-very-long-name-2,")
NAMES = st.text("ab_-", min_size=1, max_size=32).map(lambda text: f"n{text}"[:32])


@given(st.dictionaries(NAMES, st.integers(1, 4096), max_size=12))
def test_no_two_interfaces_of_a_network_have_one_name_and_all_fit(interfaces: dict[str, int]) -> None:
    stems = ifnames.stems(interfaces)
    assert sorted(stems) == sorted(interfaces)
    last = [ifnames.ifname(stems[node], count - 1) for node, count in interfaces.items()]
    assert all(len(name) <= 15 for name in last)
    assert len(set(stems.values())) == len(interfaces)
    assert all(
        stems[node] == node for node, count in interfaces.items() if len(f"{node}-eth{count - 1}") <= 15
    )


def test_names_that_fit_are_left_alone_and_those_that_would_be_cut_alike_are_numbered() -> None:
    interfaces = {"a-very-long-name-1": 2, "a-very-long-name-2": 1, "a-very-lon": 1, "h1": 11}
    assert ifnames.stems(interfaces) == {
        "a-very-long-name-1": "a-very-l_2",
        "a-very-long-name-2": "a-very-l_3",
        "a-very-lon": "a-very-lon",
        "h1": "h1",
    }


def test_the_plan_says_which_interface_each_direction_of_a_link_leaves_by() -> None:
    plan = plan_of(LONG)
    (link,) = plan.links
    assert [(direction.source, direction.interface) for direction in link.directions] == [
        ("a-very-long-name-1", "a-very-lon-eth0"),
        ("a-very-long-name-2", "a-very-l_2-eth0"),
    ]
    assert ifnames.mapped(plan) == {
        "a-very-long-name-1": ("a-very-lon-eth0",),
        "a-very-long-name-2": ("a-very-l_2-eth0",),
    }
    assert ifnames.mapped(plan_of(direct("a-b: {}"))) == {}


def test_plait_plan_lists_shortened_names(tmp_path: Path) -> None:
    file = tmp_path / "long.yaml"
    file.write_text(LONG, encoding="utf-8")
    done = CliRunner().invoke(app, ["plan", str(file)])
    assert done.exit_code == 0
    assert (
        "the interfaces of a-very-long-name-2 are called a-very-l_2-eth0: Linux allows 15 characters"
        in done.stderr
    )
