"""Scenarios with one planted cause each, and controls without: the test set of `plait explain`.

Each kind of cause is planted twice: in an even scenario, which was run while the thresholds were chosen, and in an odd
one, which was not (`held_out`). If a cause has two mechanisms, each scenario of the pair has one of them. A function
here returns the scenario of one kind: `twin` is 0 for one scenario of the pair and 1 for the other. Topology,
rate and delay follow from a scenario's number alone (three topologies, six rates, five delays), so that they are not
chosen to fit. kinds.py adds scenarios behind address translation, and with traffic that does not fill paths;
field.py adds mechanisms from the field, and drawn.py those of a person who had not read
`plait.explain`.

`PYTHONPATH=tests/support python -m planted.causes` runs the set and prints the table of docs/reference/explain.md.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plait.binaries import AGENT
from plait.dataset.convert import convert
from plait.engine.engine import Job
from plait.explain import explain_trial
from plait.explain.unrestricted_paths import unrestricted_paths
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand
from plait.seeds import trial_seed
from planted.drawn import drawn_kinds
from planted.field import field_kinds
from planted.kinds import further_kinds
from planted.site import LASTS_S, Planted, Site, bulk, scenario_of, transfer

if TYPE_CHECKING:
    from collections.abc import Callable

    from plait.engine.engine import Engine
    from plait.explain import FlowExplanation


def sender_idle(site: Site, twin: int) -> dict[str, Any]:
    """An application that sends as fast as it can, with pauses."""
    network = site.network(site.path(), site.path())
    on, off = (("500ms", "500ms"), ("300ms", "700ms"))[twin]
    flow = {"from": "a", "to": "b", "on": on, "off": off, "duration": f"{LASTS_S}s"}
    return scenario_of(network, [{"on-off": flow}])


def receive_window(site: Site, twin: int) -> dict[str, Any]:
    """A receive buffer of half of what fills the paths: set by tcp_rmem; by a socket option."""
    network = site.network(site.path(slower=4), site.path(slower=4))
    size = site.bdp_bytes(2, 4) // 2
    if twin == 0:
        return scenario_of(network, tcp={"receive_buffer_max": f"{size}B"})
    return scenario_of(network, [bulk(receive_buffer=f"{size // 2}B")])


def send_buffer(site: Site, twin: int) -> dict[str, Any]:
    """A send buffer of half of what fills the paths: set by tcp_wmem; by a socket option."""
    network = site.network(site.path(slower=4), site.path(slower=4))
    size = site.bdp_bytes(2, 4) // 2
    if twin == 0:
        return scenario_of(network, tcp={"send_buffer_max": f"{size}B"})
    return scenario_of(network, [bulk(send_buffer=f"{size // 2}B")])


def loss_recovery(site: Site, twin: int) -> dict[str, Any]:
    """Random loss on one path; bursts of loss on both."""
    if twin == 0:
        return scenario_of(site.network(site.path(), site.path(slower=2, loss="2%")))
    loss = {"ratio": "2%", "burst": "3pkt"}
    return scenario_of(site.network(site.path(slower=2, loss=loss), site.path(slower=2, loss=loss)))


def queue_full(site: Site, twin: int) -> dict[str, Any]:
    """A queue of a few packets on one long path; on both."""
    if twin == 0:
        return scenario_of(site.network(site.path(), site.path(slower=4, queue="4pkt")))
    return scenario_of(site.network(site.path(slower=4, queue="5pkt"), site.path(slower=4, queue="5pkt")))


def head_of_line(site: Site, twin: int) -> dict[str, Any]:
    """A path with a far higher delay and too small a receive buffer for it; a slow path with a bloated queue."""
    if twin == 0:
        size = site.bdp_bytes(2, 20) // 2
        network = site.network(site.path(), site.path(slower=20))
        return scenario_of(network, tcp={"receive_buffer_max": f"{size}B"})
    network = site.network(site.path(), site.path(share=0.25, slower=2, queue="600pkt"))
    return scenario_of(network, tcp={"receive_buffer_max": "384KiB"})


def subflow_late(site: Site, twin: int) -> dict[str, Any]:
    """The second path drops the first SYNs: in both directions; in the backward direction."""
    network = site.network(site.path(), site.path())
    link = site.link(1)
    x, _, rest = link.partition("-")
    node, _, suffix = rest.partition("#")
    backward = f"{node}->{x}" + (f"#{suffix}" if suffix else "")
    events = [
        {"at": "0s", "cut": link if twin == 0 else backward},
        {"at": "1500ms", "up": link if twin == 0 else backward},
    ]
    return scenario_of(network, events=events)


def subflow_never_limit(site: Site, twin: int) -> dict[str, Any]:
    """The client's limit allows no further subflow; the server announces no address."""
    network = site.network(site.path(), site.path())
    limits: dict[str, Any] = {"limits": {"a": {"subflows": 0}}}
    mptcp: dict[str, Any] = limits if twin == 0 else {"endpoints": {"b": []}}
    return scenario_of(network, mptcp=mptcp)


def subflow_never_box(site: Site, twin: int) -> dict[str, Any]:
    """A middlebox strips the MPTCP options from SYNs on the second path; on the first."""
    box: dict[str, Any] = {"middlebox": {"strip": "syn"}}
    paths = [site.path(**(box if k == 1 - twin else {})) for k in range(2)]
    return scenario_of(site.network(*paths))


def scheduler_idle_path(site: Site, twin: int) -> dict[str, Any]:
    """A scheduler that splits traffic equally over unequal paths, and so waits for the slower one."""
    network = site.network(site.path(), site.path(share=0.25))
    return scenario_of(network, mptcp={"scheduler": ("capped", "balanced")[twin]})


def duplicates(site: Site, twin: int) -> dict[str, Any]:
    """A scheduler that sends everything over every path."""
    share = (1.0, 0.5)[twin]
    return scenario_of(site.network(site.path(), site.path(share=share)), mptcp={"scheduler": "redundant"})


def shared_bottleneck(site: Site, twin: int) -> dict[str, Any]:
    """Two paths share one link: behind fast access links; behind access links of the same rate."""
    access = {} if twin == 0 else {"rate": f"{site.rate}mbit"}
    links = {
        "a-r1": {**access, "delay": "1ms"},
        "a-r1#2": {**access, "delay": "2ms"},
        "r1-r2": site.path(),
        "r2-b": {"delay": "1ms"},
        "r2-b#2": {"delay": "1ms"},
    }
    network = {"hosts": {"a": {}, "b": {}}, "routers": ["r1", "r2"], "links": links}
    return scenario_of(network)


def competing_traffic(site: Site, twin: int) -> dict[str, Any]:
    """Other traffic on the second path: four TCP connections; a UDP stream that takes most of the rate."""
    network = site.network(site.path(), site.path())
    via = site.first_link(1)
    if twin == 0:
        others = bulk(transport="tcp", count=4, via=via, background=True)
        return scenario_of(network, [bulk(start="500ms"), others])
    rate = f"{site.rate * 800}kbit"
    udp = {"from": "a", "to": "b", "rate": rate, "packet": "1200B", "duration": f"{LASTS_S + 1}s", "via": via}
    return scenario_of(network, [bulk(start="500ms"), {"udp": {**udp, "background": True}}])


def bucket_empty(site: Site, twin: int) -> dict[str, Any]:
    """A token bucket on a link; one that a host's interfaces share."""
    burst = f"{site.rate * 1000 // 8}KB"
    if twin == 0:
        bucket = {"baseline": f"{site.rate * 100}kbit", "burst": burst}
        return scenario_of(site.network(site.path(), site.path(bucket=bucket)))
    network = site.network(site.path(), site.path())
    peak, baseline = f"{site.rate * 2}mbit", f"{site.rate * 400}kbit"
    network["hosts"]["a"] = {
        "bucket": {"baseline": baseline, "burst": burst, "peak": peak, "direction": "out"}
    }
    return scenario_of(network)


def too_short(site: Site, twin: int) -> dict[str, Any]:
    """A transfer of a few windows over two long paths; over three."""
    paths = [site.path(slower=8) for _ in range(2 + twin)]
    return scenario_of(site.network(*paths), [transfer(120_000)])


def initial_path_poor(site: Site, twin: int) -> dict[str, Any]:
    """The connection starts on a path with a far higher delay than the other."""
    slower = (20, 30)[twin]
    size = int(site.rate * 1e6 / 8 * 0.5)
    return scenario_of(site.network(site.path(slower=slower), site.path()), [transfer(size)])


def path_down(site: Site, twin: int) -> dict[str, Any]:
    """The second path is cut for some seconds; the first goes down for good."""
    network = site.network(site.path(), site.path())
    if twin == 0:
        events = [{"at": "2s", "cut": site.link(1)}, {"at": "5s", "up": site.link(1)}]
    else:
        events = [{"at": "1500ms", "down": site.link(0)}]
    return scenario_of(network, events=events)


def rate_changed(site: Site, twin: int) -> dict[str, Any]:
    """A link becomes far slower during the flow: on the second path; on the first."""
    network = site.network(site.path(), site.path())
    at, part = (("1500ms", 100), ("1s", 125))[twin]
    return scenario_of(
        network, events=[{"at": at, "set": {site.link(twin ^ 1): {"rate": f"{site.rate * part}kbit"}}}]
    )


KINDS: tuple[tuple[str, tuple[str | None, str | None], Callable[[Site, int], dict[str, Any]]], ...] = (
    ("sender-idle", (None, None), sender_idle),
    ("receive-window", (None, None), receive_window),
    ("send-buffer", (None, None), send_buffer),
    ("loss-recovery", (None, None), loss_recovery),
    ("queue-full", (None, None), queue_full),
    ("head-of-line", (None, None), head_of_line),
    ("subflow-late", (None, None), subflow_late),
    ("subflow-never", ("limit", "no-add-addr"), subflow_never_limit),
    ("subflow-never", ("join-refused", "fallback"), subflow_never_box),
    ("scheduler-idle-path", (None, None), scheduler_idle_path),
    ("duplicates", (None, None), duplicates),
    ("shared-bottleneck", (None, None), shared_bottleneck),
    ("competing-traffic", (None, None), competing_traffic),
    ("bucket-empty", (None, None), bucket_empty),
    ("too-short", (None, None), too_short),
    ("initial-path-poor", (None, None), initial_path_poor),
    ("path-down", (None, None), path_down),
    ("rate-changed", (None, None), rate_changed),
)
"""The cause, the reasons that the two scenarios expect (None: no reason), and the function that makes them."""


def _control(site: Site, place: int) -> dict[str, Any]:
    """Return a control: equal paths, TCP, three paths, unequal paths, a long transfer, or a receiver that connects."""
    two = site.network(site.path(), site.path())
    size = int(site.rate * 1e6 / 8 * 2 * LASTS_S)
    return (
        scenario_of(two),
        scenario_of(site.network(site.path()), transport="tcp"),
        scenario_of(site.network(site.path(), site.path(), site.path())),
        scenario_of(site.network(site.path(), site.path(share=0.5, slower=2))),
        scenario_of(two, [transfer(size)]),
        scenario_of(two, [bulk(reverse=True)]),
    )[place]


CONTROLS = 6


def planted() -> tuple[Planted, ...]:
    """Return the whole set in the order of its numbers."""
    scenarios: list[Planted] = []
    for cause, reasons, make in KINDS:
        for twin in (0, 1):
            number = len(scenarios)
            site = Site(number)
            scenario = make(site, twin)
            scenario["title"] = f"{cause}, {site.topology}, {site.rate} Mbit/s"
            scenarios.append(Planted(number, cause, cause, reasons[twin], scenario, number % 2 == 1))
    for place in range(CONTROLS):
        number = len(scenarios)
        site = Site(number)
        scenario = _control(site, place)
        scenario["title"] = f"Nothing planted, {site.topology}, {site.rate} Mbit/s"
        scenarios.append(Planted(number, "control", None, None, scenario, number % 2 == 1))
    for further in (further_kinds, field_kinds, drawn_kinds):
        scenarios += further(len(scenarios))
    return tuple(scenarios)


@dataclass(frozen=True)
class PlantedRow:
    """The result of one scenario of the set."""

    planted: Planted
    named: str | None
    reason: str | None
    evidence: str
    run_s: float
    explain_s: float

    @property
    def right(self) -> bool:
        """Whether the planted cause, with its reason, was named first; for a control, that no cause was."""
        return self.named == self.planted.cause and self.planted.reason in (None, self.reason)


def run_and_explain(
    planted_scenario: Planted, engine: Engine, folder: Path
) -> tuple[PlantedRow, FlowExplanation]:
    """Run one scenario in `folder`, an empty directory, and explain its first flow."""
    scenario = expand(parse(planted_scenario.text, f"planted-{planted_scenario.number}.yaml", ()))[0].scenario
    plan = resolve(scenario, trial_seed(scenario.seed, 0))
    began = time.perf_counter()
    engine.execute(Job(plan, {}, folder))
    ended = time.perf_counter()
    tables = convert(folder / "data", folder / "tables")
    # Processor time, because other load on the machine would falsify wall time.
    began_cpu = time.process_time()
    explanations = explain_trial(plan, tables, unrestricted_paths(scenario, plan))
    explanation = next(flow for flow in explanations if not flow.background)
    spent = time.process_time() - began_cpu
    first = next((share for share in explanation.shares if share.cause == explanation.first), None)
    evidence = first.evidence[0] if first is not None and first.evidence else ""
    reason = first.reason if first is not None else None
    row = PlantedRow(planted_scenario, explanation.first, reason, evidence, ended - began, spent)
    return row, explanation


def table(rows: list[PlantedRow]) -> str:
    """Return the table as Markdown, followed by the number of right results."""
    lines = ["| # | planted | named first |", "| -- | -- | -- |"]
    for row in rows:
        mark = r" \*" if row.planted.held_out else ""
        expected = _with_reason(row.planted.cause, row.planted.reason)
        named = _with_reason(row.named, row.reason)
        wrong = "" if row.right else " **wrong**"
        lines.append(f"| {row.planted.number}{mark} | {expected} | {named}{wrong} |")
    parts = []
    for name, members in (
        ("planted", [row for row in rows if row.planted.cause is not None]),
        (
            r"of these held out (\*)",
            [row for row in rows if row.planted.cause is not None and row.planted.held_out],
        ),
        ("controls", [row for row in rows if row.planted.cause is None]),
    ):
        parts.append(f"{name}: {sum(row.right for row in members)} of {len(members)} right")
    return "\n".join([*lines, "", "; ".join(parts) + "."])


def _with_reason(cause: str | None, reason: str | None) -> str:
    return "nothing" if cause is None else cause if reason is None else f"{cause} ({reason})"


def main() -> None:
    """Run the set and print its table, and the evidence of each result."""
    from tempfile import TemporaryDirectory

    from plait.engine.virtual.trial import VirtualEngine
    from plait.kernel import ensure

    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    part = next((word for word in sys.argv[1:] if word in ("seen", "held-out")), None)
    engine = VirtualEngine(ensure(), AGENT)
    rows = []
    for scenario in planted():
        if (numbers and scenario.number not in numbers) or (
            part and scenario.held_out != (part == "held-out")
        ):
            continue
        with TemporaryDirectory() as folder:
            rows.append(run_and_explain(scenario, engine, Path(folder))[0])
    sys.stdout.write(table(rows) + "\n\n")
    sys.stdout.writelines(f"{row.planted.number}: {row.evidence}\n" for row in rows)
    run, explain = sum(row.run_s for row in rows), sum(row.explain_s for row in rows)
    sys.stdout.write(f"\nRunning took {run:.1f} s, explaining {explain:.1f} s.\n")


if __name__ == "__main__":
    main()
