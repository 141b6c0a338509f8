"""The environment of a program that runs in a guest."""

from __future__ import annotations

import os

from plait.errors import RequestError

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "PATH")


def environment_of(settings: list[str], *, terminal: bool) -> list[tuple[str, str]]:
    """Return the environment of a program in a guest: a few variables of plait's own environment, and `settings`.

    The few are always the same, so that a run is repeatable. Each setting is `NAME=VALUE`, or `NAME` for the value of
    plait's own variable. Raises RequestError for a setting without a name, or for a variable that is not set.
    """
    from plait.engine.virtual.services import COMMANDS

    passed_on = (*_PASSED_ON, "TERM") if terminal else _PASSED_ON
    environment = {name: os.environ[name] for name in passed_on if name in os.environ}
    path = environment.get("PATH", "").split(":")
    more = [folder for folder in (*_SYSTEM_PATH.split(":"), COMMANDS) if folder not in path]
    environment["PATH"] = ":".join(path + more).strip(":")
    environment |= {"USER": "root", "LOGNAME": "root"}
    for text in settings:
        name, equals, value = text.partition("=")
        if not name:
            raise RequestError(f"--env {text}: the variable has no name; write NAME=VALUE")
        if not equals and name not in os.environ:
            raise RequestError(f"--env {name}: this environment has no such variable; write {name}=VALUE")
        environment[name] = value if equals else os.environ[name]
    return sorted(environment.items())
