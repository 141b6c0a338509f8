"""The recipes for a nightly run parse, and the script that they share runs two nights of a small suite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[3]
NIGHTLY = ROOT / "packaging" / "nightly"
SUITE = """\
echo "TAP version 13"
echo "ok 1 - diag: steady"
echo "$WORD 2 - diag: changing"
exit $CODE
"""


def test_every_recipe_runs_the_script_with_a_tree_and_a_folder() -> None:
    github = YAML(typ="safe").load(NIGHTLY / "github.yml")
    gitlab = YAML(typ="safe").load(NIGHTLY / "gitlab.yml")
    kernelci = YAML(typ="safe").load(NIGHTLY / "kernelci.yaml")
    steps = [step.get("run", "") for step in github["jobs"]["mptcp"]["steps"]]
    assert "bash plait/night.sh . state" in steps
    assert "bash plait/night.sh . state" in gitlab["nightly"]["script"]
    assert gitlab["nightly"]["artifacts"]["reports"]["junit"] == "state/old.xml"
    assert {entry["job"] for entry in kernelci["scheduler"]} == kernelci["jobs"].keys()
    for folder in (
        github["jobs"]["mptcp"]["steps"][1]["with"]["path"].split(),
        gitlab["nightly"]["cache"]["paths"],
    ):
        assert folder == ["plait", "state"], "the night before is in the cache"


@pytest.mark.guest
def test_the_second_night_fails_for_what_is_new(tmp_path: Path) -> None:
    folder = tmp_path / "linux/tools/testing/selftests/net/mptcp"
    folder.mkdir(parents=True)
    (folder / "mptcp_lib.sh").write_text("")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "KERNEL": "", "BENCHMARK": "no", "SEEDS": "1"}

    def night(word: str, code: int) -> tuple[int, str]:
        suite = SUITE.replace("$WORD", word).replace("$CODE", str(code))
        (folder / "diag.sh").write_text(suite)
        command = [
            "bash",
            str(NIGHTLY / "night.sh"),
            str(tmp_path / "linux"),
            str(tmp_path / "state"),
            "diag",
        ]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        return done.returncode, done.stdout

    assert night("ok", 0)[0] == 0
    code, shown = night("not ok", 1)
    assert code == 1
    assert "new failure    diag: changing" in shown
    code, shown = night("not ok", 1)
    assert (code, shown.count("as before")) == (0, 1), "a known failure does not fail the night"
    assert (tmp_path / "state" / "table.txt").read_text() == shown
