"""Middleboxes: what stands in a link and changes the segments that pass."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from plait.scenario.fields.parts import Part, listed

SEGMENTS = ("syn", "synack", "ack", "data")


class MiddleboxSpec(Part):
    """A box in a link that changes TCP segments as they pass."""

    strip: Annotated[
        list[Literal["syn", "synack", "ack", "data", "all"]],
        Field(max_length=5),
        BeforeValidator(listed, json_schema_input_type=str | list[str]),
    ] = []
    """The segments that lose their MPTCP options: with SYN; with SYN and ACK; neither, and without or with payload."""
    rewrite: bool = False
    """A byte of the payload of every longer segment is changed, as by a gateway that edits addresses in it."""
    direction: Literal["both", "forward", "backward"] = "both"
    """Forward: from the first node of the link's name to the second."""

    @model_validator(mode="after")
    def _require_an_action(self) -> MiddleboxSpec:
        if not self.strip and not self.rewrite:
            raise ValueError("a middlebox does something; write strip: [syn], for example, or rewrite: true")
        return self

    @property
    def segments(self) -> tuple[str, ...]:
        """What is stripped, each kind once and in the order in which a connection has them."""
        return tuple(kind for kind in SEGMENTS if kind in self.strip or "all" in self.strip)
