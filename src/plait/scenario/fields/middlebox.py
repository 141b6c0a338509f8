"""Middleboxes in links, which change passing TCP segments."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from plait.parts import Part, listed

SEGMENTS = ("syn", "synack", "ack", "data")


class MiddleboxSpec(Part):
    """A box in a link that changes passing TCP segments."""

    strip: Annotated[
        list[Literal["syn", "synack", "ack", "data", "all"]],
        Field(max_length=5),
        BeforeValidator(listed, json_schema_input_type=str | list[str]),
    ] = []
    """Segments that lose their MPTCP options: SYN, SYN-ACK, pure ACKs (`ack`), segments with payload (`data`)."""
    rewrite: bool = False
    """Whether to change a byte in the payload of every longer segment, like a gateway that edits addresses in it."""
    direction: Literal["both", "forward", "backward"] = "both"
    """Affected direction; `forward` is from the first node of the link's name to the second."""

    @model_validator(mode="after")
    def _require_an_action(self) -> MiddleboxSpec:
        if not self.strip and not self.rewrite:
            raise ValueError("the middlebox does nothing; write for example strip: [syn], or rewrite: true")
        return self

    @property
    def segments(self) -> tuple[str, ...]:
        """The kinds of segments to strip, each once, in the order of a connection."""
        return tuple(kind for kind in SEGMENTS if kind in self.strip or "all" in self.strip)
