"""What the pages do with the room of a window: what is near, what fits, and which colours and names agree."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from fake_plans import FakeFlow, FakePath, fake_plan
from pages.view_visitor import Visitor, served
from plait.report import build
from plait.view.reduced import ReducedTrials
from result_folders import FakeCase, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

JUDGED = ["retransmits", "goodput_bps"]
KEYS = """
return [...document.querySelectorAll('h1 + .pair > div')].map((side) => [...side.querySelectorAll('.key li')]
  .map((entry) => [entry.textContent, getComputedStyle(entry.querySelector('i')).backgroundColor]));
"""
NUMBERS_IN_VIEW = """
const box = document.querySelector('SCOPE .table .scroll').getBoundingClientRect();
return [...document.querySelectorAll('SCOPE .grid td.number')]
  .filter((cell) => cell.getBoundingClientRect().right <= box.right + 1).length;
"""
GOODPUT_MBIT = """
const rows = document.querySelector('#time .chart').spec.datasets.rows, sums = new Map();
for (const { t, v, s } of rows) { if (t < 6) sums.set(t, (sums.get(t) ?? 0) + v); }
return Math.max(...sums.values());
"""


def case(flows: int, rate: int) -> FakeCase:
    """Return a case of many subflows: five flows have two more than a chart shows."""
    paths = (FakePath(rate_bps=rate * 10**6), FakePath(rate_bps=2_000_000, delay_ns=30_000_000))
    all_flows = [FakeFlow(transport="mptcp", start_us=number * 1000) for number in range(flows)]
    settings = {"flows": flows, "network.links.h1-s1.rate": f"{rate}mbit"}
    return FakeCase(
        f"flows={flows},rate={rate}mbit", settings, lambda seed: fake_plan(*all_flows, paths=paths, seed=seed)
    )


def write(folder: Path, cases: tuple[FakeCase, ...], changed: dict[str, Any]) -> None:
    write_study(folder, cases, repeat=3, title=folder.name)
    about = json.loads((folder / "study.json").read_bytes())
    about["scenario"] |= {"judge": JUDGED} | changed
    (folder / "study.json").write_text(json.dumps(about))
    build(folder)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("layout")
    crossed = tuple(case(flows, rate) for flows in (1, 2, 3, 5) for rate in (3, 9))
    write(folder / "crossed", crossed, {"figures": [{"kind": "line"}]})
    write(folder / "again", crossed, {"figures": [{"kind": "scatter"}]})
    write(folder / "single", tuple(case(1, rate) for rate in (3, 6, 9)), {})
    write(folder / "apart", (case(1, 4),), {})
    with served(folder) as server:
        yield server.address


@pytest.fixture
def visitor(address: str, chromium: Chrome) -> Visitor:
    return Visitor(chromium, address)


def study_of(visitor: Visitor, title: str) -> str:
    studies = visitor.run("return plait.peek('studies').studies")
    return str(next(study["id"] for study in studies if study["title"] == title))


def test_the_map_is_in_the_first_window_however_many_findings_there_are(visitor: Visitor) -> None:
    study = study_of(visitor, "crossed")
    visitor.go(f"s/{study}")
    visitor.until("return document.querySelectorAll('.findings p').length > 5")
    assert visitor.run("return document.querySelector('.heat').getBoundingClientRect().top") < 700
    shown = "return [...document.querySelectorAll('.findings p')].filter((p) => p.checkVisibility()).length"
    few = visitor.run(shown)
    visitor.click("details.further summary", "more findings")
    visitor.until(f"{shown} > {few}")


def test_a_map_of_one_factor_has_no_word_null(visitor: Visitor) -> None:
    visitor.go(f"s/{study_of(visitor, 'single')}")
    visitor.until("return document.querySelector('.heat')")
    assert "null" not in visitor.text("#map")


def test_a_narrow_map_has_the_factor_with_fewer_values_across(visitor: Visitor) -> None:
    study = study_of(visitor, "crossed")
    visitor.size(360)
    visitor.go(f"s/{study}")
    visitor.until("return document.querySelector('.heat')")
    assert (
        visitor.run("return document.querySelectorAll('.heat tbody tr')[0].querySelectorAll('td').length")
        == 2
    )
    visitor.settles("const box = document.querySelector('.map'); return box.scrollWidth - box.clientWidth", 0)


def test_the_line_above_a_trial_has_what_the_study_is_judged_by(visitor: Visitor) -> None:
    visitor.go(f"s/{study_of(visitor, 'crossed')}/c/0/t/0")
    assert visitor.text(".result").startswith("Retransmitted segments")
    assert visitor.text("#metrics dt") == "Retransmitted segments"


def test_the_goodput_of_many_subflows_is_that_of_all_of_them(visitor: Visitor) -> None:
    study = study_of(visitor, "crossed")
    visitor.go(f"s/{study}/c/7/t/0")
    assert "2 more subflows" in visitor.text("#time .key")
    goodputs = "return plait.peek(arguments[0]).flows.map((flow) => parseFloat(flow.goodput))"
    assert visitor.run(GOODPUT_MBIT) >= 0.95 * sum(visitor.run(goodputs, f"{study}/7/0"))


def test_events_name_their_flows(visitor: Visitor) -> None:
    study = study_of(visitor, "crossed")
    visitor.go(f"s/{study}/c/7/t/0")
    names = visitor.run("return plait.peek(arguments[0]).flows.map((flow) => flow.name)", f"{study}/7/0")
    events = visitor.run("return plait.peek(arguments[0]).events", f"{study}/7/0")
    flows = {flow for flow in events["values"][events["columns"].index("flow")] if flow is not None}
    assert flows <= set(names)
    assert flows


def test_a_subflow_has_one_colour_on_both_sides_and_no_other_has_it(visitor: Visitor) -> None:
    study = study_of(visitor, "crossed")
    visitor.go(f"compare/{study}.2/{study}.7")
    sides = [dict(side) for side in visitor.run(KEYS)]
    assert len(sides) == 2, visitor.text()
    assert len(sides[0]) >= 4
    for label in sides[0].keys() & sides[1].keys():
        assert sides[0][label] == sides[1][label], label
    for side in sides:
        assert len(set(side.values())) == len(side)


def test_no_two_queues_have_one_colour_on_both_sides_while_there_are_colours(visitor: Visitor) -> None:
    """The queue that one side alone had took the colour of another queue of the other side."""
    visitor.go("")
    colours = visitor.run("""
        const queue = (label) => ({ label, queue: [[0], [1]] });
        const trial = (...labels) => ({ series: { seconds: 1, subflows: [], queues: labels.map(queue) } });
        return [...plait.charts.frame([trial("a", "b", "d"), trial("a", "c", "d")]).queues];
    """)
    assert {label for label, _ in colours} == {"a", "b", "c", "d"}
    assert len({colour for _, colour in colours}) == 4


def test_a_case_that_is_not_read_yet_is_not_called_one_without_trials(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine reads for minutes; the page waits, and in the end says what it waited for."""
    study = study_of(visitor, "again")
    monkeypatch.setattr(ReducedTrials, "pending", lambda _trials, _case=None: 2)
    visitor.run("let now = 0; performance.now = () => (now += 250_000)")
    visitor.go(f"compare/{study}.2/{study}.6")
    assert visitor.text() == (
        "This page cannot be shown\n\nflows 2, rate 3mbit: plait still reads 2 trials; open this page again later"
    )


def test_metrics_use_the_width_of_a_window(visitor: Visitor) -> None:
    visitor.go(f"s/{study_of(visitor, 'crossed')}/c/7/t/0")
    starts = "return [...document.querySelectorAll('#metrics dt')].map((e) => e.getBoundingClientRect().left)"
    assert len(set(visitor.run(starts))) >= 3
    visitor.size(360)
    assert len(set(visitor.run(starts))) == 1


def test_tables_show_numbers_in_a_narrow_window(visitor: Visitor) -> None:
    crossed, again = study_of(visitor, "crossed"), study_of(visitor, "again")
    visitor.size(360)
    for page, scope in ((f"studies/{crossed}/{again}", "#cases"), (f"s/{crossed}/c/0/t/0", "#network")):
        visitor.go(page)
        assert visitor.run(NUMBERS_IN_VIEW.replace("SCOPE", scope)) > 0, page


def test_two_studies_that_differ_in_their_figures_say_so_in_one_line(visitor: Visitor) -> None:
    visitor.go(f"studies/{study_of(visitor, 'crossed')}/{study_of(visitor, 'again')}")
    assert "figures differ" in visitor.text("#scenario")
    assert "scatter" not in visitor.text("#scenario")


def test_two_studies_without_a_common_case_promise_no_means(visitor: Visitor) -> None:
    visitor.go(f"studies/{study_of(visitor, 'crossed')}/{study_of(visitor, 'apart')}")
    assert "no case in common" in visitor.text("#cases")
    assert "Means" not in visitor.text("#cases")
    assert visitor.run("return document.querySelector('#cases select') === null")


def test_a_title_in_the_bar_is_cut_only_where_it_does_not_fit(visitor: Visitor) -> None:
    visitor.go(f"s/{study_of(visitor, 'crossed')}/c/7")
    cut = "return [...document.querySelectorAll('.crumbs li')].some((e) => e.scrollWidth > e.clientWidth)"
    assert not visitor.run(cut)


def test_no_line_ends_within_an_equation_or_between_a_number_and_its_unit(visitor: Visitor) -> None:
    broken = "F(1.00, 2.00) = 0.180, p < 0.5: 439 ms, 46.2 Mbit/s, 9.7 % on a->b"
    kept = visitor.run("return plait.format.together(arguments[0])", broken)
    assert kept.split(" ") == [
        "F(1.00,\xa02.00)\xa0=\xa00.180,",
        "p\xa0<\xa00.5:",
        "439\xa0ms,",
        "46.2\xa0Mbit/s,",
        "9.7\xa0%",
        "on",
        "a-\N{WORD JOINER}>b",
    ]


def test_cells_of_a_map_have_the_colour_of_text_in_both_themes(visitor: Visitor) -> None:
    study = study_of(visitor, "crossed")
    for dark in (False, True):
        visitor.size(1280, dark=dark)
        visitor.go(f"s/{study}")
        colours = visitor.until(
            "const cell = document.querySelector('.heat td:not(.dark):not(.empty) a');"
            "return cell && [getComputedStyle(cell).color, getComputedStyle(document.body).color]"
        )
        assert colours[0] == colours[1]
        visitor.go("")
