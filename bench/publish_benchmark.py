"""Runs the benchmark for the entries that plait publishes, and writes their results and pages.

    bench/publish_benchmark.py [--page]      --page: only the pages, from the results that are there

The entries run `full`, and all other pairs of scheduler and congestion control run `quick`. The pages are results.md,
pairs.md and coverage.md of docs/benchmark.

Trials that are in the store do not run again. `plait benchmark --verify FILE` repeats a drawn tenth of a file.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import benchmark_coverage

from plait.analysis.wording import MISSING, significant
from plait.benchmark.results_file import Results, published
from plait.benchmark.score import ClassScore, RankRange, common_subset, floor_of, ideal_score, places, scores
from plait.benchmark.standing import SCORE_WORDS
from plait.benchmark.suite import GROUPS, NAME, TRAFFIC, CellClass, classes

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "src/plait/benchmark/published"
PAGES = ROOT / "docs/benchmark"
SCHEDULERS = ("default", "minrtt", "roundrobin", "redundant", "blest", "ecf", "balanced")
CONTROLS = ("reno", "bbr", "lia", "olia", "balia", "wvegas")
ENTRIES = [("tcp", "default", "cubic"), *(("mptcp", name, "cubic") for name in SCHEDULERS),
           *(("mptcp", "default", name) for name in CONTROLS)]  # fmt: skip
PAIRS = [
    ("mptcp", scheduler, control)
    for scheduler in SCHEDULERS
    if scheduler != "default"
    for control in CONTROLS
]
"""The pairs that are no entry."""
MOST_S = 3600
_PREFACE = (
    "`bench/publish_benchmark.py` writes this page from the files in `src/plait/benchmark/published`, which",
    f"have the values of each cell and seed. Each table has scores ({SCORE_WORDS}), their intervals of at",
    "least 95 %, and ranks. The ideal is a bound from rates and delays, which no entry exceeds.",
    "[The benchmark](README.md) says what scores, ranks and the ideal mean.",
)


_PAIRS_PREFACE = (
    "`bench/publish_benchmark.py` writes this page. Each cell is a score (" + SCORE_WORDS + ").",
    "A bold one is of a pair to which no other pair, nor TCP on the better path, is shown to be better.",
    "[Results](results.md) has the subset `full` of fourteen entries, with intervals and ranks.",
    "The files are in `src/plait/benchmark/published` and its folder `quick`; `plait benchmark --against FILE`",
    "compares with those of `quick`.",
)
_COVERAGE = (
    "`bench/publish_benchmark.py` writes this page. The suite has four groups of twelve drawn networks. A network is",
    "a dot in each panel of its group: its first path's share of the factor's range to the right, and its second",
    "path's share upwards. [The benchmark](README.md) has the ranges.",
    "",
    "Two numbers say how even a group is. The centred discrepancy (Hickernell, 1998) compares the share of networks",
    "in each box with the volume of the box; less is more even. The widest gap is the largest share of a factor's",
    "range, over all factors, that has no network. Beside each is the median of",
    f"{benchmark_coverage.RANDOM_DESIGNS} designs of twelve networks drawn independently, with the range of 90 % of",
    "them, and the number of them that are as even or as narrow. The last column is the gap of the three drawn",
    "networks that `quick` has: conclusions about ranges need `full`.",
)


def _run(transport: str, scheduler: str, control: str, subset: str) -> None:
    name = f"{'tcp' if transport == 'tcp' else scheduler}-{control}.json"
    with tempfile.TemporaryDirectory() as folder:
        command = [
            str(Path(sys.executable).parent / "plait"), "benchmark", "--transport", transport, "--scheduler", scheduler,
            "--congestion-control", control, "--subset", subset, "--out", folder,
        ]  # fmt: skip
        subprocess.run(command, check=False, timeout=MOST_S)
        place = PUBLISHED if subset == "full" else PUBLISHED / subset
        (place / name).write_bytes((Path(folder) / "results.json").read_bytes())


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
    return "\n".join([*lines, *_kernels(known, floor)])


def _kernels(known: list[Results], floor: Results) -> list[str]:
    """Return the table of the entries that ran on another kernel too, in `quick`: each beside itself on 6.12."""
    others = published("kernels/*.json")
    rows: dict[str, list[str]] = {}
    for item in others:
        (own,) = [
            one for one in known
            if (one.entry.transport, one.entry.scheduler, one.entry.congestion_control)
            == (item.entry.transport, item.entry.scheduler, item.entry.congestion_control)
        ]  # fmt: skip
        ranked = places([item, own], floor, "quick")
        for here, there in zip(scores(item, floor, "quick"), scores(own, floor, "quick"), strict=True):
            ranks = ranked[here.cell_class]
            place = ranks.get(item.entry.name)
            shown = {(1, 1): "better", (2, 2): "worse"}.get((place.first, place.last)) if place else None
            words = [MISSING if row.score is None else significant(row.score) for row in (there, here)]
            rows.setdefault(here.cell_class.title, []).append(
                "/".join(words) + (f" {shown}" if shown else "")
            )
    if not others:
        return []
    kernels = ", ".join(sorted({item.entry.kernel_version for item in others}))
    table = _table([item.entry.name.rpartition(",")[0] for item in others], rows)
    facts = (
        f"Scores in `quick` on Linux {floor.entry.kernel_version} and on {kernels}.",
        "A word says where the seeds show the newer kernel to be better or worse. 1 is TCP on the better path of the",
        "older one. These entries have no rank above: another kernel is another column. The files are in",
        "`src/plait/benchmark/published/kernels`.",
    )
    return [f"## Linux {kernels} (quick)", "", *facts, "", table[0].replace("entry", "class", 1), *table[1:]]


def pairs_page() -> str:
    """Return a table for each class, with the scores in `quick` of each scheduler with each congestion control."""
    known = published()
    floor = floor_of(known)
    assert floor is not None
    entries = {
        (item.entry.scheduler, item.entry.congestion_control): item
        for item in [*known, *published("quick/*.json")]
        if item.entry.transport == "mptcp"
    }
    ranked = places([floor, *entries.values()], floor, "quick")
    by_pair = {
        pair: {row.cell_class: row for row in scores(item, floor, "quick")} for pair, item in entries.items()
    }
    controls = ("cubic", *CONTROLS)
    of_all = len(SCHEDULERS) * len(controls)
    lines = ["# Schedulers with congestion controls", ""]
    lines += [
        f"Subset `quick`, {len(floor.seeds)} seeds, {len(entries)} of {of_all} pairs.",
        *_PAIRS_PREFACE,
        "",
    ]
    for cell_class in classes("quick"):
        best = ideal_score(floor, "quick", cell_class)
        lines += [f"## {cell_class.title[0].upper()}{cell_class.title[1:]}", ""]
        if best is not None:
            lines += [f"The ideal: {significant(best)}.", ""]
        rows = {}
        for scheduler in SCHEDULERS:
            words = []
            for control in controls:
                item = entries.get((scheduler, control))
                place = ranked[cell_class].get(item.entry.name) if item else None
                score = by_pair[scheduler, control][cell_class].score if item else None
                word = MISSING if score is None else significant(score)
                words.append(f"**{word}**" if place and place.first == 1 else word)
            rows[scheduler] = words
        table = _table(list(controls), rows)
        lines += [table[0].replace("entry", "scheduler", 1), *table[1:]]
    return "\n".join(lines)


def coverage_page() -> str:
    """Return the figure of the drawn networks, and how evenly they fill their ranges."""
    evenness, gaps = benchmark_coverage.rows()
    lines = [
        "# Coverage of the drawn networks",
        "",
        *_COVERAGE,
        "",
        "![The drawn networks](coverage.svg)",
        "",
    ]
    for headings, rows in (
        (["factors", "discrepancy", "of random designs", "as even"], evenness),
        (["widest gap", "of random designs", "as narrow", "widest gap of `quick`"], gaps),
    ):
        table = _table(headings, rows)
        lines += [table[0].replace("entry", "group", 1), *table[1:]]
    return "\n".join(lines)


def main() -> None:
    """Run the entries, unless only the page is wanted, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    if not options.page:
        for subset, entries in (("full", ENTRIES), ("quick", PAIRS)):
            for entry in entries:
                _run(*entry, subset)
    pages = {"results.md": page(), "pairs.md": pairs_page(), "coverage.md": coverage_page()}
    for name, text in pages.items():
        (PAGES / name).write_text(text, encoding="utf-8")
    (PAGES / "coverage.svg").write_text(benchmark_coverage.figure(), encoding="utf-8")
    command = [str(Path(sys.executable).parent / "mdformat"), *(str(PAGES / name) for name in pages)]
    subprocess.run(command, check=True, timeout=MOST_S)


if __name__ == "__main__":
    main()
