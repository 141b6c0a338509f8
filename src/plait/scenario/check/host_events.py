"""Check events of hosts: nodes and links exist, and plait does not manage the endpoints itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.scenario.fields.events import host_happenings
from plait.scenario.fields.host_events import EndpointChange
from plait.scenario.fields.settings import EndpointSpec
from plait.scenario.names import is_address
from plait.scenario.wording import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plait.scenario.fields.events import HostHappening
    from plait.scenario.mistakes import FieldMistake
    from plait.scenario.model import ScenarioModel


def check_host_events(scenario: ScenarioModel, links_of: Mapping[str, set[str]]) -> Iterator[FieldMistake]:
    """Yield mistakes that need no addresses: unknown nodes and links, and endpoints that the kernel does not manage."""
    hosts, nodes = scenario.network.hosts, {**scenario.network.hosts, **scenario.network.routers}
    for change in host_happenings(scenario.events):
        names, kind = (nodes, "host or router") if change.what == "sysctls" else (hosts, "host")
        if change.host not in names:
            field = change.where[:4]
            yield field, f"no {kind} is called '{change.host[:40]}'; {nearest(change.host, names)}"
        elif change.what != "sysctls" and scenario.mptcp.subflows_per_path > 1:
            yield (
                change.where[:3],
                "with subflows_per_path plait opens all subflows at the beginning; remove one of the two",
            )
        elif change.what in ("remove", "change", "add"):
            yield from _endpoint_mistakes(change, links_of.get(change.host, set()))


def _endpoint_mistakes(change: HostHappening, links: set[str]) -> Iterator[FieldMistake]:
    """Yield mistakes in the link or the address of an endpoint."""
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
