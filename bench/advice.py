"""Lets `plait advise` find settings that were planted on drawn pairs of lines, and nothing where nothing was.

    python bench/advice.py [NUMBER..]

Each of 30 pairs has one thing that a person can change: a deep queue, small buffers, a lossy line, or a line without an
endpoint. Ten further pairs have none. The script prints a line for each pair, and then how many were right: the planted
change is the best, is a part of the best, or is not shown to be worse than it.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from plait.advice.goals import GOALS
from plait.advice.search import AdviceRequest, search
from plait.engine.factory import make_engine
from plait.engine.request import EngineRequest
from plait.scenario import parse

SEED, PLANTED, CONTROLS, MINUTES = 2026, 30, 10, 0.5
LARGE = {"net.ipv4.tcp_rmem": "4096 131072 16777216", "net.ipv4.tcp_wmem": "4096 16384 16777216"}


def line(random: Random, *, queue_s: float = 0.03, loss: float = 0.0) -> dict[str, Any]:
    """Return a line whose full queues take `queue_s` to drain."""
    down, up, delay = random.choice([10, 20, 40, 60]), random.choice([5, 10, 20]), random.uniform(5, 30)
    sides = {
        side: {
            "rate": f"{rate}mbit",
            "delay": f"{delay:.1f}ms",
            "queue": f"{max(30_000, int(rate * 1e6 / 8 * queue_s))}B",
        }
        for side, rate in (("forward", up), ("backward", down))
    }
    return {**sides, **({"loss": f"{loss * 100:.2f}%"} if loss else {})}


def drawn(number: int) -> tuple[dict[str, Any], str, str | None]:
    """Return a scenario, the goal, and the planted change; None for a control."""
    random = Random(f"{SEED} {number}")
    sysctls, endpoints = LARGE, [{"link": "home-vps#2", "flags": ["subflow"]}]
    goal, planted = "download", None
    first, second = line(random), line(random)
    kind = ("queue", "buffers", "loss", "endpoint")[number % 4] if number < PLANTED else "none"
    if kind == "queue":
        first, goal, planted = line(random, queue_s=random.uniform(0.3, 1.0)), "call", "shape-cable"
    elif kind == "buffers":
        size = random.choice([100_000, 200_000])
        sysctls = dict.fromkeys(LARGE, f"4096 16384 {size}")
        planted = "buffers"
    elif kind == "loss":
        first, planted = line(random, loss=random.uniform(0.01, 0.02)), "bbr"
    elif kind == "endpoint":
        endpoints, planted = [], "use-lte"
    fields = {
        "title": f"pair {number}",
        "network": {
            "hosts": {name: {"sysctls": sysctls} for name in ("home", "vps")},
            "links": {
                "home-vps": {**first, "label": "cable (eth0)"},
                "home-vps#2": {**second, "label": "lte (wwan0)"},
            },
        },
        "mptcp": {
            "endpoints": {
                "home": endpoints,
                "vps": [{"link": "home-vps#2", "flags": ["signal"]}] if endpoints else [],
            }
        },
        "traffic": [{"bulk": {"from": "vps", "to": "home", "reverse": True, "duration": "10s"}}],
    }
    return fields, goal, planted


def main() -> None:
    """Advise on all pairs, or those given, and print how many advices are right."""
    right = {True: 0, False: 0}
    engine = partial(make_engine, request=EngineRequest())
    for number in map(int, sys.argv[1:] or range(PLANTED + CONTROLS)):
        fields, goal, planted = drawn(number)
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            scenario = parse(json.dumps(fields), f"pair-{number}", ())
            advice = search(scenario, AdviceRequest((GOALS[goal],), MINUTES, Path(folder)), engine)
        (found,) = advice.goals
        parts = {found.best, *found.ties} | set(advice.candidate(found.best).parts if found.best else ())
        is_right = planted in parts if planted else found.best is None
        right[planted is not None] += is_right
        took_s = time.monotonic() - began
        verdict = "right" if is_right else "WRONG"
        print(
            f"{number:2} {goal:8} planted {planted or '-':12} best {found.best or '-':24} {verdict} {took_s:4.0f} s"
        )
        sys.stdout.flush()
    print(f"planted: {right[True]} right; controls: {right[False]} right")


if __name__ == "__main__":
    main()
