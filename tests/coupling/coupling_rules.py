"""Implement coupled congestion control by its documents, in real numbers: an independent reference for the kernel.

The rules follow RFC 6356 (LIA), draft-khalili-mptcp-congestion-control-05 (OLIA),
draft-walid-mptcp-congestion-control-04 (BALIA) and draft-xu-mptcp-congestion-control-05 (wVegas), not
kernel/congestion. All segments have the same size, so windows count segments: the documents' bytes divided by the MSS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class Path(Protocol):
    """What a rule reads of a subflow."""

    srtt: float
    """Smoothed round-trip time, seconds."""

    @property
    def window(self) -> float:
        """Return segments; ssthresh during fast recovery (RFC 6356, section 3)."""

    @property
    def interval(self) -> float:
        """OLIA's l: max(segments acknowledged between the last two losses, segments since the last loss)."""


Increase = Callable[[list[Path], Path], float]
Quality = Callable[[Path], float]


def _total_rate(paths: list[Path]) -> float:
    return sum(path.window / path.srtt for path in paths)


def reno(paths: list[Path], path: Path) -> float:
    """RFC 5681: one segment per window."""
    return 1 / path.window


def lia(paths: list[Path], path: Path) -> float:
    """RFC 6356, section 3: min(alpha / w_total, 1 / w_i)."""
    total = sum(sibling.window for sibling in paths)
    best = max(sibling.window / sibling.srtt**2 for sibling in paths)
    alpha = total * best / _total_rate(paths) ** 2
    return min(alpha / total, 1 / path.window)


def by_paper(path: Path) -> float:
    """OLIA's rank of a path in the paper and in the authors' kernel: l / rtt^2."""
    return path.interval / path.srtt**2


def by_draft(path: Path) -> float:
    """OLIA's rank of a path in the text of the draft: l^2 / rtt."""
    return path.interval**2 / path.srtt


def olia_alpha(paths: list[Path], path: Path, quality: Quality = by_paper) -> float:
    """OLIA draft, section 3, equations 3 and 4: it moves windows to the best paths that lack them."""
    best = max(quality(sibling) for sibling in paths)
    largest = max(sibling.window for sibling in paths)
    maximal = [sibling for sibling in paths if sibling.window == largest]
    collected = [sibling for sibling in paths if quality(sibling) == best and sibling.window < largest]
    if not collected:
        return 0.0
    if path.window == largest:
        return -1 / (len(paths) * len(maximal))
    return 1 / (len(paths) * len(collected)) if quality(path) == best else 0.0


def kelly_voice(paths: list[Path], path: Path) -> float:
    """OLIA draft, section 3, equation 2 without alpha: the increase of Kelly and Voice (2005)."""
    return path.window / path.srtt**2 / _total_rate(paths) ** 2


def olia(paths: list[Path], path: Path, quality: Quality = by_paper) -> float:
    """OLIA draft, section 3, equation 2."""
    return kelly_voice(paths, path) + olia_alpha(paths, path, quality) / path.window


def _balia_alpha(paths: list[Path], path: Path) -> float:
    """BALIA draft, section 3: max x / x_r; 1 before the first sample of the round-trip time."""
    if not path.srtt:
        return 1.0
    return max(sibling.window / sibling.srtt for sibling in paths) * path.srtt / path.window


def balia(paths: list[Path], path: Path) -> float:
    """BALIA draft, section 3, the increase."""
    alpha = _balia_alpha(paths, path)
    return kelly_voice(paths, path) * (1 + alpha) / 2 * (4 + alpha) / 5


def halved(paths: list[Path], path: Path, window: float) -> float:
    """Return the window after a loss under Reno, LIA and OLIA."""
    return window / 2


def balia_reduced(paths: list[Path], path: Path, window: float) -> float:
    """BALIA draft, section 3, the decrease: return the window after a loss."""
    return window - window / 2 * min(_balia_alpha(paths, path), 1.5)


@dataclass(frozen=True)
class Rule:
    """A loss-based congestion control."""

    name: str
    increase: Increase
    """Segments per acknowledged segment."""
    decrease: Callable[[list[Path], Path, float], float] = halved
    """The window after a loss, from the window before."""
    least_ssthresh: float = 1.0
    """Segments, with several paths: 1 by the OLIA draft, 2 as in TCP otherwise."""


RENO = Rule("reno", reno, least_ssthresh=2)
LIA = Rule("lia", lia, least_ssthresh=2)
OLIA = Rule("olia", olia)
OLIA_BY_DRAFT = Rule("olia", lambda paths, path: olia(paths, path, by_draft))
OLIA_WITHOUT_ALPHA = Rule("olia", kelly_voice)
BALIA = Rule("balia", balia, balia_reduced)

TOTAL_ALPHA = 10
GAMMA = 1


def backlog(window: float, base_rtt: float, rtt: float) -> float:
    """Return wVegas's diff: the segments of a window that wait in queues."""
    return (window / base_rtt - window / rtt) * base_rtt


def vegas_share(paths: list[Path], path: Path) -> float:
    """Return wVegas's alpha: the segments that a path may keep in queues."""
    return TOTAL_ALPHA * path.window / path.srtt / _total_rate(paths)
