"""`plait plan`, `plait list` and `plait lint` print the right text and return the right exit code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from plait.cli import main
from plait.errors import MachineError
from plait.kernel.model import Kernel
from plait.plan.model.plan import Plan
from scenario_samples import TWO

Call = "Callable[..., tuple[int, str, str]]"


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Return a function that runs the command line: (exit code, standard output, standard error)."""

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["plait", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        code = ended.value.code
        return (code if isinstance(code, int) else 0 if code is None else 1), out, err

    return run


def test_plan_prints_the_first_case_as_json_and_names_the_others(call) -> None:
    code, out, err = call("plan", "two-paths")
    assert code == 0
    assert Plan.model_validate_json(out).flows[0].transport == "tcp"
    assert "transport=mptcp" in err


def test_plan_takes_a_case_a_seed_a_repeat_and_options(call) -> None:
    code, out, err = call(
        "plan", "two-paths", "--case", "transport=mptcp", "--set", "network.links.*.rate=1mbit"
    )
    assert (code, err) == (0, "")
    assert json.loads(out)["flows"][0]["ideal_rate_bps"] == 2_000_000
    seeds = {
        json.loads(call("plan", "two-paths", *words)[1])["seed"]
        for words in ((), ("--seed", "2"), ("--repeat-index", "1"), ("--seed", "2", "--repeat-index", "1"))
    }
    assert len(seeds) == 4


def test_plan_prints_commands(call) -> None:
    code, out, _ = call("plan", "two-paths", "--format", "shell")
    assert code == 0
    assert out.startswith("#!/bin/sh\n")


def test_list_names_each_shipped_scenario_on_a_line(call) -> None:
    code, out, _ = call("list")
    assert code == 0
    assert re.search(r"^two-paths +Two 5 Mbit/s paths between two hosts$", out, re.MULTILINE)


def test_lint_prints_cautions_and_ends_well(call, tmp_path: Path, monkeypatch) -> None:
    """Without a kernel, which would have to boot here."""
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path))
    code, out, err = call("lint", "two-paths")
    assert (code, out) == (0, "")
    assert err.startswith("no cautions\nplait did not check the names")
    assert "the kernel of this version is not built yet" in err
    code, out, _ = call("lint", "two-paths", "--set", "traffic.0.bulk.duration=100ms")
    assert code == 0
    assert "bulk1: it lasts 0.1 s" in out


def test_lint_says_why_it_could_not_ask_a_built_kernel(call, monkeypatch) -> None:
    """For instance with a cache of another user, where a guest has no place."""

    def refuse(_: object) -> None:
        raise MachineError("writing the guest's root below /c: Permission denied")

    monkeypatch.setattr(
        "plait.kernel.built_by_default", lambda: Kernel("ab", "6.12", Path("linux"), "cd", 1000)
    )
    monkeypatch.setattr("plait.engine.virtual.trial.VirtualEngine.inventory", refuse)
    code, out, err = call("lint", "two-paths")
    assert (code, out) == (0, "")
    assert "below /c: Permission denied" in err
    assert "not built" not in err


@pytest.mark.parametrize("verb", ["plan", "lint"])
def test_mistakes_end_with_code_2_and_a_line_each(call, verb: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(TWO.replace("5ms", "5"), encoding="utf-8")
    code, out, err = call(verb, str(path))
    assert (code, out) == (2, "")
    assert err.count(f"{path}:") == 4
    for words in (["nowhere"], ["two-paths", "--set", "repeat=no"]):
        assert call(verb, *words)[0] == 2


@pytest.mark.parametrize(
    ("option", "value", "choices"),
    [("--case", "nothing", "use one of: transport=mptcp"), ("--format", "xml", "write json or shell")],
)
def test_an_unknown_case_or_format_is_refused_with_the_choices(
    call, option: str, value: str, choices: str
) -> None:
    code, out, err = call("plan", "two-paths", option, value)
    assert (code, out) == (2, "")
    assert choices in err
