"""The sections of the page in words: each takes what it shows, and is empty when there is nothing to show."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from plait.analysis.failures import failed_alike
from plait.analysis.labels.cases import labels
from plait.analysis.rows import CaseRows
from plait.analysis.wording import capital, number_word, percent, rate
from plait.cautions import Caution, by_kind
from plait.dataset.study_file import StudyFile
from plait.explain.causes import CAUSES, HARMLESS
from plait.explain.model import FlowExplanation, Share
from plait.report.figures.study_figures import DrawnFigure
from plait.report.page.template import fill
from plait.results.read import StudyData

_CODE = re.compile("`([^`]+)`")
"""Text between backticks in a description: a command, or a field."""
MOST_FLOWS = 4
"""The page explains at most this many flows, those that lost most; `plait explain --flow` explains any."""
LEAST_SHARE = 0.01
MOST_SHARES = 6


def header(study_file: StudyFile) -> Markup:
    """Return the title, the description, and the button that changes the theme."""
    count, repeat = len(study_file.cases), study_file.repeat
    facts = [
        f"{count} case{'s' * (count != 1)}",
        f"{repeat} trial{'s' * (repeat != 1)} each",
        f"seed {study_file.seed}",
    ]
    if study_file.kernel.title:
        facts.append(study_file.kernel.title)
    if study_file.engine:
        names = study_file.engine.split(", ")
        facts.append(f"{' and '.join(names)} engine{'s' * (len(names) > 1)}")
    # Every second piece was between backticks.
    pieces = _CODE.split((study_file.description or "").strip())
    description = [(piece, number % 2 == 1) for number, piece in enumerate(pieces) if piece]
    return fill(
        "header", heading=study_file.heading, description=description, facts=" \N{MIDDLE DOT} ".join(facts)
    )


def by_case(figures: Mapping[str, DrawnFigure]) -> Markup | str:
    """Return the section with the places of the figures of cases, and their captions; nothing without figures."""
    if not figures:
        return ""
    drawn = list(figures.values())
    alone = len(drawn) == 1 and drawn[0].request.metric == "goodput_bps"
    title = "Goodput by case" if alone and not drawn[0].request.caption else "By case"
    return fill("by_case", title=title, figures=figures, alone=alone)


def explanation(flows: Sequence[FlowExplanation]) -> Markup | str:
    """Return why a case was not faster: for each flow a paragraph and where its time went; or nothing."""
    flows = [flow for flow in flows if not flow.background] or flows
    if not flows:
        return ""
    costliest = sorted(flows, key=lambda flow: -(flow.attainable_bps or 0) + (flow.goodput_bps or 0))
    shown = [flow for flow in flows if flow in costliest[:MOST_FLOWS]]
    return fill("explanation", flows=[_explained(flow) for flow in shown], hidden=len(flows) - len(shown))


def _explained(flow: FlowExplanation) -> dict[str, object]:
    shares = [share for share in flow.shares if share.time >= LEAST_SHARE][:MOST_SHARES]
    evidence = [line for share in flow.shares if share.cause in flow.named for line in share.evidence]
    return {
        "text": " ".join(flow.sentences),
        "shares": [share_view(share, flow) for share in shares],
        "evidence": list(dict.fromkeys(evidence)),
    }


def share_view(share: Share, flow: FlowExplanation) -> dict[str, str]:
    """Return a part of a flow's time in words, and its emphasis: as good, as a named cause, or as a small one."""
    harmless = share.cause in HARMLESS
    part = percent(share.time, 2)
    return {
        "cause": share.cause,
        "weight": "good" if harmless else "named" if share.cause in flow.named else "small",
        "part": f"{share.time:.4f}",
        "amount": f"{part}, {rate(share.cost_bps)}" if share.cost_bps and not harmless else part,
        "title": f"{CAUSES[share.cause].title}: {part}{' of the time' if flow.basis == 'time' else ''}",
    }


def cautions(noted: Sequence[Caution]) -> Markup | str:
    """Return what to check before trusting the result, kind by kind."""
    kinds = by_kind(noted)
    return fill("cautions", kinds=kinds) if kinds else ""


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
    alike = [("; ".join(trials), error) for trials, error in failed_alike(failed)]
    return fill("failures", count=capital(number_word(len(failed))), failures=alike)


def reproduce(study: StudyData) -> Markup:
    """Return the one command that makes the same data again, and everything that decides them."""
    study_file = study.about
    facts = [
        ("Digest of the data", study.digest),
        ("Seed", str(study_file.seed)),
        ("plait", study_file.plait_version),
        ("Engine", study_file.engine),
        ("Kernel", study_file.kernel.title),
        ("Kernel identity", study_file.kernel.identity),
        ("Agent", study_file.agent_sha256),
        *(
            (f"Kernel of {engine.name}", f"Linux {engine.kernel.version}, {engine.kernel.identity}")
            for engine in study_file.engines
        ),
    ]
    return fill(
        "reproduce",
        command=study_file.command,
        repeats=all(study_file.repeats_seeds(case.settings) for case in study_file.cases),
        kernel_known=not (study_file.kernel.version or "")[:1].isalpha(),
        facts=[fact for fact in facts if fact[1]],
        scenario=json.dumps(study_file.scenario, indent=2, ensure_ascii=False),
    )


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
"""What the words and figures mean."""
