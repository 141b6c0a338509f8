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
    for change in host_happenings(scenario.events):
        names, kind = (nodes, "host or router") if change.what == "sysctls" else (hosts, "host")
        if change.host not in names:
            field = change.where[:4]
            yield field, f"no {kind} is called '{change.host[:40]}'; {nearest(change.host, names)}"
        elif change.what != "sysctls" and scenario.mptcp.subflows_per_path > 1:
            yield (
                change.where[:3],
                "with subflows_per_path plait opens the subflows, at the beginning; leave one of the two out",
            )
        elif change.what in ("remove", "change", "add"):
            yield from _endpoint_mistakes(change, links_of.get(change.host, set()))


def _endpoint_mistakes(change: HostHappening, links: set[str]) -> Iterator[FieldMistake]:
    """The link or the address of an endpoint."""
    if isinstance(change.detail, str):
        if change.detail not in links and not is_address(change.detail):
            guess = nearest(change.detail, links)
            message = f"{change.host} has no link '{change.detail[:40]}', nor is that an address; {guess}"
            yield change.where, message
        return
    assert isinstance(change.detail, (EndpointChange, EndpointSpec))
    link, address = change.detail.link, change.detail.address
    if link is not None and link not in links:
        yield (*change.where, "link"), f"{change.host} has no link '{link[:40]}'; {nearest(link, links)}"
    if address is not None and not is_address(address):
        yield (*change.where, "address"), f"'{address[:40]}' is not an address; write for example 10.0.1.1"
