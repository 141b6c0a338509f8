"""Sizes of frames and headers in bytes, defined once for plans, checks, figures and estimates.

`tc` counts a frame as its Ethernet header and the IP packet, without preamble, FCS and inter-frame gap.
"""

from __future__ import annotations

DEFAULT_MTU = 1500
"""The MTU of an interface for which a scenario gives none."""
MIN_MTU = 576
"""Every IPv4 host accepts a packet of this length (RFC 791)."""
MAX_PACKET = 65_535
"""The longest IPv4 packet (RFC 791), and so the largest MTU."""
ETHERNET_HEADER = 14
IPV4_HEADER = 20
"""IPv4 header without options (RFC 791)."""
IPV6_HEADER = 40
"""IPv6 header without extension headers (RFC 8200)."""
TCP_HEADER = 20
"""TCP header without options (RFC 9293)."""
MSS_RANGE = range(88, MAX_PACKET + 1)
"""The segment sizes of TCP in bytes: Linux accepts none below TCP_MIN_MSS."""
UDP_HEADER = 8
"""UDP header (RFC 768)."""
TIMESTAMPS = 12
"""The TCP timestamps option with its padding (RFC 7323)."""
DSS = 24
"""The MPTCP DSS option of a data segment, with its padding; see `plait.analysis.metrics.ideal`."""
FULL_PAYLOAD = DEFAULT_MTU - IPV4_HEADER - TCP_HEADER - TIMESTAMPS
"""Payload of a full TCP segment over IPv4 at the default MTU: 1448 bytes."""


def frame_bytes(mtu: int) -> int:
    """Return the length of the longest frame that an MTU allows."""
    return mtu + ETHERNET_HEADER
