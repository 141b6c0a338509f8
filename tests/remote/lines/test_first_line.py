"""The commands of `first-NAME` let connections begin on another line, and their undo returns the former one."""

from __future__ import annotations

from namespaces import in_namespaces

PROGRAM = """
import subprocess, sys
from plait.advice.candidates import candidates
from plait.advice.situation import Situation
from plait.scenario import parse
def run(command):
    return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout
for number in (1, 2):
    run(f"ip link add w{number} type veth peer name p{number} && ip link set p{number} up")
    run(f"ip link set w{number} up && ip address add 10.0.{number}.2/24 dev w{number}")
run(f"ip route add default via 10.0.1.1 dev w1 {sys.argv[1]}")
run("ip route add default via 10.0.2.1 dev w2 metric 700")
link = "rate: 10mbit, delay: 9ms"
lines = f"{{home-vps: {{label: cable (w1), {link}}}, home-vps#2: {{label: lte (w2), {link}}}}}"
text = f"title: t\\nnetwork: {{hosts: [home, vps], links: {lines}}}\\n"
text += "traffic: [{bulk: {from: vps, to: home, reverse: true, duration: 9s}}]"
(first,) = (c for c in candidates(Situation.of(parse(text, "t", ()))) if c.name == "first-lte")
route, _ = first.commands
before = run("ip route")
for command in ("true", route.command, route.undo):
    run(command)
    print(run("ip route get 192.0.2.1").split()[4])
assert run("ip route") == before
"""


def test_a_default_route_over_another_line_is_the_first_until_its_undo() -> None:
    for metric in ("", "metric 100"):
        assert in_namespaces("-c", PROGRAM, metric).split() == ["w1", "w2", "w1"]
