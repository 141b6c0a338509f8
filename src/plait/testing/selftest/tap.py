"""Read the TAP that upstream's suites print, and write results as TAP and as JUnit's XML.

The output comes from a guest, so it is bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal
from xml.etree import ElementTree as ET

from plait.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Verdict = Literal["pass", "fail", "skip"]
MOST_SUBTESTS = 2000
_LONGEST_NAME = 200
_LINE = re.compile(
    r"^(?P<bad>not )?ok \d+ (?:- )?(?P<name>[^#]+?)(?: *# *(?P<note>.*))?$", re.MULTILINE | re.ASCII
)
_CONTROL = re.compile(r"[^\x20-\x7e]")
_SKIPPED = re.compile(r"^(?!not ok|ok)(?P<before>.*)\[SKIP\](?P<after>.*)$", re.MULTILINE | re.ASCII)


@dataclass(frozen=True)
class Subtest:
    """The result of one subtest for one seed."""

    suite: str
    name: str
    seed: int
    verdict: Verdict
    reason: str = ""
    """Why it was skipped, if the suite says that."""


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
        skipped = (match["note"] or "").upper().startswith("SKIP")
        verdict: Verdict = "skip" if skipped else "fail" if match["bad"] else "pass"
        subtests.append(Subtest(suite, name, seed, verdict, _reason(name, reasons) if skipped else ""))
        if len(subtests) == MOST_SUBTESTS:
            break
    return subtests


def _reason(name: str, reasons: Sequence[tuple[str, str]]) -> str:
    """Return what the suite printed with `[SKIP]` beside the name of a subtest."""
    for before, after in reasons:
        if before.endswith(name) or after.startswith(name):
            reason = after.removeprefix(name).lstrip(" ,:")
            return _CONTROL.sub("?", reason)[:_LONGEST_NAME]
    return ""


def as_tap(subtests: Sequence[Subtest]) -> str:
    """Return the results as TAP 13."""
    lines = ["TAP version 13", f"1..{len(subtests)}"]
    for number, subtest in enumerate(subtests, 1):
        state = "not ok" if subtest.verdict == "fail" else "ok"
        note = f" # SKIP {subtest.reason}".rstrip() if subtest.verdict == "skip" else ""
        lines.append(f"{state} {number} - {subtest.suite}: {subtest.name} (seed {subtest.seed}){note}")
    return "\n".join(lines) + "\n"


def as_junit(subtests: Iterable[Subtest]) -> bytes:
    """Return the results as the XML that CI systems read."""
    root = ET.Element("testsuites")
    suites: dict[tuple[str, int], ET.Element] = {}
    for subtest in subtests:
        key = (subtest.suite, subtest.seed)
        if key not in suites:
            suites[key] = ET.SubElement(root, "testsuite", name=f"{subtest.suite} seed {subtest.seed}")
        case = ET.SubElement(suites[key], "testcase", classname=subtest.suite, name=printable(subtest.name))
        if subtest.verdict == "fail":
            ET.SubElement(case, "failure", message=f"failed with seed {subtest.seed}")
        elif subtest.verdict == "skip":
            ET.SubElement(case, "skipped", {"message": subtest.reason} if subtest.reason else {})
    for suite in suites.values():
        suite.set("tests", str(len(suite)))
        suite.set("failures", str(len(suite.findall("testcase/failure"))))
        suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True))
