"""Other tools read what `plait export` writes: tables, flent's data files, and traces in the trace event format."""

from __future__ import annotations

import gzip
import io
import json
from typing import TYPE_CHECKING, Any

import jsonschema
import polars as pl
import pytest
from typer.testing import CliRunner

from fake_plans import FakeFlow, fake_plan
from fake_tables import fake_tables
from plait.cli import app
from plait.dataset.trial import read_trial
from plait.results.export import export_flent, export_trace
from plait.results.flent import PING, flent_document
from plait.results.long_table import long_table
from plait.results.perfetto import perfetto_trace
from plait.results.read import read_study
from result_folders import fresh_cache, two_paths, write_study

if TYPE_CHECKING:
    from pathlib import Path

MPTCP = "transport=mptcp"

# What the "Trace Event Format" asks of each kind of event that plait writes.
_COMMON = {"name": {"type": "string"}, "pid": {"type": "integer"}, "tid": {"type": "integer"}}
_TIMED = {**_COMMON, "ts": {"type": "number"}, "cat": {"type": "string"}, "args": {"type": "object"}}


def _event(phase: str, fields: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "properties": {"ph": {"const": phase}, **fields},
        "required": ["ph", "name", "pid", "tid", *required],
        "additionalProperties": False,
    }


_NUMBERS = {"type": "object", "minProperties": 1, "additionalProperties": {"type": "number"}}
SCHEMA = {
    "type": "object",
    "required": ["traceEvents"],
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "otherData": {"type": "object"},
        "traceEvents": {
            "type": "array",
            "items": {
                "oneOf": [
                    _event("M", {**_COMMON, "args": {"type": "object", "required": ["name"]}}, ["args"]),
                    _event("X", {**_TIMED, "dur": {"type": "number", "minimum": 0}}, ["ts", "dur"]),
                    _event("C", {**_TIMED, "args": _NUMBERS}, ["ts", "args"]),
                    _event("i", {**_TIMED, "s": {"enum": ["g", "p", "t"]}}, ["ts", "s"]),
                ]
            },
        },
    },
    "additionalProperties": False,
}


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fresh_cache(monkeypatch, tmp_path / "cache")
    write_study(tmp_path / "study", two_paths(), repeat=2)
    return tmp_path / "study"


def test_the_long_table_has_each_metric_of_each_trial_once(study: Path) -> None:
    table = long_table(study)
    assert table.columns == ["case", "transport", "trial", "seed", "metric", "value"]
    for entry in read_study(study).cases:
        for row in entry.rows:
            rows = table.filter((pl.col("case") == entry.name) & (pl.col("trial") == row.index))
            assert dict(rows.select("metric", "value").iter_rows()) == row.metrics
            assert rows.height == len(row.metrics)
    assert set(table["transport"]) == {"tcp", "mptcp"}


def test_csv_and_parquet_hold_the_same_table(study: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    for kind in ("csv", "parquet"):
        out = tmp_path / f"t.{kind}"
        ended = runner.invoke(
            app, ["export", str(study), "--format", kind, "--case", MPTCP, "--out", str(out)]
        )
        assert ended.exit_code == 0, ended.output
    parquet = pl.read_parquet(tmp_path / "t.parquet")
    csv = pl.read_csv(io.BytesIO((tmp_path / "t.csv").read_bytes()), schema=parquet.schema)
    assert parquet.equals(csv)
    assert set(parquet["case"]) == {MPTCP}


def test_a_trace_has_the_form_of_trace_events(study: Path) -> None:
    trace = json.loads(json.dumps(export_trace(study, case=MPTCP, trial=1)))
    jsonschema.validate(trace, SCHEMA)
    assert trace["otherData"]["trial"] == 1


def test_subflows_are_tracks_whose_goodput_is_that_of_the_table(study: Path) -> None:
    events = export_trace(study, case=MPTCP)["traceEvents"]
    names = [event["args"]["name"] for event in events if event["name"] == "thread_name"]
    assert sum(name.startswith("subflow ") for name in names) == 2
    record = read_trial(study / "trials" / MPTCP / "000")
    received = record.tables["subflows"].filter((pl.col("side") == "server") & (pl.col("subflow") == 0))
    counter = [event for event in events if event["ph"] == "C" and event["name"].startswith("goodput 0")]
    times = [event["ts"] for event in counter]
    moved = sum(
        event["args"]["Mbit/s"] * (until - event["ts"]) / 8
        for event, until in zip(counter[:-1], times[1:], strict=True)
    )
    expected = received["received_bytes"][-1] - received["received_bytes"][0]
    assert moved == pytest.approx(expected, rel=1e-9)
    assert counter[-1]["args"]["Mbit/s"] == 0


def test_an_event_is_an_instant_on_the_track_of_its_subflow() -> None:
    plan = fake_plan(FakeFlow(transport="mptcp"))
    tables = fake_tables(plan)
    row = (
        tables["subflows"].filter((pl.col("subflow") == 1) & (pl.col("side") == "client")).row(0, named=True)
    )
    shown = ("local_address", "local_port", "remote_address", "remote_port")
    happened = {"t_us": 5, "node": "h1", "event": "sub_closed", "flow": 0} | {
        name: row[name] for name in shown
    }
    elsewhere = {"t_us": 6, "node": "h1-s1", "event": "link_down"}
    events = pl.DataFrame(
        [{name: part.get(name) for name in tables["events"].schema} for part in (happened, elsewhere)],
        schema=tables["events"].schema,
    )
    trace = perfetto_trace(plan, {**tables, "events": events}, {})["traceEvents"]
    closed, down = (event for event in trace if event["ph"] == "i")
    [track] = [
        event["tid"]
        for event in trace
        if event["name"] == "thread_name" and event["args"]["name"].startswith("subflow 1")
    ]
    assert (closed["tid"], closed["s"]) == (track, "t")
    assert (down["pid"], down["s"], down["name"]) == (1, "g", "link_down h1-s1")


def test_a_flent_file_has_series_as_long_as_its_times(study: Path) -> None:
    document = json.loads(gzip.decompress(export_flent(study, case=MPTCP)))
    assert document["version"] == 4
    assert document["metadata"]["NAME"] == "tcp_nup"
    assert document["metadata"]["TEST_PARAMETERS"] == {"upload_streams": "2"}
    assert set(document["results"]) == {
        *(f"TCP upload::{number}" for number in (1, 2)), "TCP upload sum", "TCP upload avg",
    }  # fmt: skip
    assert {len(values) for values in document["results"].values()} == {len(document["x_values"])}
    row = read_trial(study / "trials" / MPTCP / "000").tables["flows"].row(0, named=True)
    sums = [value for value in document["results"]["TCP upload sum"] if value is not None]
    mbit = row["received_bytes"] * 8 / (row["end_us"] - row["start_us"])
    assert sum(sums) / len(sums) == pytest.approx(mbit, rel=0.05)
    assert all(
        {"t", "val", "tcp_rtt", "tcp_cwnd"} <= set(entry)
        for entry in document["raw_values"]["TCP upload::1"][1:]
    )
    assert export_flent(study, case=MPTCP) == export_flent(study, case=MPTCP)


def test_probes_are_the_ping_of_flent_and_a_download_is_one() -> None:
    plan = fake_plan(FakeFlow(transport="mptcp", sender="server"))
    tables = fake_tables(plan)
    step = plan.sample_interval_us
    probes = pl.DataFrame(
        {"t_us": [step, step + 1, 2 * step], "path": ["a"] * 3, "rtt_us": [10_000, None, 30_000]},
        schema={"t_us": pl.Int64, "path": pl.String, "rtt_us": pl.Int64},
    )
    document = flent_document(plan, plan.flows[0], {**tables, "probes": probes}, "t", "0")
    assert document["metadata"]["NAME"] == "tcp_ndown"
    assert document["results"][PING][:4] == [None, 10.0, 30.0, None]
    two = probes.with_columns(path=pl.Series(["a", "a", "b"]))
    results = flent_document(plan, plan.flows[0], {**tables, "probes": two}, "t", "0")["results"]
    assert PING not in results, "one series would jump between the paths"
    assert results[f"{PING} a"][:4] == [None, 10.0, None, None]
    assert results[f"{PING} b"][:4] == [None, None, 30.0, None]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--format", "parquet"], "no text; name a file or folder with --out"),
        (["--format", "perfetto", "--case", MPTCP, "--flow", "x"], "exports all flows"),
        (["--format", "csv", "--out", "{study}/study.json"], "the file exists"),
        (["--format", "csv", "--case", "nothing"], "there is no such case"),
    ],
)
def test_plait_says_what_it_cannot_export(study: Path, arguments: list[str], reason: str) -> None:
    ended = CliRunner().invoke(app, ["export", str(study), *(a.format(study=study) for a in arguments)])
    assert reason in str(ended.exception)


def test_the_style_of_matplotlib_has_the_colours_of_paths() -> None:
    from importlib.resources import files

    from plait.report.render.theme import LIGHT

    lines = files("plait").joinpath("paper.mplstyle").read_text(encoding="utf-8").splitlines()
    [cycle] = [line for line in lines if line.startswith("axes.prop_cycle:")]
    assert [colour.strip("#") for name, colour in LIGHT.items() if name.startswith("path")] == cycle.split(
        '"'
    )[3:19:2]
