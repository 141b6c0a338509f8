"""Explain from a plan and its tables why a flow was not faster: shares of time, causes and evidence.

    facts        the samples of a flow, path by path, on one time grid
    time         what each path waited for in each slice of the grid
    causes       the words, the evidence, the test and the rule of each cause: one file for each family
    reasons      why a subflow was established late or never, or a buffer was full
    attribution  shares of time that add up to one, and the cost of each cause
    messages     why messages were late or lost
    wording      the explanation in sentences
    changes      scenario changes that test whether a cause is the real one
    effect       what such a change does

`docs/reference/explain.md` describes every cause, its thresholds and how it can mislead.
"""

from __future__ import annotations

from plait.explain.attribution import explain_trial
from plait.explain.cause import Cause
from plait.explain.causes import CAUSES
from plait.explain.model import FlowExplanation, Share

__all__ = ["CAUSES", "Cause", "FlowExplanation", "Share", "explain_trial"]
