"""A capture of a handshake, ADD_ADDR and first data becomes a script of packetdrill, for either side."""

from __future__ import annotations

import struct

import pytest

from fake_plans import FakeFlow, fake_plan
from plait.errors import DataError, RequestError
from plait.plan.model.mptcp import Endpoint, Mptcp
from plait.plan.model.plan import Plan
from plait.results.packetdrill import packetdrill_script

SYN, ACK, PUSH = 2, 16, 8
MSS = 1400
H1, H2 = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
SPACE = b"\x01\x01"
KEY = bytes(8)


def option(subtype: int, content: bytes) -> bytes:
    """Return an option of MPTCP; `content` begins with the low half of the byte of the subtype."""
    return bytes([30, len(content) + 2, subtype << 4 | content[0]]) + content[1:]


def stamp(value: int, echoed: int) -> bytes:
    return b"\x08\x0a" + struct.pack(">II", value, echoed)


def dss(flags: int, *numbers: int) -> bytes:
    return option(2, bytes([0, flags]) + b"".join(struct.pack(">I", number) for number in numbers))


Step = tuple[int, bool, int, int, int, bytes, int]
"""Time in us, whether h1 sends, flags, numbers of sequence and acknowledgement, options, bytes of data."""
BASE = b"\x02\x04\x05\xb4\x04\x02"
SCALE = b"\x01\x03\x03"
STEPS: tuple[Step, ...] = (
    (0, True, SYN, 1000, 0, BASE + stamp(5000, 0) + SCALE + b"\x07" + option(0, b"\x01\x01"), 0),
    (20_000, False, SYN | ACK, 9000, 1001, BASE + stamp(70, 5000) + SCALE + b"\x08" + option(0, b"\x01\x01" + KEY), 0),
    (20_000, True, ACK, 1001, 9001, SPACE + stamp(5020, 70) + option(0, b"\x01\x01" + KEY * 2), 0),
    (20_000, True, ACK, 1001, 9001, SPACE + stamp(5020, 70) + option(0, b"\x01\x01" + KEY * 2 + b"\x05x") + SPACE, MSS),
    (20_000, True, ACK, 2401, 9001, SPACE + stamp(5020, 70) + dss(13, 1, 0, 1401, 1401, 1400 << 16), 1400),
    (20_000, True, ACK, 3801, 9001, SPACE + stamp(5020, 70) + dss(13, 1, 0, 2801, 2801, 1400 << 16), 1400),
    (41_000, False, ACK, 9001, 1001, SPACE + stamp(92, 5020) + option(3, b"\x00\x01" + bytes([10, 0, 1, 2]) + KEY), 0),
    (41_000, True, ACK, 5201, 9001, SPACE + stamp(5041, 92) + option(3, b"\x01\x01" + bytes([10, 0, 1, 2])), 0),
    (45_000, False, ACK, 9001, 5201, SPACE + stamp(96, 5020) + dss(3, 0, 4201), 0),
)  # fmt: skip
CLIENT = """\
+0.000000 > S 0:0(0) <mss 1460, sackOK, TS val 100 ecr 0, nop, wscale 7, mpcapable v1 flags[flag_h] nokey>
+0.020000 < S. 0:0(0) ack 1 win 500 <mss 1460, sackOK, TS val 700 ecr 100, nop, wscale 8, \
mpcapable v1 flags[flag_h] key[skey=2]>
+0.000000 > . 1:1(0) ack 1 <nop, nop, TS val 120 ecr 700, mpcapable v1 flags[flag_h] key[ckey, skey]>
+0 fcntl(3, F_SETFL, O_RDWR) = 0
+0 write(3, ..., 1400) = 1400
+0.000000 > P. 1:1401(1400) ack 1 <nop, nop, TS val 120 ecr 700, \
mpcapable v1 flags[flag_h] key[ckey, skey] mpcdatalen 1400, nop, nop>
+0.025000 < . 1:1(0) ack 1401 win 500 <nop, nop, TS val 726 ecr 120, dss dack8=1401 nocs>
+0 write(3, ..., 1400) = 1400
+0.000000 > P. 1401:2801(1400) ack 1 <nop, nop, TS val 120 ecr 700, \
dss dack4=1 dsn8=1401 ssn=1401 dll=1400 nocs>
+0.000000 < . 1:1(0) ack 2801 win 500 <nop, nop, TS val 726 ecr 120, dss dack8=2801 nocs>
+0.000000 < . 1:1(0) ack 2801 win 500 <nop, nop, TS val 722 ecr 120, \
add_address address_id=1 addr[ep=inet_addr("10.0.1.2")] hmac=auto>
+0.000000 > . 2801:2801(0) ack 1 <nop, nop, TS val 141 ecr 722, \
add_address address_id=1 addr[ep=inet_addr("10.0.1.2")] addr_echo>
"""


def capture(steps: tuple[Step, ...], host: bytes) -> bytes:
    """Return a capture (pcapng) at the host, as plait writes it."""
    blocks = [
        block(0x0A0D0D0A, b"\x4d\x3c\x2b\x1a\x01\x00\x00\x00" + b"\xff" * 8),
        block(1, b"\x01\x00\x00\x00\x00\x01\x00\x00"),
    ]
    for t_us, client, flags, seq, ack, options, size in steps:
        source, target, ports = (H1, H2, (555, 5001)) if client else (H2, H1, (5001, 555))
        tcp = (
            struct.pack(">HHIIBBHHH", *ports, seq, ack, (20 + len(options)) << 2, flags, 500, 0, 0) + options
        )
        header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp) + size, 0, 0, 64, 6, 0, source, target)
        frame = bytes(12) + b"\x08\x00" + header + tcp
        direction = struct.pack("<HHIHH", 2, 4, 2 if source == host else 1, 0, 0)
        t_ns = t_us * 1000
        body = struct.pack("<IIIII", 0, t_ns >> 32, t_ns & 0xFFFFFFFF, len(frame), len(frame) + size)
        blocks.append(block(6, body + frame + bytes(-len(frame) % 4) + direction))
    return b"".join(blocks)


def block(kind: int, body: bytes) -> bytes:
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def plan_of(*settings: tuple[str, str]) -> Plan:
    plan = fake_plan(FakeFlow())
    spaces = tuple(space.model_copy(update={"sysctls": settings}) for space in plan.network.namespaces)
    mptcp = (
        Mptcp(netns="h1", subflows=1, add_addr_accepted=1, endpoints=()),
        Mptcp(
            netns="h2",
            subflows=1,
            add_addr_accepted=0,
            endpoints=(Endpoint(address="10.0.1.2", id=1, flags=("signal",)),),
        ),
    )
    return plan.model_copy(
        update={"network": plan.network.model_copy(update={"namespaces": spaces, "mptcp": mptcp})}
    )


def script(steps: tuple[Step, ...] = STEPS, host: str = "h1", plan: Plan | None = None) -> str:
    content = capture(steps, H1 if host == "h1" else H2)
    return packetdrill_script(plan or plan_of(), {f"{host}.eth0.pcapng": content}, "two-paths, trial 0")


def test_the_connecting_side_writes_what_it_sent_and_waits_as_its_peer_did() -> None:
    """The script leaves out the third segment of data, so later numbers are lower than in the capture."""
    text = script(plan=plan_of(("net/ipv4/tcp_rmem", "4096 131072 6291456")))
    assert text.endswith(CLIENT)
    assert "+0 `sysctl -q 'net.ipv4.tcp_rmem=4096 131072 6291456'`\n" in text
    assert "+0 `ip mptcp limits set add_addr_accepted 1 subflows 1`\n" in text


def test_the_accepting_side_announces_its_address_and_reads() -> None:
    text = script(host="h2")
    assert "+0 `ip mptcp endpoint add 10.0.1.2 id 1 signal`\n" in text
    assert "+0.020000 > S. 0:0(0)" not in text, "the kernel answers at once"
    for line in (
        "+0.000000 < S 0:0(0) win 500 <mss 1460",
        "key[skey]>\n+0.000000 < . 1:1(0) ack 1 win 500 <nop, nop, TS val 720 ecr 100, mpcapable v1",
        "key[ckey=2, skey]>\n+0 accept(3, ..., ...) = 4\n",
        "< P. 1:1401(1400) ack 1 win 500",
        "> . 1:1(0) ack 1401 <nop, nop, TS val 126 ecr 720, dss dack8=1401 nocs>\n+0 read(4, ..., 1400) = 1400\n",
        '> . 1:1(0) ack 2801 <nop, nop, TS val 122 ecr 720, add_address address_id=1 addr[ep=inet_addr("10.0.1.2")]',
    ):
        assert line in text, text


def test_plait_refuses_what_a_script_cannot_say() -> None:
    for steps, reason in (
        (STEPS[:3] + STEPS[4:5], "the capture ends before the first data are acknowledged"),
        (STEPS[:2] + STEPS[6:], "does not begin with SYN, SYN/ACK and ACK, all with MP_CAPABLE"),
        (
            (STEPS[0], STEPS[1], (*STEPS[2][:5], option(0, b"\x01\x81" + KEY * 2), 0), *STEPS[3:]),
            "the connection has checksums",
        ),
        ((*STEPS[:6], (*STEPS[6][:5], STEPS[6][5] + b"\x13\x04ab", 0), *STEPS[7:]), "option 19 of TCP"),
        ((), "no capture has the handshake .* --set 'monitors.capture=\\[h1\\]'"),
    ):
        with pytest.raises(RequestError, match=reason):
            script(steps)
    with pytest.raises(RequestError, match="no flow over MPTCP"):
        script(plan=fake_plan(FakeFlow(transport="tcp")))


def test_a_strangers_results_start_no_command_and_are_refused_if_damaged() -> None:
    with pytest.raises(DataError, match="which is no value"):
        script(plan=plan_of(("net/ipv4/tcp_rmem", '1"; touch /tmp/x; "')))
    text = packetdrill_script(plan_of(), {"h1.e.pcapng": capture(STEPS, H1)}, "a\n`touch /tmp/x`")
    assert text.splitlines()[0].startswith("// a\\n`touch")
    with pytest.raises(DataError, match=r"capture h1\.e\.pcapng: it is damaged"):
        packetdrill_script(
            plan_of(),
            {"h1.e.pcapng": capture((*STEPS[:3], (*STEPS[3][:5], b"\x08\x00\x00\x00", 0)), H1)},
            "a",
        )
