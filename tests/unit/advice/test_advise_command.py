"""`plait advise` refuses what it cannot do before it searches, and says how to go on after it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from plait.advice.candidates import candidates
from plait.advice.result import Advice
from plait.advice.search import claim
from plait.advice.situation import Situation
from plait.cli.results import advise
from plait.cli.results.advise import command
from plait.errors import Ended, RequestError
from plait.scenario import load

LINES = """\
title: Two lines
network:
  hosts: [home, vps]
  links:
    home-vps: {label: cable, rate: 10mbit, delay: 7ms, queue: 250KB}
    home-vps#2: {label: "lte (wwan0)", rate: 20mbit, delay: 25ms}
traffic: [{bulk: {from: vps, to: home, reverse: true, duration: 10s}}]
"""


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file of two lines, for which a search fails the test."""

    def search(*_: object) -> Advice:
        raise AssertionError("plait searched before it refused")

    monkeypatch.setattr(advise, "_advice", search)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.yaml").write_text(LINES, encoding="utf-8")
    return "lines.yaml"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"minutes": float("nan")}, "--minutes nan: write a number from 0.1 to 1440"),
        ({"apply": "router"}, "--apply router: the hosts are home and vps"),
        ({"apply": "home=-oProxyCommand=id"}, "is not a destination of ssh"),
        ({"apply": "home", "change": "bbbr"}, "there is no change 'bbbr'; there is: bbr"),
        ({"apply": "home", "change": "bbr+nothing"}, "there is no change 'nothing'"),
        ({"apply": "vps", "change": "lte-backup"}, "lte-backup changes nothing on this host"),
        ({"apply": "home", "change": "shape-cable"}, "name the interfaces with --interfaces"),
        ({"change": "bbr"}, "--change needs a host to change; name it with --apply NAME"),
        ({"interfaces": "eth0"}, "--interfaces names 1 of 2 lines"),
    ],
)
def test_options_are_checked_before_the_search(lines: str, options: dict[str, object], problem: str) -> None:
    with pytest.raises(RequestError, match=problem):
        command(lines, **options)


def test_a_folder_with_the_advice_on_other_lines_or_with_a_study_is_refused(
    lines: str, tmp_path: Path
) -> None:
    """The rounds of two scenarios mixed."""
    other = load(lines, ["network.links.home-vps.rate=12mbit"])
    claim(tmp_path / "out", Situation.of(other))
    with pytest.raises(RequestError, match="has the advice on other lines or settings"):
        command(lines, out=tmp_path / "out")
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "study.json").write_text('{"name": "advice", "schema": 1}', encoding="utf-8")
    with pytest.raises(RequestError, match="give another --out"):
        command(lines, out=tmp_path / "study")
    (tmp_path / "file").touch()
    with pytest.raises(RequestError, match="it is a file; give another --out"):
        command(lines, out=tmp_path / "file")


def test_results_are_no_lines_and_their_sentence_says_what_to_give(lines: str, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    with pytest.raises(RequestError, match="takes the scenario of the lines, such as"):
        command(str(folder))
    (folder / "advice.json").write_text("{}", encoding="utf-8")
    with pytest.raises(RequestError, match="has an advice, and no scenario"):
        command(str(folder))
    with pytest.raises(RequestError, match="give the scenario of the lines that it was on"):
        command(str(folder / "advice.json"))


def test_the_hint_at_the_end_repeats_the_options_of_the_search(
    lines: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without them, the second command searched again, for other results."""
    known = tuple(candidates(Situation.of(load(lines, ()))))
    advised = Advice("Two lines", "home", "vps", 1, (), known)
    monkeypatch.setattr(advise, "_advice", lambda *_: advised)
    monkeypatch.setattr(Advice, "best", "bbr")
    folder = Path("out")
    folder.mkdir()
    assert command(lines, minutes=30, seed=7, jobs=2, out=folder) == 0
    hint = capsys.readouterr().err
    assert (
        "plait advise lines.yaml --for download --minutes 30 --seed 7 --jobs 2 --out out --apply home --print"
        in hint
    )


@pytest.mark.parametrize(
    ("end", "code"), [(KeyboardInterrupt(), 130), (Ended(signal.SIGTERM), 143)], ids=["ctrl-c", "sigterm"]
)
def test_an_interrupted_search_says_that_its_trials_are_kept(
    end: BaseException,
    code: int,
    lines: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*_: object) -> Advice:
        raise end

    monkeypatch.setattr(advise, "_advice", interrupted)
    assert command(lines) == code
    assert "are kept, and the same command continues from there" in capsys.readouterr().err
