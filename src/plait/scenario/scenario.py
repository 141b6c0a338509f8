"""The scenario: what a person asks for. Every field, its default and its bounds; no files, no resolution.

The same classes are read from YAML and used from Python. They accept what the file accepts (`rate="5mbit"`),
are immutable, and refuse fields that they do not know. What the parts mean together (a link's nodes exist, ..)
is checked in `check.py`; what follows from them (addresses, routes) is `plait.plan`.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import (
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from plait.scenario.fields.events import EventSpec
from plait.scenario.fields.figures import Figure
from plait.scenario.fields.links import Link
from plait.scenario.fields.monitors import Monitors
from plait.scenario.fields.nodes import Families, Host, Router, Routing, Switch
from plait.scenario.fields.parts import (
    Interval,
    Length,
    NodeName,
    Part,
    Pause,
    Start,
    Sysctls,
    Transport,
    VaryText,
    Whole,
    listed,
    names_of,
    optional,
)
from plait.scenario.fields.programs import Memory, Program
from plait.scenario.fields.published import Published
from plait.scenario.fields.settings import MptcpSettings, TcpSettings
from plait.scenario.fields.traffic import Measure, Traffic
from plait.scenario.generators.written import Mistakes, Written, write_out
from plait.scenario.vary.repeat import Repeat
from plait.scenario.vary.text import read_vary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from plait.scenario.read.source import Source
    from plait.scenario.read.traces import Trace


class Network(Part):
    """Hosts, switches, routers, and the links between them."""

    hosts: Annotated[dict[NodeName, Host], names_of(Host), Field(min_length=2)]
    switches: Annotated[dict[NodeName, Switch], names_of(Switch)] = {}
    routers: Annotated[dict[NodeName, Router], names_of(Router)] = {}
    routing: Routing = Routing()
    addresses: Families = "ipv4"
    """The family of derived addresses. `dual`: every link has both; else a segment with given addresses has theirs."""
    links: Annotated[
        dict[str, Link],
        Field(min_length=1),
        BeforeValidator(optional, json_schema_input_type=dict[str, Link | None]),
    ]
    """By the names of the two nodes, `h1-s1`; further links between the same nodes are `h1-s1#2`, .."""


@dataclass(frozen=True)
class InputFile:
    """A real file that a transfer sends, or that a link follows."""

    name: str
    """The name that the trial knows it by; unique within the scenario."""
    path: Path
    bytes: int
    sha256: str
    trace: Trace | None = None
    """What it says, where it is read as a trace."""


def _all_of(mistakes: list[tuple[tuple[str | int, ...], str]]) -> PydanticCustomError:
    """Several mistakes as one error of pydantic's; see messages.found_in."""
    where, what = mistakes[0]
    text = f"{'.'.join(map(str, where))}: {what}".replace("{", "{{").replace("}", "}}")
    return PydanticCustomError("scenario", text, {"mistakes": mistakes})


class Scenario(Part):
    """A study, as asked for."""

    title: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=20_000)] = ""
    network: Network
    transport: Transport = "mptcp"
    """For flows that do not say their own."""
    mptcp: MptcpSettings = MptcpSettings()
    tcp: TcpSettings = TcpSettings()
    sysctls: Sysctls = {}
    """Of every host: `{net.ipv4.tcp_sack: 0}`."""
    traffic: Annotated[list[Traffic], Field(max_length=256)] = []
    """The flows that plait makes itself. At least one, or programs."""
    events: list[EventSpec] = []
    """What happens to the network meanwhile: links that go down, are cut, come up, or change."""
    vary: Annotated[dict[str, Any], BeforeValidator(read_vary, json_schema_input_type=VaryText)] = {}
    """Values by field; every combination is a case. Also zip, cases, latin_hypercube, exclude: see vary.py."""
    baseline: str | None = None
    """The case that others are compared with, by its name. Default: the first."""
    repeat: Repeat = Repeat(1)
    """Trials of each case: a number, or until 2%."""
    seed: Annotated[Whole, Field(ge=0, lt=2**53)] = 1
    sample: Interval = Interval(100_000_000)
    """How often everything is measured."""
    monitors: Monitors = Monitors()
    """What is measured only when it is asked for."""
    programs: Annotated[list[Program], Field(max_length=256)] = []
    """Programs of this machine that run in nodes."""
    system_call: Start | None = None
    """Virtual time that a system call takes. Default: 1us where programs run, else 0."""
    memory: Memory | None = None
    """Of the guest. Default: ample for the sockets, and for programs of the usual size."""
    until: Length | None = None
    """The trial ends then at the latest. Default: see docs/reference/scenario.md."""
    measure: Measure | None = None
    """The part of each flow over which its steady goodput is measured as well."""
    pause: Annotated[
        list[Pause], BeforeValidator(listed, json_schema_input_type=Pause | list[Pause]), Field(max_length=2)
    ] = []
    """When each trial is halted for a prompt in its network: before its traffic, after it, or both."""
    published: Published | None = None
    """What others have published of the same experiment, to be shown beside what is measured."""
    figures: Annotated[list[Figure], Field(max_length=24)] = []
    """Figures of cases, instead of those that follow from what varies."""

    _written: Written | None = PrivateAttr(default=None)
    _source: "Source | None" = PrivateAttr(default=None)  # private: pydantic never reads the type
    _files: dict[str, InputFile] = PrivateAttr(default_factory=dict)
    SHORTHANDS: ClassVar[dict[str, str]] = {
        "transport": "transport",
        "congestion_control": "tcp.congestion_control",
        "scheduler": "mptcp.scheduler",
    }
    """Short names under `vary`, and the field each stands for."""

    @model_validator(mode="wrap")
    @classmethod
    def _generated(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Networks and traffic that generators describe are written out; what was asked is kept."""
        if not isinstance(value, dict):
            return handler(value)
        try:
            written = write_out(value)
            if written is None:
                return handler(value)
            scenario = handler(written.fields)
        except Mistakes as wrong:
            raise _all_of(wrong.found) from wrong
        except ValidationError as wrong:
            if written is None:
                raise
            from plait.scenario.read.messages import found_in

            raise _all_of(written.told_once(found_in(wrong))) from wrong
        scenario._written = written  # noqa: SLF001 - its own, while it is made
        return scenario

    @model_serializer(mode="wrap")
    def _as_asked(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """With generators as they were asked for, so that their parameters can vary."""
        fields: dict[str, Any] = handler(self)
        asked = self._written.asked if self._written is not None else {}
        return fields | {key: deepcopy(value) for key, value in asked.items() if key in fields}

    @model_validator(mode="after")
    def _holds_together(self, info: ValidationInfo) -> Scenario:
        from plait.scenario.check.events import WITHOUT_STATES
        from plait.scenario.check.references import check

        mistakes = check(self, states_known=not (info.context or {}).get(WITHOUT_STATES))
        if self._written is not None:
            mistakes = self._written.told_once(mistakes)
        if mistakes:
            raise _all_of(mistakes)
        return self

    def attached(
        self,
        *,
        source: Source | None = None,
        files: dict[str, InputFile] | None = None,
        written: Written | None = None,
    ) -> Self:
        """Itself, told where its fields stand in a text, of its files (see `files`), and what generators made."""
        self._written = written if written is not None else self._written
        self._source = source if source is not None else self._source
        self._files = files if files is not None else self._files
        return self

    def without_events(self) -> Self:
        """Return the scenario without its events."""
        return self.model_copy(update={"events": []})

    def place(self, where: Sequence[str | int]) -> tuple[str | int, ...]:
        """The path of a field as a person wrote it, for a path in these fields: see generators."""
        return tuple(where) if self._written is None else self._written.place(where)

    @property
    def written(self) -> Written | None:
        """What generators were asked for and what follows from it; None without generators."""
        return self._written

    @property
    def source(self) -> Source | None:
        """Where its fields stand; None for a scenario made in Python."""
        return self._source

    @property
    def files(self) -> dict[str, InputFile]:
        """The facts of each file that is named, by the text that names it. Filled by `scenario.load`."""
        return self._files

    def input_files(self) -> dict[str, Path]:
        """The real files that trials need, by the name that a trial knows them by."""
        return {file.name: file.path for file in self._files.values()}
