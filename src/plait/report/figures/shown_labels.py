"""Labels of cases in a figure of some of a study's cases: the settings that differ, and the common ones once."""

from __future__ import annotations

from collections.abc import Sequence

from plait.analysis.labels.cases import case_label, short_label
from plait.report.figures.axes import factors
from plait.report.figures.kind import Content
from plait.report.figures.roles import CaseLabels
from plait.report.representatives import Representative, spread


def few_trials(shown: Sequence[Representative], limit: int) -> list[Representative]:
    """Return at most `limit` of these trials: the first one, those with the extremes, and others between these."""
    return [shown[position] for position in spread([trial.value for trial in shown], limit)]


def note_of(shown: list[Representative], content: Content) -> str:
    """Return what to say above a figure of these trials: which part of all cases it shows, and what these share."""
    _, note = shown_labels(shown, content)
    if len(shown) == len(content.rows):
        return note
    part = f"{len(shown)} of {len(content.rows)} cases"
    return f"{part}, {note[0].lower()}{note[1:]}" if note else part


def shown_labels(shown: list[Representative], content: Content) -> tuple[CaseLabels, str]:
    """Return what to call the cases of these trials, with the only factor that they name, and what all have.

    A factor with one value in all of them is in the note. Where one factor is left, labels are its values alone.
    """
    settings = {case.name: case.settings for case in content.cases}
    cases = [case for case in content.cases if case.name in {trial.case for trial in shown}]
    labelled_trials = [
        trial for trial in shown if trial.label != case_label("", settings.get(trial.case, {}))
    ]
    if labelled_trials or len(cases) < 2 or len(cases) < len(shown):
        labels = {trial.case: short_label(trial.label, settings.get(trial.case, {})) for trial in shown}
        return CaseLabels("", labels), ""
    varied = factors(cases)
    kept = [factor.setting for factor in varied]
    shared = {
        factor.setting: cases[0].settings.get(factor.setting)
        for factor in factors(content.cases)
        if all(case.settings.get(factor.setting) == cases[0].settings.get(factor.setting) for case in cases)
    }
    note = f"All with {case_label('', shared)}" if shared else ""
    if len(varied) == 1:
        texts = dict(zip((case.name for case in cases), varied[0].texts, strict=True))
        return CaseLabels(varied[0].title, texts, varied[0]), note
    labels = {}
    for trial in shown:
        kept_settings = {name: value for name, value in settings[trial.case].items() if name in kept}
        labels[trial.case] = short_label(case_label("", kept_settings), kept_settings)
    if len(set(labels.values())) < len(labels):
        labels = {trial.case: short_label(trial.label, settings[trial.case]) for trial in shown}
        note = ""
    return CaseLabels("", labels), note
