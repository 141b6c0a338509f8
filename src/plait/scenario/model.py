"""The fields of a scenario, with defaults and bounds; no files, no resolution.

YAML and Python use the same classes. They accept the values of the file (`rate="5mbit"`), are immutable, and refuse
unknown fields. `check/` checks the parts against each other (a link's nodes exist, ..); `plait.plan` derives the rest
(addresses, routes).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, PrivateAttr

from plait.parts import (
    EngineName,
    KernelName,
    Length,
    Listed,
    Part,
    Pause,
    Start,
    Sysctls,
    Transport,
    Whole,
    judged,
    listed,
)
from plait.scenario.fields.events import EventSpec
from plait.scenario.fields.figures import FigureSpec, LabelsSpec
from plait.scenario.fields.monitors import MonitorsSpec, SampleField, SampleSpec
from plait.scenario.fields.network import InputFile, NetworkSpec
from plait.scenario.fields.programs import MachineSpec, Memory, ProgramSpec
from plait.scenario.fields.published import PublishedSpec
from plait.scenario.fields.settings import MptcpSettings, TcpSettings
from plait.scenario.fields.spans import MeasureSpec
from plait.scenario.generators.written import Written
from plait.scenario.mistakes import Where
from plait.scenario.source import Source
from plait.scenario.vary.repeat import Repeat
from plait.scenario.vary.text import MAX_SWEEP, SHORTHANDS, read_vary
from plait.traffic.kinds import Traffic
from plait.units import Ratio

VaryText = dict[str, Annotated[list[Any], Field(min_length=1, max_length=MAX_SWEEP)] | str | dict[str, Any]]


class ScenarioModel(Part):
    """All fields of a scenario; `Scenario` adds the checks of fields against each other."""

    title: Annotated[str, Field(min_length=1, max_length=200)]
    """One line that describes the study."""
    description: Annotated[str, Field(max_length=20_000)] = ""
    """Longer description of the study."""
    network: NetworkSpec
    """Nodes and links."""
    engine: EngineName = "virtual"
    """The engine that runs the trials: see docs/explanation/engines.md."""
    kernel: KernelName | None = None
    """The kernel that runs the trials, as `plait kernel list` names it. Default: that of the engine."""
    transport: Transport = "mptcp"
    """Transport of flows that set none."""
    mptcp: MptcpSettings = MptcpSettings()
    tcp: TcpSettings = TcpSettings()
    sysctls: Sysctls = {}
    """Kernel settings of every host: `{net.ipv4.tcp_sack: 0}`."""
    traffic: Annotated[list[Traffic], Field(max_length=4096)] = []
    """Flows that plait generates. A scenario needs at least one flow or one program."""
    events: list[EventSpec] = []
    """Changes of the network during the trial: links that go down, are cut, come up, or change."""
    vary: Annotated[dict[str, Any], BeforeValidator(read_vary, json_schema_input_type=VaryText)] = {}
    """Values by field; every combination is a case. Also named factors, zip, cases, latin_hypercube and exclude."""
    baseline: str | None = None
    """Name of the case that the others are compared with. Default: the first."""
    repeat: Repeat = Repeat(1)
    """Number of trials of each case, or `until 2%`."""
    seed: Annotated[Whole, Field(ge=0, lt=2**53)] = 1
    """Seed of all random numbers of the study."""
    sample: SampleField = SampleSpec()
    """Sampling interval of all time series, or `{every: .., flows: ..}`."""
    monitors: MonitorsSpec = MonitorsSpec()
    """Optional measurements."""
    programs: Annotated[list[ProgramSpec], Field(max_length=256)] = []
    """Programs of this machine that run in nodes of the network."""
    system_call: Start | None = None
    """Virtual time that a system call takes. Default: 1us with programs, else 0."""
    machine: MachineSpec = MachineSpec()
    """The machine of the engine `machine`."""
    memory: Memory | None = None
    """Guest memory. Default: ample for the sockets, and for programs of the usual size."""
    until: Length | None = None
    """Latest end of the trial. Default: see docs/reference/scenario.md."""
    measure: MeasureSpec | None = None
    """Part of each flow over which its steady goodput is measured."""
    pause: Annotated[
        list[Pause], BeforeValidator(listed, json_schema_input_type=Pause | list[Pause]), Field(max_length=2)
    ] = []
    """When each trial pauses for a prompt in its network: before its traffic, after it, or both."""
    published: PublishedSpec | None = None
    """Published results of the same experiment, which the report shows beside the measured ones."""
    judge: Annotated[
        dict[Annotated[str, Field(min_length=1, max_length=120)], Ratio | None],
        BeforeValidator(judged, json_schema_input_type=str | list[str] | dict[str, str | None]),
        Field(max_length=8),
    ] = {}
    """Metrics that decide the result, the most important first, and the smallest difference of interest of each.

    Default: those of the kind of traffic, and 1%."""
    across: Annotated[list[str], Listed, Field(max_length=8)] = []
    """Named factors whose levels plait compares with each other although they are different networks."""
    figures: Annotated[list[FigureSpec], Field(max_length=24)] = []
    """Figures of the study, instead of those that plait derives from `vary`."""
    labels: LabelsSpec | None = None
    """Texts that figures, tables and sentences show instead of names."""

    _written: Written | None = PrivateAttr(default=None)
    _source: Source | None = PrivateAttr(default=None)
    _files: dict[str, InputFile] = PrivateAttr(default_factory=dict)
    SHORTHANDS: ClassVar[dict[str, str]] = SHORTHANDS

    def attached(
        self,
        *,
        source: Source | None = None,
        files: dict[str, InputFile] | None = None,
        written: Written | None = None,
    ) -> Self:
        """Return this scenario, after setting the places of its fields, its files, or the request to generators."""
        self._written = written if written is not None else self._written
        self._source = source if source is not None else self._source
        self._files = files if files is not None else self._files
        return self

    def place(self, where: Sequence[str | int]) -> Where:
        """Return the path of the field as written in the file, for a path in these (generated) fields."""
        return tuple(where) if self._written is None else self._written.place(where)

    @property
    def written(self) -> Written | None:
        """The request to generators and the fields that they wrote; None without generators."""
        return self._written

    @property
    def source(self) -> Source | None:
        """The places of its fields in the text; None for a scenario made in Python."""
        return self._source

    @property
    def files(self) -> dict[str, InputFile]:
        """The facts of each input file, by its name in the scenario; `scenario.load` fills it."""
        return self._files

    def input_files(self) -> dict[str, Path]:
        """Return the path of each input file of the trials, by its names inside a trial."""
        return {name: file.path for file in self._files.values() for name in (file.name, file.sha256)}
