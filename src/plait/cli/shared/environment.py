"""The variables of programs that run in a guest."""

from __future__ import annotations

import os

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "PATH")


def environment_of(given: list[str], *, terminal: bool) -> list[tuple[str, str]]:
    """Returns a program's variables: little of plait's own, so that they are the same tomorrow, and what is `given`."""
    from plait.engine.uml.services import COMMANDS
    from plait.errors import RequestError

    passed_on = (*_PASSED_ON, "TERM") if terminal else _PASSED_ON
    environment = {name: os.environ[name] for name in passed_on if name in os.environ}
    path = environment.get("PATH", "").split(":")
    more = [one for one in (*_SYSTEM_PATH.split(":"), COMMANDS) if one not in path]
    environment["PATH"] = ":".join(path + more).strip(":")
    environment |= {"USER": "root", "LOGNAME": "root"}
    for text in given:
        name, equals, value = text.partition("=")
        if not name:
            raise RequestError(f"--env {text}: it has no name; write NAME=VALUE")
        if not equals and name not in os.environ:
            raise RequestError(f"--env {name}: there is no such variable here to pass on; write {name}=VALUE")
        environment[name] = value if equals else os.environ[name]
    return sorted(environment.items())
