"""Which of the distribution's packages has a program that is not installed: for messages, nothing depends on it."""

from __future__ import annotations

_PACKAGES = {
    "aria2c": "aria2",
    "brctl": "bridge-utils",
    "curl": "curl",
    "iperf": "iperf",
    "iperf3": "iperf3",
    "mn": "mininet",
    "mptcpize": "mptcpize",
    "nc": "netcat-openbsd",
    "nginx": "nginx-light",
    "node": "nodejs",
    "npm": "npm",
    "openvpn": "openvpn",
    "ovs-testcontroller": "openvswitch-testcontroller",
    "ovs-vsctl": "openvswitch-switch",
    "ovs-vswitchd": "openvswitch-switch",
    "ping": "iputils-ping",
    "socat": "socat",
    "strace": "strace",
    "tcpdump": "tcpdump",
    "telnet": "telnet",
    "transmission-cli": "transmission-cli",
    "transmission-daemon": "transmission-daemon",
    "tshark": "tshark",
    "vpncmd": "softether-vpncmd",
    "vpnserver": "softether-vpnserver",
    "wg": "wireguard-tools",
    "wget": "wget",
}
"""Debian's, by program."""


def install_hint(program: str) -> str:
    """Returns what to do about a program that is not there: `install it (...)`, with the package if it is known."""
    package = _PACKAGES.get(program.rpartition("/")[2])
    return "install it" if package is None else f"install it (`apt-get install {package}`)"
