"""Pages about studies that are hostile, very large, or still run."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shlex
from typing import TYPE_CHECKING

import pyarrow.ipc
import pytest
from selenium.webdriver.common.keys import Keys

from fake_plans import FakeFlow, FakePath, fake_plan
from fake_tables import fake_tables
from pages.browser import MISSING
from pages.view_visitor import Visitor, served
from plait.errors import MachineError, PlaitError
from plait.view import export
from plait.view.downloads import download
from plait.view.export import export_site
from plait.view.running import running_trials
from plait.view.site import StudySite
from result_folders import FakeCase, two_paths, write_arrow, write_large_study, write_study

if TYPE_CHECKING:
    from pathlib import Path

    from selenium.webdriver import Chrome


pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"needs {', '.join(MISSING)}: `tools/system-packages test` installs them"
)
HOSTILE = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>'


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
        "command": f"plait run {shlex.quote(HOSTILE)}",
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
        visitor.until(f"{rows} < 80")
        visitor.run("document.querySelector('#cases input').focus()")
        visitor.press("9999mbit")
        visitor.until(f"{rows} === 1")
        assert visitor.messages() == []


def test_a_page_whose_data_is_read_again_keeps_what_its_reader_typed_chose_and_focused(
    tmp_path: Path, chromium: Chrome
) -> None:
    write_large_study(tmp_path / "large", 30, 1)
    with served(tmp_path) as server:
        visitor = Visitor(chromium, server.address)
        visitor.click(".card a", "Many trials")
        visitor.until("return document.querySelector('#map select') !== null")
        rows = "return [...document.querySelectorAll('#cases tr[data-at] td:first-child')].map((e) => e.textContent)"
        visitor.click("#cases th button", "goodput")
        visitor.click("#scenario summary")
        visitor.run("document.querySelector('#map select').selectedIndex = 1")
        visitor.run("document.querySelector('#map select').dispatchEvent(new Event('change'))")
        metric = visitor.run("return document.querySelector('#map select').value")
        visitor.run("document.querySelector('#cases input').focus()")
        visitor.press("1", "mbit", Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ARROW_LEFT)
        visitor.settles(rows, ["21mbit", "11mbit", "1mbit"])
        visitor.run("document.querySelector('#cases input').dataset.before = ''; plait.again()")
        visitor.until("return document.querySelector('#cases [data-before]') === null")
        visitor.settles(rows, ["21mbit", "11mbit", "1mbit"])
        assert visitor.run("return document.querySelector('#map select').value") == metric
        assert visitor.run("return document.querySelector('#scenario details').open")
        visitor.press("1")
        visitor.settles("return document.querySelector('#cases input').value", "11mbit")
        visitor.settles(rows, ["11mbit"])


def test_a_table_scrolled_far_stays_there_when_its_page_is_read_again_or_left_and_found_again(
    tmp_path: Path, chromium: Chrome
) -> None:
    write_large_study(tmp_path / "large", 500, 1)
    with served(tmp_path) as server:
        visitor = Visitor(chromium, server.address)
        visitor.click(".card a", "Many trials")
        visitor.until("return document.querySelectorAll('#cases tr[data-at]').length > 0")
        visitor.run("document.querySelector('#cases .grid a').focus()")
        visitor.press(Keys.END)
        last = "return document.activeElement.textContent === '500mbit'"
        visitor.until(last)
        visitor.run("document.querySelector('#cases input').dataset.before = ''; plait.again()")
        visitor.until("return document.querySelector('#cases [data-before]') === null")
        visitor.until(last)
        visitor.press(Keys.ENTER)
        visitor.shown("/c/499$")
        visitor.driver.back()
        visitor.shown("^s/[0-9a-f]+$")
        in_view = (
            "const row = [...document.querySelectorAll('#cases tr[data-at]')].at(-1);"
            "const box = row.closest('.scroll').getBoundingClientRect(), place = row.getBoundingClientRect();"
            "return row.textContent.includes('500mbit') && place.top >= box.top && place.top < box.bottom"
        )
        visitor.until(in_view)


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


@pytest.mark.parametrize("number", ["Infinity", "NaN", "1e999", "-1", "null", '"x"', "1.5", "[]", "9" * 5000])
def test_a_running_trial_without_a_number_is_not_shown(number: str, tmp_path: Path) -> None:
    job = tmp_path / "pair" / ".work-0" / "00002"
    write_arrow(job / "guest" / "data", fake_tables(two_paths()[1].plan(1000)))
    for written, shown in ((number, 0), ("7", 1)):
        (job / "trial.json").write_text(f'{{"case": "a", "number": {written}}}')
        lock = os.open(job.parent, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
            assert len(running_trials(tmp_path / "pair", ["a"])) == shown
        finally:
            os.close(lock)


@pytest.mark.parametrize("value", ["Infinity", "NaN", "1e999", "-1e999", "9" * 20, '"\\ud800"'])
@pytest.mark.parametrize(
    ("file", "field"),
    [
        ("study.json", '"title"'),
        ("study.json", '"transport"'),
        ("trials/transport=tcp/000/provenance.json", '"plait_version"'),
        ("trials/transport=tcp/000/provenance.json", '"seed"'),
        ("trials/transport=tcp/000/plan.json", '"seed"'),
    ],
)
def test_a_strange_number_in_a_file_is_the_error_of_a_page_and_never_one_of_the_server(
    file: str, field: str, value: str, tmp_path: Path
) -> None:
    folder = tmp_path / "pair"
    write_study(folder, two_paths(), repeat=1)
    before = (folder / file).read_text()
    changed, count = re.subn(rf"{field}: ?[^,\n}}]*", lambda _: f"{field}: {value}", before)
    assert count
    (folder / file).write_text(changed)
    site = StudySite([tmp_path], live=False)
    (study,) = (study.id for study in site.refresh())
    for page in ("studies", *(f"{study}/{name}" for name in ("study", "result", "0", "0/0", "1/0"))):
        assert site.script(page).endswith(b");\n")
    for name in ("cases.csv", "trials.csv", "cases.parquet", "0/0/flows.csv"):
        with contextlib.suppress(PlaitError):
            assert download(site, [study, *name.split("/")])[2]


@pytest.mark.parametrize(
    "failure", [MachineError("drawing: no memory"), KeyboardInterrupt(), OSError(28, "full")]
)
def test_an_export_that_fails_changes_nothing(
    failure: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_study(tmp_path / "results" / "a", two_paths(), repeat=1)
    export_site([tmp_path / "results"], tmp_path / "old", lambda _: None)

    def content() -> dict[str, bytes]:
        files = (tmp_path / "old").rglob("*")
        return {str(path): path.read_bytes() for path in files if path.is_file()}

    before = content()
    (tmp_path / "results" / "a").rename(tmp_path / "results" / "b")

    def fail(*_: object) -> None:
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr(export, "_trial_files", fail)
        for target in ("old", "new"):
            with pytest.raises((MachineError, KeyboardInterrupt)):
                export_site([tmp_path / "results"], tmp_path / target, lambda _: None)
    assert not (tmp_path / "new").exists()
    assert content() == before
    export_site([tmp_path / "results"], tmp_path / "old", lambda _: None)
    assert (
        len(list((tmp_path / "old" / "data").iterdir())) == 2
    )  # studies.js, and nothing of the earlier export


@pytest.mark.parametrize("damage", ["link", "compressed", "too long", "another case"])
def test_a_running_trial_that_is_not_what_an_intact_guest_writes_is_not_shown(
    damage: str, tmp_path: Path
) -> None:
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
