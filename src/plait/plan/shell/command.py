"""One command of a shell script. Pure."""

from __future__ import annotations

from shlex import quote


def command_in(netns: str, tool: str, *words: object) -> str:
    """A command of `ip`, `bridge` or `tc` in a namespace."""
    return " ".join([tool, "-n", quote(netns), *(quote(str(word)) for word in words)])
