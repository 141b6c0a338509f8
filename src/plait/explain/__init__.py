"""Why a flow was not faster: from a plan and its tables to shares of time, causes and evidence. Pure.

    facts       what the samples say of a flow, path by path, brought to one grid of time
    states      what each path waited for in each slice of that time
    missing     why a subflow came late, or never
    account     the slices summed up: shares that add up to one, and what each cause cost
    wording     the same in words
    remedies    what would be tried to see whether a cause is the cause

`docs/reference/explain.md` tells every cause, its thresholds and how it can mislead.
"""

from __future__ import annotations

from plait.explain.attribution import explain_trial
from plait.explain.causes import CAUSES, Cause
from plait.explain.model import FlowExplanation, Share

__all__ = ["CAUSES", "Cause", "FlowExplanation", "Share", "explain_trial"]
