"""The page on versions lists the schema that each format has."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from plait.analysis.model import Summary
from plait.artefact.claims import Artefact
from plait.dataset.provenance import Provenance, read_provenance
from plait.dataset.study_file import StudyFile, read_study_file
from plait.errors import PlaitError
from plait.explain.model import StudyExplanation
from plait.plan.model.plan import Plan
from plait.results.explain import recorded_scenario
from plait.study.bundle.record import BundleRecord
from plait.version import __version__
from result_folders import two_paths, write_study

PAGE = Path(__file__).parents[3] / "docs/reference/versions.md"


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("plan", Plan),
        ("provenance", Provenance),
        ("study", StudyFile),
        ("summary", Summary),
        ("explanation", StudyExplanation),
        ("bundle", BundleRecord),
        ("artefact", Artefact),
    ],
)
def test_the_page_has_the_schema_of_the_code(name: str, model: type) -> None:
    listed = dict(re.findall(r"^\| (\w+) \|.*\| (\d+) +\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert listed[name] == str(model.model_fields["schema_version"].default)


@pytest.mark.parametrize(
    ("file", "fields"),
    [
        ("study.json", {"schema": 2}),
        ("study.json", {"repeat": "many"}),
        ("study.json", {"scenario": {"title": "Later", "warp": 9}}),
        ("trials/transport=mptcp/000/provenance.json", {"schema": 2}),
        ("trials/transport=mptcp/000/provenance.json", {"warp": 9}),
    ],
)
def test_what_a_later_plait_made_is_refused_with_its_version(
    file: str, fields: dict[str, object], tmp_path: Path
) -> None:
    write_study(tmp_path, two_paths(), repeat=1)
    record = json.loads((tmp_path / file).read_text(encoding="utf-8"))
    (tmp_path / file).write_text(json.dumps(record | {"plait_version": "9.1"} | fields), encoding="utf-8")

    def read(folder: Path) -> object:
        return read_provenance(folder) if "trials" in file else recorded_scenario(read_study_file(folder))

    with pytest.raises(PlaitError, match=rf"made by plait 9\.1; this is {__version__}: install that version"):
        read((tmp_path / file).parent)
