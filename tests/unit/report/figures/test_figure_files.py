"""plait writes figures as PDF with reproducible bytes, and the numbers behind each as CSV."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl
import pytest
import vl_convert

from plait.report import build
from plait.report.render import fonts, render
from plait.report.render.formats import canonical, in_points
from plait.report.terminal.summary import read_summary
from result_folders import two_paths, write_study

if TYPE_CHECKING:
    from pathlib import Path

OVER_TIME = {
    "goodput-over-time": "goodput_bps",
    "rtt-over-time": "rtt_us",
    "cwnd-over-time": "cwnd_segments",
    "queue-over-time": "queue_bytes",
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    write_study(folder, two_paths(), repeat=3)
    build(folder)
    return folder


def test_every_figure_is_a_pdf_and_all_but_the_drawing_have_their_data(study: Path) -> None:
    folder = study / "figures"
    names = {path.stem for path in folder.glob("*.svg")}
    assert {path.stem for path in folder.glob("*.pdf")} == names
    assert {path.stem for path in folder.glob("*.csv")} == names - {"network"}


def test_the_renderers_pdf_differs_from_time_to_time_and_ours_does_not(study: Path) -> None:
    written = (study / "figures/goodput.svg").read_text()
    svg = re.sub(r' textLength="[^"]*" lengthAdjust="[^"]*"', "", written)  # the renderer has the font
    documents = {canonical(vl_convert.svg_to_pdf(in_points(svg))) for _ in range(6)}
    assert documents == {(study / "figures/goodput.pdf").read_bytes()}


def test_the_table_of_places_in_a_pdf_is_right(study: Path) -> None:
    pdf = (study / "figures/goodput.pdf").read_bytes()
    start = int(pdf.rpartition(b"startxref\n")[2].split()[0])
    assert pdf[start:].startswith(b"xref\n")
    places = [int(place) for place in re.findall(rb"(\d{10}) 00000 n", pdf[start:])]
    assert len(places) > 10
    for number, place in enumerate(places, 1):
        assert pdf[place:].startswith(b"%d 0 obj\n" % number)
    before = vl_convert.svg_to_pdf(in_points((study / "figures/goodput.svg").read_text()))
    assert pdf.count(b"\nstream\n") == before.count(b"\nstream\n"), "nothing was lost"


@pytest.mark.parametrize(
    "odd", [b"", b"%PDF-1.4\n\nsomething else", b"%PDF-1.7\n\n1 0 obj\n<<\n>>\nstream\nx"]
)
def test_a_pdf_of_another_make_is_left_alone(odd: bytes) -> None:
    assert canonical(odd) == odd


def test_the_data_of_cases_are_the_numbers_of_the_summary(study: Path) -> None:
    data = pl.read_csv(study / "figures/goodput.csv")
    assert data.columns == [
        "case",
        "transport",
        "what",
        "trial",
        "seed",
        "goodput_bps",
        "ci95_low",
        "ci95_high",
    ]
    for case in read_summary(study).cases:
        rows = data.filter(pl.col("case") == case.name)
        stats = case.metrics["goodput_bps"]
        trials = rows.filter(pl.col("what") == "trial")
        assert trials["trial"].to_list() == [0, 1, 2]
        assert trials["goodput_bps"].mean() == pytest.approx(stats.mean, rel=1e-8)
        mean = rows.filter(pl.col("what") == "mean").row(0, named=True)
        assert (mean["goodput_bps"], mean["ci95_low"], mean["ci95_high"]) == pytest.approx(
            (stats.mean, *(stats.ci95 or (None, None))), rel=1e-8
        )


def test_the_data_over_time_are_in_base_units(study: Path) -> None:
    for name, column in OVER_TIME.items():
        data = pl.read_csv(study / f"figures/{name}.csv")
        assert data.columns == ["case", "trial", "t_s", "series", column]
        assert set(data["case"]) == {"transport=tcp", "transport=mptcp"}
    goodput = pl.read_csv(study / "figures/goodput-over-time.csv").filter(pl.col("case") == "transport=tcp")
    assert goodput["goodput_bps"].tail(20).median() == pytest.approx(4.78e6, rel=0.05)
    rtt = pl.read_csv(study / "figures/rtt-over-time.csv")
    assert 10_000 < float(str(rtt["rtt_us"].median())) < 1_000_000


def test_the_cache_of_figures_knows_the_fonts_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a report would mix figures from before and after the installation of fonts."""
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "fonts/a").mkdir(parents=True)
    drawn: list[str] = []
    monkeypatch.setattr(render, "_pdf", lambda svg: drawn.append(svg) or b"%PDF")
    figure = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text>a</text></svg>'
    for step, expected in ((None, 1), (None, 1), ("a/New.ttf", 2), (None, 2)):
        if step is not None:
            (tmp_path / "fonts" / step).write_bytes(b"a font")
        fresh = fonts.fonts_here.__wrapped__((str(tmp_path / "fonts"),))
        monkeypatch.setattr(render, "fonts_here", lambda fresh=fresh: fresh)
        render.draw_all({"one": figure})
        assert len(drawn) == expected


def test_making_the_report_again_gives_the_same_bytes(
    study: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = {path.name: path.read_bytes() for path in (study / "figures").iterdir()}
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path))  # so that everything is drawn anew
    (study / "figures/left-over.csv").write_text("old")
    build(study)
    assert {path.name: path.read_bytes() for path in (study / "figures").iterdir()} == before
