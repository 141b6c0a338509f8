"""The pages of `plait view` in a real browser: every click, the keyboard alone, all widths, both themes, an export."""

from __future__ import annotations

import fcntl
import json
import os
import re
import threading
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow.ipc
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from fake_plans import FakeFlow, FakePath, fake_plan
from fake_tables import fake_tables
from plait.report import build
from plait.report.render.render import warm
from plait.testing.browser import MISSING, TOO_WIDE, browser
from plait.view.export import export_site
from plait.view.server import serve
from result_folders import FakeCase, two_paths, write_arrow, write_large_study, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

    from plait.view.server import ViewServer

pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"needs {', '.join(MISSING)}: `tools/system-packages test` installs them"
)
LONGEST_S = 60
WIDTHS = (360, 768, 1280, 1920)
HOSTILE = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>'


class Visitor:
    """A person at the browser: looks for what is visible by its words, clicks, and presses keys."""

    def __init__(self, driver: Chrome, address: str) -> None:
        self.driver = driver
        self.address = address
        self.clicks = 0
        self.size(1280)
        driver.get("about:blank")
        driver.get(address)
        self.until("return document.documentElement.dataset.shown === 'studies'")
        self.messages()

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def until(self, script: str) -> Any:
        wait = WebDriverWait(self.driver, LONGEST_S, poll_frequency=0.02)
        return wait.until(lambda driver: driver.execute_script(script))

    def size(self, width: int, *, dark: bool = False) -> None:
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        theme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": theme})

    def go(self, place: str) -> None:
        """Open a page by its address behind `#/`."""
        self.run("location.hash = arguments[0]", f"#/{place}")
        self.until(f"return document.documentElement.dataset.shown === {json.dumps(place or 'studies')}")

    def click(self, selector: str, words: str = "") -> None:
        """Click the first element that matches and contains the words."""
        find = (
            "return [...document.querySelectorAll(arguments[0])]"
            ".find((e) => e.offsetParent && (e.textContent + (e.ariaLabel ?? '')).includes(arguments[1]))"
        )
        wait = WebDriverWait(self.driver, LONGEST_S, poll_frequency=0.02)
        element = wait.until(
            lambda driver: driver.execute_script(find, selector, words), f"{selector} {words}"
        )
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()
        self.clicks += 1

    def shown(self, pattern: str) -> None:
        """Wait for the page whose address matches."""
        self.until(f"return new RegExp({json.dumps(pattern)}).test(document.documentElement.dataset.shown)")

    def drawn(self) -> int:
        """Wait until the charts in view are drawn; return how many."""
        self.until(
            "const near = [...document.querySelectorAll('.chart')]"
            ".filter((c) => c.getBoundingClientRect().top < innerHeight);"
            "return near.length > 0 && near.every((c) => c.querySelector('svg .mark-line, svg .mark-area path'))"
        )
        return int(self.run("return document.querySelectorAll('.chart svg').length"))

    def text(self, selector: str = "main") -> str:
        return str(self.driver.find_element(By.CSS_SELECTOR, selector).text)

    def press(self, *keys: str) -> None:
        self.driver.switch_to.active_element.send_keys(*keys)

    def tab_to(self, words: str, most: int = 60) -> None:
        """Press Tab until the focus is on an element with these words."""
        for _ in range(most):
            self.press(Keys.TAB)
            focused = self.run(
                "const e = document.activeElement; return `${e.textContent} ${e.ariaLabel ?? ''}`"
            )
            if words in focused:
                return
        pytest.fail(f"Tab does not reach {words!r}")

    def messages(self) -> list[str]:
        log = self.driver.execute("getLog", {"type": "browser"})["value"]
        return [entry["message"] for entry in log]

    def requests(self) -> list[str]:
        return list(
            self.run("return performance.getEntries().map((e) => e.name).filter((n) => n.includes(':'))")
        )


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chrome]:
    with browser() as driver:
        yield driver


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        warm()
        yield


def point(transport: str, rate: int, delay: int) -> FakeCase:
    paths = (FakePath(), FakePath(rate_bps=rate * 10**6, delay_ns=delay * 10**6))
    settings = {
        "transport": transport,
        "network.links.h1-s2.rate": f"{rate}mbit",
        "network.links.h1-s2.delay": f"{delay}ms",
    }
    name = f"transport={transport},rate={rate}mbit,delay={delay}ms"
    failed = {1: "the guest panicked"} if (transport, rate, delay) == ("tcp", 2, 5) else {}
    return FakeCase(
        name, settings, lambda seed: fake_plan(FakeFlow(transport=transport), paths=paths, seed=seed), failed
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with a map and a failed trial, and two studies of the same two cases."""
    folder = tmp_path_factory.mktemp("results")
    points = tuple(
        point(kind, rate, delay) for kind in ("tcp", "mptcp") for rate in (2, 8) for delay in (5, 50)
    )
    caution = {"code": "QUEUE", "message": "the queue is short", "remedy": "make it longer"}
    write_study(folder / "grid", points, repeat=2, title="A grid", cautions=(caution,))
    for name in ("after", "before"):
        write_study(folder / name, two_paths(), repeat=1, title=f"A pair, {name}")
    build(folder / "grid")
    return folder


@contextmanager
def served(folder: Path) -> Iterator[ViewServer]:
    server = serve([folder])
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(timeout=LONGEST_S)


@pytest.fixture(scope="module")
def address(results: Path) -> Iterator[str]:
    with served(results) as server:
        yield server.address


@pytest.fixture(scope="module")
def exported(results: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    target = tmp_path_factory.mktemp("site")
    export_site([results], target, lambda _: None)
    return (target / "index.html").as_uri()


@pytest.fixture(params=["server", "export"])
def visitor(request: pytest.FixtureRequest, chromium: Chrome) -> Visitor:
    """A visitor of the server, and of an export that was opened as a file."""
    return Visitor(chromium, request.getfixturevalue("address" if request.param == "server" else "exported"))


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
    visitor.click("#network .grid button", "h1\N{RIGHTWARDS ARROW}s1")
    assert "throughput" in visitor.text("#network figure")
    visitor.click("#events .grid button", "10.000000")
    assert visitor.until("return document.querySelector('.announce').textContent").startswith("Marked")
    assert {"svg", "pdf", "png", "csv", "parquet"} == files_on_page(visitor)
    assert visitor.messages() == []


def test_two_cases_and_two_studies_stand_side_by_side_on_one_time_axis(visitor: Visitor) -> None:
    visitor.click(".card a", "A grid")
    visitor.click("button.pick", "TCP, rate 2mbit, delay 5ms")
    visitor.click("button.pick", "MPTCP, rate 8mbit, delay 50ms")
    visitor.click(".tray a", "Show")
    visitor.shown("^compare/")
    assert visitor.drawn() >= 2
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
    visitor.click(".card button", "")
    visitor.driver.find_elements(By.CSS_SELECTOR, ".card button")[1].click()
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
    visitor.driver.find_element(By.CSS_SELECTOR, "#cases input").send_keys("tcp delay=50ms rate=2mbit")
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


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_wider_than_its_window_or_says_anything_in_the_console(
    width: int, *, dark: bool, address: str, chromium: Chrome
) -> None:
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
        assert visitor.run(TOO_WIDE) == 0, page
        background = visitor.run("return getComputedStyle(document.body).backgroundColor")
        assert background == ("rgb(17, 20, 24)" if dark else "rgb(255, 255, 255)")
        small = visitor.run(
            "return [...document.querySelectorAll('button, main a')].filter((e) => e.offsetParent && "
            "e.getBoundingClientRect().height < 14).map((e) => e.textContent)"
        )
        assert small == [], page
    assert visitor.messages() == []


def test_the_theme_changes_by_a_click_and_charts_follow(visitor: Visitor) -> None:
    study = visitor.run("return plait.peek('studies').studies[2].id")
    visitor.go(f"s/{study}/c/0/t/0")
    visitor.drawn()
    visitor.click("button.theme")
    assert visitor.run("return getComputedStyle(document.body).backgroundColor") == "rgb(17, 20, 24)"
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


def hostile_case(transport: str) -> FakeCase:
    return FakeCase(
        f"transport={transport},x={HOSTILE.replace('/', '')}",
        {"transport": transport, HOSTILE: HOSTILE},
        lambda seed: fake_plan(FakeFlow(transport=transport), paths=(FakePath(), FakePath()), seed=seed),
        {1: HOSTILE},
    )


@pytest.mark.parametrize("kind", ["server", "export"])
def test_a_hostile_study_shows_its_texts_and_runs_no_script(
    kind: str, tmp_path: Path, chromium: Chrome
) -> None:
    folder = tmp_path / "results" / "<b>evil"
    caution = {"code": HOSTILE, "message": HOSTILE, "remedy": HOSTILE}
    write_study(
        folder,
        (hostile_case("tcp"), hostile_case("mptcp")),
        repeat=2,
        title=HOSTILE,
        description=HOSTILE,
        cautions=(caution,),
    )
    about = json.loads((folder / "study.json").read_text())
    about |= {
        "command": HOSTILE,
        "scenario": {HOSTILE: HOSTILE, "__proto__": {"a": HOSTILE}},
        "name": HOSTILE,
    }
    (folder / "study.json").write_text(json.dumps(about))
    for plan in folder.rglob("plan.json"):
        plan.write_text(plan.read_text().replace('"flow1"', json.dumps(HOSTILE)))
    (folder / "figures").mkdir()
    svg = '<svg xmlns="http://www.w3.org/2000/svg" onload="window.pwned=1"><script>window.pwned=1</script></svg>'
    (folder / "figures" / "goodput.svg").write_text(svg)
    with served(tmp_path / "results") as server:
        place = server.address
        if kind == "export":
            export_site([tmp_path / "results"], tmp_path / "site", lambda _: None)
            place = (tmp_path / "site" / "index.html").as_uri()
            for drawn in (tmp_path / "site" / "files").rglob("*.svg"):
                assert not re.search(r"<script|<[^>]*\sonload", drawn.read_text())
        visitor = Visitor(chromium, place)
        assert HOSTILE in visitor.text()
        study = visitor.run("return plait.peek('studies').studies[0].id")
        for page in (
            f"s/{study}",
            f"s/{study}/c/0",
            f"s/{study}/c/0/t/1",
            f"s/{study}/c/1/t/0",
            f"compare/{study}.0/{study}.1",
            f"studies/{study}/{study}",
        ):
            visitor.go(page)
            assert HOSTILE.replace("/", "")[:30] in visitor.text("body"), page
            if page.startswith("compare"):
                visitor.drawn()
        assert visitor.run("return window.pwned") is None
        assert visitor.run("return document.querySelectorAll('main script, main img[src=x]').length") == 0
        assert visitor.messages() == []


def test_of_ten_thousand_cases_only_the_rows_in_view_exist(tmp_path: Path, chromium: Chrome) -> None:
    write_large_study(tmp_path / "large", 10_000, 1)
    with served(tmp_path) as server:
        visitor = Visitor(chromium, server.address)
        visitor.click(".card a", "Many trials")
        rows = "return document.querySelectorAll('#cases tr[data-at]').length"
        visitor.until(f"{rows} > 0")
        assert 10 < visitor.run(rows) < 80
        visitor.click("#cases .grid a", "1mbit")
        visitor.driver.back()
        visitor.shown("^s/[0-9a-f]+$")
        visitor.until(f"{rows} > 0")
        visitor.run("document.querySelector('#cases .grid a').focus()")
        visitor.press(Keys.END)
        visitor.until("return document.activeElement.textContent === '10000mbit'")
        assert visitor.run(rows) < 80
        visitor.driver.find_element(By.CSS_SELECTOR, "#cases input").send_keys("9999mbit")
        visitor.until(f"{rows} === 1")
        assert visitor.messages() == []


def test_a_study_that_runs_fills_in_as_trials_end_and_shows_the_goodput_so_far(
    tmp_path: Path, chromium: Chrome
) -> None:
    folder = tmp_path / "results" / "pair"
    tcp, mptcp = two_paths()
    write_study(folder, (tcp, mptcp), repeat=1)
    finished = folder / "trials" / mptcp.name
    finished.rename(tmp_path / "later")
    job = folder / ".work-0" / "00002"
    plan = mptcp.plan(1000)
    write_arrow(job / "guest" / "data", fake_tables(plan))
    (job / "trial.json").write_text(json.dumps({"case": mptcp.name, "number": 0}))
    (job / "guest" / "progress").write_text("1000000 run\n4000000 run\n")
    stream = job / "guest" / "data" / "connections.arrow"
    table = fake_tables(plan)["connections"].to_arrow()
    with pyarrow.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table, max_chunksize=50)
    stream.write_bytes(stream.read_bytes()[:-200])  # the last message is not there yet
    lock = os.open(folder / ".work-0", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    try:
        with served(tmp_path / "results") as server:
            visitor = Visitor(chromium, server.address)
            assert "running" in visitor.text(".card")
            visitor.click(".card a", "Two 5 Mbit/s")
            visitor.until("return document.querySelector('#live')?.textContent.includes('1 of 2 trials')")
            assert "at 4.00 s of virtual time. Goodput so far, Mbit/s" in visitor.text("#live")
            visitor.until("return document.querySelector('#live .chart svg .mark-line')")
            before = visitor.text("#cases")
            assert "9.37" not in before
            (folder / "trials" / mptcp.name).parent.mkdir(exist_ok=True)
            (tmp_path / "later").rename(finished)
            visitor.until("return document.querySelector('#cases').textContent.includes('9.37')")
            os.close(lock)
            lock = -1
            visitor.until("return !document.querySelector('h1 .running')")
            assert visitor.messages() == []
    finally:
        if lock >= 0:
            os.close(lock)


@pytest.mark.parametrize("damage", ["link", "compressed", "too long", "another case"])
def test_a_running_trial_that_is_not_what_an_intact_guest_writes_is_not_shown(
    damage: str, tmp_path: Path
) -> None:
    from plait.view.running import running_trials

    folder = tmp_path / "pair"
    job = folder / ".work-0" / "00002"
    _, mptcp = two_paths()
    tables = fake_tables(mptcp.plan(1000))
    write_arrow(job / "guest" / "data", tables)
    stream = job / "guest" / "data" / "connections.arrow"
    (job / "trial.json").write_text(
        json.dumps({"case": mptcp.name if damage != "another case" else "x", "number": 0})
    )
    if damage == "link":
        stream.rename(tmp_path / "elsewhere")
        stream.symlink_to(tmp_path / "elsewhere")
    elif damage == "compressed":
        tables["connections"].write_ipc_stream(stream, compression="zstd")
    elif damage == "too long":
        with stream.open("ab") as file:
            file.truncate(9 << 20)
    with (folder / ".work-0" / "held").open("w"):
        lock = os.open(folder / ".work-0", os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_SH)
        try:
            assert [trial["goodput"] for trial in running_trials(folder, [mptcp.name])] in ([], [[]])
        finally:
            os.close(lock)


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


def test_a_trial_that_failed_says_why_on_its_page(visitor: Visitor) -> None:
    study = visitor.run("return plait.peek('studies').studies[2].id")
    visitor.go(f"s/{study}/c/0/t/1")
    assert "This trial failed: the guest panicked" in visitor.text()


def test_an_address_that_leads_nowhere_says_so(visitor: Visitor) -> None:
    for place in ("nowhere", f"s/{'0' * 12}", f"s/{'0' * 12}/c/0/t/0"):
        visitor.go(place)
        assert "This page cannot be shown" in visitor.text()
