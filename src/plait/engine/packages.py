"""Says how to install a program that this machine lacks. Only messages use it."""

from __future__ import annotations

from plait.errors import shell_command

_PACKAGES = {
    "aria2c": "aria2",
    "brctl": "bridge-utils",
    "curl": "curl",
    "ethtool": "ethtool",
    "gdb": "gdb",
    "ip": "iproute2",
    "ip6tables": "iptables",
    "iperf": "iperf",
    "iperf3": "iperf3",
    "iptables": "iptables",
    "mn": "mininet",
    "mptcpize": "mptcpize",
    "nc": "netcat-openbsd",
    "nft": "nftables",
    "nginx": "nginx-light",
    "node": "nodejs",
    "npm": "npm",
    "openvpn": "openvpn",
    "ovs-testcontroller": "openvswitch-testcontroller",
    "ovs-vsctl": "openvswitch-switch",
    "ovs-vswitchd": "openvswitch-switch",
    "ping": "iputils-ping",
    "socat": "socat",
    "ss": "iproute2",
    "strace": "strace",
    "tc": "iproute2",
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
"""Debian packages by program."""


def install_hint(program: str) -> str:
    """Return the remedy for a missing program: `install it`, with the command if plait knows its package."""
    name = program.rpartition("/")[2]
    if name == "plait-quic":
        return "build it (`make quic` in plait's source, which says where to install it)"
    package = _PACKAGES.get(name)
    return (
        "install it" if package is None else f"install it (`{shell_command('apt-get', 'install', package)}`)"
    )
