"""Draw the efficiency over workers: measured with workers of this machine, and simulated beyond.

    .venv/bin/python bench/cluster/figure.py --measured FILE --simulated FILE --out docs/images/cluster-efficiency.svg

The files have a JSON object in each line, as `overhead.py` and `simulation.py` append them. Several measurements of the
same point appear as their median.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import vl_convert


def points(path: Path, *, key: str, how: str) -> list[dict[str, Any]]:
    """Return the median of each point in a file."""
    values: defaultdict[tuple[float, int], list[float]] = defaultdict(list)
    for line in path.read_text().splitlines():
        record = json.loads(line)
        values[record["seconds"], record["workers"]].append(record[key])
    return [
        {
            "workers": workers,
            "efficiency": statistics.median(several),
            "trial": f"trials of {seconds:g} s, {how}",
            "how": how,
        }
        for (seconds, workers), several in sorted(values.items())
    ]


def drawing(values: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the Vega-Lite specification."""
    names = list(dict.fromkeys(value["trial"] for value in values))
    measured = [name.endswith("measured") for name in names]
    colors = iter(("#0072b2", "#d55e00", "#009e73", "#cc79a7"))
    scale = {"domain": names, "range": ["#000000" if own else next(colors) for own in measured]}
    shapes = {"domain": names, "range": ["square", "circle", "triangle-up", "diamond", "cross"][: len(names)]}
    legend = {"title": None, "orient": "bottom", "columns": 2, "labelLimit": 300, "symbolSize": 70}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": 520,
        "height": 260,
        "data": {"values": values},
        "encoding": {
            "x": {
                "field": "workers", "type": "quantitative", "title": "Workers (logarithmic)",
                "scale": {"type": "log", "domain": [1, 1000]},
                "axis": {"values": [1, 2, 10, 50, 100, 200, 500, 1000]},
            },
            "y": {
                "field": "efficiency", "type": "quantitative", "title": "Trials per second, of the ideal",
                "scale": {"domain": [0, 1]}, "axis": {"format": "%"},
            },
            "color": {"field": "trial", "type": "nominal", "scale": scale, "legend": legend},
        },
        "layer": [
            {
                "mark": {"type": "line"},
                "encoding": {
                    "strokeDash": {
                        "field": "trial", "type": "nominal", "legend": legend,
                        "scale": {"domain": names, "range": [[1, 0] if own else [6, 3] for own in measured]},
                    },
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 0.8},
                "encoding": {"shape": {"field": "trial", "type": "nominal", "legend": legend, "scale": shapes}},
            },
        ],
        "config": {"font": "Liberation Sans", "view": {"stroke": None}},
    }  # fmt: skip


def main() -> None:
    """Draw the figure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--measured", type=Path, required=True)
    parser.add_argument("--simulated", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    values = points(options.measured, key="dask", how="measured")
    values += points(options.simulated, key="efficiency", how="simulated")
    options.out.write_text(vl_convert.vegalite_to_svg(drawing(values)), encoding="utf-8")


if __name__ == "__main__":
    main()
