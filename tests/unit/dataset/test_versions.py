"""The page on versions lists the schema that each format has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plait.analysis.model import Summary
from plait.dataset.provenance import Provenance
from plait.dataset.study_file import StudyFile
from plait.explain.model import StudyExplanation
from plait.plan.model.plan import Plan
from plait.study.bundle.record import BundleRecord

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
    ],
)
def test_the_page_has_the_schema_of_the_code(name: str, model: type) -> None:
    listed = dict(re.findall(r"^\| (\w+) \|.*\| (\d+) +\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert listed[name] == str(model.model_fields["schema_version"].default)  # type: ignore[attr-defined]
