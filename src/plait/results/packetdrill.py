"""Writes a script of packetdrill from a trial's capture: the handshake of a connection, ADD_ADDR and the first DSS.

The kernel under test plays the host that captured; packetdrill plays its peer. The words are those of packetdrill's
fork for MPTCP. Pure: the content of captures to text.
"""

from __future__ import annotations

import ipaddress
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from plait.errors import DataError, RequestError, printable, shell_command
from plait.plan.model.plan import Plan

_PACKET = 6
_DIRECTION = 2
"""The option of a packet block that has its direction: 1 inbound, 2 outbound."""
CAPTURE_BYTES = 4 << 20
"""Bytes of a capture to read: the first connection is at its beginning."""
_MOST_BLOCKS = CAPTURE_BYTES // 32
_SYN, _FIN, _RST, _PUSH, _ACK = 0x02, 0x01, 0x04, 0x08, 0x10
_MPTCP = 30
_CAPABLE, _JOIN, _DSS, _ADD_ADDR = 0, 1, 2, 3
_CHECKSUM = 0x80
_HARMLESS = re.compile(r"[a-z0-9_/]+[A-Za-z0-9_ .-]*")
_TIMES = (100, 700)
"""The first timestamps of the kernel and of its peer."""


@dataclass(frozen=True)
class _Segment:
    t_us: int
    outbound: bool
    ends: tuple[bytes, bytes, int, int]
    """Addresses and ports, the kernel's own first."""
    seq: int
    ack: int
    flags: int
    window: int
    payload: int
    options: tuple[tuple[int, bytes], ...]

    def mptcp(self, subtype: int) -> bytes | None:
        """Return the content of an option of MPTCP after kind and length, or None."""
        return next((c for kind, c in self.options if kind == _MPTCP and c and c[0] >> 4 == subtype), None)

    @property
    def mapped(self) -> int:
        """The bytes that a DSS maps in this segment."""
        content = self.mptcp(_DSS)
        return self.payload if content is not None and len(content) > 1 and content[1] & 4 else 0


def packetdrill_script(plan: Plan, captures: Mapping[str, bytes], title: str) -> str:
    """Return the script of the first connection over MPTCP in `captures`, the content of files by their names.

    The side is that of the connecting host if it captured, else that of the accepting one. `title` names the trial.

    Raises:
        RequestError: no host of an MPTCP flow captured, or the connection has what the script cannot say.
        DataError: a capture is damaged.
    """
    flow = next((flow for flow in plan.flows if flow.transport == "mptcp"), None)
    if flow is None:
        raise RequestError(f"exporting {title} to packetdrill: it has no flow over MPTCP")
    for host, connects in ((flow.client.netns, True), (flow.server.netns, False)):
        segments = _connection(captures, host, connects=connects)
        if segments:
            script = _Script(connects, segments[0].seq if connects else segments[0].ack)
            lines = list(script.of(segments))
            return "\n".join([*_head(plan, host, title, segments), *lines]) + "\n"
    raise RequestError(
        f"exporting {title} to packetdrill: no capture has the handshake of an MPTCP connection at "
        f"{flow.client.netns} or {flow.server.netns}; run it with "
        f"--set 'monitors.capture=[{flow.client.netns}]'"
    )


def _connection(captures: Mapping[str, bytes], host: str, *, connects: bool) -> list[_Segment]:
    """Return the segments of the first connection that the host begins, or accepts."""
    segments: list[_Segment] = []
    for name, content in captures.items():
        if name.startswith(f"{host}."):
            try:
                segments += _segments(content)
            except (struct.error, IndexError, ValueError) as error:
                raise DataError(f"reading the capture {name}: it is damaged ({error})") from error
    segments.sort(key=lambda segment: segment.t_us)
    first = next(
        (
            s for s in segments
            if s.flags & (_SYN | _ACK) == _SYN and s.outbound == connects and s.mptcp(_CAPABLE) is not None
        ),
        None,
    )  # fmt: skip
    return [] if first is None else [s for s in segments if s.ends == first.ends and s.t_us >= first.t_us]


def _segments(content: bytes) -> Iterator[_Segment]:
    """Yield the TCP segments in a capture of plait (pcapng, Ethernet, nanoseconds)."""
    position = 0
    for _ in range(_MOST_BLOCKS):
        if position + 8 > len(content):
            return
        kind, length = struct.unpack_from("<II", content, position)
        if length < 12 or position + length > len(content):
            return  # the block that a running trial was writing
        if kind == _PACKET:
            high, low, kept, _ = struct.unpack_from("<IIII", content, position + 12)
            frame = content[position + 28 : position + 28 + kept]
            options = content[position + 28 + -(-kept // 4) * 4 : position + length - 4]
            segment = _segment((high << 32 | low) // 1000, frame, outbound=_is_outbound(options))
            if segment is not None:
                yield segment
        position += length


def _is_outbound(options: bytes) -> bool:
    code, length = struct.unpack_from("<HH", options) if options else (0, 0)
    return code == _DIRECTION and length == 4 and options[4] & 3 == 2


def _segment(t_us: int, frame: bytes, *, outbound: bool) -> _Segment | None:
    packet = frame[14:]
    if frame[12:14] == b"\x08\x00" and packet[9] == 6:
        header, total = (packet[0] & 15) * 4, int.from_bytes(packet[2:4], "big")
        source, target = packet[12:16], packet[16:20]
    elif frame[12:14] == b"\x86\xdd" and packet[6] == 6:
        header, total = 40, 40 + int.from_bytes(packet[4:6], "big")
        source, target = packet[8:24], packet[24:40]
    else:
        return None
    tcp = packet[header:]
    ports = struct.unpack_from(">HH", tcp)
    seq, ack, offset, flags, window = struct.unpack_from(">IIBBH", tcp, 4)
    offset = (offset >> 4) * 4
    ends = (source, target, *ports) if outbound else (target, source, ports[1], ports[0])
    options = tuple(_options(tcp[20:offset]))
    return _Segment(t_us, outbound, ends, seq, ack, flags, window, total - header - offset, options)


def _options(content: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position < len(content) and content[position] != 0:
        length = 1 if content[position] == 1 else content[position + 1]
        if length < 1 + (content[position] != 1) or position + length > len(content):
            raise ValueError("an option of TCP has a wrong length")
        yield content[position], content[position + 2 : position + length]
        position += length


def _head(plan: Plan, host: str, title: str, segments: list[_Segment]) -> Iterator[str]:
    """Yield the comment, the options and the commands that make a namespace what the host was."""
    family = 4 if len(segments[0].ends[0]) == 4 else 6
    yield f"// {printable(title, keep='')}: the first connection over MPTCP at {host}:"
    yield "// its handshake, ADD_ADDR and first DSS."
    yield f"// Run it over IPv{family}: a name that ends in _v{family}.pkt limits `plait selftest packetdrill` to that."
    addresses = (content for segment in segments if (content := segment.mptcp(_ADD_ADDR)) is not None)
    if any(_announced(content)[0].version == 6 for content in addresses):
        yield "// It is without ADD_ADDR of IPv6, because packetdrill cannot read such an address."
    yield "--tolerance_usecs=100000"
    yield "`sysctl -q net.ipv4.tcp_timestamps=1 net.mptcp.enabled=1`"
    for name, value in plan.sysctls[host].items():
        if name.startswith(("net/ipv4/tcp_", "net/mptcp/add_addr")):
            if not _HARMLESS.fullmatch(name + value):  # a shell reads it, and the plan may be a stranger's
                raise DataError(
                    f"exporting {title} to packetdrill: the plan sets {name} to {value!r}, which is no value"
                )
            setting = name.replace("/", ".") + f"={value}"
            yield f"+0 `{shell_command('sysctl', '-q', setting)}`"
    syn = next(s for s in segments if s.outbound and s.flags & _SYN)
    mtu = sum(int.from_bytes(c, "big") for kind, c in syn.options if kind == 2) + (40 if family == 4 else 60)
    if mtu != 1500:
        yield f"+0 `ip link set dev tun0 mtu {mtu}`"
    yield "+0 `ip mptcp endpoint flush`"
    for entry in plan.network.mptcp:
        if entry.netns == host:
            yield f"+0 `ip mptcp limits set add_addr_accepted {entry.add_addr_accepted} subflows {entry.subflows}`"
            for endpoint in entry.endpoints:
                if "signal" in endpoint.flags and ":" not in endpoint.address:
                    port = f" port {endpoint.port}" if endpoint.port else ""
                    yield f"+0 `ip mptcp endpoint add {endpoint.address} id {endpoint.id} signal{port}`"
    yield ""


@dataclass
class _Script:
    """The state of the connection as the script plays it, which leaves out what the trial sent beside."""

    connects: bool
    base: int
    """The initial sequence number of the kernel, as far as it is known."""
    peer: int = 0
    sent: int = 0
    received: int = 0
    clock_us: int = 0
    timestamps: list[int | None] = field(default_factory=lambda: [None, None])

    def of(self, segments: list[_Segment]) -> Iterator[str]:
        """Yield the lines of the script."""
        self.clock_us = segments[0].t_us
        socket, accepted = "3", "3" if self.connects else "4"
        yield f"+0 socket(..., SOCK_STREAM, IPPROTO_MPTCP) = {socket}"
        if self.connects:
            yield "+0 fcntl(3, F_GETFL) = 0x2 (flags O_RDWR)"
            yield "+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0"
            yield "+0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)"
        else:
            yield "+0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0"
            yield "+0 bind(3, ..., ...) = 0"
            yield "+0 listen(3, 1) = 0"
        handshake, rest = segments[:3], segments[3:]
        self._learn(handshake)
        for segment in handshake:
            yield self._line(segment, segment.payload)
        yield "+0 fcntl(3, F_SETFL, O_RDWR) = 0" if self.connects else "+0 accept(3, ..., ...) = 4"
        for segment in _chosen(rest):
            if segment.payload and segment.outbound:
                yield f"+0 write({accepted}, ..., {segment.payload}) = {segment.payload}"
            yield self._line(segment, segment.payload)
            if segment.payload:
                yield self._acknowledged(segment, rest)
                if not segment.outbound:
                    yield f"+0 read({accepted}, ..., {segment.payload}) = {segment.payload}"

    def _learn(self, handshake: list[_Segment]) -> None:
        """Take both initial sequence numbers from the handshake, or refuse it."""
        flags = [s.flags & (_SYN | _ACK) for s in handshake]
        capable = [s.mptcp(_CAPABLE) for s in handshake]
        if flags != [_SYN, _SYN | _ACK, _ACK] or None in capable:
            raise RequestError(
                "exporting to packetdrill: the connection does not begin with SYN, SYN/ACK and ACK, all with "
                "MP_CAPABLE: a segment was lost, or a host fell back to TCP; choose another trial with --trial"
            )
        if any(content and content[1] & _CHECKSUM for content in capable):
            raise RequestError(
                "exporting to packetdrill: the connection has checksums, which depend on its data; run the trial "
                "without them"
            )
        ours, theirs = (handshake[0], handshake[1]) if self.connects else (handshake[1], handshake[0])
        self.base, self.peer = ours.seq, theirs.seq
        for number, segment in enumerate((ours, theirs)):
            self.timestamps[number] = next(
                (int.from_bytes(c[:4], "big") for kind, c in segment.options if kind == 8), None
            )

    def _acknowledged(self, data: _Segment, rest: list[_Segment]) -> str:
        """Return the acknowledgement of data: the first segment of the other side after it without data."""
        answers = (s for s in rest if s.outbound != data.outbound and s.t_us > data.t_us and not s.payload)
        for segment in answers:
            if segment.mptcp(_DSS) is not None and segment.mptcp(_ADD_ADDR) is None:
                return self._line(segment, 0)
        raise RequestError(
            "exporting to packetdrill: the capture ends before the first data are acknowledged; "
            "let the flow last longer"
        )

    def _line(self, segment: _Segment, payload: int) -> str:
        """Return the line of a segment, and count its data."""
        ours, theirs = (self.sent, self.received) if segment.outbound else (self.received, self.sent)
        syn, ack = bool(segment.flags & _SYN), bool(segment.flags & _ACK)
        first = 0 if syn else ours + 1
        flags = ("S" if syn else "P" if payload else "") + ("." if ack else "")
        words = [f"{first}:{first + payload}({payload})"]
        if ack:
            words.append(f"ack {theirs + 1}")
        if not segment.outbound:
            words.append(f"win {segment.window}")
        delay = 0.0 if segment.outbound else max(0, segment.t_us - self.clock_us) / 1e6
        self.clock_us = max(self.clock_us, segment.t_us)
        options = ", ".join(
            self._option(segment, kind, content, ours, theirs) for kind, content in segment.options
        )
        if segment.outbound:
            self.sent += payload
        else:
            self.received += payload
        return f"+{delay:.6f} {'>' if segment.outbound else '<'} {flags} {' '.join(words)} <{options}>"

    def _option(self, segment: _Segment, kind: int, content: bytes, ours: int, theirs: int) -> str:
        """Return the words for an option of TCP."""
        number = int.from_bytes(content[:4], "big")
        if kind == _MPTCP:
            return self._mptcp(segment, content, ours, theirs)
        if kind == 8:
            own, other = (0, 1) if segment.outbound else (1, 0)
            echoed = int.from_bytes(content[4:], "big")
            return f"TS val {self._tick(own, number)} ecr {self._tick(other, echoed) if echoed else 0}"
        words = {1: "nop", 2: f"mss {number}", 3: f"wscale {number}", 4: "sackOK"}
        if kind not in words:
            raise RequestError(
                f"exporting to packetdrill: a segment has option {kind} of TCP, which plait does not write"
            )
        return words[kind]

    def _tick(self, side: int, value: int) -> int:
        return (_TIMES[side] + value - (self.timestamps[side] or 0)) & 0xFFFFFFFF

    def _mptcp(self, segment: _Segment, content: bytes, ours: int, theirs: int) -> str:
        """Return the words for an option of MPTCP (RFC 8684, section 3)."""
        writers: dict[int, Callable[[], str]] = {
            _CAPABLE: lambda: self._capable(segment, content),
            _DSS: lambda: _dss(content, segment.payload, ours, theirs),
            _ADD_ADDR: lambda: _add_addr(content),
        }
        if content[0] >> 4 not in writers:
            raise RequestError(
                f"exporting to packetdrill: a segment has option {content[0] >> 4} of MPTCP, which plait does not write"
            )
        return writers[content[0] >> 4]()

    def _capable(self, segment: _Segment, content: bytes) -> str:
        keys = "nokey"
        peer_key, own_key = ("skey", "ckey") if self.connects else ("ckey", "skey")
        if len(content) >= 18:
            keys = "key[ckey, skey]" if segment.outbound else "key[ckey=2, skey]"
        elif len(content) >= 10:
            keys = f"key[{own_key}]" if segment.outbound else f"key[{peer_key}=2]"
        flags = ", ".join(f"flag_{letter}" for bit, letter in enumerate("hgfedcba") if content[1] >> bit & 1)
        length = f" mpcdatalen {segment.payload}" if len(content) > 18 else ""
        return f"mpcapable v{content[0] & 15} flags[{flags}] {keys}{length}"


def _chosen(segments: list[_Segment]) -> Iterator[_Segment]:
    """Yield what to play after the handshake: the first data, the first DSS that maps data, ADD_ADDR and its echo."""
    awaited = {"data", "mapping", "address", "echo"}
    for segment in segments:
        capable, address = segment.mptcp(_CAPABLE), segment.mptcp(_ADD_ADDR)
        names = set()
        if segment.payload and capable is not None:
            names.add("data")
        if segment.mapped:
            names |= {"data", "mapping"}
        if address is not None and _announced(address)[0].version == 4:
            names.add("echo" if address[0] & 1 else "address")
        if names & awaited:
            awaited -= names
            yield segment
        if not awaited:
            return


def _dss(content: bytes, payload: int, ours: int, theirs: int) -> str:
    """Return the words for a DSS (RFC 8684, figure 9); the first data have the number 1 in both streams."""
    flags = content[1]
    words = []
    if flags & 1:
        words.append(f"dack{8 if flags & 2 else 4}={theirs + 1}")
    if flags & 4:
        words += [f"dsn{8 if flags & 8 else 4}={ours + 1}", f"ssn={ours + 1}", f"dll={payload}"]
    return " ".join(["dss", *words, "nocs"])


def _announced(content: bytes) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int | None]:
    """Return the address and the port in an ADD_ADDR (RFC 8684, figure 12), which has an HMAC unless it is an echo."""
    rest = content[2:] if content[0] & 1 else content[2:-8]
    size = 16 if len(rest) >= 16 else 4
    return ipaddress.ip_address(rest[:size]), int.from_bytes(rest[size:], "big") or None


def _add_addr(content: bytes) -> str:
    """Return the words for ADD_ADDR of IPv4."""
    address, port = _announced(content)
    words = [f"add_address address_id={content[1]}", f'addr[ep=inet_addr("{address}")]']
    if port is not None:
        words.append(f"port={port}")
    return " ".join([*words, "addr_echo" if content[0] & 1 else "hmac=auto"])
