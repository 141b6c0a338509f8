"""A shaper in front of a line with a deep queue."""

from __future__ import annotations

from collections.abc import Iterator

from plait.advice.changes.commands import interface_of, on_line
from plait.advice.changes.model import Candidate, HostCommand
from plait.advice.situation import AccessLine, Situation, common_of, queue_s, rate_of, shaped, sides_of
from plait.engine.remote.lasting import LastingQdisc

BLOATED_S = 0.05
"""A queue that takes longer to drain is worth a shaper in front of it."""
SHAPED = 0.95
"""The share of a line's rate that a shaper passes, so that the queue forms where the shaper is."""
_HANDLE = "7a17:"
"""Of plait's queueing disciplines."""


def shapers(situation: Situation) -> Iterator[Candidate]:
    """Yield a shaper in front of each line with a deep queue."""
    for line in situation.lines:
        directions = {"up": line.up, "down": line.down}
        bloated = [name for name, conditions in directions.items() if (queue_s(conditions) or 0) > BLOATED_S]
        if not bloated:
            continue
        link = situation.raw["network"]["links"][line.link] or {}
        sides, commands = sides_of(link), list[HostCommand]()
        for name in bloated:
            rate = rate_of(directions[name]) or 0.0
            side = next(side for side, conditions in sides.items() if conditions == directions[name])
            sides[side] = shaped(directions[name], f"{rate * SHAPED / 1000:.0f}kbit")
            commands.append(_shaper(situation.client, line, name, round(rate * SHAPED / 1000)))
        yield Candidate(
            f"shape-{line.word}",
            f"a shaper (cake) at {SHAPED:.0%} of the rate of {line.title}, {' and '.join(bloated)}".replace(
                "%", " %"
            ),
            {f"network.links.{line.link}": {**common_of(link), **sides}},
            tuple(commands),
        )


def _shaper(host: str, line: AccessLine, direction: str, kbit: int) -> HostCommand:
    """Return a shaper that fails where somebody has set a queueing discipline, and whose undo takes only its own."""
    interface, ifb = interface_of(line), f"plait-ifb{line.number}"
    if direction == "up":
        return on_line(
            host,
            line,
            f"tc qdisc add dev {interface} root handle {_HANDLE} cake bandwidth {kbit}kbit",
            f"tc qdisc delete dev {interface} root handle {_HANDLE}",
            LastingQdisc(interface, "cake", ("bandwidth", f"{kbit}kbit")),
        )
    steps = (
        f"tc qdisc add dev {interface} handle ffff: ingress",
        f"ip link add {ifb} type ifb",
        f"ip link set {ifb} up",
        f"tc filter add dev {interface} parent ffff: matchall action mirred egress redirect dev {ifb}",
        f"tc qdisc add dev {ifb} root cake bandwidth {kbit}kbit ingress",
    )
    return on_line(
        host,
        line,
        " && ".join(steps),
        f"tc qdisc delete dev {interface} ingress && ip link delete {ifb}",
        LastingQdisc(interface, "cake", ("bandwidth", f"{kbit}kbit", "ingress"), through=ifb),
    )
