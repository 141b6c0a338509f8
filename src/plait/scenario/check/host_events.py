"""What events of hosts must mean: nodes and links that exist, and endpoints that plait does not manage itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.scenario.fields.events import host_happenings
from plait.scenario.fields.host_events import EndpointChange
from plait.scenario.fields.settings import EndpointSpec
from plait.scenario.names import is_address
from plait.scenario.read.wording import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plait.scenario.fields.events import HostHappening
    from plait.scenario.mistakes import FieldMistake
    from plait.scenario.model import ScenarioModel


def check_host_events(scenario: ScenarioModel, links_of: Mapping[str, set[str]]) -> Iterator[FieldMistake]:
    """Mistakes that need no addresses: nodes and links that there are not, and endpoints that nobody manages."""
    hosts, nodes = scenario.network.hosts, {**scenario.network.hosts, **scenario.network.routers}
    for one in host_happenings(scenario.events):
        known, kind = (nodes, "host or router") if one.what == "sysctls" else (hosts, "host")
        if one.host not in known:
            field = one.where[:4]
            yield field, f"no {kind} is called '{one.host[:40]}'; {nearest(one.host, known)}"
        elif one.what != "sysctls" and scenario.mptcp.subflows_per_path > 1:
            yield (
                one.where[:3],
                "with subflows_per_path plait opens the subflows, at the beginning; leave one of the two out",
            )
        elif one.what in ("remove", "change", "add"):
            yield from _place(one, links_of.get(one.host, set()))


def _place(one: HostHappening, own: set[str]) -> Iterator[FieldMistake]:
    """The link or the address of an endpoint."""
    if isinstance(one.detail, str):
        if one.detail not in own and not is_address(one.detail):
            what = f"{one.host} has no link '{one.detail[:40]}', nor is that an address; {nearest(one.detail, own)}"
            yield one.where, what
        return
    assert isinstance(one.detail, (EndpointChange, EndpointSpec))
    link, address = one.detail.link, one.detail.address
    if link is not None and link not in own:
        yield (*one.where, "link"), f"{one.host} has no link '{link[:40]}'; {nearest(link, own)}"
    if address is not None and not is_address(address):
        yield (*one.where, "address"), f"'{address[:40]}' is not an address; write for example 10.0.1.1"
