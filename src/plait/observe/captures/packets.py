"""Reads the TCP packets of a capture file through tshark.

The file is untrusted: time, memory and rights of tshark are bounded.
"""

from __future__ import annotations

import os
import select
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which
from typing import NamedTuple

from plait.engine.packages import install_hint
from plait.errors import MachineError, RequestError, printable

_MPTCP = "tcp.options.mptcp."
_NUMBERS = {
    "dsn": "rawdataseqno",
    "subflow_sequence": "subflowseqno",
    "length": "datalvllen",
    "data_ack": "rawdataack",
    "key": "sendkey",
    "token": "recvtok",
    "address_id": "addrid",
    "reset_reason": "rst_reason",
    "version": "version",
}
"""Fields of tshark that are one number each, by the name in `PacketOptions`."""
_TEXTS = ("subtype", "ipv4", "ipv6", "port", "echo", "backup.flag")
_FIELDS = (
    "frame.time_epoch",
    "frame.len",
    "frame.cap_len",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.flags",
    "tcp.window_size_value",
    "tcp.len",
    "tcp.options.mss_val",
    "tcp.options.wscale.shift",
    "tcp.options.timestamp.tsval",
    "tcp.options.sack_le",
    "tcp.options.sack_re",
    *(f"{_MPTCP}{name}" for name in (*_NUMBERS.values(), *_TEXTS)),
)
_QUIET = (
    "-o tcp.analyze_sequence_numbers:FALSE -o tcp.desegment_tcp_streams:FALSE -o tcp.relative_sequence_numbers:FALSE "
    "-o mptcp.analyze_mptcp:FALSE -o ip.defragment:FALSE -o ipv6.defragment:FALSE -d tcp.port==1-65535,data"
)
"""plait analyses the raw fields itself; what tshark would remember of each connection costs memory and time."""
_FORGET_AFTER = 100_000
"""After how many packets tshark frees what it remembers."""
_MOST_MEMORY = 2 << 30
_NOBODY = 65534
_SILENT_S = 60.0
"""tshark may be this long without reading or writing anything."""
_LONGEST_S = 6 * 3600.0
_READ_BYTES = 1 << 18
_LINE_BYTES = 1 << 16
_ERRORS_BYTES = 1 << 14
FIN, SYN, RST, ACK = 1, 2, 4, 16
CAPABLE, JOIN, DSS, ADD_ADDR, REMOVE_ADDR, PRIO, FAIL, FASTCLOSE, RESET = range(9)
"""MPTCP option subtypes (RFC 8684, section 3)."""


class PacketOptions(NamedTuple):
    """The MPTCP options of a packet; what a packet lacks is None or empty."""

    subtypes: frozenset[int]
    dsn: int | None
    subflow_sequence: int | None
    length: int | None
    """Data-level length of the mapping."""
    data_ack: int | None
    key: int | None
    """The sender's key."""
    token: int | None
    """The token of the receiver of a MP_JOIN."""
    address_id: int | None
    announced: tuple[tuple[str, int | None], ...]
    """Addresses, and their port or None, of each ADD_ADDR that is no echo."""
    backup: bool | None
    reset_reason: int | None
    version: int | None


class Packet(NamedTuple):
    """The header of a TCP packet."""

    t_us: int
    """Time of the capture's clock."""
    source: tuple[str, int]
    destination: tuple[str, int]
    seq: int
    ack: int
    flags: int
    window: int
    payload: int
    mss: int | None
    shift: int | None
    """Window scale, of a SYN."""
    timestamps: bool
    sacked: tuple[tuple[int, int], ...]
    mptcp: PacketOptions | None
    cut: bool
    """The capture kept less than the header, so options may be missing."""


class CaptureFile:
    """One capture file, held open."""

    def __init__(self, path: Path) -> None:
        """Open `path` (RequestError)."""
        try:
            self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise RequestError(f"--pcap {path}: {error.strerror}; name a pcap or pcapng file") from error
        status = os.fstat(self._handle)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._handle)
            raise RequestError(f"--pcap {path}: no regular file; write the capture to a file first")
        self.path = path
        self.bytes = status.st_size
        self.cut_short: str | None = None
        """How the file ends, if it ends in the middle of a packet."""

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)

    def packets(
        self, condition: str, progress: Callable[[float], None], most: int | None = None
    ) -> Iterator[Packet]:
        """Yield the TCP packets that the display filter `condition` accepts, at most `most` packets of any kind.

        `progress` gets the part of the file that has been read. Raises RequestError if it is no capture, MachineError
        without tshark or if tshark fails.
        """
        program = which("tshark")
        if program is None:
            raise MachineError(
                f"reading {self.path}: tshark dissects captures, and it is missing; {install_hint('tshark')}"
            )
        words = [
            "prlimit",
            f"--as={_MOST_MEMORY}",
            program,
            "-n",
            "-r",
            "-",
            *_QUIET.split(),
            "-M",
            str(_FORGET_AFTER),
            "-Y",
            condition,
        ]
        words += [] if most is None else ["-c", str(most)]
        words += ["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=,"]
        for field in _FIELDS:
            words += ["-e", field]
        os.lseek(self._handle, 0, os.SEEK_SET)
        user = _ordinary_user()
        process = subprocess.Popen(
            words,
            stdin=self._handle,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "PATH": os.environ.get("PATH", os.defpath)},
            start_new_session=True,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
        errors = bytearray()
        try:
            for line in self._lines(process, errors, progress):
                packet = _packet(line)
                if packet is not None:
                    yield packet
            self._judge(process.wait(10), errors.decode(errors="replace"))
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            process.stderr.close()

    def _lines(
        self, process: subprocess.Popen[bytes], errors: bytearray, progress: Callable[[float], None]
    ) -> Iterator[bytes]:
        """Yield the lines of tshark's output, and collect what it says on its standard error (MachineError)."""
        assert process.stdout is not None
        assert process.stderr is not None
        handles = [process.stdout.fileno(), process.stderr.fileno()]
        out = handles[0]
        rest = b""
        started = heard = time.monotonic()
        place = 0
        while handles:
            ready = select.select(handles, [], [], 1.0)[0]
            now, reached = time.monotonic(), os.lseek(self._handle, 0, os.SEEK_CUR)
            if ready or reached != place:
                heard, place = now, reached
            if now - heard > _SILENT_S or now - started > _LONGEST_S or len(rest) > _LINE_BYTES:
                raise MachineError(
                    f"reading {self.path}: tshark made no progress; cut the file with editcap, or select with --port"
                )
            for handle in ready:
                data = os.read(handle, _READ_BYTES)
                if not data:
                    handles.remove(handle)
                elif handle == out:
                    *lines, rest = (rest + data).split(b"\n")
                    yield from lines
                    progress(reached / max(1, self.bytes))
                elif len(errors) < _ERRORS_BYTES:
                    errors += data

    def _judge(self, code: int, errors: str) -> None:
        """Note a file that ends early; raise RequestError if it is no capture, MachineError if tshark failed."""
        said = [line for line in errors.splitlines() if line and not line.startswith("Running as user")]
        if any("cut short" in line for line in said):
            self.cut_short = "the file ends in the middle of a packet; plait used what is before"
        elif any("isn't a capture file" in line or "doesn't understand" in line for line in said) or (
            self.bytes == 0
        ):
            raise RequestError(
                f"--pcap {self.path}: not a capture that tshark knows; write one with `tcpdump -w FILE -s 256 tcp`"
            )
        elif code != 0:
            reason = printable("; ".join(said)[:300]) or f"exit code {code}"
            raise MachineError(f"reading {self.path}: tshark failed: {reason}")


def _ordinary_user() -> int | None:
    """Return the user for tshark if plait is root here: a stranger's file might exploit it."""
    if os.geteuid() != 0:
        return None
    ranges = (line.split() for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines())
    if not any(int(first) <= _NOBODY < int(first) + int(count) for first, _, count in ranges):
        return None
    return _NOBODY


def _packet(line: bytes) -> Packet | None:
    """Return the packet of a line; None if tshark could not dissect its fixed header."""
    texts = line.decode("ascii", errors="replace").split("\t")
    if len(texts) != len(_FIELDS):
        return None
    fields = dict(zip(_FIELDS, texts, strict=True))

    def last(name: str) -> str:
        """Return the value of the innermost header."""
        return fields[name].rpartition(",")[2]

    try:
        payload = int(last("tcp.len"))
        seconds, _, fraction = last("frame.time_epoch").partition(".")
        return Packet(
            int(seconds) * 1_000_000 + int(fraction[:6].ljust(6, "0")),
            (last("ipv6.src") or last("ip.src"), int(last("tcp.srcport"))),
            (last("ipv6.dst") or last("ip.dst"), int(last("tcp.dstport"))),
            int(last("tcp.seq_raw")),
            int(last("tcp.ack_raw") or 0),
            int(last("tcp.flags"), 16),
            int(last("tcp.window_size_value")),
            payload,
            _first(last("tcp.options.mss_val")),
            _first(last("tcp.options.wscale.shift")),
            bool(fields["tcp.options.timestamp.tsval"]),
            tuple(
                zip(
                    _wholes(fields["tcp.options.sack_le"]),
                    _wholes(fields["tcp.options.sack_re"]),
                    strict=False,
                )
            ),
            _options(fields) if fields[f"{_MPTCP}subtype"] else None,
            int(last("frame.len")) - int(last("frame.cap_len")) > payload,
        )
    except ValueError:
        return None


def _options(fields: dict[str, str]) -> PacketOptions:
    echoed = fields[f"{_MPTCP}echo"].split(",")
    ports = _wholes(fields[f"{_MPTCP}port"])
    addresses = f"{fields[f'{_MPTCP}ipv4']},{fields[f'{_MPTCP}ipv6']}".split(",")
    announced = tuple(
        (address, ports[place] if place < len(ports) else None)
        for place, address in enumerate(filter(None, addresses))
        if place >= len(echoed) or echoed[place] not in ("1", "True")
    )
    backup = fields[f"{_MPTCP}backup.flag"]
    numbers = {name: _first(fields[f"{_MPTCP}{field}"]) for name, field in _NUMBERS.items()}
    return PacketOptions(
        subtypes=frozenset(_wholes(fields[f"{_MPTCP}subtype"])),
        announced=announced,
        backup=backup.partition(",")[0] in ("1", "True") if backup else None,
        **numbers,
    )


def _first(text: str) -> int | None:
    return int(text.partition(",")[0], 0) if text else None


def _wholes(text: str) -> list[int]:
    return [int(part, 0) for part in text.split(",")] if text else []
