"""Pages: load a document, then the other objects over parallel connections, and measure the total time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from plait.parts import Count, Record, Whole
from plait.traffic.job import PATIENCE_US, FlowJob, PlannedFlow, Tool, rate_bps
from plait.traffic.spec import ConnectionSpec, RequestSize, SlotFacts
from plait.units import Size

MAX_OBJECTS = 1000


def _objects(value: object) -> object:
    """Return the sizes with `10x 20KB` replaced by ten entries."""
    if not isinstance(value, (list, tuple)):
        return value
    sizes: list[object] = []
    for entry in value:
        repeated = re.fullmatch(r"\s*(\d{1,4})\s*x\s+(.+)", entry) if isinstance(entry, str) else None
        sizes += [repeated[2]] * int(repeated[1]) if repeated else [entry]
    return sizes


class PageSpec(ConnectionSpec):
    """Load a document, then the other objects of a page over parallel connections, and measure the total time."""

    SMALLEST: ClassVar[dict[str, Any]] = {"objects": ["1KB"]}

    answers: ClassVar[bool] = True
    objects: Annotated[
        list[Size],
        Field(min_length=1, max_length=MAX_OBJECTS),
        BeforeValidator(_objects, json_schema_input_type=list[str]),
    ]
    """Sizes of the objects, the document first: `[50KB, 10x 20KB]`."""
    connections: Annotated[Whole, Field(ge=1, le=64)] = 6
    """Number of parallel connections; 1 loads the objects in sequence."""
    request: RequestSize = Size(400)
    """Size of a request for an object."""

    @property
    def parts(self) -> int:
        """One for each connection that can load an object beside the document."""
        return max(1, min(self.connections, len(self.objects) - 1))

    @property
    def parts_share_connection(self) -> bool:
        """No: each has a connection."""
        return False

    def part_suffix(self, part: int) -> str:
        """Return the number of the connection."""
        return f".c{part + 1}"

    def job(self, slot: SlotFacts) -> Page | PageConnection:
        """Return what the flow of `slot` does."""
        if slot.part:
            return PageConnection(page=slot.first)
        return Page(request_bytes=int(self.request), objects=tuple(int(size) for size in self.objects))


class Page(FlowJob):
    """The first connection of a page: it requests object 0, the document, then other objects.

    It requests only objects that no connection has requested yet.
    """

    HEADLINE: ClassVar[str] = "page_load_s"
    NOUNS: ClassVar[tuple[str, str]] = ("objects", "Object load time")
    ANSWERS: ClassVar[bool] = True

    kind: Literal["page"] = "page"
    request_bytes: int = Field(ge=8, lt=2**53)
    objects: tuple[Count, ...] = Field(min_length=1)

    def messages(self, flow: PlannedFlow) -> int:
        """Return the number of objects."""
        del flow
        return len(self.objects)

    def longest_us(self, flow: PlannedFlow) -> int:
        """Return ample time for all objects."""
        return PATIENCE_US + int(sum(self.objects) * 8_000_000 / rate_bps(flow))

    def frames(self, flow: PlannedFlow, rate_bps: float, payload: int, frame: int) -> float:
        """Return at least one frame for each object."""
        del flow, rate_bps, frame
        return sum(1 + size / payload for size in self.objects)

    def by_hand(self, names: Sequence[str]) -> Iterator[str | Tool]:
        """Yield its sizes; no tool loads a page like this."""
        del names
        yield (
            f"{len(self.objects)} objects of {sum(self.objects)} bytes in all, the first one alone, then over parallel "
            f"connections; requests have {self.request_bytes} bytes (a web server and curl --parallel are similar)"
        )


class PageConnection(FlowJob):
    """A further connection of a page. It opens when the document has arrived, and requests remaining objects."""

    ANSWERS: ClassVar[bool] = True

    kind: Literal["page_connection"] = "page_connection"
    page: int = Field(ge=0)
    """The flow that is the page's first connection."""

    @property
    def page_flow(self) -> int | None:
        """The page's first connection."""
        return self.page

    def seeded_from(self, planned: Record) -> Record:
        """Return the job as planned."""
        return planned

    def by_hand(self, names: Sequence[str]) -> Iterator[str | Tool]:
        """Yield the page that it belongs to."""
        yield f"a further connection of {names[self.page]}"
