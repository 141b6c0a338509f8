"""`plait help` and `plait new`, cases by a part or a number, and what the shell's completion offers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
import typer
from typer.testing import CliRunner

from plait.cli import app, main
from plait.cli.shared.ending import words_of_usage
from plait.cli.shared.observing import tracing
from plait.errors import RequestError, ScenarioError
from plait.metrics import COMPARED
from plait.plan.case_plan import resolve_case
from plait.plan.lint.lint import lint_cases
from plait.scenario import load, parse
from plait.scenario.templates import template_text, templates
from plait.scenario.vary.cases import expand
from plait.scenario.vary.choose import choose_case
from result_folders import two_paths, write_study

if TYPE_CHECKING:
    from plait.kernel import Kernel

NAMES = [
    "scheduler=default,rate=1mbit",
    "scheduler=default,rate=2mbit",
    "scheduler=minrtt,rate=1mbit",
    "rate=2",
]
LOSSY = [f"transport={transport},loss={loss}pct" for transport, loss in product(("tcp", "mptcp"), (0, 2))]


@pytest.mark.parametrize(
    ("requested", "number"),
    [
        (NAMES[2], 2),
        ("scheduler=minrtt", 2),
        ("rate=2mbit, scheduler=default", 1),
        ("minrtt", 2),
        ("default, 2mbit", 1),
        ("1", 0),
        ("4", 3),
        ("rate=2", 3),  # the whole name of one, and a part of another
    ],
)
def test_a_case_has_a_name_parts_and_a_number(requested: str, number: int) -> None:
    assert choose_case(requested, NAMES) == NAMES[number]


@pytest.mark.parametrize("requested", ["MPTCP, loss 2%", "loss 2%, MPTCP", "mptcp,2%", "Both lines", "4"])
def test_a_case_has_the_name_that_a_screen_shows(requested: str) -> None:
    shown = {
        name: f"{t}, loss {n}%" for name, (t, n) in zip(LOSSY, product(("TCP", "MPTCP"), (0, 2)), strict=True)
    }
    if requested == "Both lines":
        shown[LOSSY[3]] = requested
    assert choose_case(requested, LOSSY, shown) == LOSSY[3]
    with pytest.raises(RequestError, match="2 cases have this part"):
        choose_case("loss 0%", LOSSY, shown)


@pytest.mark.parametrize(
    ("requested", "reason"),
    [
        ("scheduler=default", "2 cases have this part"),
        ("0", "numbered from 1"),
        ("5", "there are 4 cases"),
        ("scheduler=minrt", "there is no such case"),
    ],
)
def test_plait_says_why_it_cannot_choose(requested: str, reason: str) -> None:
    with pytest.raises(RequestError, match=reason):
        choose_case(requested, NAMES)


def test_an_option_without_use_is_refused() -> None:
    result = CliRunner().invoke(app, ["hunt", "case.yaml", "--not-in", "x", "--seed", "7"])
    assert "without --seed, --not-in; leave that out" in str(result.exception)
    without_events = tracing(None, Path("x.parquet"), cast("Kernel", None), lambda _: None)
    with pytest.raises(RequestError, match=r"--trace-to x\.parquet: plait traces only the events of --trace"):
        without_events.__enter__()


@pytest.mark.parametrize("verb", ["measure", "hunt", "bisect", "kernel add", "store prune", "observe"])
def test_help_breaks_its_lines_where_the_terminal_ends(verb: str) -> None:
    """Each line of a paragraph but the last one has no room for the next word."""
    shown = CliRunner().invoke(app, [*verb.split(), "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
    text = shown.output.partition("\N{BOX DRAWINGS LIGHT ARC DOWN AND RIGHT}")[0].partition("[OPTIONS]")[2]
    lines = [line.strip() for line in text.splitlines()[1:]]
    pairs = [(line, after) for line, after in pairwise(lines) if line and after]
    assert all(len(line) + 1 + len(after.split()[0]) > 76 for line, after in pairs), pairs


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "two-paths", "--seed", "abc"), "--seed abc: write a whole number"),
        (("run", "two-paths", "--repeat", "2.5"), "--repeat 2.5: write a whole number"),
        (("run", "two-paths", "--jobs", "0"), "--jobs 0: write a number of at least 1"),
        (("hunt", "--minutes", "x"), "--minutes x: write a number"),
        (("kernel", "build", "--patch", "nope"), "Invalid value for '--patch': file 'nope' does not exist."),
    ],
)
def test_a_wrong_number_of_an_option_gets_the_words_of_plait(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(typer.TyperException) as wrong:
        typer.main.get_command(app)(list(words), standalone_mode=False)
    assert wrong.value.exit_code == 2
    assert words_of_usage(wrong.value) == message


def test_explain_and_plan_take_a_part_and_a_number(tmp_path: Path) -> None:
    write_study(tmp_path / "study", two_paths(), repeat=1)
    runner = CliRunner()
    by_part = runner.invoke(app, ["export", str(tmp_path / "study"), "--case", "transport=mptcp"])
    by_number = runner.invoke(app, ["export", str(tmp_path / "study"), "--case", "2"])
    assert by_part.exit_code == 0
    assert by_part.output == by_number.output
    plans = [runner.invoke(app, ["plan", "two-paths", "--case", name]) for name in ("2", "transport=mptcp")]
    assert plans[0].exit_code == 0
    assert plans[0].output == plans[1].output


@pytest.mark.parametrize("name", [name for name, _ in templates()])
def test_a_template_loads_without_a_caution(name: str, tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    ended = CliRunner().invoke(app, ["new", name, "--out", str(path)])
    assert ended.exit_code == 0, ended.output
    scenario = load(str(path))
    assert lint_cases([resolve_case(case) for case in expand(scenario)], scenario.seed) == []
    assert sum(line.startswith("#") for line in path.read_text(encoding="utf-8").splitlines()) >= 3


def test_new_lists_templates_and_never_overwrites(tmp_path: Path) -> None:
    listed = CliRunner().invoke(app, ["new"]).output
    assert all(f"{name} " in listed and title in listed for name, title in templates())
    path = tmp_path / "mine.yaml"
    path.write_text("mine", encoding="utf-8")
    ended = CliRunner().invoke(app, ["new", "two-paths", "--out", str(path)])
    assert "the file exists" in str(ended.exception)
    assert path.read_text(encoding="utf-8") == "mine"
    assert template_text("two-paths") != "mine"


def test_new_copies_a_shipped_scenario_with_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("two-wans", "office-bond", "mobile-trace"):
        assert CliRunner().invoke(app, ["new", name]).exit_code == 0
        assert load(f"{name}.yaml").model_dump() == load(name).model_dump()
    ended = CliRunner().invoke(app, ["new", "two-wanz"])
    assert "did you mean 'two-wans'?" in str(ended.exception)


def test_an_empty_name_of_a_scenario_is_called_so() -> None:
    with pytest.raises(ScenarioError, match="the name of the scenario is empty; name a scenario file"):
        load("")


@pytest.mark.parametrize(
    ("entry", "remedy"),
    [
        (
            "request: {from: a, to: b, gap: 1s, every: 1s, duration: 5s, response: 1KB}",
            "gap follows a response, every does not wait for it",
        ),
        ("bulk: {from: a, to: b, bytes: 5MB}", "write transfer for a number of bytes"),
        ("udp: {from: a, to: b, rate: 1mbit, duration: 1s}", "write for example packet: 1KB"),
    ],
)
def test_a_mistake_in_traffic_names_the_field_that_was_meant(entry: str, remedy: str) -> None:
    links = "network: {hosts: [a, b], links: {a-b: {rate: 10mbit}}}"
    with pytest.raises(ScenarioError) as caught:
        parse(f"title: x\n{links}\ntraffic: [{{{entry}}}]\n", "t.yaml")
    assert remedy in str(caught.value)


def test_a_link_that_is_written_from_the_other_end_is_named() -> None:
    text = "title: x\nnetwork: {hosts: [a, b], links: {a-b: {rate: 10mbit}, a-b#2: {rate: 10mbit}}}\n"
    text += "events: [{at: 1s, down: b-a#2}]\ntraffic: [{bulk: {from: a, to: b, duration: 5s}}]\n"
    with pytest.raises(ScenarioError, match="did you mean 'a-b#2'"):
        parse(text, "t.yaml")


def test_a_field_of_links_at_the_top_is_named_where_it_is() -> None:
    with pytest.raises(ScenarioError, match=r"write network\.links\.NAME\.rate"):
        load("two-paths", ("rate=5mbit",))


def test_help_of_a_verb_is_that_of_its_option() -> None:
    runner = CliRunner()
    shown = runner.invoke(app, ["help", "kernel", "list"], prog_name="plait")
    assert shown.exit_code == 0
    assert shown.output == runner.invoke(app, ["kernel", "list", "--help"], prog_name="plait").output


@pytest.mark.parametrize(
    ("words", "offered", "absent"),
    [
        ("plait run two", "two-paths", "fat-tree"),
        ("plait plan two-paths --case transport=m", "transport=mptcp", "transport=tcp"),
        ("plait run two-paths --set network.li", "network.links.h1-s1.rate=", "traffic"),
        ("plait new wi", "wifi-lte", "two-paths"),
    ],
)
def test_the_shell_completes_scenarios_cases_fields_and_templates(
    words: str, offered: str, absent: str
) -> None:
    environment = {
        "_PLAIT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1),
    }  # fmt: skip
    output = CliRunner().invoke(app, [], env=environment, prog_name="plait").output
    assert offered in output.split()
    assert absent not in output


def test_the_shell_completes_cases_of_results_and_survives_a_wrong_folder(tmp_path: Path) -> None:
    write_study(tmp_path / "study", two_paths(), repeat=1)
    for folder, offered in ((tmp_path / "study", ["transport=mptcp"]), (tmp_path / "nothing", [])):
        words = f"plait explain {folder} --case transport=m"
        environment = {"_PLAIT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "4"}
        assert CliRunner().invoke(app, [], env=environment, prog_name="plait").output.split() == offered


def test_a_wrong_result_folder_names_the_one_in_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_study(tmp_path / "results" / "home", two_paths())
    for wrong in ("home", "home.yaml"):
        result = CliRunner().invoke(app, ["report", wrong])
        assert "did you mean results/home?" in str(result.exception)


def test_the_command_line_starts_without_the_libraries_of_studies() -> None:
    """They take longer to load than `plait list` takes; each verb loads what it needs when it runs."""
    heavy = "{'pydantic', 'polars', 'numpy', 'scipy', 'yaml', 'rich.live', 'plait.scenario'}"
    code = f"import sys, plait.cli; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout == "[]\n"


def test_the_help_of_compare_names_the_metrics_that_it_compares() -> None:
    shown = CliRunner().invoke(app, ["compare", "--help"]).output
    assert ",".join(COMPARED) in re.sub(r"[\s│]", "", shown)


@pytest.mark.parametrize(("word", "verb"), [("check", "lint"), ("validate", "lint"), ("clean", "store")])
def test_a_verb_of_another_tool_leads_to_the_own_one(word: str, verb: str) -> None:
    """`check` is otherwise nearest to `crosscheck`, which runs every case on several engines."""
    answer = CliRunner().invoke(app, [word, "some.yaml"])
    assert isinstance(answer.exception, RequestError)
    assert str(answer.exception) == f"plait {word}: there is no such verb; see `plait {verb} --help`"


def test_rich_output_to_a_closed_pipe_ends_as_all_output_does() -> None:
    """Rich ends the process with 1, which for plait means that a trial failed."""
    program = (
        "from rich.console import Console\nfrom plait.cli.shared import ending\n"
        "try:\n    Console().print('a table')\nexcept BaseException as error:\n"
        "    raise SystemExit(ending.code_of(error))\n"
    )
    read, write = os.pipe()
    os.close(read)
    try:
        ended = subprocess.run([sys.executable, "-c", program], stdout=write, check=False)
    finally:
        os.close(write)
    assert ended.returncode == 128 + signal.SIGPIPE


@pytest.mark.parametrize("closed", ["<&- >&-", "<&- >&- 2>&-"])
def test_streams_that_the_caller_closed_are_read_and_written_as_empty(closed: str) -> None:
    command = f'exec "{sys.executable}" -c "from plait.cli import main; main()" list {closed}'
    ended = subprocess.run(["/bin/sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("module", "code", "printed"),
    [("typer", -signal.SIGINT, ""), ("plait.cli.list", 130, "plait: interrupted\n")],
)
def test_ctrl_c_while_plait_imports_itself_prints_no_traceback(module: str, code: int, printed: str) -> None:
    program = (
        "import os, signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from plait.cli import main\n"
        "main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, "list"], capture_output=True, text=True, timeout=100, check=False
    )
    assert (ended.returncode, ended.stderr) == (code, printed)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_in_a_callback_whose_errors_python_ignores_ends_the_command(name: str) -> None:
    """The import system has such callbacks, so `plait view` survived a Ctrl-C at its start."""
    program = (
        "import signal, weakref\n"
        "from plait.cli.shared.ending import on_signals\n"
        "on_signals()\n"
        "thing = type('Thing', (), {})()\n"
        f"reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.{name}))\n"
        "try:\n"
        "    del thing\n"
        "    signal.pause()\n"
        "except BaseException as end:\n"
        "    print(type(end).__name__)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False
    )
    expected = "KeyboardInterrupt\n" if name == "SIGINT" else "Ended\n"
    assert (ended.stdout, ended.stderr) == (expected, "")


def test_a_verb_after_ctrl_c_says_that_it_was_interrupted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(typer, "echo", interrupt)
    monkeypatch.setattr(sys, "argv", ["plait", "list"])
    monkeypatch.setattr("plait.cli.shared.ending.notify", lambda text: print(text, file=sys.stderr))
    with pytest.raises(SystemExit) as end:
        main()
    assert (end.value.code, capsys.readouterr().err) == (130, "interrupted\n")


def test_a_current_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    program = (
        f"import os; os.mkdir({str(tmp_path / 'gone')!r}); os.chdir({str(tmp_path / 'gone')!r})\n"
        "os.rmdir(os.getcwd())\n"
        "from plait.cli.shared.ending import code_of\n"
        "try:\n"
        "    os.getcwd()\n"
        "except OSError as error:\n"
        "    raise SystemExit(code_of(error))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False
    )
    remedy = "plait: the current folder no longer exists; change to another one (`cd`)\n"
    assert (ended.returncode, ended.stderr) == (3, remedy)
