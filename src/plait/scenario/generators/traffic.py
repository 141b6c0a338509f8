"""Traffic from a few words: an entry that stands for several flows, each with its own ends.

    permutation: {seed: 1, hosts: "*", each: ENTRY}     every host sends to one other, and receives from one other
    pairs: {from: "sender*", to: "receiver*", each: ENTRY}   the first to the first, the second to the second, ..

ENTRY is an entry of the traffic without its ends: `{bulk: {duration: 10s}}`. What comes out are plain entries.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

from plait.scenario.fields.parts import Part, Whole, listed
from plait.scenario.read.wording import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_FLOWS = 1024
_NAME_MAX = 56


Names = Annotated[
    list[str], BeforeValidator(listed, json_schema_input_type=str | list[str]), Field(min_length=1)
]
"""Names of hosts, or patterns of names such as `sender*`."""


class Permutation(Part):
    """Each of the hosts sends to exactly one other, and receives from exactly one other; none to itself."""

    seed: Annotated[Whole, Field(ge=0, lt=2**53)] = 1
    """Which permutation; the study's own seed has no part in it, so that all trials of a case have the same."""
    hosts: Names = ["*"]
    each: dict[str, Any]
    """An entry of the traffic without `from` and `to`: `{bulk: {duration: 10s}}`."""

    def ends(self, hosts: Sequence[str]) -> list[tuple[str, str]]:
        """(from, to) of every flow. ValueError says what is wrong."""
        named = chosen(self.hosts, hosts)
        if len(named) < 2:
            raise ValueError(f"a permutation needs two hosts, and here is {named[0]} alone; name more")
        return list(zip(named, derangement(named, self.seed), strict=True))


class Pairs(Part):
    """The hosts of one side and those of the other, in the order of their declaration; one alone is paired with all."""

    from_: Names = Field(alias="from")
    """The hosts that send."""
    to: Names
    """The hosts that receive."""
    each: dict[str, Any]
    """An entry of the traffic without `from` and `to`: `{bulk: {duration: 10s}}`."""

    def ends(self, hosts: Sequence[str]) -> list[tuple[str, str]]:
        """(from, to) of every flow. ValueError says what is wrong."""
        senders, receivers = chosen(self.from_, hosts), chosen(self.to, hosts)
        if len(senders) == 1:
            senders = senders * len(receivers)
        if len(receivers) == 1:
            receivers = receivers * len(senders)
        if len(senders) != len(receivers):
            raise ValueError(
                f"there are {len(senders)} hosts to send and {len(receivers)} to receive; "
                "pairs need as many of both, or one alone on one side"
            )
        return list(zip(senders, receivers, strict=True))


KINDS: dict[str, type[Permutation | Pairs]] = {"permutation": Permutation, "pairs": Pairs}


def chosen(patterns: Sequence[str], hosts: Sequence[str], kind: str = "host") -> list[str]:
    """The hosts that fit, in the order of the patterns and then of their declaration, each once. ValueError: none."""
    names: dict[str, None] = {}
    for pattern in patterns:
        fitting = [host for host in hosts if fnmatchcase(host, pattern)]
        if not fitting:
            raise ValueError(f"no {kind} fits '{pattern[:40]}'; {nearest(pattern, hosts)}".rstrip("; "))
        names |= dict.fromkeys(fitting)
    return list(names)


def derangement(names: Sequence[str], seed: int) -> list[str]:
    """A permutation of the names that leaves none in its place, each such permutation equally likely.

    Fisher and Yates shuffles until none is left in place: 2.7 of them in the mean, since a share 1/e of all
    permutations has no fixed point. The order depends on the seed alone (SHA-256), on every machine.
    """
    round_ = 0
    while True:
        order = list(names)
        for last in range(len(order) - 1, 0, -1):
            other = _number(seed, round_, last) % (last + 1)
            order[last], order[other] = order[other], order[last]
        if all(a != b for a, b in zip(names, order, strict=True)):
            return order
        round_ += 1


def _number(seed: int, round_: int, step: int) -> int:
    """64 bits that the seed decides."""
    from hashlib import sha256

    return int.from_bytes(sha256(f"permutation {seed} {round_} {step}".encode()).digest()[:8], "big")


def flows(kind: str, part: Permutation | Pairs, hosts: Sequence[str]) -> list[dict[str, Any]]:
    """The entries that a generated one stands for. Raises ValueError."""
    if len(part.each) != 1 or not isinstance(next(iter(part.each.values())), dict):
        raise ValueError(
            f"each is one entry of the traffic without its ends, not {str(part.each)[:60]}; "
            "write each: {bulk: {duration: 10s}}"
        )
    ((entry, options),) = part.each.items()
    ends = part.ends(hosts)
    if len(ends) > MAX_FLOWS:
        raise ValueError(
            f"this {kind} has {len(ends)} flows; a plan has at most {MAX_FLOWS}: name fewer hosts"
        )
    ends_given = [name for name in ("from", "to") if name in options]
    if ends_given:
        raise ValueError(f"the {kind} itself decides '{ends_given[0]}'; leave it out of each")
    return [{entry: {"name": f"{a}-{b}"[:_NAME_MAX], **options, "from": a, "to": b}} for a, b in ends]
