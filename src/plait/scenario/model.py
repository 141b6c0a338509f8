"""The fields of a scenario, their defaults and bounds; no files, no resolution.

The same classes are read from YAML and used from Python. They accept what the file accepts (`rate="5mbit"`),
are immutable, and refuse fields that they do not know. What the parts mean together (a link's nodes exist, ..)
is checked in `check/`; what follows from them (addresses, routes) is `plait.plan`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, PrivateAttr

from plait.scenario.fields.events import EventSpec
from plait.scenario.fields.figures import FigureSpec
from plait.scenario.fields.monitors import MonitorsSpec
from plait.scenario.fields.network import InputFile, NetworkSpec
from plait.scenario.fields.parts import (
    Interval,
    Length,
    Part,
    Pause,
    Start,
    Sysctls,
    Transport,
    VaryText,
    Whole,
    listed,
)
from plait.scenario.fields.programs import Memory, ProgramSpec
from plait.scenario.fields.published import PublishedSpec
from plait.scenario.fields.settings import MptcpSettings, TcpSettings
from plait.scenario.fields.traffic import MeasureSpec, Traffic
from plait.scenario.vary.repeat import Repeat
from plait.scenario.vary.text import read_vary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from plait.scenario.generators.written import Written
    from plait.scenario.mistakes import Where
    from plait.scenario.read.source import Source


class ScenarioModel(Part):
    """Every field of a scenario. `Scenario` adds what they must mean together."""

    title: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=20_000)] = ""
    network: NetworkSpec
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
    monitors: MonitorsSpec = MonitorsSpec()
    """What is measured only when it is asked for."""
    programs: Annotated[list[ProgramSpec], Field(max_length=256)] = []
    """Programs of this machine that run in nodes."""
    system_call: Start | None = None
    """Virtual time that a system call takes. Default: 1us where programs run, else 0."""
    memory: Memory | None = None
    """Of the guest. Default: ample for the sockets, and for programs of the usual size."""
    until: Length | None = None
    """The trial ends then at the latest. Default: see docs/reference/scenario.md."""
    measure: MeasureSpec | None = None
    """The part of each flow over which its steady goodput is measured as well."""
    pause: Annotated[
        list[Pause], BeforeValidator(listed, json_schema_input_type=Pause | list[Pause]), Field(max_length=2)
    ] = []
    """When each trial is halted for a prompt in its network: before its traffic, after it, or both."""
    published: PublishedSpec | None = None
    """What others have published of the same experiment, to be shown beside what is measured."""
    figures: Annotated[list[FigureSpec], Field(max_length=24)] = []
    """Figures of cases, instead of those that follow from what varies."""

    _written: "Written | None" = PrivateAttr(default=None)
    _source: "Source | None" = PrivateAttr(default=None)  # private: pydantic never reads the type
    _files: dict[str, InputFile] = PrivateAttr(default_factory=dict)
    SHORTHANDS: ClassVar[dict[str, str]] = {
        "transport": "transport",
        "congestion_control": "tcp.congestion_control",
        "scheduler": "mptcp.scheduler",
    }
    """Short names under `vary`, and the field each stands for."""

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

    def place(self, where: Sequence[str | int]) -> Where:
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
