"""Who publishes a bundle, under which licence: CITATION.cff (Citation File Format 1.2.0) and Zenodo's metadata.

plait invents nothing: without an author and a licence it writes neither file.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plait.errors import RequestError
from plait.scenario.read.document import written

CITATION = "CITATION.cff"
ZENODO = ".zenodo.json"
LICENCES = (
    "CC-BY-4.0", "CC-BY-SA-4.0", "CC0-1.0", "ODC-By-1.0", "ODbL-1.0", "PDDL-1.0", "Apache-2.0", "BSD-2-Clause",
    "BSD-3-Clause", "MIT", "GPL-2.0-only", "GPL-2.0-or-later", "GPL-3.0-only", "GPL-3.0-or-later",
)  # fmt: skip
"""SPDX identifiers that both formats accept."""
KEYWORDS = ["Multipath TCP", "MPTCP", "reproducibility", "network emulation"]
_ORCID = re.compile(r"(?:https://orcid\.org/)?(\d{4}-\d{4}-\d{4}-\d{3}[\dX])")
_FORM = "write 'Family, Given', 'Family, Given; ORCID' or 'Family, Given; ORCID; Affiliation'"
_LONGEST = 200


@dataclass(frozen=True)
class Author:
    """An author of a study."""

    family: str
    given: str
    orcid: str | None = None
    """16 digits in groups of four; the last one may be X."""
    affiliation: str | None = None


@dataclass(frozen=True)
class Publication:
    """What people cite: authors, licence, title, and a description."""

    authors: Sequence[Author]
    licence: str
    title: str
    description: str


def read_author(text: str) -> Author:
    """Return the author that a text such as `Doe, Jane; 0000-0002-1825-0097; A University` names (RequestError)."""
    if not text.isprintable() or len(text) > _LONGEST:
        raise RequestError(
            f"--author {text[:80]}: use one line of at most {_LONGEST} visible characters; {_FORM}"
        )
    name, *further = (part.strip() for part in text.split(";"))
    family, _, given = (part.strip() for part in name.partition(","))
    orcid = next((match[1] for part in further if (match := _ORCID.fullmatch(part))), None)
    others = [part for part in further if part and not _ORCID.fullmatch(part)]
    if not family or not given or len(others) > 1:
        raise RequestError(f"--author {text}: {_FORM}")
    if orcid is not None and not _is_whole(orcid):
        raise RequestError(
            f"--author {text}: {orcid} is no ORCID, because its last digit does not fit; correct it"
        )
    return Author(family, given, orcid, others[0] if others else None)


def _is_whole(orcid: str) -> bool:
    """Return whether the last digit of an ORCID is right (ISO 7064, MOD 11-2)."""
    digits = orcid.replace("-", "")
    total = 0
    for digit in digits[:-1]:
        total = (total + int(digit)) * 2
    return "0123456789X"[(12 - total % 11) % 11] == digits[-1]


def publication(
    authors: Sequence[str], licence: str | None, title: str, description: str
) -> Publication | None:
    """Return what to cite; None if there is no author. Raises RequestError for an incomplete request."""
    if not authors:
        if licence is not None:
            raise RequestError(f"--licence {licence}: say whose it is (--author 'Family, Given; ORCID')")
        return None
    if licence not in LICENCES:
        problem = (
            "say under which licence you publish" if licence is None else f"--licence {licence} is unknown"
        )
        raise RequestError(
            f"--author {authors[0]}: {problem}; write --licence with one of {', '.join(LICENCES)}"
        )
    return Publication([read_author(text) for text in authors], licence, title, description)


def citation_cff(cited: Publication, plait_version: str) -> bytes:
    """Return the content of CITATION.cff."""
    record: dict[str, Any] = {
        "cff-version": "1.2.0",
        "message": "If you use these data, please cite them as below.",
        "type": "dataset",
        "title": cited.title,
        "abstract": cited.description,
        "authors": [
            {
                "family-names": author.family,
                "given-names": author.given,
                **({"orcid": f"https://orcid.org/{author.orcid}"} if author.orcid else {}),
                **({"affiliation": author.affiliation} if author.affiliation else {}),
            }
            for author in cited.authors
        ],
        "license": cited.licence,
        "keywords": KEYWORDS,
        "references": [
            {
                "type": "software",
                "title": "plait: a Multipath TCP laboratory on a real Linux kernel in virtual time",
                "version": plait_version,
                "authors": [{"name": "The plait authors"}],
            }
        ],
    }
    return written(record).encode()


def zenodo_json(cited: Publication, plait_version: str) -> bytes:
    """Return the content of .zenodo.json, the metadata of a deposit.

    Its keys are those of Zenodo's deposit metadata (developers.zenodo.org, "Representation"), which Zenodo still reads
    since it moved to InvenioRDM in 2023: zenodo-rdm converts them (legacy/deserializers/metadata.py), and compares
    licences in lower case with its list of SPDX identifiers. It reads the description as HTML, and sets the date and
    the DOI itself.
    """
    record = {
        "upload_type": "dataset",
        "title": cited.title,
        "description": f"<p>{html.escape(cited.description)}</p>",
        "creators": [
            {
                "name": f"{author.family}, {author.given}",
                **({"orcid": author.orcid} if author.orcid else {}),
                **({"affiliation": author.affiliation} if author.affiliation else {}),
            }
            for author in cited.authors
        ],
        "access_right": "open",
        "license": cited.licence.lower(),
        "keywords": KEYWORDS,
        "references": [f"plait {plait_version}, a Multipath TCP laboratory"],
    }
    return json.dumps(record, indent=1, ensure_ascii=False).encode() + b"\n"
