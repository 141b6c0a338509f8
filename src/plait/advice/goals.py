"""What the lines are for: the traffic of each goal, and the metric that judges it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from plait.errors import RequestError
from plait.scenario.wording import nearest

Traffic = Callable[[str, str], list[dict[str, Any]]]
"""Return the traffic between client and server."""


@dataclass(frozen=True)
class Goal:
    """One use of the lines."""

    name: str
    metric: str
    """The metric of a trial that judges it (`plait.metrics`)."""
    flow: str
    """How the names of the flows begin whose explanation says first what limits it."""
    words: str
    """The traffic in words."""
    traffic: Traffic
    crossings: int = 0
    """How often the delay of a line is in the metric: once, or there and back."""


def _bulk(client: str, server: str, name: str, seconds: int = 10, **further: bool) -> dict[str, Any]:
    ends = {"from": server, "to": client, "reverse": True}
    if name == "upload":
        ends = {"from": client, "to": server}
    return {"bulk": {**ends, "name": name, "duration": f"{seconds}s", **further}}


def _call(client: str, server: str) -> list[dict[str, Any]]:
    voice = {
        "from": client,
        "to": server,
        "message": "160B",
        "every": "20ms",
        "duration": "10s",
        "nodelay": True,
    }
    return [
        _bulk(client, server, "download", 13, background=True),
        {"stream": {**voice, "name": "call", "start": "2s"}},
        {"stream": {**voice, "name": "answer", "from": server, "to": client, "reverse": True, "start": "2s"}},
    ]


def _video(client: str, server: str) -> list[dict[str, Any]]:
    chunk = {"from": client, "to": server, "name": "video", "response": "2MB", "gap": "1s", "duration": "20s"}
    return [{"request": chunk}]


def _pages(client: str, server: str) -> list[dict[str, Any]]:
    page = {"from": client, "to": server, "name": "page", "objects": ["50KB", "30x 30KB"], "connections": 6}
    return [{"page": {**page, "rounds": 5, "round_gap": "1s"}}]


GOALS = {
    goal.name: goal
    for goal in (
        Goal(
            "download", "goodput_bps", "download", "one connection downloads for ten seconds",
            lambda client, server: [_bulk(client, server, "download")],
        ),
        Goal(
            "upload", "goodput_bps", "upload", "one connection uploads for ten seconds",
            lambda client, server: [_bulk(client, server, "upload")],
        ),
        Goal(
            "call", "message_delay_p95_us", "call",
            "50 messages a second each way for ten seconds, beside a download", _call, 1,
        ),
        Goal(
            "video", "request_latency_p95_us", "video", "chunks of 2 MB, a second after each other, for 20 s",
            _video, 2,
        ),
        Goal("pages", "page_load_s", "page", "a page of 950 KB in six connections, five times", _pages, 2),
    )
}  # fmt: skip


def goals_named(text: str) -> tuple[Goal, ...]:
    """Return the goals of a list such as `download,call` (RequestError for another name)."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in GOALS:
            right = nearest(name, GOALS) or f"there is: {', '.join(GOALS)}"
            raise RequestError(f"--for {name}: there is no such goal; {right}")
    if not names:
        raise RequestError(f"--for names no goal; write one or more of {', '.join(GOALS)}")
    return tuple(GOALS[name] for name in dict.fromkeys(names))
