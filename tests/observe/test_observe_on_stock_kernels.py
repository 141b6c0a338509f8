"""`plait observe` on stock kernels of Debian, against the tables of the same trial."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from plait.binaries import AGENT
from plait.dataset.convert import read_stream
from plait.engine.engine import Job
from plait.engine.factory import make_engine
from plait.engine.request import EngineRequest
from plait.observe.watching import Selection, observing_plan
from plait.plan.identity import plan_bytes
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

pytestmark = pytest.mark.guest

INTERVAL_US = 100_000
TRANSFER = 4_000_000
COUNTERS = ("sent_bytes", "acked_bytes", "received_bytes", "retransmitted_bytes")
SIDES = (("h1", "client"), ("h2", "server"))


def scenario(addresses: str) -> str:
    """Return a transfer over two paths, and beside it at each end the agent of an observation."""
    networks = {"h1-h2": {"rate": "10mbit", "delay": "10ms"}, "h1-h2#2": {"rate": "4mbit", "delay": "20ms"}}
    return json.dumps(
        {
            "title": "Two paths, observed",
            "network": {"hosts": [node for node, _ in SIDES], "links": networks, "addresses": addresses},
            "traffic": [{"transfer": {"from": "h1", "to": "h2", "bytes": f"{TRANSFER}B", "start": "2s"}}],
            "transport": "mptcp",
            "sample": f"{INTERVAL_US}us",
            "programs": [observer(node) for node, _ in SIDES],
        }
    )


def observer(node: str) -> dict[str, object]:
    plan = plan_bytes(observing_plan(node, Selection(), 7, INTERVAL_US / 1e6)).decode()
    return {
        "name": f"see-{node}",
        "node": node,
        "transport": "tcp",
        "run": f"mkdir -p job/input; cp plan.json job; sleep 8 | {AGENT} --job $PWD/job --node {node}",
        "files": {"plan.json": plan},
        "collect": [f"job/data/{table}.arrow" for table in ("subflows", "connections")],
        "wait": True,
    }


@pytest.fixture(scope="module", params=[("6.1", "ipv4"), ("6.12", "ipv6")])
def trial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a trial on a kernel of Debian."""
    series, addresses = request.param
    job = tmp_path_factory.mktemp("job")
    engine = make_engine("machine", EngineRequest(kernel=f"debian:{series}"))
    plan = resolve(expand(parse(scenario(addresses), "observed"))[0].scenario, 1)
    engine.execute(Job(plan, {}, job))
    (job / "series").write_text(series, encoding="utf-8")
    return job


def test_each_sample_is_that_of_the_trial_within_an_interval(trial: Path) -> None:
    """Below Linux 6.5 the trial itself sees only the first subflow, and an observation sees both."""
    sampled = read_stream(trial / "data/subflows.arrow", "subflows")
    for node, side in SIDES:
        observed = read_stream(trial / f"programs/see-{node}/subflows.arrow", "subflows")
        assert observed["subflow"].unique().sort().to_list() == [0, 1]
        for subflow in sampled.filter(side=side)["subflow"].unique():
            expected = sampled.filter(side=side, subflow=subflow).sort("t_us")
            samples = observed.filter(pl.col("subflow") == subflow, pl.col("t_us") <= expected["t_us"][-1])
            assert len(samples) > 20
            for column in COUNTERS:
                low, high = (
                    (samples.select("t_us") + shift_us).join_asof(
                        expected.select("t_us", column), on="t_us", strategy=strategy
                    )[column]
                    for shift_us, strategy in ((-INTERVAL_US, "backward"), (INTERVAL_US, "forward"))
                )
                values = samples[column]
                assert (low.fill_null(0) <= values).all(), (node, subflow, column)
                # the trial's last row repeats the last reading of a socket that is gone
                assert (values <= high).all(), (node, subflow, column)


def test_a_connection_has_the_bytes_of_the_transfer_or_null_where_the_kernel_does_not_count(
    trial: Path,
) -> None:
    """Linux below 6.5 has no bytes of a whole connection."""
    counts = {}
    for node, _ in SIDES:
        rows = read_stream(trial / f"programs/see-{node}/connections.arrow", "connections")
        counts[node] = rows.sort("t_us").row(-1, named=True)
    whole = TRANSFER if (trial / "series").read_text(encoding="utf-8") == "6.12" else None
    assert counts["h1"]["sent_bytes"] == whole
    assert counts["h2"]["received_bytes"] == whole
