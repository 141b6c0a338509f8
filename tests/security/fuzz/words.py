"""The fuzzer replaces values by extremes, hostile text, and words that plait knows."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

SCHEMA = Path(__file__).parents[3] / "docs" / "reference" / "scenario.schema.json"
NUMBERS = [0, 1, -1, 2, 3, 8, 9, 255, 256, 1000, 1001, 4096, 4097, 2**31, 2**53, 2**63, 2**64, -(2**63),
           10**30, 10**300, 0.1, -0.5, 1e-300, 1e300, float("nan"), float("inf"), float("-inf"), -0.0]  # fmt: skip
QUANTITIES = ["0mbit", "1bit", "1kbit", "999gbit", "99999999gbit", "-5mbit", "5", "5mbps", "1e9mbit",
              "0ms", "1ns", "1us", "999s", "60s", "1h", "9999h", "-1s", "0%", "0.0000001%", "50%", "100%",
              "101%", "1B", "0B", "64KiB", "4294967296B", "1TiB", "0pkt", "1pkt", "999999pkt", "1bdp",
              "0bdp", "99999bdp", "exponential 1s", "10x 20KB", "9999x 1B", "until 2%",
              "until 0%, at least 999999"]  # fmt: skip
RANGES = ["1..8", "8..1", "0..0", "1..1000", "1..1001", "0..999999999999999", "1mbit..1gbit log 10",
          "0..5 log 3", "10ms..100ms step 10ms", "0%..5% step 0.000000001%", "1ms..1gbit 4", "1..2 1000",
          "1B..2B log 999"]  # fmt: skip
TEXTS = ["", " ", "\x00", "\x07", "\x1b[2J", "\x7f", "\x85", "\u2028", "\u202e", "\ufeff", "\U0001f600",
         "\ud7ff", "é", "\ufb00", "\u0661", "h1\n", "a\tb", "'", '"', "`id`", "$(id)", "; rm -rf x",
         "&& x", "| x", "-", "--", "-rf", "#", "%s", "{0}", "{", "}", "{}", "[", "]", "*", "?", "[a",
         "[!a]", "h*", "*.*", "..", ".", "/", "../../x", "/etc/passwd", "/dev/zero", "/proc/self/mem", "~",
         "null", "true", "yes", "0x10", "0o7", "1_000", "1e5", "<<", "!!str", "&a", "@", "wire", "h1",
         "h2", "h1-h2", "h1-h1", "h1-h2#2", "h1-h2#0", "a" * 33, "a" * 201, "x" * 19_999, "-" * 199,
         "10.0.0.1", "10.0.0.1/24", "10.0.0.0/0", "::1", "fe80::1/64", "2001:db8::1/127",
         "255.255.255.255/32", "0.0.0.0/0", "0::/0", "tcp", "mptcp", "cubic", "default"]  # fmt: skip


@cache
def _known() -> tuple[list[str], list[str]]:
    """Return the names of all fields and the words that fields take, by the schema."""
    fields: set[str] = set()
    words: set[str] = set()

    def collect(part: Any) -> None:
        if isinstance(part, dict):
            fields.update(part.get("properties", ()))
            words.update(str(word) for key in ("enum", "examples") for word in part.get(key, ()))
            words.update(str(part[key]) for key in ("const", "default") if isinstance(part.get(key), str))
            for inner in part.values():
                collect(inner)
        elif isinstance(part, list):
            for inner in part:
                collect(inner)

    collect(json.loads(SCHEMA.read_text(encoding="utf-8")))
    return sorted(fields), sorted(words)


def field(random: Random) -> str:
    """Return a field's name, mostly one that exists."""
    return random.choice(_known()[0]) if random.random() < 0.9 else random.choice(TEXTS)


def value(random: Random, depth: int = 0) -> Any:
    """Return any value: mostly one word, sometimes a structure, rarely a large or deep one."""
    kind = random.randrange(14 if depth < 3 else 9)
    if kind < 2:
        return random.choice(NUMBERS)
    if kind < 4:
        return random.choice(QUANTITIES)
    if kind < 5:
        return random.choice(RANGES)
    if kind < 7:
        return random.choice(TEXTS)
    if kind < 8:
        return random.choice(_known()[1])
    if kind < 9:
        return random.choice([None, True, False])
    if kind < 11:
        return [value(random, depth + 1) for _ in range(random.choice([0, 1, 2, 3, 8]))]
    if kind < 13:
        return {field(random): value(random, depth + 1) for _ in range(random.choice([0, 1, 2, 4]))}
    return _large(random)


def _large(random: Random) -> Any:
    size = random.choice([100, 999, 1000, 1001, 4096, 4097])
    word = random.choice([*NUMBERS, *QUANTITIES, *RANGES])
    deep: Any = word
    for _ in range(random.choice([12, 19, 20, 21, 40])):
        deep = [deep] if random.random() < 0.5 else {"a": deep}
    return random.choice([[word] * size, {f"k{i}": word for i in range(size)}, deep])
