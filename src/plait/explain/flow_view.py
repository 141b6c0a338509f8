"""The properties of a flow that its explanation uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.plan.model.applications import Bulk, Transfer

if TYPE_CHECKING:
    from plait.plan.model.plan import Flow, Path


@dataclass(frozen=True)
class ExplainedFlow:
    """The properties of a flow that its explanation uses."""

    flow_id: int
    carrier: int
    """The ID of the flow under which its connection is sampled."""
    name: str
    transport: str
    sender: str
    client: str
    server: str
    """The nodes."""
    paths: tuple[Path, ...]
    greedy: bool
    """It sends as fast as possible until it ends."""
    flow: Flow

    @property
    def receiver(self) -> str:
        """The node that receives."""
        return self.server if self.sender == "client" else self.client


def explained_flow(flow: Flow) -> ExplainedFlow:
    """Return the view of a flow."""
    return ExplainedFlow(
        flow_id=flow.id,
        carrier=flow.carrier,
        name=flow.name,
        transport=flow.transport,
        sender=flow.sender,
        client=flow.client.netns,
        server=flow.server.netns,
        paths=flow.paths,
        greedy=isinstance(flow.application, (Bulk, Transfer)),
        flow=flow,
    )
