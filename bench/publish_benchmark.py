"""Runs the benchmark for the entries that plait publishes, and writes their results and docs/benchmark/results.md.

    bench/publish_benchmark.py [--subset full] [--page]      --page: only the page, from the results that are there

Trials that are in the store do not run again. `plait benchmark --verify FILE` repeats a drawn tenth of a file.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from plait.analysis.wording import MISSING, significant
from plait.benchmark.results_file import Results, published
from plait.benchmark.score import ClassScore, RankRange, common_subset, floor_of, ideal_score, places, scores
from plait.benchmark.standing import SCORE_WORDS
from plait.benchmark.suite import GROUPS, NAME, TRAFFIC, CellClass, classes

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "src/plait/benchmark/published"
PAGE = ROOT / "docs/benchmark/results.md"
SCHEDULERS = ("default", "minrtt", "roundrobin", "redundant", "blest", "ecf", "balanced")
CONTROLS = ("reno", "bbr", "lia", "olia", "balia", "wvegas")
ENTRIES = [("tcp", "default", "cubic"), *(("mptcp", name, "cubic") for name in SCHEDULERS),
           *(("mptcp", "default", name) for name in CONTROLS)]  # fmt: skip
MOST_S = 3600
_PREFACE = (
    "`bench/publish_benchmark.py` writes this page from the files in `src/plait/benchmark/published`, which",
    f"have the values of each cell and seed. Each table has scores ({SCORE_WORDS}), their intervals of at",
    "least 95 %, and ranks. The ideal is a bound from rates and delays, which no entry exceeds.",
    "[The benchmark](README.md) says what scores, ranks and the ideal mean.",
)


def _run(transport: str, scheduler: str, control: str, subset: str) -> None:
    name = f"{'tcp' if transport == 'tcp' else scheduler}-{control}.json"
    with tempfile.TemporaryDirectory() as folder:
        command = [
            str(Path(sys.executable).parent / "plait"), "benchmark", "--transport", transport, "--scheduler", scheduler,
            "--congestion-control", control, "--subset", subset, "--out", folder,
        ]  # fmt: skip
        subprocess.run(command, check=False, timeout=MOST_S)
        (PUBLISHED / name).write_bytes((Path(folder) / "results.json").read_bytes())


def _table(headings: list[str], rows: dict[str, list[str]]) -> list[str]:
    """Return the lines of a table with an entry in each row, and an empty one."""
    head = [f"| entry | {' | '.join(headings)} |", "| -- |" + " --: |" * len(headings)]
    return [*head, *(f"| {name} | {' | '.join(words)} |" for name, words in rows.items()), ""]


def _score(row: ClassScore, place: RankRange | None) -> str:
    score = MISSING if row.score is None else significant(row.score)
    return f"{score} ({'not ranked' if place is None else place.words.partition(' ')[0]})"


def _interval(row: ClassScore) -> str:
    return MISSING if row.ci95 is None else f"{significant(row.ci95[0])}-{significant(row.ci95[1])}"


def page() -> str:
    """Return the tables of all published results, a table for each group of networks."""
    known = published()
    floor = floor_of(known)
    assert floor is not None
    subset = common_subset(known)
    ranked = places(known, floor, subset)
    by_name = {
        item.entry.name: {row.cell_class: row for row in scores(item, floor, subset)} for item in known
    }
    kernels = sorted({item.entry.kernel_version for item in known})
    facts = f"Subset `{subset}`, {len(floor.seeds)} seeds, Linux {', '.join(kernels)}, {len(known)} entries."
    lines = [f"# Results of {NAME}", "", facts, *_PREFACE, ""]
    present = classes(subset)
    for group, title in GROUPS.items():
        columns = [CellClass(group, traffic) for traffic in TRAFFIC if CellClass(group, traffic) in present]
        headings = [item.title.partition(": ")[2] for item in columns]
        best = [ideal_score(floor, subset, column) for column in columns]
        rows = {item.entry.name: [by_name[item.entry.name][column] for column in columns] for item in known}
        ranks = {name: [ranked[row.cell_class].get(name) for row in row_of] for name, row_of in rows.items()}
        lines += [f"## {title[0].upper()}{title[1:]}", "", "Scores, with ranks in parentheses:", ""]
        shown = {name: list(map(_score, row_of, ranks[name])) for name, row_of in rows.items()}
        shown["*the ideal*"] = [MISSING if score is None else significant(score) for score in best]
        lines += _table(headings, shown)
        lines += ["Their intervals:", ""]
        lines += _table(headings, {name: list(map(_interval, row_of)) for name, row_of in rows.items()})
    return "\n".join([*lines, *_coupled(known, floor)])


def _coupled(known: list[Results], floor: Results) -> list[str]:
    """Return the table of the entries that have results of `quick` alone: schedulers with LIA, beside CUBIC."""
    lia = {item.entry.scheduler: item for item in [*known, *published("quick/*.json")]
           if item.entry.congestion_control == "lia"}  # fmt: skip
    cubic = {item.entry.scheduler: item for item in known
             if item.entry.congestion_control == "cubic" and item.entry.transport == "mptcp"}  # fmt: skip
    names = [name for name in SCHEDULERS if name in lia]
    rows: dict[str, list[str]] = {}
    for name in names:
        pair = [lia[name], cubic[name]]
        ranked = places(pair, floor, "quick")
        for one, other in zip(*(scores(item, floor, "quick") for item in pair), strict=True):
            ranks = ranked[one.cell_class]
            place = ranks.get(pair[0].entry.name)
            shown = {(1, 1): "better", (2, 2): "worse"}.get((place.first, place.last)) if place else None
            words = "/".join(MISSING if row.score is None else significant(row.score) for row in (one, other))
            rows.setdefault(one.cell_class.title, []).append(words + (f" {shown}" if shown else ""))
    facts = (
        "Scores in `quick`, with LIA and with CUBIC. A word says where the seeds show LIA to be better or worse. These",
        "entries have no results of `full`, and no rank above; `plait benchmark --against FILE` compares with",
        "the files in `src/plait/benchmark/published/quick`.",
    )
    lines = ["## Schedulers with LIA (quick)", "", *facts, ""]
    for part in (slice(0, 3), slice(3, 6)):
        table = _table(names[part], {title: words[part] for title, words in rows.items()})
        lines += [table[0].replace("entry", "class", 1), *table[1:]]
    return lines


def main() -> None:
    """Run the entries, unless only the page is wanted, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--subset", default="full", choices=("quick", "full"))
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    if not options.page:
        for entry in ENTRIES:
            _run(*entry, options.subset)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    subprocess.run([str(Path(sys.executable).parent / "mdformat"), str(PAGE)], check=True)


if __name__ == "__main__":
    main()
