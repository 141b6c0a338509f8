"""The data of a trial's page: flows over time, events, explanation, and the network with the load of its links."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from plait.analysis.by_flow import known_samples
from plait.analysis.gaps import collected, part
from plait.analysis.judge import judged_in
from plait.analysis.labels.labelled import labelled
from plait.analysis.labels.study_labels import StudyLabels, labels_in
from plait.analysis.metrics.programs import with_connections, without_control
from plait.analysis.metrics.trial import trial_metrics
from plait.analysis.series import Points, TrialSeries, trial_series
from plait.analysis.values import show
from plait.analysis.wording import MISSING, rate, seconds, size
from plait.dataset.study_file import StudyFile, kernel_title
from plait.dataset.trial import Trial, making_sense, read_trial, trial_folder
from plait.explain import explain_trial
from plait.explain.causes import CAUSES
from plait.explain.model import FlowExplanation
from plait.explain.unrestricted_paths import unrestricted_paths_of_case
from plait.plan.model.plan import Plan
from plait.report.drawing.link_labels import LinkLabels
from plait.report.drawing.network import coloured_paths, draw
from plait.report.page.sections import share_view
from plait.report.render.theme import LIGHT, PATHS
from plait.report.representatives import ideal_bps
from plait.view.encode import rounded
from plait.view.study_data import metric_view, ordered_metrics

MOST_EVENTS = 20_000
MOST_LINKS = 400
LINK_BINS = 60
MOST_FLOWS = 40
LEAST_SHARE = 0.005
_EVENT_COLUMNS = (
    "t_us", "node", "event", "flow", "local_id", "remote_id", "local_address", "local_port", "remote_address",
    "remote_port", "backup", "error", "reset_reason",
)  # fmt: skip


def trial_view(folder: Path, study_file: StudyFile, case: str, number: int) -> dict[str, Any]:
    """Return everything that the page of a trial shows.

    Raises:
        DataError: its files are missing or damaged.
    """
    trial = read_trial(trial_folder(folder, case, number))
    record = trial.provenance
    view: dict[str, Any] = {
        "case": case,
        "number": number,
        "seed": record.seed,
        "error": None if record.status == "ok" else record.error or "no reason was recorded",
        "facts": [
            ["Seed", str(record.seed)],
            ["Engine", record.engine],
            ["Kernel", kernel_title(record.kernel_version) if record.kernel_version else MISSING],
            ["Virtual time", seconds(record.virtual_s)],
            ["Real time", seconds(record.wall_s)],
            ["Digest of the data", record.digest or MISSING],
        ],
    }
    if record.status != "ok":
        return view
    with making_sense(trial.folder), collected() as gaps:
        view |= _contents(trial, study_file, case)
    known, count = trial.plan.sampled_flows
    unsampled = [f"{known} of {count} flows sampled"] if known < count else []
    return {**view, "gaps": [*unsampled, *(caution.message for caution in gaps.values())]}


def _contents(trial: Trial, study_file: StudyFile, case: str) -> dict[str, Any]:
    labels = labels_in(study_file.scenario)
    called, tables = labelled(trial.plan, trial.tables, labels)
    plan = with_connections(called, tables)
    series = part("series over time", lambda: trial_series(plan, tables), TrialSeries(0.0, 0.0, (), (), 0))
    unrestricted = part(
        "paths that the case leaves out",
        lambda: unrestricted_paths_of_case(study_file.scenario, case, trial.plan, labels),
        {},
    )
    explained: tuple[FlowExplanation, ...] = part(
        "explanation", lambda: explain_trial(called, tables, unrestricted), ()
    )
    worst_first = sorted(
        explained, key=lambda flow: (flow.background, -(flow.attainable_bps or 0) + (flow.goodput_bps or 0))
    )
    metrics = trial_metrics(with_connections(trial.plan, trial.tables), trial.tables)
    measured = [name for name, value in metrics.items() if value is not None]
    judged = judged_in(study_file.scenario)
    _, _, names = ordered_metrics(measured, judged)
    shown = without_control(plan)
    return {
        "metrics": [[metric_view(name, labels)["title"], show(name, metrics[name]), name] for name in names],
        "judged": max(2, len(set(judged) & set(measured))),
        "series": series_view(series),
        "seriesStart": series.start_us,
        "ideal": rounded(ideal_bps(plan)),
        "explained": [_explanation(flow) for flow in worst_first[:MOST_FLOWS]],
        "explainedLeftOut": max(0, len(explained) - MOST_FLOWS),
        "network": part("drawing of the network", lambda: _network(shown, series, labels), None),
        "links": part("links", lambda: _links(plan, tables["links"]), []),
        "flows": _flows(tables["flows"]),
        "events": _events(tables["events"], tables["flows"]),
        "tables": [[name, trial.tables[name].height] for name in trial.tables],
    }


def series_view(series: TrialSeries) -> dict[str, Any]:
    """Return what happened over time: of each series its label, its colour, and columns of times and values."""
    return {
        "seconds": rounded(series.duration_s),
        "bin": rounded(series.bin_s),
        "subflows": [
            {
                "label": line.label,
                "colour": line.colour % PATHS,
                "path": line.path,
                "goodput": _columns(line.goodput_bps),
                "rtt": _columns(line.rtt_us),
                "cwnd": _columns(line.cwnd_segments),
            }
            for line in series.subflows
        ],
        "queues": [
            {
                "label": queue.label,
                "colour": None if queue.colour is None else queue.colour % PATHS,
                "queue": _columns(queue.queue_bytes),
            }
            for queue in series.queues
        ],
        "marks": [[rounded(t_s), text] for t_s, text in series.marks],
        "others": _rest_of_stack(series),
    }


def _rest_of_stack(series: TrialSeries) -> dict[str, Any] | None:
    """Return the sum of the goodputs of the subflows that are too many to show, so that a stack has its true height."""
    if not series.omitted:
        return None
    rates: dict[float, float] = {}
    for lines, sign in ((series.by_path, 1), (series.subflows, -1)):
        for line in lines:
            for t_s, bps in line.goodput_bps:
                rates[t_s] = rates.get(t_s, 0.0) + sign * bps
    rest = tuple((t_s, max(0.0, rates[t_s])) for t_s in sorted(rates))
    label = f"{series.omitted} more subflow{'s' if series.omitted > 1 else ''}"
    return {"label": label, "colour": None, "goodput": _columns(rest)}


def _columns(points: Points) -> list[list[float | int | None]]:
    return [[rounded(t) for t, _ in points], [None if math.isnan(v) else rounded(v) for _, v in points]]


def _explanation(flow: FlowExplanation) -> dict[str, Any]:
    return {
        "flow": flow.flow,
        "sentences": list(flow.sentences),
        "basis": flow.basis,
        "shares": [
            {
                "cause": CAUSES[share.cause].title,
                "time": rounded(share.time),
                "text": words["amount"],
                "kind": words["weight"],
                "evidence": list(share.evidence),
                "remedy": CAUSES[share.cause].next_step if share.cause in flow.named else "",
            }
            for share, words in ((share, share_view(share, flow)) for share in flow.shares)
            if share.time >= LEAST_SHARE
        ],
    }


def _network(plan: Plan, series: TrialSeries, labels: StudyLabels) -> dict[str, Any]:
    """Return the drawing, in colours that the page sets by theme, and the key to the colours of paths."""
    colours = {name: f"var(--{name})" for name in LIGHT}
    paths = coloured_paths(plan, series, colours)
    return {
        "svg": draw(plan, paths, colours, legend=False, called=labels),
        "paths": [[path.label, path.facts, path.colour] for path in paths],
    }


def _links(plan: Plan, links: pl.DataFrame) -> list[dict[str, Any]]:
    """Return what each link direction carried: bytes, share of its rate, drops, queue, and its rate over time."""
    parts = {str(key[0]): rows for key, rows in links.partition_by("link", as_dict=True).items()}
    labels = LinkLabels(plan)
    views = []
    for link in plan.links[: MOST_LINKS // 2]:
        for direction in link.directions:
            rows = parts.get(direction.name)
            if rows is not None and rows.height > 1:
                views.append(
                    _direction(direction.name, direction.rate_bps, labels.direction(direction), rows)
                )
    return views


def _direction(name: str, rate_bps: int | None, label: str, rows: pl.DataFrame) -> dict[str, Any]:
    times, sent = known_samples(rows, "sent_bytes")
    lasted, carried = (float(values[-1] - values[0]) if len(values) else None for values in (times, sent))
    edges = np.linspace(times[0], times[-1], min(LINK_BINS, len(times) - 1) + 1) if lasted else np.zeros(1)
    rates = np.diff(np.interp(edges, times, sent)) * 8e6 / np.diff(edges) if lasted else np.zeros(0)
    mean_bps = carried * 8e6 / lasted if lasted and carried is not None else None

    def counted(column: str) -> int | None:
        known = rows[column].drop_nulls()
        return int(known[-1] - known[0]) if len(known) else None

    queue = rows["queue_bytes"].drop_nulls()
    return {
        "name": name,
        "label": label,
        "bytes": size(carried),
        "carried": rounded(carried),
        "mean": rate(mean_bps),
        "used": rounded(mean_bps / rate_bps) if rate_bps and mean_bps is not None else None,
        "packets": counted("sent_packets"),
        "dropped": counted("dropped_packets"),
        "overflow": counted("overflow_packets"),
        "queueMean": size(_number(queue.mean())) if len(queue) else MISSING,
        "queueMax": size(_number(queue.max())) if len(queue) else MISSING,
        "rate": [[rounded(t / 1e6) for t in edges[:-1].tolist()], [rounded(v) for v in rates.tolist()]],
        "limit": rate_bps,
    }


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _flows(flows: pl.DataFrame) -> list[dict[str, Any]]:
    views = []
    for row in flows.head(1000).iter_rows(named=True):
        lasted = (
            row["end_us"] - row["start_us"]
            if row["end_us"] is not None and row["start_us"] is not None
            else None
        )
        goodput = (
            row["received_bytes"] * 8e6 / lasted if lasted and row["received_bytes"] is not None else None
        )
        views.append(
            {
                "name": row["name"],
                "kind": row["kind"],
                "transport": f"{row['transport']}{' (fell back to TCP)' if row['fallback'] else ''}",
                "congestion": row["congestion_control"] or MISSING,
                "received": size(row["received_bytes"]),
                "lasted": seconds(lasted / 1e6) if lasted is not None else MISSING,
                "goodput": rate(goodput),
                "state": row["error"] or ("completed" if row["completed"] else "not completed"),
            }
        )
    return views


def _events(events: pl.DataFrame, flows: pl.DataFrame) -> dict[str, Any]:
    """Return the events in columns, with flows by their names; `left` counts those beyond the bound."""
    names = dict(flows.select("flow", "name").iter_rows())
    shown = events.head(MOST_EVENTS)
    kept = [
        name
        for name in _EVENT_COLUMNS
        if name in ("t_us", "node", "event") or shown[name].null_count() < len(shown)
    ]
    return {
        "columns": kept,
        "values": [
            [names.get(flow, flow) for flow in shown[name]] if name == "flow" else shown[name].to_list()
            for name in kept
        ],
        "left": max(0, events.height - MOST_EVENTS),
    }
