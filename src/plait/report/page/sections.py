"""The sections of the page in words: each takes what it shows, and is empty when there is nothing to show."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.analysis.failures import failed_alike
from plait.analysis.labels.cases import labels
from plait.analysis.wording import capital, number_word
from plait.cautions import by_kind
from plait.report.page.template import fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from plait.analysis.rows import CaseRows
    from plait.cautions import Caution, CautionKind
    from plait.dataset.study_file import StudyFile
    from plait.report.figures.study_figures import DrawnFigure
    from plait.report.headline import Phrase
    from plait.results.read import StudyData

_CODE = re.compile("`([^`]+)`")
"""What a description has between backticks: a command, or a field."""


@dataclass(frozen=True)
class Header:
    """The title, the description as pieces of text and code, and facts in a line."""

    heading: str
    description: tuple[tuple[str, bool], ...]
    facts: str


@dataclass(frozen=True)
class Result:
    """The headline, with its numbers to stress, and the sentences below it."""

    phrases: tuple[Phrase, ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class DelaysSection:
    """The figures of delays by name, and what they show."""

    note: str
    charts: tuple[str, ...]


@dataclass(frozen=True)
class Cautions:
    """What to check before trusting the result, ranked."""

    kinds: tuple[CautionKind, ...]


@dataclass(frozen=True)
class Failures:
    """The trials that failed: how many, and which of them with which error."""

    count: str
    failures: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Reproduction:
    """The command that makes the same data again, and everything that decides them."""

    command: str
    facts: tuple[tuple[str, str], ...]
    scenario: str


@dataclass(frozen=True)
class Terms:
    """Words with their meanings."""

    terms: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Footer:
    """The last line."""

    version: str


def header(about: StudyFile) -> Markup:
    """Return the title, the description, and the button that changes the theme."""
    cases, repeat = len(about.cases), about.repeat
    facts = [
        f"{cases} case{'s' * (cases != 1)}",
        f"{repeat} trial{'s' * (repeat != 1)} each",
        f"seed {about.seed}",
    ]
    if about.kernel.version:
        facts.append(f"Linux {about.kernel.version}")
    if about.engine:
        names = about.engine.split(", ")
        facts.append(f"{' and '.join(names)} engine{'s' * (len(names) > 1)}")
    # Every second piece was between backticks.
    pieces = _CODE.split((about.description or "").strip())
    description = tuple((piece, number % 2 == 1) for number, piece in enumerate(pieces) if piece)
    return fill("header", Header(about.heading, description, " \N{MIDDLE DOT} ".join(facts)))


def result(phrases: Sequence[Phrase], sentences: Sequence[str]) -> Markup:
    """Return the headline with its numbers stressed, and the sentences below it."""
    return fill("result", Result(tuple(phrases), tuple(sentences)))


def delays(figures: Sequence[DrawnFigure]) -> Markup | str:
    """Return the section with the distributions of delays, when messages were recorded."""
    if not figures:
        return ""
    return fill(
        "delays", DelaysSection(figures[0].caption.marks, tuple(figure.wanted.name for figure in figures))
    )


def cautions(noted: Sequence[Caution]) -> Markup | str:
    """Return what to check before trusting the result, kind by kind."""
    kinds = by_kind(noted)
    return fill("cautions", Cautions(kinds)) if kinds else ""


def failures(cases: Sequence[CaseRows]) -> Markup | str:
    """Return the trials that failed, with their reasons."""
    words = labels(cases)
    failed = [
        (f"{words[case.name]}, trial {trial.index:03d}", trial.error)
        for case in cases
        for trial in case.failed
    ]
    if not failed:
        return ""
    alike = tuple(("; ".join(trials), error) for trials, error in failed_alike(failed))
    return fill("failures", Failures(capital(number_word(len(failed))), alike))


def reproduce(study: StudyData) -> Markup:
    """Return the one command that makes the same data again, and everything that decides them."""
    about = study.about
    facts = [
        ("Digest of the data", study.digest),
        ("Seed", str(about.seed)),
        ("plait", about.plait_version),
        ("Engine", about.engine),
        ("Kernel", about.kernel.version and f"Linux {about.kernel.version}"),
        ("Kernel identity", about.kernel.identity),
        ("Agent", about.agent_sha256),
        *(
            (f"Kernel of {engine.name}", f"Linux {engine.kernel.version}, {engine.kernel.identity}")
            for engine in about.engines
        ),
    ]
    scenario = json.dumps(about.scenario, indent=2, ensure_ascii=False)
    present = tuple((term, value) for term, value in facts if value)
    return fill("reproduce", Reproduction(about.command, present, scenario))


def terms() -> Markup:
    """Return what the words and figures mean."""
    return fill("terms", Terms(tuple(TERMS.items())))


def footer(about: StudyFile) -> Markup:
    """Return the last line."""
    return fill("footer", Footer(about.plait_version))


TERMS = {
    "Goodput": "Application bytes per second at the receiver. A bulk flow counts over exactly its duration, from "
    "connect(); a transfer until the receiver reads the last byte.",
    "What the links allow": "The rate of all paths together, less the Ethernet, IP, TCP and MPTCP headers of full "
    "segments: 1448 of 1514 bytes for TCP, 1424 of 1514 for MPTCP, at an MTU of 1500.",
    "Published": "What others measured in the same experiment, according to the scenario, and the difference of "
    "the mean here.",
    "95 % interval": "Student's t interval of the mean. One trial has none, nor do trials with equal values.",
    "Against baseline": "Ratio of the means over trials with the same seed.",
    "Aggregation benefit": "1: all capacity beyond the best path is used; 0: as good as the best path alone; below "
    "0: worse than the best path. A single path counts with what its links allow TCP.",
    "Round-trip time": "The kernel's smoothed estimate, sampled; the median is over samples of subflows that carry "
    "data.",
}
