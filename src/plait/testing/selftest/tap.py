"""Read the TAP that upstream's suites print, and write results as TAP and as JUnit's XML.

The output comes from a guest, so it is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal
from xml.etree import ElementTree as ET

from plait.errors import printable

Verdict = Literal["pass", "fail", "skip", "ignore"]
"""`ignore`: the subtest failed, and the suite does not count that, because it calls the subtest flaky."""
MOST_SUBTESTS = 2000
_LONGEST_NAME = 200
_LINE = re.compile(
    r"^(?P<bad>not )?ok \d+ (?:- )?(?P<name>[^#]+?)(?: *# *(?P<note>.*))?$", re.MULTILINE | re.ASCII
)
_CONTROL = re.compile(r"[^\x20-\x7e]")
_IGNORED = ("IGNORE", "TODO", "XFAIL")
"""Directives of TAP and kselftest for a failure that is expected or not counted."""
IGNORED = "failed, ignored by the suite"
"""The words of JUnit for a failure that the suite does not count."""
_SLACK = re.compile(r"SLACK (?P<us>\d{1,9}) us")
_SKIPPED = re.compile(r"^(?!not ok|ok)(?P<before>.*)\[SKIP\](?P<after>.*)$", re.MULTILINE | re.ASCII)


@dataclass(frozen=True)
class Subtest:
    """The result of one subtest for one seed."""

    suite: str
    name: str
    seed: int
    verdict: Verdict
    reason: str = ""
    """Why it was skipped or ignored, or failed, if the suite or plait says that."""
    slack_us: int | None = None
    """The smallest tolerance with which a script of packetdrill passes."""


def read(suite: str, seed: int, text: str) -> list[Subtest]:
    """Return the subtests in the output of a suite, at most `MOST_SUBTESTS`; a name that occurs again gets a number."""
    subtests: list[Subtest] = []
    times: dict[str, int] = {}
    reasons = [
        (match["before"].strip(), match["after"].strip())
        for match in islice(_SKIPPED.finditer(text), MOST_SUBTESTS)
    ]
    for match in _LINE.finditer(text):
        name = _CONTROL.sub("?", match["name"]).strip()[:_LONGEST_NAME].removeprefix(f"{suite}: ")
        times[name] = times.get(name, 0) + 1
        if times[name] > 1:
            name = f"{name} ({times[name]})"
        note = _CONTROL.sub("?", match["note"] or "")[:_LONGEST_NAME]
        verdict: Verdict = "fail" if match["bad"] else "pass"
        reason = note.removeprefix("FAIL ") if note.startswith("FAIL ") else ""
        slack = _SLACK.fullmatch(note)
        if note.upper().startswith("SKIP"):
            verdict, reason = "skip", _reason(name, reasons)
        elif note.upper().startswith(_IGNORED):
            verdict, reason = "ignore", note.partition(" ")[2].strip()
        subtests.append(Subtest(suite, name, seed, verdict, reason, int(slack["us"]) if slack else None))
        if len(subtests) == MOST_SUBTESTS:
            break
    return subtests


def reason_of_skip(text: str) -> str:
    """Return what a suite printed last with `[SKIP]`: why it cannot run, if it ended as skipped."""
    matches = list(islice(_SKIPPED.finditer(text), MOST_SUBTESTS))
    return (
        _CONTROL.sub("?", (matches[-1]["after"] or matches[-1]["before"]).strip(" ,:"))[:_LONGEST_NAME]
        if matches
        else ""
    )


def _reason(name: str, reasons: Sequence[tuple[str, str]]) -> str:
    """Return what the suite printed with `[SKIP]` beside the name of a subtest."""
    for text_before, text_after in reasons:
        if text_before.endswith(name) or text_after.startswith(name):
            reason = text_after.removeprefix(name).lstrip(" ,:")
            return _CONTROL.sub("?", reason)[:_LONGEST_NAME]
    return ""


def as_tap(subtests: Sequence[Subtest]) -> str:
    """Return the results as TAP 13."""
    lines = ["TAP version 13", f"1..{len(subtests)}"]
    for number, subtest in enumerate(subtests, 1):
        state = "not ok" if subtest.verdict == "fail" else "ok"
        directive = {"skip": " # SKIP ", "ignore": " # IGNORE "}.get(subtest.verdict)
        note = "" if directive is None else f"{directive}{subtest.reason}".rstrip()
        if subtest.slack_us is not None:
            note = f" # SLACK {subtest.slack_us} us"
        lines.append(f"{state} {number} - {subtest.suite}: {subtest.name} (seed {subtest.seed}){note}")
    return "\n".join(lines) + "\n"


def as_junit(subtests: Iterable[Subtest]) -> bytes:
    """Return the results as the XML that CI systems read; it has no word for an ignored failure but `skipped`."""
    root = ET.Element("testsuites")
    suites: dict[tuple[str, int], ET.Element] = {}
    for subtest in subtests:
        key = (subtest.suite, subtest.seed)
        if key not in suites:
            suites[key] = ET.SubElement(root, "testsuite", name=f"{subtest.suite} seed {subtest.seed}")
        case = ET.SubElement(suites[key], "testcase", classname=subtest.suite, name=printable(subtest.name))
        if subtest.verdict == "fail":
            reason = f": {subtest.reason}" if subtest.reason else ""
            ET.SubElement(case, "failure", message=printable(f"failed with seed {subtest.seed}{reason}"))
        elif subtest.verdict == "ignore":
            ET.SubElement(case, "skipped", message=f"{IGNORED}: {subtest.reason}".rstrip(": "))
        elif subtest.verdict == "skip":
            ET.SubElement(case, "skipped", {"message": subtest.reason} if subtest.reason else {})
        if subtest.slack_us is not None:
            properties = ET.SubElement(case, "properties")
            ET.SubElement(properties, "property", name="slack_us", value=str(subtest.slack_us))
    for suite in suites.values():
        suite.set("tests", str(len(suite)))
        suite.set("failures", str(len(suite.findall("testcase/failure"))))
        suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True))
