"""A report shows the same numbers everywhere, loads nothing from outside, escapes all text and is reproducible."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from typer.testing import CliRunner

from fake_plans import FakeFlow, FakePath, fake_plan
from plait.analysis.cautions.observations import REMEDIES
from plait.analysis.model import CaseSummary, Comparison
from plait.analysis.values import show
from plait.analysis.wording import MISSING
from plait.cli import app
from plait.dataset.model import ALL_TABLES
from plait.dataset.provenance import Provenance
from plait.errors import DataError
from plait.report import build
from plait.report.table import flow_columns, value_columns
from plait.report.terminal.summary import read_summary
from plait.report.terminal.summary import show as show_in_terminal
from result_folders import FakeCase, fresh_cache, two_paths, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTILE = '<script>alert("x")</script></title>&<img src=x onerror=alert(1)>'
ROOT = Path(__file__).parents[3]
FIGURES = {"network", "goodput", "goodput-over-time", "rtt-over-time", "cwnd-over-time", "queue-over-time"}


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        fresh_cache(patch, tmp_path_factory.mktemp("cache"))
        yield


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    write_study(folder, two_paths(), repeat=5)
    build(folder)
    return folder


def terminal(folder: Path) -> str:
    file = io.StringIO()
    show_in_terminal(folder, file=file)
    return file.getvalue()


def html(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


def own_html(folder: Path) -> str:
    """Return the page without the charts' library."""
    return re.sub(r"<script>.*?</script>", "", html(folder), count=1, flags=re.DOTALL)


def page_data(folder: Path) -> dict[str, Any]:
    match = re.search(
        r'<script type="application/json" id="plait-data">(.*?)</script>', html(folder), re.DOTALL
    )
    assert match is not None
    data: dict[str, Any] = json.loads(match[1])
    return data


def fake_case(transport: str, plan: Any, **settings: Any) -> FakeCase:
    name = "-".join([transport, *map(str, settings.values())])
    return FakeCase(name, {"transport": transport, **settings}, plan)


def test_everything_that_was_promised_is_written(study: Path) -> None:
    assert {path.stem for path in (study / "figures").glob("*.svg")} == FIGURES
    assert {path.stem for path in (study / "figures").glob("*.png")} == FIGURES
    summary = json.loads((study / "summary.json").read_text())
    assert list(summary) == [
        "schema",
        "scenario",
        "digest",
        "cases",
        "comparisons",
        "effects",
        "leaders",
        "untested",
        "judged",
        "published_source",
    ]
    assert summary["schema"] == 1
    assert summary["scenario"] == "two-paths"
    assert summary["digest"].startswith("sha256:")
    assert [case["settings"] for case in summary["cases"]] == [{"transport": "tcp"}, {"transport": "mptcp"}]
    assert not [path for path in study.rglob(".*") if path.is_file()], "no temporary file is left"


def test_summary_table_figure_and_words_hold_the_same_numbers(study: Path) -> None:
    summary = read_summary(study)
    page, printed = html(study), terminal(study)
    for case in summary.cases:
        shown = show("goodput_bps", case.metrics["goodput_bps"].mean)
        assert f"<b>{shown}</b>" in page
        assert shown in printed
        assert shown in (study / "figures" / "goodput.svg").read_text()
    columns = {column.name: column for column in value_columns(summary)}
    for goodput, efficiency in zip(columns["goodput_bps"].cells, columns["efficiency"].cells, strict=True):
        assert f">{escape(goodput)}<" in page
        assert goodput in printed
        assert efficiency in page
    (comparison,) = summary.comparisons
    assert comparison.sentence in page
    assert comparison.sentence in re.sub(r"\s+", " ", printed)


def test_what_figures_and_words_are_made_of_are_the_numbers_of_the_tables(study: Path) -> None:
    """From Parquet to the specification that a browser draws, and to the percentages of the sentences."""
    means = {}
    for case, label in (("transport=tcp", "TCP"), ("transport=mptcp", "MPTCP")):
        flows = [pl.read_parquet(path) for path in sorted((study / "trials" / case).glob("*/flows.parquet"))]
        rates = [
            (8e6 * flow_row["received_bytes"] / (flow_row["end_us"] - flow_row["start_us"])).item()
            for flow_row in flows
        ]
        means[label] = sum(rates) / len(rates)
        layers = page_data(study)["figures"]["goodput"]["layer"]
        drawn = [row for layer in layers for row in layer["data"]["values"] if row["case"] == label]
        points = [row["x"] * 1e6 for row in drawn if "trial" in row]
        assert sorted(points) == pytest.approx(sorted(rates), rel=1e-9)
        (mean,) = [row["x"] * 1e6 for row in drawn if "left" in row]
        assert mean == pytest.approx(means[label], rel=1e-9)
    gain = 100 * (means["MPTCP"] / means["TCP"] - 1)
    (comparison,) = read_summary(study).comparisons
    assert f"(+{gain:.1f} %" in comparison.sentence
    words = re.sub(r"\s+", " ", terminal(study))
    assert f"two paths MPTCP {means['MPTCP'] / 1e6:.2f} Mbit/s: +{gain:.1f} %" in words
    assert f"+{gain:.1f} %" in own_html(study)


def test_the_terminal_fits_80_columns_and_is_plain_when_piped(study: Path) -> None:
    printed = terminal(study)
    assert max(len(line) for line in printed.splitlines() if "report.html" not in line) <= 80
    assert "\x1b" not in printed
    assert "\N{MULTIPLICATION SIGN}1.9" in printed


def test_a_terminal_without_unicode_gets_ascii(study: Path) -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    show_in_terminal(study, file=file)
    file.flush()
    assert b"4.77 +- <0.01" in raw.getvalue()


def test_the_page_needs_nothing_from_outside(study: Path) -> None:
    page = own_html(study)
    assert not re.search(r"""(src|href)\s*=\s*["']?(?!data:)""", page)
    assert not re.search(r"@import|url\(", page)
    addresses = set(re.findall(r"https?://[^\"' <)]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg", "https://vega.github.io/schema/vega-lite/v6.json"}
    assert "default-src 'none'" in page
    assert len(html(study).encode()) < 2_000_000


def test_the_same_data_give_the_same_bytes(study: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in study.rglob("*") if path.is_file()}
    build(study)
    assert {path: path.read_bytes() for path in study.rglob("*") if path.is_file()} == before
    write_study(tmp_path / "elsewhere", two_paths(), repeat=5)
    build(tmp_path / "elsewhere")
    for name in ("summary.json", "report.html", "figures/network.svg"):
        assert (tmp_path / "elsewhere" / name).read_bytes() == (study / name).read_bytes()


def test_text_from_the_scenario_is_escaped(tmp_path: Path) -> None:
    tcp, _ = two_paths()
    case = replace(tcp, settings={"transport": HOSTILE, "note": HOSTILE}, failed={0: HOSTILE})
    caution = {"code": "X", "message": HOSTILE, "remedy": HOSTILE}
    write_study(tmp_path, (case,), repeat=2, title=HOSTILE, description=HOSTILE, cautions=(caution,))
    build(tmp_path)
    page = own_html(tmp_path)
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert" in page
    page_data(tmp_path)  # still JSON
    for figure in (tmp_path / "figures").glob("*.svg"):
        assert "<script" not in figure.read_text()
        assert "<img" not in figure.read_text()
    assert "alert" in terminal(tmp_path)


def test_failed_trials_are_reported_and_not_counted(tmp_path: Path) -> None:
    tcp, mptcp = two_paths()
    write_study(tmp_path, (tcp, replace(mptcp, failed={1: "the guest panicked: out of memory"})), repeat=3)
    build(tmp_path)
    summary = read_summary(tmp_path)
    assert [(case.trials, case.failed, case.metrics["goodput_bps"].n) for case in summary.cases] == [
        (3, 0, 3),
        (3, 1, 2),
    ]
    assert summary.comparisons[0].pairs == 2
    assert "the guest panicked: out of memory" in html(tmp_path)
    assert "2 of 3" in terminal(tmp_path)
    assert "1 of 6 trials failed" in terminal(tmp_path)


def test_one_trial_has_no_interval(tmp_path: Path) -> None:
    write_study(tmp_path, two_paths(), repeat=1)
    build(tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["cases"][0]["metrics"]["goodput_bps"]["ci95"] is None
    assert "\N{PLUS-MINUS SIGN}" not in terminal(tmp_path)
    assert "one pair of trials, so no interval" in re.sub(r"\s+", " ", terminal(tmp_path))


def test_a_study_without_a_completed_trial_is_reported_too(tmp_path: Path) -> None:
    tcp, mptcp = (replace(case, failed={0: "no kernel", 1: "no kernel"}) for case in two_paths())
    write_study(tmp_path, (tcp, mptcp), repeat=2)
    build(tmp_path)
    for text in (terminal(tmp_path), html(tmp_path)):
        assert "No trial was completed: nothing was measured." in text
    assert read_summary(tmp_path).comparisons == ()
    assert list((tmp_path / "figures").glob("*")) == []


def test_what_was_not_measured_is_null_in_json_and_a_dash_for_people(study: Path) -> None:
    metrics = json.loads((study / "summary.json").read_text())["cases"][0]["metrics"]
    assert metrics["completion_s"] == {"n": 0} | dict.fromkeys(
        ("mean", "median", "min", "max", "stdev", "ci95", "quartiles", "interval")
    )
    assert metrics["aggregation_benefit"]["mean"] is None
    columns = {column.name: column for column in value_columns(read_summary(study), "page")}
    for name in ("aggregation_benefit", "ratio"):
        tcp, mptcp = columns[name].cells
        assert tcp == MISSING != mptcp
    assert MISSING in terminal(study)


def test_transfers_are_reported_by_completion_time(tmp_path: Path) -> None:
    def plan(transport: str) -> Any:
        return lambda seed: fake_plan(FakeFlow(transport=transport, bytes=2_000_000), seed=seed)

    write_study(tmp_path, (fake_case("tcp", plan("tcp")), fake_case("mptcp", plan("mptcp"))), repeat=3)
    build(tmp_path)
    printed = re.sub(r"\s+", " ", terminal(tmp_path))
    assert re.search(
        r"Single path TCP 3\.\d\d s; two paths MPTCP 1\.\d\d s: \N{MINUS SIGN}4\d\.\d %", printed
    )
    assert "times the completion time of TCP" in printed
    assert (tmp_path / "figures" / "completion-time.svg").exists()


def test_a_sweep_names_the_best_case_and_the_range(tmp_path: Path) -> None:
    def plan(transport: str, rate: int) -> Any:
        paths = (FakePath(rate), FakePath(rate))
        return lambda seed: fake_plan(
            FakeFlow(transport=transport, duration_us=2_000_000), paths=paths, seed=seed
        )

    cases = tuple(
        fake_case(t, plan(t, rate * 1_000_000), rate=f"{rate}mbit")
        for rate in (2, 5, 10)
        for t in ("tcp", "mptcp")
    )
    write_study(tmp_path, cases, repeat=2)
    build(tmp_path)
    printed = re.sub(r"\s+", " ", terminal(tmp_path))
    assert "Of six cases, MPTCP, rate 10mbit has the highest goodput, 18." in printed
    assert "Against TCP with the same settings otherwise: 1.9" in printed
    assert page_data(tmp_path)["figures"].keys() >= {"goodput", "goodput-sweep", "goodput-5", "queue-0"}
    assert (tmp_path / "figures" / "goodput-sweep.png").exists()
    assert "As in case MPTCP, rate 2mbit; links differ between cases." in html(tmp_path)
    assert 'data-panel="panel-5" aria-pressed="false"' in html(tmp_path)


def test_a_report_distinguishes_several_flows(tmp_path: Path) -> None:
    def plan(transport: str) -> Any:
        flows = [
            FakeFlow(transport=transport, duration_us=2_000_000, start_us=start) for start in (0, 500_000)
        ]
        return lambda seed: fake_plan(*flows, seed=seed)

    write_study(tmp_path, (fake_case("tcp", plan("tcp")), fake_case("mptcp", plan("mptcp"))), repeat=2)
    build(tmp_path)
    summary = read_summary(tmp_path)
    page = html(tmp_path)
    assert ", all flows together." in terminal(tmp_path)
    for column in flow_columns(summary):
        assert f'<td class="case">{column.page_title}</td>' in page
        assert all(f">{escape(cell)}<" in page for cell in column.cells)
    assert summary.cases[0].metrics["jain_index"].n == 2
    assert "flow2: h1-s2-h2</li>" in page
    assert "goodput, all flows" not in {column.heading for column in value_columns(summary)}
    of_calls = summary.model_copy(update={"judged": ("jain_index",)})
    assert "goodput, all flows" in {column.heading for column in value_columns(of_calls)}


def test_a_study_that_varies_nothing_has_a_headline(tmp_path: Path) -> None:
    case = FakeCase("default", {}, lambda seed: fake_plan(seed=seed))
    write_study(tmp_path, (case,), repeat=2)
    build(tmp_path)
    assert "Two paths 9.37 Mbit/s; 99.6 % of what the links allow." in re.sub(r"\s+", " ", terminal(tmp_path))


def test_figures_of_an_earlier_state_are_removed(tmp_path: Path) -> None:
    write_study(tmp_path, two_paths(), repeat=1)
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "completion-time.svg").write_text("<svg/>")
    build(tmp_path)
    assert not (tmp_path / "figures" / "completion-time.svg").exists()


def test_missing_trials_and_changed_data_are_cautioned(tmp_path: Path) -> None:
    write_study(tmp_path, two_paths(), repeat=2)
    about = json.loads((tmp_path / "study.json").read_text())
    (tmp_path / "study.json").write_text(json.dumps(about | {"repeat": 3}))
    trial = tmp_path / "trials" / "transport=tcp" / "000"
    other = tmp_path / "trials" / "transport=tcp" / "001"
    (trial / "subflows.parquet").write_bytes((other / "subflows.parquet").read_bytes())
    built = build(tmp_path)
    assert {caution.code for caution in built} == {"TRIALS_MISSING", "DATA_CHANGED"}
    assert "2 of 3 trials exist" in html(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"study\.json: cannot be read"),
        ("{}", "not the description of a study"),
        ("nonsense", "not the desc"),
        (
            '{"schema": 2}',
            "it has schema 2, and this version of plait reads 1; use the version that wrote it",
        ),
    ],
)
def test_a_folder_that_is_no_study_is_refused(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "study.json").write_text(content)
    with pytest.raises(DataError, match=message):
        build(tmp_path)
    with pytest.raises(DataError, match=r"summary\.json: cannot be read .* `plait report`"):
        read_summary(tmp_path)


def test_the_command_rebuilds_and_prints(tmp_path: Path) -> None:
    write_study(tmp_path, two_paths(), repeat=1)
    result = CliRunner().invoke(app, ["report", str(tmp_path)], standalone_mode=False)
    assert result.exception is None
    assert "two paths MPTCP" in re.sub(r"\s+", " ", result.output)
    result = CliRunner().invoke(app, ["report", str(tmp_path), "--json"], standalone_mode=False)
    assert json.loads(result.output) == json.loads((tmp_path / "summary.json").read_text())


def test_the_reference_lists_every_column_metric_and_caution(study: Path) -> None:
    text = (ROOT / "docs" / "reference" / "results.md").read_text(encoding="utf-8")
    names = {column for schema in ALL_TABLES.values() for column in schema}
    names |= {name for case in read_summary(study).cases for name in case.metrics if "." not in name}
    names |= (
        set(REMEDIES)
        | set(Comparison.model_fields)
        | set(CaseSummary.model_fields)
        | set(Provenance.model_fields)
    )
    names -= {"schema_version"}
    assert not {name for name in names if f"`{name}`" not in text}
