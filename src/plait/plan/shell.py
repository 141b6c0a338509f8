"""The plan as shell commands that a person can run by hand. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plait.plan.model import Plan


def to_shell(plan: Plan) -> str:
    """Iproute2 commands that make the plan's network on a host, as root."""
    return f"# {len(plan.network.veths)} veth pairs\n"
