"""An explanation with the measured effects of `--verify`: a cause that they refute is not named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.explain.messages import wording as message_wording
from plait.explain.wording import paragraph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.explain.model import Effect, FlowExplanation


def with_effects(flow: FlowExplanation, tried: Sequence[Effect]) -> FlowExplanation:
    """Return the explanation with the effects of changes, and the causes without the refuted ones."""
    refuted = tuple(
        effect.cause
        for effect in tried
        if effect.cause is not None
        and effect.cause in flow.named
        and effect.verdict in ("no effect seen", "slower")
    )
    named = tuple(cause for cause in flow.named if cause not in refuted)
    changes = {
        "tried": tuple(tried),
        "refuted": refuted,
        "named": named,
        "first": named[0] if named else None,
    }
    changed = flow.model_copy(update=changes)
    if not refuted:
        return changed
    write = paragraph if changed.delivery is None else message_wording.paragraph
    return changed.model_copy(update={"sentences": write(changed)})
