"""Format one command of a shell script."""

from __future__ import annotations

from shlex import quote


def command_in(netns: str, tool: str, *words: object) -> str:
    """Return a command of `ip`, `bridge` or `tc` in a namespace."""
    return " ".join([tool, "-n", quote(netns), *(quote(str(word)) for word in words)])
