"""The features that the engine `remote` lacks, with the reasons."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Map

from plait.engine.remote.mapping import Mapping
from plait.engine.support import Feature, Unsupported, Use, lacking
from plait.plan.model.plan import Flow, Plan

_NO_NETWORK = "builds no network: links and nodes are what they are"
_NO_ROOT = "changes nothing on real hosts that needs root"
LACKS: Map[Feature, str] = {
    "openflow": _NO_NETWORK,
    "nat": _NO_NETWORK,
    "middleboxes": _NO_NETWORK,
    "modules": "loads no modules on real hosts",
    "programs": "runs no programs on real hosts",
    "pauses": "has no prompt in a trial",
    "captures": _NO_ROOT,
    "probes": _NO_ROOT,
    "trace events": _NO_ROOT,
    "link events": _NO_NETWORK,
    "bucket events": _NO_NETWORK,
    "node events": _NO_ROOT,
    "system call time": "runs in real time",
    "instruction time": "runs in real time",
    "processors": "uses the processors that the hosts have",
    "unsampled flows": "samples every flow to keep its limits",
    "offloads": "leaves the offloads of real interfaces as they are",
}


def features(plan: Plan) -> list[Unsupported]:
    """Return the uses of features that the engine lacks; prototype flows are reported by `unsupported_sockets`."""
    prototypes = {program.name for program in plan.programs if program.flow is not None}
    return [
        lack
        for lack in lacking(plan, LACKS)
        if not (lack.use.feature == "programs" and lack.use.name in prototypes)
    ]


def missing(real: Mapping) -> Iterator[Unsupported]:
    """Yield the nodes and addresses that the hosts file lacks."""
    for node, reason in real.missing:
        yield Unsupported(Use("hosts", "nodes", node), f"cannot use {node}, which {reason}")


def unsupported_sockets(plan: Plan) -> Iterator[Unsupported]:
    """Yield the flows whose data or sockets need what two unprivileged agents do not have."""
    for number, flow in enumerate(plan.flows):
        reason = _reason(flow)
        if reason is not None:
            yield Unsupported(Use("flows", "traffic", str(number)), reason)
    if plan.monitors.interfaces is not None:
        yield Unsupported(
            Use("interface counters", "monitors"), "does not read the counters of real interfaces"
        )


def _reason(flow: Flow) -> str | None:
    if flow.kind == "prototype":
        return "runs no scheduler of a prototype on real hosts; run it with --engine virtual"
    if flow.kind == "transfer" and getattr(flow.application, "file", None) is not None:
        return "does not copy files to real hosts; write bytes instead of file"
    if flow.joins:
        return "cannot open subflows itself (subflows_per_path), which needs root"
    if flow.socket.mark is not None or flow.socket.scheduler is not None:
        return "cannot set marks or schedulers of sockets, which needs root"
    return None
