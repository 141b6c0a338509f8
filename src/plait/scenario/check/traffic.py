"""Check traffic: the hosts, links and flows that its entries name exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.scenario.names import is_address
from plait.scenario.wording import nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from plait.scenario.mistakes import FieldMistake
    from plait.scenario.model import ScenarioModel
    from plait.traffic.spec import FlowSpec


def check_traffic(scenario: ScenarioModel, links_of: Mapping[str, set[str]]) -> Iterator[FieldMistake]:
    """Yield mistakes: flows run between two different hosts, over links of them; `links_of` holds the links of each."""
    hosts = scenario.network.hosts
    names: dict[str, int] = {}
    links = scenario.network.links
    for i, entry in enumerate(scenario.traffic):
        flow, here = entry.flow, ("traffic", i, entry.key)
        for field, host in (("from", flow.from_), ("to", flow.to)):
            if host not in hosts:
                yield (*here, field), f"no host is called '{host[:40]}'; {nearest(host, hosts)}"
        if flow.from_ == flow.to:
            yield (*here, "to"), f"'{flow.to[:40]}' sends to itself; write another host"
        if flow.name is not None and flow.name in names:
            yield (
                (*here, "name"),
                f"'{flow.name}' is also the name of entry {names[flow.name]}; choose another name",
            )
        names.setdefault(flow.name or "", i)
        for field, message in _ends(flow, links_of, links):
            yield (*here, field), message
    if scenario.traffic and not scenario.programs and all(e.flow.background for e in scenario.traffic):
        yield (
            ("traffic",),
            "all flows are in the background, so no flow is measured; remove background from a flow",
        )


def _ends(
    flow: FlowSpec, links_of: Mapping[str, set[str]], links: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield (field, message) for each end that is not a link of its host; for an unknown host, of no host."""
    client, server = (flow.from_, flow.to)[:: -1 if flow.connects_to_sender else 1]
    for field, value, host in (
        ("via", flow.via, client),
        ("bind", flow.bind, client),
        ("connect", flow.connect, server),
    ):
        names = links_of.get(host, links)
        if value is not None and not is_address(value) and value not in names:
            subject = f"{host} has" if host in links_of else "there is"
            yield field, f"{subject} no link '{value[:40]}'; {nearest(value, names)}"
