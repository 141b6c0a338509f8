"""What a link does, in a few words for drawings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.analysis.wording import plain, rate, significant

if TYPE_CHECKING:
    from plait.plan.model.plan import Link, LinkDirection


def link_label(link: Link) -> str:
    """Return what a link does in a few words: "5 Mbit/s, 10 ms"; both directions where they differ."""
    forward, backward = link.directions
    words = [
        _both(_rate(forward.rate_bps), _rate(backward.rate_bps)),
        _both(_delay(forward), _delay(backward)),
        _both(_loss(forward), _loss(backward)),
    ]
    return ", ".join(word for word in words if word)


def _rate(value: int | None) -> str:
    """Return a configured rate without digits that say nothing: "5 Mbit/s", not "5.00 Mbit/s"."""
    if value is None:
        return ""
    return plain(rate(value))


def _delay(direction: LinkDirection) -> str:
    if direction.delay_ns < 1000:  # netem carries every link; a nanosecond is no delay
        return ""
    ms = direction.delay_ns / 1e6
    text = f"{ms:.3f}".rstrip("0").rstrip(".")
    jitter = f" \N{PLUS-MINUS SIGN} {significant(direction.jitter_ns / 1e6)}" if direction.jitter_ns else ""
    return f"{text}{jitter} ms"


def _loss(direction: LinkDirection) -> str:
    return f"{direction.loss_ratio * 100:g} % loss" if direction.loss_ratio else ""


def _both(forward: str, backward: str) -> str:
    return forward if forward == backward else f"{forward or 'none'} / {backward or 'none'}"
