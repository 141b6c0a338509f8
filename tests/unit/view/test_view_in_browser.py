"""The pages of `plait view` in a real browser: every click, the keyboard alone, all widths, both themes."""

from __future__ import annotations

import json
import urllib.request
from html import escape
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.keys import Keys

from fake_plans import FakeFlow, fake_plan
from pages.browser import MISSING, TOO_WIDE
from pages.view_visitor import LONGEST_S, Visitor, served
from result_folders import FakeCase, write_study

if TYPE_CHECKING:
    from pathlib import Path

    from selenium.webdriver import Chrome


BACKGROUND = "return getComputedStyle(document.body).backgroundColor"
SMALL = (
    "return [...document.querySelectorAll('button, main a')].filter((e) => e.offsetParent && "
    "e.getBoundingClientRect().height < 14).map((e) => e.textContent)"
)
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"needs {', '.join(MISSING)}: `tools/system-packages test` installs them"
)
WIDTHS = (360, 768, 1280, 1920)


def files_on_page(visitor: Visitor) -> set[str]:
    """Open every file that the page links to; return their suffixes."""
    links = visitor.run("return [...document.querySelectorAll('a[download]')].map((a) => a.href)")
    for link in links:
        with urllib.request.urlopen(link, timeout=LONGEST_S) as answer:  # noqa: S310 - of this test's pages
            assert answer.read(), link
    return {link.rpartition(".")[2] for link in links}


def test_clicks_lead_from_a_cell_to_its_trials_and_to_everything_about_a_trial(visitor: Visitor) -> None:
    visitor.click(".card a", "A grid")
    visitor.shown("^s/")
    assert "Of eight cases" in visitor.until("return document.querySelector('.headline')?.textContent")
    assert {"svg", "pdf", "png", "csv", "parquet"} == files_on_page(visitor)
    visitor.click(".heat td a", "TCP, rate 2mbit, delay 5ms:")
    visitor.shown("/c/0$")
    visitor.until("return document.querySelectorAll('.grid tbody tr[data-at]').length === 2")
    assert "failed: the guest panicked" in visitor.text()
    visitor.driver.back()
    visitor.shown("^s/[0-9a-f]+$")
    visitor.click(".grid td:first-child a", "mptcp")
    visitor.click("a.go", "Open the median trial")
    visitor.shown("/t/")
    assert visitor.drawn() >= 2
    assert "reached" in visitor.text("#why")
    assert visitor.run("return document.querySelectorAll('#network svg text').length") > 4
    visitor.click("#network .grid button", "h1->s1")
    assert "throughput" in visitor.text("#network figure")
    visitor.click("#events .grid button", "10.000000")
    assert visitor.until("return document.querySelector('.announce').textContent").startswith("Marked")
    assert {"svg", "pdf", "png", "csv", "parquet"} == files_on_page(visitor)
    assert visitor.messages() == []


def test_a_map_without_a_case_says_which_values_no_case_has(tmp_path: Path, chromium: Chrome) -> None:
    """It was empty without a word."""
    pairs = [(0, 0), (0, 1), (1, 1), (2, 2), (3, 2)]
    places = [(x, (x + step) % 5) for x in range(5) for step in range(2)]
    cases = [
        FakeCase(
            f"s={x},c={y},p={p},q={q}",
            {"scheduler": f"s{x}", "congestion_control": f"c{y}", "p": f"p{p}", "q": f"q{q}"},
            lambda seed: fake_plan(FakeFlow(), seed=seed),
        )
        for p, q in pairs
        for x, y in places
    ]
    write_study(tmp_path / "sparse", tuple(cases), repeat=1, title="Sparse")
    with served(tmp_path) as server:
        visitor = Visitor(chromium, server.address)
        visitor.click(".card a", "Sparse")
        visitor.shown("^s/")
        visitor.until("return document.querySelector('.heat td a') !== null")
        visitor.run(
            "const label = [...document.querySelectorAll('#map label')].find((l) => l.textContent[0] === 'q');"
            "const select = label.querySelector('select'); select.value = '2';"
            "select.dispatchEvent(new Event('change'))"
        )
        assert "No case has p p0 and q q2: choose another value." in visitor.text("#map")


def test_two_cases_and_two_studies_stand_side_by_side_on_one_time_axis(visitor: Visitor) -> None:
    visitor.click(".card a", "A grid")
    visitor.click("button.pick", "TCP, rate 2mbit, delay 5ms")
    visitor.click("button.pick", "MPTCP, rate 8mbit, delay 50ms")
    visitor.click(".tray a", "Show")
    visitor.shown("^compare/")
    assert visitor.drawn() >= 2
    hidden = "return document.querySelector('.tray').hidden"
    visitor.settles(hidden, value=True)  # it covered a fifth of a phone's screen
    ticks = visitor.run(
        "return [...document.querySelectorAll('.pair')].slice(1, 3).map((pair) => [...pair.querySelectorAll('svg')]"
        ".map((svg) => [...svg.querySelectorAll('.role-axis-label text')].map((t) => t.textContent)))"
    )
    assert len(ticks[0]) == 2
    for first, second in ticks:
        assert first == second  # the same ticks on both axes
        assert "10 s" in first
    assert "50ms" in visitor.text("#scenario")
    visitor.click(".crumbs a", "Studies")
    visitor.shown("studies")
    visitor.settles(hidden, value=False)  # what was chosen can be compared with something else
    visitor.click(".card button")
    visitor.click(".card button", which=1)
    visitor.click(".tray a", "Show")
    visitor.shown("^studies/")
    assert "+0.0 %" in visitor.text()
    visitor.click("#cases .grid a", "MPTCP")
    visitor.shown("^compare/")
    assert "before" in visitor.text()
    assert visitor.messages() == []


def test_a_table_sorts_and_filters_and_its_rows_can_be_saved(visitor: Visitor) -> None:
    visitor.click(".card a", "A grid")
    visitor.click("#cases th button", "oodput")
    order = "return [...document.querySelectorAll('#cases tr[data-at]')].map((row) => row.textContent)"
    assert "mptcp8mbit" in visitor.run(order)[0]
    visitor.click("#cases input")
    visitor.press("tcp delay=50ms rate=2mbit")
    visitor.until("return document.querySelectorAll('#cases tr[data-at]').length === 2")
    visitor.run("window.saved = null; plait.save = (name, text) => { window.saved = [name, text]; }")
    visitor.click("#cases p.files button", "These rows")
    name, text = visitor.run("return window.saved")
    assert name == "cases.csv"
    assert text.startswith("transport,network.links.h1-s2.rate,network.links.h1-s2.delay,Trials,goodput_bps,")
    assert len(text.splitlines()) == 3


def test_the_keyboard_alone_reaches_a_trial_and_a_comparison(visitor: Visitor) -> None:
    visitor.tab_to("A grid")
    visitor.press(Keys.ENTER)
    visitor.shown("^s/")
    visitor.tab_to("MPTCP, rate 8mbit, delay 5ms: side by side", most=120)
    visitor.press(Keys.ENTER)
    visitor.press(Keys.ARROW_DOWN)
    assert "mptcp" in visitor.run("return document.activeElement.closest('tr').textContent")
    visitor.tab_to("MPTCP, rate 8mbit, delay 50ms: side by side", most=120)
    visitor.press(Keys.ENTER)  # the focus moves to `Show`
    visitor.press(Keys.ENTER)
    visitor.shown("^compare/")
    visitor.tab_to("MPTCP, rate 8mbit, delay 5ms")
    visitor.press(Keys.ENTER)
    visitor.shown("/t/")
    visitor.tab_to("Why it was not faster")
    visitor.press(Keys.ENTER)
    assert abs(visitor.run("return document.querySelector('#why').getBoundingClientRect().top")) < 200
    outline = visitor.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"


@pytest.mark.parametrize(("width", "dark"), list(zip(WIDTHS, (False, True, False, True), strict=True)))
def test_no_page_is_wider_than_its_window_or_says_anything_in_the_console(
    width: int, *, dark: bool, address: str, chromium: Chrome
) -> None:
    """A theme has colours alone, so each width has one of the two."""
    visitor = Visitor(chromium, address)
    visitor.size(width, dark=dark)
    ids = [study["id"] for study in visitor.run("return plait.peek('studies').studies")]
    grid, pair, other = ids[2], ids[0], ids[1]
    pages = (
        "",
        f"s/{grid}",
        f"s/{grid}/c/0",
        f"s/{grid}/c/7/t/0",
        f"compare/{grid}.0/{grid}.7",
        f"studies/{pair}/{other}",
    )
    for page in pages:
        visitor.go(page)
        visitor.settles(TOO_WIDE, 0)
        visitor.settles(BACKGROUND, "rgb(17, 20, 24)" if dark else "rgb(255, 255, 255)")
        visitor.settles(SMALL, [])
    assert visitor.messages() == []


@pytest.mark.parametrize("width", WIDTHS)
def test_no_table_cuts_a_column_until_all_are_asked_for(width: int, visitor: Visitor) -> None:
    visitor.size(width)
    study = visitor.run("return plait.peek('studies').studies[2].id")
    for page, table in ((f"s/{study}", "#cases"), (f"s/{study}/c/0", "main")):
        visitor.go(page)
        fits = (
            "const box = document.querySelector('.table .scroll'); return box.scrollWidth <= box.clientWidth"
        )
        visitor.until(f"return document.querySelector('{table} .grid thead').textContent.includes('oodput')")
        visitor.until(fits)  # a table knows its room when the browser has laid it out
        columns = "return document.querySelectorAll('.grid th').length"
        before = visitor.run(columns)
        if width < 1280:
            visitor.click(".tools button", "All columns")
            visitor.until(f"{columns} > {before}")
            visitor.click(".tools button", "Only columns that fit")
            visitor.settles(columns, before)


def test_the_theme_changes_by_a_click_and_charts_follow(visitor: Visitor) -> None:
    study = visitor.run("return plait.peek('studies').studies[2].id")
    visitor.go(f"s/{study}/c/0/t/0")
    visitor.drawn()
    visitor.click("button.theme")
    visitor.settles(BACKGROUND, "rgb(17, 20, 24)")
    visitor.until(
        "return document.querySelector('.chart svg .role-axis-label text')?.getAttribute('fill') === '#98a1ab'"
    )


def test_no_request_leaves_the_machine(address: str, chromium: Chrome) -> None:
    visitor = Visitor(chromium, address)
    study = visitor.run("return plait.peek('studies').studies[2].id")
    seen = set(visitor.requests())
    for page in (f"s/{study}", f"s/{study}/c/0/t/0", f"compare/{study}.0/{study}.7"):
        visitor.go(page)
        seen |= set(visitor.requests())
    visitor.drawn()
    seen |= set(visitor.requests())
    assert len(seen) > 15
    assert [name for name in seen if not name.startswith((address, "data:"))] == []
    visitor.messages()
    visitor.run(
        "new Image().src = 'http://192.0.2.1/x'; const s = document.createElement('script'); "
        "s.textContent = 'window.pwned = 1'; document.body.append(s);"
    )
    visitor.until("return document.querySelectorAll('script').length > 0")
    assert visitor.run("return window.pwned") is None
    assert sum("Content Security Policy" in message for message in visitor.messages()) == 2


def test_the_five_questions_of_the_guide_take_at_most_five_clicks(address: str, chromium: Chrome) -> None:
    def ask(*clicks: tuple[str, str]) -> Visitor:
        visitor = Visitor(chromium, address)
        for selector, words in ((".card a", "A grid"), *clicks):
            visitor.click(selector, words)
        assert visitor.clicks <= 5
        return visitor

    best = ask()
    visitor_map = best.until("return document.querySelector('.heat')?.textContent")
    assert "Mbit/s" in visitor_map
    cell = (".heat td a", "TCP, rate 2mbit, delay 50ms")
    median = ("a.go", "Open the median trial")
    assert "reached" in ask(cell, median, (".jump button", "Why it was not faster")).text("#why")
    assert "6.23 MB" in ask(cell, median, (".jump button", "Network")).text("#network .grid")
    pick = "button.pick"
    assert (
        ask(
            (pick, "TCP, rate 2mbit, delay 5ms"), (pick, "MPTCP, rate 2mbit, delay 5ms"), (".tray a", "Show")
        ).drawn()
        >= 2
    )
    marked = ask(cell, median, (".jump button", "Events"), ("#events .grid button", "10.000000"))
    assert marked.until("return document.querySelector('.announce').textContent").startswith("Marked 10")


def test_the_five_questions_of_the_guide_need_only_the_keyboard(address: str, chromium: Chrome) -> None:
    def ask(*stops: tuple[str, str]) -> Visitor:
        """Press Enter on the elements with these words, each of which leads to a page with this address."""
        visitor = Visitor(chromium, address)
        for words, page in (("A grid", "^s/[0-9a-f]+$"), *stops):
            html = json.dumps(escape(words, quote=False), ensure_ascii=False)
            visitor.until(f"return document.body.outerHTML.includes({html})")
            visitor.tab_to(words, most=120)
            assert visitor.focus_is_visible(), words
            visitor.press(Keys.ENTER)
            visitor.shown(page)
        return visitor

    trial = (("TCP, rate 2mbit, delay 50ms:", "/c/[0-9]+$"), ("Open the median trial", "/t/[0-9]+$"))
    best = ask()
    assert "Mbit/s" in best.until("return document.querySelector('.heat')?.textContent")
    why = ask(*trial, ("Why it was not faster", "/t/"))
    assert "reached" in why.text("#why")
    assert why.run("return document.querySelector('#why').getBoundingClientRect().top < innerHeight / 2")
    carried = ask(*trial, ("Network", "/t/"), ("h1->s1", "/t/"))
    assert "throughput" in carried.text("#network figure")
    compared = ask(("TCP, rate 2mbit, delay 5ms: side by side", "^s/"))
    compared.tab_to("MPTCP, rate 2mbit, delay 5ms: side by side", most=120)
    assert compared.focus_is_visible()
    compared.press(Keys.ENTER)  # the focus moves to `Show`
    assert compared.focus_is_visible()
    compared.press(Keys.ENTER)
    compared.shown("^compare/")
    assert compared.drawn() >= 2
    marked = ask(*trial, ("Events", "/t/"), ("10.000000", "/t/"))
    assert marked.until("return document.querySelector('.announce').textContent").startswith("Marked 10")


def test_a_trial_that_failed_says_why_on_its_page(visitor: Visitor) -> None:
    study = visitor.run("return plait.peek('studies').studies[2].id")
    visitor.go(f"s/{study}/c/0/t/1")
    assert "This trial failed: the guest panicked" in visitor.text()


def test_a_study_without_a_report_says_how_it_continues(chromium: Chrome, address: str) -> None:
    visitor = Visitor(chromium, address)
    study = visitor.run("return plait.peek('studies').studies[0].id")
    visitor.go(f"s/{study}")
    figures = visitor.text("#figures")
    assert "The study has not ended" in figures
    assert "This command continues it: plait run" in figures


def test_a_study_with_a_damaged_summary_is_not_called_one_without(tmp_path: Path, chromium: Chrome) -> None:
    """The list said that it had no summary yet, and that its page shows its trials; the page refuses the summary."""
    case = FakeCase("all", {}, lambda seed: fake_plan(FakeFlow(), seed=seed))
    write_study(tmp_path / "damaged", (case,), title="damaged")
    (tmp_path / "damaged" / "summary.json").write_text('{"schema": 1,')
    with served(tmp_path) as server:
        visitor = Visitor(chromium, server.address)
        visitor.go("")
        assert "Its summary is missing or damaged" in visitor.text("main")


def test_an_address_that_leads_nowhere_says_so(visitor: Visitor) -> None:
    for place in ("nowhere", f"s/{'0' * 12}", f"s/{'0' * 12}/c/0/t/0"):
        visitor.go(place)
        assert "This page cannot be shown" in visitor.text()


def test_a_rate_that_was_not_measured_is_a_gap_and_no_zero(visitor: Visitor) -> None:
    rate = "[[0, 1, 2], [1e6, null, 2e6]]"
    for chart in (f"linkRate({{name: 'l', limit: null, rate: {rate}}})", f"growing([{rate}])"):
        drawn = f"return plait.charts.{chart}.place.spec.datasets.rows.map((row) => row.v)"
        assert visitor.run(drawn) == [1, None, 2], chart
