"""The engine that writes the tables of an observation from captures of one end or of both."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from pathlib import Path

from plait.binaries import agent_sha256
from plait.engine.engine import Engine, EngineIdentity, Interrupted, Job
from plait.engine.remote.merge import write
from plait.errors import MachineError, RequestError
from plait.files import Folder
from plait.observe.captures.ends import FileSurvey, grouped, survey
from plait.observe.captures.packets import CaptureFile, Packet
from plait.observe.captures.rows import Samples, tables_of
from plait.observe.captures.tracking import Tracker
from plait.observe.captures.words import facts
from plait.observe.watching import Selection

NOT_VISIBLE = "not visible in captures"
"""The version of the kernel of an observation that captures are the source of."""
_MOST_FILES = 16


class CaptureReader(Engine):
    """The engine `observed` for capture files."""

    name = "observed"

    def __init__(
        self, paths: Iterable[Path], selection: Selection, progress: Callable[[str], None] = lambda _: None
    ) -> None:
        """Open the files and find out which end each is from (RequestError, MachineError)."""
        files = list(dict.fromkeys(paths))
        if len(files) > _MOST_FILES:
            raise RequestError(
                f"--pcap: plait reads at most {_MOST_FILES} files at once; join some with mergecap"
            )
        self._condition = _condition(selection)
        self._progress = progress
        by_path = {path: survey(CaptureFile(path), self._condition) for path in files}
        surveys = [item for item in by_path.values() if item is not None]
        empty = [str(path) for path, item in by_path.items() if item is None]
        if not surveys:
            raise MachineError(
                f"reading {', '.join(empty)}: no TCP packet is there that matches; capture while a transfer runs "
                "(`tcpdump -i any -w FILE -s 256 tcp`), or widen --port and --peer"
            )
        self._notes = [f"{path} has no TCP packets that match." for path in empty]
        self.here, self.there = grouped(surveys)
        self.zero_us = min(item.begin_us for item in surveys)

    @property
    def node(self) -> str:
        """The name of the end of the first file: the address of its first connection."""
        return _node(self.here)

    def identity(self) -> EngineIdentity:
        """Return the agent's identity; captures do not show the kernel's."""
        names = [item.file.path.name for item in (*self.here, *self.there)]
        return EngineIdentity(
            self.name,
            hashlib.sha256("\0".join(names).encode()).hexdigest(),
            NOT_VISIBLE,
            agent_sha256(),
        )

    def execute(self, job: Job) -> None:
        """Read the files and write the tables (see Engine). Raises RequestError, MachineError, Interrupted."""
        samples = [self._follow(files, job) for files in (self.here, self.there) if files]
        nodes = [_node(files) for files in (self.here, self.there) if files]
        tables, joined = tables_of(samples, nodes, self.zero_us)
        if joined.clock_offset_us is not None:
            job.note("clock_offset_us", joined.clock_offset_us)
        lines = [*self._notes, *facts(samples, joined, [*self.here, *self.there])]
        Folder(job.folder).append("console.log", "".join(f"{line}\n" for line in lines).encode())
        write(tables, job.folder / "data")
        status = {"ok": True, "phase": "end", "error": None, "virtual_us": samples[0].end_us}
        Folder(job.folder).write("status.json", json.dumps(status).encode())

    def _follow(self, files: list[FileSurvey], job: Job) -> Samples:
        """Return the samples of one end, whose files are read side by side in the order of their times."""
        tracker = Tracker({address for item in files for address in item.local})
        samples = Samples(tracker, self.zero_us, job.plan.sample_interval_us)
        for number, packet in enumerate(heapq.merge(*map(self._packets, files), key=attrgetter("t_us"))):
            if number % 4096 == 0 and job.stop.is_set():
                raise Interrupted
            samples.take(packet)
        samples.finish()
        return samples

    def _packets(self, item: FileSurvey) -> Iterator[Packet]:
        name = item.file.path.name
        return item.file.packets(self._condition, lambda part: self._progress(f"{name}: {part:4.0%}"))


def _node(files: list[FileSurvey]) -> str:
    """Return the name of an end: the lowest of its addresses."""
    return min(address for item in files for address in item.local)


def _condition(selection: Selection) -> str:
    """Return the display filter for what is selected (RequestError)."""
    if selection.processes or selection.namespace is not None:
        raise RequestError(
            "--pcap: packets show neither a process nor a namespace; select with --port and --peer"
        )
    parts = ["tcp", "!icmp", "!icmpv6"]
    if selection.ports:
        parts.append(f"tcp.port in {{{', '.join(map(str, selection.ports))}}}")
    if selection.peers:
        kinds = (("ipv6.addr" if ":" in peer else "ip.addr", peer) for peer in selection.peers)
        parts.append("(" + " || ".join(f"{kind} == {peer}" for kind, peer in kinds) + ")")
    return " && ".join(parts)
