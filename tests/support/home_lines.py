"""A home with several lines to one server: a network namespace each for the home, the server, and what is between.

    home  ==192.168.N.0/24==  ispN (translates addresses)  ==100.64.N.0/24==  core  ==198.51.100.0/24==  vps (sshd)

Interface wN of the home leads to ispN. The ends in ispN shape what leaves through them. A line that is not translated
has a public address in the same place. It needs root, as `real_hosts` does.
"""

from __future__ import annotations

from real_hosts import RealHosts, ip

SERVER, SERVER_6 = "198.51.100.2", "2001:db8:ffff::2"


class HomeLines(RealHosts):
    """A home (`home`), the provider of each line (`isp1`, ..), and a server (`vps`)."""

    @property
    def namespaces(self) -> tuple[str, ...]:
        return "home", "vps", "core", *(f"isp{number}" for number in range(1, len(self.lines) + 1))

    @property
    def ssh_addresses(self) -> dict[str, str]:
        return {"vps": SERVER}

    @property
    def with_files(self) -> tuple[str, ...]:
        return "home", "vps"

    def _make(self) -> None:
        self._make_namespaces()
        self._wire(("vps", "eth0", f"{SERVER}/24"), ("core", "vps", "198.51.100.1/24"))
        ip("-n", self.netns("vps"), "route", "add", "default", "via", "198.51.100.1")
        self.run("core", "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for number in range(1, len(self.lines) + 1):
            self._make_line(number)
        self.tmp("home").mkdir()
        self._start_daemons()

    def _make_line(self, number: int) -> None:
        line, isp, inside = self.lines[number - 1], f"isp{number}", f"192.168.{number}"
        self._wire(("home", f"w{number}", f"{inside}.2/24"), (isp, "home", f"{inside}.1/24"))
        self._wire((isp, "core", f"100.64.{number}.2/24"), ("core", isp, f"100.64.{number}.1/24"))
        self.run(isp, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        ip("-n", self.netns(isp), "route", "add", "default", "via", f"100.64.{number}.1")
        if line.translated:
            nat = ("iptables", "-t", "nat", "-A", "POSTROUTING", "-o", "core", "-j", "MASQUERADE")
            self.run(isp, *nat)
        else:
            ip("-n", self.netns("core"), "route", "add", f"{inside}.0/24", "via", f"100.64.{number}.2")
        home, table = self.netns("home"), str(100 + number)
        hop = ("default", "via", f"{inside}.1", "dev", f"w{number}")
        ip("-n", home, "route", "add", *hop, "metric", table)
        ip("-n", home, "route", "add", *hop, "table", table)
        ip("-n", home, "rule", "add", "from", f"{inside}.2", "table", table)
        self._shape(isp, "core", line.there)
        self._shape(isp, "home", line.back)


class HomeLinesIpv6(HomeLines):
    """The same with IPv6 alone, which no router translates.

    home  ==2001:db8:N::/64==  ispN  ==2001:db8:fN::/64==  core  ==2001:db8:ffff::/64==  vps
    """

    @property
    def ssh_addresses(self) -> dict[str, str]:
        return {"vps": SERVER_6}

    def _make(self) -> None:
        self._make_namespaces()
        for name in self.namespaces:
            self.run(name, "sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0")
        for name in ("core", *(f"isp{number}" for number in range(1, len(self.lines) + 1))):
            self.run(name, "sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
        self._wire(("vps", "eth0", f"{SERVER_6}/64"), ("core", "vps", "2001:db8:ffff::1/64"))
        ip("-n", self.netns("vps"), "route", "add", "default", "via", "2001:db8:ffff::1")
        for number in range(1, len(self.lines) + 1):
            self._make_line(number)
        self.tmp("home").mkdir()
        self._start_daemons()

    def _make_line(self, number: int) -> None:
        line, isp, inside = self.lines[number - 1], f"isp{number}", f"2001:db8:{number}:"
        self._wire(("home", f"w{number}", f"{inside}:2/64"), (isp, "home", f"{inside}:1/64"))
        between = f"2001:db8:f{number}:"
        self._wire((isp, "core", f"{between}:2/64"), ("core", isp, f"{between}:1/64"))
        ip("-n", self.netns(isp), "route", "add", "default", "via", f"{between}:1")
        ip("-n", self.netns("core"), "route", "add", f"{inside}:/64", "via", f"{between}:2")
        home, table = self.netns("home"), str(100 + number)
        hop = ("default", "via", f"{inside}:1", "dev", f"w{number}")
        ip("-6", "-n", home, "route", "add", *hop, "metric", table)
        ip("-6", "-n", home, "route", "add", *hop, "table", table)
        ip("-6", "-n", home, "rule", "add", "from", f"{inside}:2", "table", table)
        self._shape(isp, "core", line.there)
        self._shape(isp, "home", line.back)
