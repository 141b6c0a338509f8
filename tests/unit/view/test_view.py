"""`plait view`: what the server answers and refuses, its data files, and the export."""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from fake_plans import FakeFlow, fake_plan
from fake_tables import make_tables
from plait.analysis.model import Summary
from plait.analysis.wording import MISSING
from plait.dataset.study_file import CaseEntry, read_study_file
from plait.errors import MachineError, RequestError
from plait.report import build
from plait.view import study_data
from plait.view.encode import data_script
from plait.view.export import export_site
from plait.view.reduced import ReducedTrials
from plait.view.server import serve
from plait.view.site import OpenStudy, StudySite, find_studies
from plait.view.study_data import (
    CaseFigures,
    case_so_far,
    cases_in_summary,
    cases_view,
    keep_views,
    result_view,
    study_view,
)
from plait.view.trial_data import _direction, trial_view
from result_folders import FakeCase, two_paths, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plait.view.server import ViewServer

HOSTILE = "</script><script>alert(1)</script>"
WAIT_S = 300


def value_of(content: bytes) -> Any:
    """The value that a data file hands to the page."""
    match = re.fullmatch(rb'plait\.put\("[^"]+",(.*)\);\n', content, re.DOTALL)
    assert match is not None
    return json.loads(match[1])


@contextmanager
def running(roots: list[Path]) -> Iterator[ViewServer]:
    server = serve(roots)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(timeout=WAIT_S)
        assert not thread.is_alive()


def ask(
    server: ViewServer, path: str, *, token: str | None = None, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    host, server_token = re.fullmatch(r"http://([^/]+)/([0-9a-f]{32})/", server.address).groups()
    connection = http.client.HTTPConnection(host, timeout=WAIT_S)
    connection.request(method, f"/{server_token if token is None else token}/{path}", headers=headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_CACHE", str(cache))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write_study(tmp_path / "results" / "pair", two_paths(), repeat=2)
    return tmp_path / "results"


def test_every_answer_has_a_strict_policy_and_no_address_without_the_token_answers(results: Path) -> None:
    with running([results]) as server:
        status, headers, content = ask(server, "")
        assert status == 200
        assert b"<script defer" in content
        assert not re.search(rb"<script[^>]*>[^<]", content)
        assert not re.search(rb"https?://", content)
        for path in ("", "data/studies.js", "assets/base.js", "nothing"):
            _, headers, _ = ask(server, path)
            assert (
                "default-src 'none'; script-src 'self'; style-src 'self'"
                in headers["content-security-policy"]
            )
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"
            assert headers["cross-origin-resource-policy"] == "same-origin"
        for wrong in ("0" * 32, "", "..", "%2e%2e"):
            assert ask(server, "data/studies.js", token=wrong)[0] == 403
        assert ask(server, "data/studies.js", method="POST")[0] == 405


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "127.0.0.1:1", ""]
)
def test_a_request_in_the_name_of_another_host_is_refused_even_with_the_token(
    host: str, results: Path
) -> None:
    with running([results]) as server:
        assert ask(server, "data/studies.js", Host=host)[0] in {400, 421}


def test_no_path_leaves_the_studies(results: Path) -> None:
    (results / "secret.svg").write_text("secret")
    with running([results]) as server:
        (study,) = value_of(ask(server, "data/studies.js")[2])["studies"]
        for path in (
            f"files/{study['id']}/figures/../../secret.svg",
            f"files/{study['id']}/figures/..%2f..%2fsecret.svg",
            f"files/{study['id']}/figures/.svg",
            f"files/{'0' * 12}/figures/goodput.svg",
            f"files/{study['id']}/9/0/flows.csv",
            f"files/{study['id']}/0/0/passwd.csv",
            f"files/{study['id']}/%D9%A0/0/goodput.svg",  # an Arabic zero
            "assets/..%2findex.html.j2",
            f"data/{study['id']}/9.js",
            f"data/{study['id']}/../studies.js",
        ):
            status, _, content = ask(server, path)
            assert status in {403, 404}, path
            assert b"secret" not in content


def test_the_list_the_study_the_case_and_the_trial_have_their_data(results: Path) -> None:
    build(results / "pair")
    with running([results]) as server:
        (study,) = value_of(ask(server, "data/studies.js")[2])["studies"]
        assert study["folder"] == "pair"
        assert "9.37 Mbit/s" in [text for text, _ in study["result"]["headline"]]
        page = value_of(ask(server, f"data/{study['id']}/study.js")[2])
        assert page["labels"] == ["TCP", "MPTCP"]
        assert page["primary"] == page["leading"][0] == "goodput_bps"
        assert page["factors"] == [
            {"key": "transport", "name": "transport", "values": ["tcp", "mptcp"], "of": [0, 1]}
        ]
        assert page["summarised"]
        deadline = threading.Event()
        for _ in range(WAIT_S * 10):
            case = value_of(ask(server, f"data/{study['id']}/1.js")[2])
            if not case["pending"]:
                break
            deadline.wait(0.1)
        assert case["numbers"] == [0, 1]
        assert case["metrics"]["goodput_bps"][0] == pytest.approx(9.37e6, rel=1e-2)
        trial = value_of(ask(server, f"data/{study['id']}/1/0.js")[2])
        assert [line["label"] for line in trial["series"]["subflows"]] == ["h1-s1-h2", "h1-s2-h2"]
        assert trial["events"]["columns"][:3] == ["t_us", "node", "event"]
        used = {link["name"]: link["used"] for link in trial["links"]}
        assert used["h1->s1"] > 0.9
        assert used["s1->h1"] == 0


def test_figures_and_tables_can_be_downloaded_in_every_format(results: Path) -> None:
    build(results / "pair")
    with running([results]) as server:
        (study,) = value_of(ask(server, "data/studies.js")[2])["studies"]
        starts = {"svg": b"<svg", "pdf": b"%PDF", "png": b"\x89PNG", "parquet": b"PAR1"}
        for place in (f"files/{study['id']}/figures/goodput", f"files/{study['id']}/1/0/rtt"):
            for suffix in ("svg", "pdf", "png"):
                status, headers, content = ask(server, f"{place}.{suffix}")
                assert status == 200
                assert content.startswith(starts[suffix])
                assert headers["content-disposition"].startswith("attachment")
                assert headers["content-security-policy"].startswith("sandbox")
        status, _, content = ask(server, f"files/{study['id']}/1/0/subflows.csv")
        assert pl.read_csv(io.BytesIO(content))["subflow"].n_unique() == 2
        trials = pl.read_parquet(io.BytesIO(ask(server, f"files/{study['id']}/trials.parquet")[2]))
        assert trials["transport"].to_list() == ["tcp", "tcp", "mptcp", "mptcp"]
        assert ask(server, f"files/{study['id']}/cases.csv")[2].startswith(b"case,transport,trials,failed,")


def test_the_first_visit_after_a_report_finds_in_the_cache_what_it_would_compute(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = results / "pair"
    build(folder)
    about = read_study_file(folder)
    content = (folder / "summary.json").read_bytes()
    computed = cases_in_summary(folder, about), result_view(folder)
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "another cache"))
    keep_views(Summary.model_validate_json(content), content)
    monkeypatch.setattr(study_data, "_SummarisedCases", None)  # plait does not parse summary.json again
    monkeypatch.setattr(study_data, "Summary", None)
    assert (cases_in_summary(folder, about), result_view(folder)) == computed
    (folder / "summary.json").write_bytes(content + b" ")
    with pytest.raises(AttributeError):
        cases_in_summary(folder, about)  # plait parses other content


def test_cases_of_a_study_that_runs_agree_with_the_summary_of_the_finished_one(results: Path) -> None:
    folder = results / "pair"
    build(folder)
    about = read_study_file(folder)
    trials = ReducedTrials(folder)
    for _ in trials.finish([case.name for case in about.cases]):
        pass
    figures = cases_view([case_so_far(trials, case.name) for case in about.cases])
    assert figures == cases_in_summary(folder, about)
    assert figures == cases_in_summary(folder, about)  # from the cache
    summary = json.loads((folder / "summary.json").read_text())
    summary["cases"][0]["failed"] = 5
    (folder / "summary.json").write_text(json.dumps(summary))
    changed = cases_in_summary(folder, about)
    assert changed is not None
    assert changed["failed"] == [5, 0]


def test_reduced_trials_are_kept_and_an_entry_of_other_data_is_not_used(results: Path) -> None:
    folder = results / "pair"
    names = [case.name for case in read_study_file(folder).cases]
    first = ReducedTrials(folder)
    assert sum(1 for _ in first.finish(names)) == 4
    before = first.of_case("transport=tcp")[0].metrics["goodput_bps"]
    plan = fake_plan(FakeFlow(transport="tcp", duration_us=5_000_000), seed=1000)
    write_study(
        folder, (FakeCase("transport=tcp", {"transport": "tcp"}, lambda _: plan), two_paths()[1]), repeat=2
    )
    again = ReducedTrials(folder)
    for _ in again.finish(names):
        pass
    assert again.of_case("transport=mptcp")[0] == first.of_case("transport=mptcp")[0]
    assert again.of_case("transport=tcp")[0].metrics != first.of_case("transport=tcp")[0].metrics
    assert before is not None


def test_no_text_of_a_study_can_end_a_script() -> None:
    content = data_script("x", {"title": HOSTILE, "more": "\u2028<!--"})
    assert b"<" not in content
    assert content.isascii()
    assert value_of(content)["title"] == HOSTILE


def test_a_damaged_study_is_an_error_on_its_page_and_no_reason_to_hide_the_others(results: Path) -> None:
    (results / "bad").mkdir()
    (results / "bad" / "study.json").write_text('{"schema": 1}')
    site = StudySite([results], live=True)
    views = {study["folder"]: study for study in site.studies()["studies"]}
    assert "not the description of a study" in views["bad"]["error"]
    assert views["pair"]["title"].startswith("Two 5 Mbit/s")


def test_no_row_of_a_case_is_missing_if_nothing_is_pending(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page takes such rows for all: it named no median where the last trial was read just then."""
    of_case = ReducedTrials.of_case

    def and_then_the_thread_reads_all(trials: ReducedTrials, case: str) -> dict[int, Any]:
        rows = of_case(trials, case)
        for _ in trials.finish([case]):
            pass
        return rows

    monkeypatch.setattr(ReducedTrials, "_work", lambda _trials: None)
    monkeypatch.setattr(ReducedTrials, "of_case", and_then_the_thread_reads_all)
    site = StudySite([results], live=True)
    (listed,) = site.studies()["studies"]
    first, then = (site.case(listed["id"], 0) for _ in range(2))
    assert (first["numbers"], first["pending"]) == ([], len(then["numbers"]))
    assert (len(then["numbers"]) > 0, then["pending"]) == (True, 0)


def test_a_trial_that_is_read_while_figures_are_made_is_news_for_the_next_request(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = StudySite([results], live=True)
    (listed,) = site.studies()["studies"]
    study = site.study(listed["id"])
    for _ in study.trials.finish([case.name for case in study.study_file().cases]):
        pass
    figures = OpenStudy.figures

    def slowly(self: OpenStudy, case: str) -> study_data.CaseFigures:
        made = figures(self, case)
        self.trials.version += 1  # as the thread does that reads trials
        return made

    monkeypatch.setattr(OpenStudy, "figures", slowly)
    before = study.trials.version
    assert site.live(listed["id"])["version"] == before < study.trials.version


def test_links_lead_to_no_study_and_a_missing_folder_is_refused(results: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "link").symlink_to(results / "pair")
    assert find_studies([tmp_path / "other"]) == []
    assert [study.name for study in find_studies([results / "pair"])] == ["pair"]
    with pytest.raises(RequestError, match="there is no such folder"):
        find_studies([tmp_path / "missing"])


def test_a_port_in_use_is_named(results: Path) -> None:
    with running([results]) as server:
        port = int(re.search(r":(\d+)/", server.address)[1])
        with pytest.raises(MachineError, match=f"listening on port {port}"):
            serve([results], port)


def test_an_export_has_every_page_figure_and_table_and_replaces_only_itself(
    results: Path, tmp_path: Path
) -> None:
    target = tmp_path / "site"
    lines: list[str] = []
    count = export_site([results], target, lines.append)
    files = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    assert len(files) == count
    (study,) = value_of((target / "data" / "studies.js").read_bytes())["studies"]
    key = study["id"]
    assert {f"data/{key}/study.js", f"data/{key}/0.js", f"data/{key}/1/1.js"} <= files
    for figure in ("goodput", "rtt", "cwnd", "queue", "network"):
        assert {f"files/{key}/1/0/{figure}.{suffix}" for suffix in ("svg", "pdf", "png")} <= files
    assert {f"files/{key}/1/0/events.csv", f"files/{key}/trials.parquet"} <= files
    assert {f"files/{key}/figures/goodput.{suffix}" for suffix in ("svg", "pdf", "png", "csv")} <= files
    assert str(tmp_path) not in "".join(path.read_text() for path in (target / "data").rglob("*.js"))
    export_site([results], target, lines.append)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(RequestError, match="it holds other files"):
        export_site([results], tmp_path / "mine", lines.append)


def test_the_page_leads_with_the_metric_that_the_scenario_judges_by(tmp_path: Path) -> None:
    write_study(tmp_path, two_paths(), repeat=2)
    about = read_study_file(tmp_path)
    figures = cases_view([case_so_far(whole(tmp_path, about.cases[0].name), about.cases[0].name)])
    plain = study_view("0" * 12, "x", about, figures)
    assert plain["primary"] == "goodput_bps"
    judged = about.model_copy(update={"scenario": {"judge": ["retransmits", "jain_index", 5, "nonsense"]}})
    view = study_view("0" * 12, "x", judged, figures)
    assert (view["primary"], view["leading"][0]) == ("retransmits", "retransmits")
    assert set(view["metrics"][0]) == set(plain["metrics"][0])
    strange = about.model_copy(update={"scenario": {"judge": 5}})
    assert study_view("0" * 12, "x", strange, figures)["primary"] == "goodput_bps"


def test_a_map_has_one_factor_for_fields_that_change_together_and_knows_networks(tmp_path: Path) -> None:
    """A network of a zip had a select for each of its fields, and most of their values had no case."""
    write_study(tmp_path, two_paths(), repeat=1)
    about = read_study_file(tmp_path)
    zipped = {
        "a.rate": ("1mbit", "2mbit", "9mbit"),
        "a.queue": ("1MB", "1MB", "8MB"),
        "b.delay": ("5ms", "1ms", "7ms"),
    }
    settings = [
        {**{key: values[place] for key, values in zipped.items()}, "transport": transport}
        for place in range(3)
        for transport in ("tcp", "mptcp")
    ]
    entries = [CaseEntry(name=str(number), settings=given) for number, given in enumerate(settings)]
    vary = {"network": {f"n{place}": {"a-b.rate": f"{place + 1}mbit"} for place in range(3)}}
    changed = about.model_copy(update={"cases": entries, "scenario": {"vary": vary}})
    view = study_view(
        "0" * 12, "x", changed, cases_view([CaseFigures(name="", trials=1, failed=0, metrics={})] * 6)
    )
    assert view["telling"] == ["a.rate", "transport"]
    assert view["strata"] == ["network"]


def test_a_trial_that_the_report_leaves_out_is_left_out_of_the_means_here_too(tmp_path: Path) -> None:
    write_study(tmp_path, two_paths(), repeat=2)
    case = read_study_file(tmp_path).cases[0].name
    before = case_so_far(whole(tmp_path, case), case).metrics["goodput_bps"].mean
    place = tmp_path / "trials" / case / "001" / "provenance.json"
    record = json.loads(place.read_text()) | {"excluded": "the timers were late"}
    place.write_text(json.dumps(record))
    rows = whole(tmp_path, case)
    assert rows.of_case(case)[1].error == "left out of means: the timers were late"
    figures = case_so_far(rows, case)
    stats = figures.metrics["goodput_bps"]
    assert stats.mean == rows.of_case(case)[0].metrics["goodput_bps"] != before
    assert stats.ci95 is None, "one trial has no interval"


def whole(folder: Path, case: str) -> ReducedTrials:
    trials = ReducedTrials(folder)
    for _ in trials.finish([case]):
        pass
    return trials


def test_charts_of_a_flow_that_starts_late_begin_when_it_starts(tmp_path: Path) -> None:
    """The mark of a chosen event stood as much later in the charts."""
    case = FakeCase("late", {}, lambda seed: fake_plan(FakeFlow(start_us=2_000_000), seed=seed))
    write_study(tmp_path, (case,), repeat=1)
    view = trial_view(tmp_path, read_study_file(tmp_path), "late", 0)
    assert view["seriesStart"] == 2_000_000
    assert view["series"]["subflows"][0]["goodput"][0][0] == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("sent", "carried"), [((0, 5000), "5.00 kB"), ((None, None), MISSING)])
def test_a_link_whose_samples_have_one_time_has_no_rate(sent: tuple[int | None, ...], carried: str) -> None:
    rows = [{"t_us": 7, "link": "a->b", "sent_bytes": count} for count in sent]
    view = _direction("a->b", 10**7, "a", make_tables({"links": rows})["links"])
    assert (view["bytes"], view["mean"], view["used"]) == (carried, MISSING, None)
    assert view["rate"] == [[], []]


def test_studies_of_one_title_say_what_tells_them_apart(tmp_path: Path) -> None:
    commands = [
        "plait run two-paths",
        "plait run two-paths --seed 7 --set 'network.links.*.rate=9mbit'",
        "plait run other",
    ]
    for number, command in enumerate(commands):
        folder = tmp_path / f"study-{number}"
        write_study(folder, two_paths(), repeat=0, title="Another" if "other" in command else "Two paths")
        about = read_study_file(folder)
        seed = 7 if "--seed" in command else 1
        text = about.model_copy(update={"command": command, "seed": seed}).text()
        (folder / "study.json").write_text(text, encoding="utf-8")
        os.utime(folder / "study.json", (1_700_000_000, 1_700_000_000))
    site = StudySite([tmp_path], live=False)
    assert [study["apart"] for study in site.studies()["studies"]] == [
        "seed 1 · 2023-11-14 22:13 UTC",
        "--set network.links.*.rate=9mbit · seed 7 · 2023-11-14 22:13 UTC",
        "",
    ]
