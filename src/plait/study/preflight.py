"""What a scenario asks for and kernel or machine lack: found before anything runs, and said with what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.errors import ScenarioError
from plait.plan.network import sysctls
from plait.scenario.read.source import Source
from plait.scenario.read.wording import closest
from plait.study.preflight_programs import missing_programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from plait.engine.inventory import Inventory, Setting
    from plait.errors import Mistake
    from plait.scenario.mistakes import Where
    from plait.scenario.vary.cases import Case

    Field = tuple[Where, object]
    Ask = Callable[[Iterable[Setting]], Inventory | None]

_KINDS = {
    "congestion_control": ("congestion_controls", "congestion control"),
    "scheduler": ("schedulers", "MPTCP scheduler"),
}
"""By the name of a field, in any part of a scenario: where the inventory has what there is, and what it is called."""
_CHOSEN = {"net/ipv4/tcp_congestion_control": "congestion_control", "net/mptcp/scheduler": "scheduler"}
"""Sysctls whose value is the name of an algorithm."""
_MANY = 24


def refuse_what_is_missing(cases: Sequence[Case], ask: Ask) -> None:
    """Raises ScenarioError, with each mistake in its place, when kernel or machine lack what a case asks for.

    `ask` gives the inventory of the kernel that will run them, with settings to be tried.
    """
    base = ask(())
    if base is None:
        return
    found: dict[str, Mistake] = {}
    tries: dict[Setting, tuple[Case, Where]] = {}
    for case in cases:
        for where, what in missing_programs(case.scenario.programs):
            _add(found, case, where, what)
        fields = list(_walk(_given(case)))
        wanted = list(_settings(fields))
        for where, path, value in wanted:
            wrong = _wrong_sysctl(base, path, value)
            if wrong is not None:
                _add(found, case, where, wrong)
            elif path not in _CHOSEN:
                tries.setdefault((path, value), (case, where))
        for where, kind, name in _algorithms(fields, wanted):
            wrong = _wrong_algorithm(base, kind, name)
            if wrong is not None:
                _add(found, case, where, wrong)
    refused = ask(tries) if tries else None
    for refusal in refused.refused if refused is not None else ():
        case, where = tries[refusal.path, refusal.value]
        what = f"the kernel does not take {refusal.value!r}: {refusal.why}; {_default(base, refusal.path)}"
        _add(found, case, where, what)
    if found:
        raise ScenarioError(
            sorted(found.values(), key=lambda mistake: (mistake.line or 0, mistake.column or 0))
        )


def _add(found: dict[str, Mistake], case: Case, where: Where, what: str) -> None:
    source = case.scenario.source or Source("")
    mistake = source.mistake(case.place(case.scenario.place(where)), what)
    found.setdefault(str(mistake), mistake)


def _given(case: Case) -> dict[str, object]:
    left_out = {"vary", "title", "description", "published"}
    return case.scenario.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=left_out)


def _walk(value: object, where: Where = ()) -> Iterator[Field]:
    """Every value inside mappings and lists, with its place."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*where, key), inner
        yield from _walk(inner, (*where, key))


def _settings(fields: Iterable[Field]) -> Iterator[tuple[Where, str, str]]:
    """Every sysctl that is given anywhere: its place, path and value."""
    for where, value in fields:
        if not isinstance(value, dict):
            continue
        if where[-1] == "sysctls" and where[0] != "events":
            for name, text in value.items():
                yield (*where, name), sysctls.path(name), str(text)
        elif where[0] == "events" and where[-2:-1] == ("sysctls",):
            for name, text in value.items():
                yield (*where, name), _of_any_interface(sysctls.path(name)), str(text)


def _of_any_interface(path: str) -> str:
    """In the course of a trial there are interfaces; what is known of all of them is the default's."""
    parts = path.split("/")
    if parts[2:3] == ["conf"] and len(parts) > 4:
        parts[3] = "default"
    return "/".join(parts)


def _algorithms(
    fields: Iterable[Field], settings: Iterable[tuple[Where, str, str]]
) -> Iterator[tuple[Where, str, str]]:
    """Every algorithm that is named anywhere: its place, kind and name."""
    for where, value in fields:
        if where[-1] in _KINDS and isinstance(value, str):
            yield where, str(where[-1]), value
    for where, path, value in settings:
        if path in _CHOSEN:
            yield where, _CHOSEN[path], value


def _wrong_algorithm(base: Inventory, kind: str, name: str) -> str | None:
    attribute, what = _KINDS[kind]
    known: tuple[str, ...] = getattr(base, attribute)
    if name in known:
        return None
    close = closest(name, known)
    guess = f"did you mean '{close}'? " if close is not None else ""
    return f"this kernel has no {what} '{name}'; {guess}there is: {', '.join(sorted(known))}"


def _wrong_sysctl(base: Inventory, path: str, value: str) -> str | None:
    """What is wrong with the name of a sysctl; nothing is said of its value."""
    known = base.sysctls.get(path)
    if known is not None and (known.writable or known.value == value):
        return None
    name = _dotted(path)
    if known is not None or path in base.shared_sysctls:
        return f"{name} is the same for all hosts, or only to be read; leave it out"
    parts = path.split("/")
    default = "/".join([*parts[:3], "default", *parts[4:]])
    if parts[2:3] == ["conf"] and default in base.sysctls:
        return f"there are no interfaces yet when this is set; write {_dotted(default)}"
    return f"this kernel has no sysctl {name}; {_hint(base, path)}"


def _hint(base: Inventory, path: str) -> str:
    """The nearest name, and the names beside it when they are few."""
    close = closest(path, [known for known, sysctl in base.sysctls.items() if sysctl.writable])
    hints = [f"did you mean '{_dotted(close)}'?"] if close is not None else []
    folder = path.rpartition("/")[0]
    beside = sorted(known.rpartition("/")[2] for known in base.sysctls if known.rpartition("/")[0] == folder)
    if 0 < len(beside) <= _MANY:
        hints.append(f"in {_dotted(folder)} there is: {', '.join(beside)}")
    return " ".join(hints) or "see the kernel's Documentation/networking/ip-sysctl.rst for the names"


def _default(base: Inventory, path: str) -> str:
    known = base.sysctls.get(path)
    return f"its default is {known.value!r}" if known is not None and known.value else "leave it out"


def _dotted(path: str) -> str:
    return path.replace("/", ".")
