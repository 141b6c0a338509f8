"""Says how to install a program that this machine lacks. Only messages use it."""

from __future__ import annotations

from plait.errors import shell_command

_NAMED_ALIKE = """
curl ethtool gdb iperf iperf3 iptables mptcpize socat strace tcpdump telnet transmission-cli transmission-daemon tshark
wget
"""
_PACKAGES = {
    **{name: name for name in _NAMED_ALIKE.split()},
    "aria2c": "aria2",
    "brctl": "bridge-utils",
    "ip": "iproute2",
    "ip6tables": "iptables",
    "mn": "mininet",
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
    "ss": "iproute2",
    "tc": "iproute2",
    "vpncmd": "softether-vpncmd",
    "vpnserver": "softether-vpnserver",
    "wg": "wireguard-tools",
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
