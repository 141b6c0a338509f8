"""Schedulers that tests of prototypes over `remote` run, and scenarios for them."""

from __future__ import annotations

LINES = (("h1-h2", 8, 10.0), ("h1-h2#2", 4, 20.0))
"""Name, Mbit/s and delay in ms each way of the lines between two hosts."""


def scenario(flow: str, more: str = "") -> str:
    """Return a scenario with a prototype flow over two lines, and `more` at its end."""
    links = ", ".join(f"{name}: {{rate: {mbit}mbit, delay: {delay_ms}ms}}" for name, mbit, delay_ms in LINES)
    return (
        f"title: A prototype between two hosts\nnetwork: {{hosts: [h1, h2], links: {{{links}}}}}\n"
        f"traffic:\n  - prototype: {{from: h1, to: h2, {flow}}}\nrepeat: 1\n{more}"
    )


def scheduler(body: str) -> str:
    """Return a file with a scheduler `Mine`. `body` is the first line of `pick`, line 9."""
    return (
        "import itertools\nimport time\n\nfrom plait.prototype import Scheduler\n\n\nclass Mine(Scheduler):\n"
        f"    def pick(self, paths, segment):\n        {body}\n        return paths[0]\n"
    )


WRONG = {
    "raise ValueError('no')": r"mine\.py:9: pick\(\) of Mine raised ValueError: no",
    "return 'nonsense'": r"mine\.py:8: pick\(\) of Mine returned 'nonsense'; return a path",
    "return [paths[0], paths[0]]": r"mine\.py:8: pick\(\) of Mine returned the same path twice",
    "return type(paths[0])(9, 'gone')": r"mine\.py:8: pick\(\) of Mine returned path gone, which is not in `paths`",
    "return None": r"mine\.py:8: pick\(\) of Mine chose no path for 1 s",
    "for _ in range(10**9): pass": r"mine\.py:9: pick\(\) executed more than 100000 lines",
    "time.sleep(1000)": r"mine\.py:9: pick\(\) of Mine raised TimeoutError: it did not return for 10 s",
    "sum(itertools.repeat(1))": r"mine\.py:9: pick\(\) of Mine did not return",
    "import os; os.kill(os.getppid(), 9)": r"mine\.py:9: pick\(\) of Mine raised PermissionError",
    "open('/etc/hostname')": r"mine\.py:9: pick\(\) of Mine raised PermissionError",
    "import socket; socket.socket()": r"mine\.py:9: pick\(\) of Mine raised PermissionError",
    "import csv": r"mine\.py:9: pick\(\) of Mine raised ModuleNotFoundError",
}
"""What a scheduler does wrong, and the error of its trial."""
