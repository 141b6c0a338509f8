"""Choose cases as people name them: by the whole name, a part of it, or a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plait.errors import RequestError
from plait.scenario.wording import nearest

_SHOWN = 8


def choose_case(requested: str, names: Sequence[str], shown: Mapping[str, str] | None = None) -> str:
    """Return the one case that `--case` means.

    That is the case of this name; or the case with this number, from 1 in the order of `names`; or the only one whose
    name has all of these parts: `scheduler=minrtt` or its value `minrtt`, or several with a comma in between. If none
    has them, the parts may also be those of what a screen calls the case (`shown`, by name): `MPTCP`, `loss 2%`.

    Raises:
        RequestError: no case or several cases fit.
    """
    if requested in names:
        return requested
    if requested.isascii() and requested.isdecimal() and len(requested) < 10:
        if not 1 <= int(requested) <= len(names):
            raise RequestError(f"--case {requested}: there are {len(names)} cases, numbered from 1")
        return names[int(requested) - 1]
    parts = {part.strip() for part in requested.split(",")}
    fitting = [name for name in names if parts <= _parts_of(name)]
    if not fitting:
        parts, called = set(map(_as_shown, parts)), shown or {}
        fitting = [
            name
            for name in names
            if parts <= set(map(_as_shown, {*_parts_of(name), *called.get(name, "").split(",")}))
        ]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        listed = "; ".join(fitting[:_SHOWN]) + ("; .." if len(fitting) > _SHOWN else "")
        raise RequestError(
            f"--case {requested}: {len(fitting)} cases have this part: {listed}; add another part"
        )
    hint = nearest(requested, names) or "there is: " + "; ".join(names[:_SHOWN])
    raise RequestError(f"--case {requested}: there is no such case; {hint}")


def _as_shown(part: str) -> str:
    """Return a part without what a screen and a name spell in different ways: capitals, spaces and percent signs."""
    return " ".join(part.casefold().replace("pct", "%").split())


def _parts_of(name: str) -> set[str]:
    """Return the accepted spellings of a part of a case's name: `scheduler=minrtt`, and `minrtt`."""
    parts = name.split(",")
    return {*parts, *(part.partition("=")[2] for part in parts if "=" in part)}
