"""Flows of Open vSwitch in the syntax of `ovs-dpctl`, for the shell export and as the agent reports them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plait.plan.model.forwarding import Datapath, FlowRule


def flow(datapath: Datapath, rule: FlowRule) -> tuple[str, str]:
    """Return the match of a flow and its actions; ports appear as numbers."""
    numbers = {port: number for number, port in enumerate(datapath.ports, start=1)}
    matched = [f"recirc_id({_hex(rule.recirculation)})"]
    if rule.in_port is not None:
        matched.append(f"in_port({numbers[rule.in_port]})")
    if rule.hash_mask is not None:
        matched.append(f"dp_hash({_hex(rule.hash)}/{_hex(rule.hash_mask)})")
    if rule.destination is not None:
        matched.append(f"eth(dst={rule.destination})")
    actions = []
    if rule.hash_basis is not None:
        actions = [f"hash(sym_l4({rule.hash_basis}))", f"recirc({_hex(rule.recirculate)})"]
    actions += [str(numbers[port]) for port in rule.output]
    return ",".join(matched), ",".join(actions) or "drop"


def _hex(value: int) -> str:
    return "0" if value == 0 else hex(value)
