"""A finished study in Python: its numbers, its tables as polars frames, and its figures; notebooks display them."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from plait.analysis.compare.factors import factor_names
from plait.analysis.model import Comparison, StudiesComparison, Summary
from plait.analysis.rows import FailedTrial
from plait.cautions import Caution
from plait.dataset.model import ALL_TABLES
from plait.dataset.trial import Trial, read_trial, trial_folder
from plait.errors import RequestError
from plait.explain.model import StudyExplanation
from plait.files import Output
from plait.report.assemble import read_partly, summary_of
from plait.report.figures.axes import telling_settings
from plait.report.figures.study_figures import static_figures
from plait.report.headline import headline, sentences
from plait.report.page.template import fill
from plait.report.render.render import Drawing, draw_all, standalone
from plait.report.representatives import representatives
from plait.report.table import factors_of, value_columns
from plait.report.terminal.comparison import compare_folders
from plait.results.long_table import factor_column
from plait.scenario.wording import nearest

_Value = TypeVar("_Value")


class _ByName(dict[str, _Value]):
    """Values by name; for another name it raises RequestError with the nearest one."""

    def __init__(self, noun: str, values: Mapping[str, _Value], lack: str = "none") -> None:
        """`noun`: what a value is; `lack`: what to say if there are no values."""
        super().__init__(values)
        self._noun, self._lack = noun, lack

    def __missing__(self, name: str) -> _Value:
        known = nearest(name, self) or f"there is: {', '.join(self) or self._lack}"
        raise RequestError(f"{self._noun}s[{name!r}]: there is no such {self._noun}; {known}")


class Figure:
    """One figure, which a notebook displays: `svg`, `png`, `pdf`, and `spec` (Vega-Lite; None for a drawing)."""

    def __init__(self, name: str, source: dict[str, Any] | str) -> None:
        self.name = name
        self._source = source

    @property
    def spec(self) -> dict[str, Any] | None:
        """The Vega-Lite specification, with its data."""
        return standalone(self._source) if isinstance(self._source, dict) else None

    @cached_property
    def _drawn(self) -> Drawing:
        return draw_all({self.name: self._source})[self.name]

    @property
    def svg(self) -> str:
        """The figure as SVG."""
        return self._drawn.svg

    @property
    def png(self) -> bytes:
        """The figure as PNG, with 300 dots per inch."""
        return self._drawn.png

    @property
    def pdf(self) -> bytes:
        """The figure as PDF, for a paper."""
        return self._drawn.pdf

    def save(self, path: Path | str) -> None:
        """Write the figure to a file; its suffix (.svg, .png, .pdf) selects the format (RequestError for another one).

        It is 175 mm wide, unless its scenario sets another width.
        """
        target = Path(path)
        if target.suffix not in {".svg", ".png", ".pdf"}:
            raise RequestError(f"saving a figure as {target.name}: unknown suffix; use .svg, .png or .pdf")
        if target.suffix == ".svg":
            Output.at(target).write(self.svg.encode())
        else:
            Output.at(target).write(self.png if target.suffix == ".png" else self.pdf)

    def __repr__(self) -> str:
        return f"<figure {self.name}>"

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return {"image/svg+xml": self.svg, "text/plain": repr(self)}


class Study:
    """A study in its result folder. It reads tables and draws figures on first use (DataError for damaged files)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._data = read_partly(folder)

    @cached_property
    def summary(self) -> Summary:
        """The content of summary.json: cases with their metrics, and comparisons."""
        return summary_of(self._data)

    @property
    def cases(self) -> list[str]:
        """The names of the cases, the baseline first."""
        return [case.name for case in self._data.cases]

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Each case against its baseline."""
        return self.summary.comparisons

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """Warnings to check before trusting the result."""
        return self._data.cautions

    @property
    def failed(self) -> dict[str, tuple[FailedTrial, ...]]:
        """The failed trials with their errors, by case; cases without failed trials are absent."""
        return {case.name: case.failed for case in self._data.cases if case.failed}

    @property
    def digest(self) -> str:
        """The digest of all data: equal for equal data, on any machine."""
        return self._data.digest

    @property
    def report(self) -> Path:
        """The path of the report page."""
        return self.folder / "report.html"

    @property
    def factors(self) -> dict[str, str]:
        """The column of each factor in frames, by the name that tables and figures show.

        For example, `delay` is the column `network.links.h1-s2.delay`; a study of several delays shows longer names.
        """
        settings = dict.fromkeys(name for case in self._data.cases for name in case.settings)
        shown = factor_names(telling_settings(self._data.cases))
        names = factor_names(list(settings)) | shown
        return _ByName(
            "factor", {names[setting]: setting for setting in settings}, "none, because nothing varies"
        )

    @cached_property
    def trials(self) -> pl.DataFrame:
        """One row per completed trial: `case`, a column per factor, `trial`, `seed`, then each metric.

        A metric that was not measured is null.
        """
        records = [
            {"case": case.name, "trial": row.index, "seed": row.seed, **row.metrics}
            for case in self._data.cases
            for row in case.rows
        ]
        metrics = dict.fromkeys(name for record in records for name in record)
        schema: dict[str, Any] = dict.fromkeys(metrics, pl.Float64)
        schema |= {"case": pl.String, "trial": pl.Int64, "seed": pl.Int64}
        return self._with_factors(pl.DataFrame(records, schema=schema))

    @cached_property
    def metrics(self) -> pl.DataFrame:
        """One row per case and metric, with a column per factor.

        Its numbers are `n`, `mean`, `median`, `stdev`, `low` and `high` (of `ci95`), and more.
        """
        records = []
        for case in self.summary.cases:
            for name, stats in case.metrics.items():
                low, high = stats.ci95 or (None, None)
                first, third = stats.quartiles or (None, None)
                numbers = stats.model_dump(exclude={"ci95", "quartiles", "interval"})
                ends = {"low": low, "high": high, "quartile1": first, "quartile3": third}
                records.append({"case": case.name, "metric": name, **numbers, **ends})
        kinds = {"case": pl.String, "metric": pl.String, "n": pl.Int64}
        return self._with_factors(pl.DataFrame(records, schema_overrides=kinds, infer_schema_length=None))

    def table(self, name: str, *, case: str | None = None, trial: int | None = None) -> pl.DataFrame:
        """Return one table of all completed trials, or of one `case` or `trial` (number); these two columns come first.

        The tables are flows, connections, subflows, links, events and counters, and those of monitors (for trials that
        have them); docs/reference/results.md lists their columns. Raises RequestError if there is no such table, case
        or trial.
        """
        if name not in ALL_TABLES:
            hint = nearest(name, ALL_TABLES) or "there is: " + ", ".join(ALL_TABLES)
            raise RequestError(f"table {name!r}: {hint}")
        if case is not None and case not in self.cases:
            raise RequestError(f"case {case!r}: {nearest(case, self.cases) or 'see .cases'}")
        frames = [
            completed.tables[name].select(
                pl.lit(case_name).alias("case"), pl.lit(number, dtype=pl.Int64).alias("trial"), pl.all()
            )
            for case_name, number, completed in self._completed()
            if case in (None, case_name) and trial in (None, number) and name in completed.tables
        ]
        if not frames and trial is not None:
            raise RequestError(f"trial {trial}: there is no such completed trial; see .trials")
        kinds: dict[str, Any] = {"case": pl.String, "trial": pl.Int64, **ALL_TABLES[name]}
        return self._with_factors(pl.concat(frames) if frames else pl.DataFrame(schema=kinds))

    @cached_property
    def figures(self) -> dict[str, Figure]:
        """The figures by name, as in the folder's `figures/`; plait draws each figure when it is displayed."""
        shown = representatives(self._data, self.summary)
        sources = static_figures(self._data, self.summary, shown)
        return _ByName("figure", {name: Figure(name, source) for name, source in sources.items()})

    def explain(
        self, *, case: str | None = None, flow: str | None = None, trial: int | None = None
    ) -> StudyExplanation:
        """Return why the flows were not faster, as `plait explain` does (RequestError: no such case, flow, trial)."""
        from plait.results.explain import explain_study

        return explain_study(self.folder, case=case, flow=flow, trial=trial)

    def compared_with(
        self, before: Study, *, metrics: tuple[str, ...] = (), tolerance: float | None = None
    ) -> StudiesComparison:
        """Return how this study compares with an earlier one; `plait.compare` explains the arguments."""
        return compare_folders(before.folder, self.folder, metrics=metrics, tolerance=tolerance)[0]

    def _with_factors(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the frame with a column per factor after `case`; a column that it has already stays as it is."""
        cases = self._data.cases
        names = dict.fromkeys(name for case in cases for name in case.settings if name not in frame.columns)
        factors = pl.DataFrame(
            {
                "case": [case.name for case in cases],
                **{name: factor_column([case.settings.get(name) for case in cases]) for name in names},
            }
        )
        joined = frame.join(factors, on="case", how="left", maintain_order="left")
        return joined.select("case", *names, *(name for name in frame.columns if name != "case"))

    def _completed(self) -> Iterator[tuple[str, int, Trial]]:
        for case in self._data.cases:
            for row in case.rows:
                yield case.name, row.index, read_trial(trial_folder(self.folder, case.name, row.index))

    def __repr__(self) -> str:
        return f"<study {self._data.about.heading!r}: {len(self.cases)} cases in {self.folder}>"

    def _repr_html_(self) -> str:
        """Return the headline, the table of cases and the first figure of cases, for a notebook."""
        named = (item for item in self.figures.items() if item[0].startswith(("goodput", "completion")))
        name, figure = next(named, (None, None))
        view = {
            "heading": self._data.about.heading,
            "headline": headline(self.summary),
            "sentences": sentences(self.summary),
            "columns": [*factors_of(self.summary), *value_columns(self.summary)],
            "figure": name,
            "figure_base64": "" if figure is None else base64.b64encode(figure.svg.encode()).decode(),
        }
        return fill("notebook", **view)
