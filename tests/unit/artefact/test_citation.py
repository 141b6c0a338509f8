"""Authors and licences become citations, and an incomplete request gets neither file."""

from __future__ import annotations

import json
import re

import pytest
from ruamel.yaml import YAML

from plait.artefact.citation import Author, citation_cff, publication, read_author, zenodo_json
from plait.errors import RequestError

JANE = "Doe, Jane; 0000-0002-1825-0097; A University"
REQUIRED_BY_CFF = {"cff-version", "message", "title", "authors"}
ZENODO_FIELDS = {
    "upload_type": str, "title": str, "description": str, "creators": list, "access_right": str, "license": str,
    "keywords": list, "references": list,
}  # fmt: skip
"""What plait writes of the deposit metadata of developers.zenodo.org, with their types."""


def test_an_author_has_an_orcid_and_an_affiliation_in_any_order() -> None:
    author = Author("Doe", "Jane", "0000-0002-1825-0097", "A University")
    assert read_author(JANE) == author
    assert read_author("Doe, Jane; A University; https://orcid.org/0000-0002-1825-0097") == author
    assert read_author("Doe, Jane") == Author("Doe", "Jane")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Jane Doe", "write 'Family, Given'"),
        ("", "write 'Family, Given'"),
        ("Doe, Jane; 0000-0002-1825-0098", "last digit"),
        ("Doe, Jane; A; B", "write 'Family, Given'"),
        ("Doe, Jane\nlicense: none", "one line"),
        ("Doe, " + "J" * 300, "one line"),
    ],
)
def test_what_names_no_author_is_refused(text: str, problem: str) -> None:
    with pytest.raises(RequestError, match=problem):
        read_author(text)


def test_nothing_is_invented_for_a_missing_author_or_licence() -> None:
    assert publication([], None, "T", "D") is None
    with pytest.raises(RequestError, match="say whose it is"):
        publication([], "CC-BY-4.0", "T", "D")
    with pytest.raises(RequestError, match="say under which licence"):
        publication([JANE], None, "T", "D")
    with pytest.raises(RequestError, match="--licence mine is unknown"):
        publication([JANE], "mine", "T", "D")


def test_the_citation_has_the_keys_that_its_format_requires() -> None:
    cited = publication(
        [JANE, "Roe, R."], "CC-BY-4.0", 'A "title": with \N{GREEK SMALL LETTER ALPHA}', "D: #1"
    )
    assert cited is not None
    record = YAML(typ="safe").load(citation_cff(cited, "0.1.0").decode())
    assert record.keys() >= REQUIRED_BY_CFF
    assert (record["cff-version"], record["type"]) == ("1.2.0", "dataset")
    assert record["title"] == 'A "title": with \N{GREEK SMALL LETTER ALPHA}'
    assert record["authors"][1] == {"family-names": "Roe", "given-names": "R."}
    assert re.fullmatch(r"https://orcid\.org/\d{4}-\d{4}-\d{4}-\d{3}[\dX]", record["authors"][0]["orcid"])


def test_the_metadata_for_zenodo_carry_no_markup_of_a_stranger() -> None:
    cited = publication([JANE], "CC-BY-4.0", "A title", "<script>alert(1)</script>")
    assert cited is not None
    record = json.loads(zenodo_json(cited, "0.1.0"))
    assert {key: type(value) for key, value in record.items()} == ZENODO_FIELDS
    assert all(isinstance(text, str) for key in ("keywords", "references") for text in record[key])
    assert (record["upload_type"], record["access_right"]) == ("dataset", "open")
    assert record["license"] == "cc-by-4.0"
    assert record["creators"] == [
        {"name": "Doe, Jane", "orcid": "0000-0002-1825-0097", "affiliation": "A University"}
    ]
    assert "<script>" not in record["description"]
