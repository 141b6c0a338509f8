"""Check that the kernel and the host provide what the scenario needs, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from plait.bpf.programs import ALGORITHMS, LOADER_OF_SCHEDULERS, SCHEDULERS
from plait.engine.inventory import Inventory, Setting
from plait.errors import Mistake, ScenarioError
from plait.plan.network import sysctls
from plait.scenario.mistakes import Where
from plait.scenario.source import Source
from plait.scenario.vary.cases import Case
from plait.scenario.wording import closest
from plait.study.preflight.programs import missing_programs

Field = tuple[Where, object]
Ask = Callable[[Iterable[Setting]], Inventory | None]

_KINDS = {
    "congestion_control": ("congestion_controls", "congestion control"),
    "scheduler": ("schedulers", "MPTCP scheduler"),
}
"""By field name anywhere in a scenario: the inventory's attribute with the names, and what messages call them."""
_ALGORITHM_SYSCTLS = {
    "net/ipv4/tcp_congestion_control": "congestion_control",
    "net/mptcp/scheduler": "scheduler",
}
"""Sysctls whose value is the name of an algorithm, and the kind of algorithm."""
_MAX_LISTED = 24
_BY_BPF = dict.fromkeys(
    ALGORITHMS,
    "; a stock kernel from Linux 6.12 on gets it as a BPF program (--engine machine --kernel debian:6.12), which needs "
    "bpftool (`plait doctor`)",
) | dict.fromkeys(
    SCHEDULERS,
    "; plait's own kernel has it (--engine virtual), and one with the struct_ops mptcp_sched_ops, which no release of "
    f"Linux has yet, gets it as a BPF program, by {LOADER_OF_SCHEDULERS}",
)
_NO_TRACE = (
    "this kernel has no trace events; build one with `plait kernel build --tree DIR --tracing --name traced`, "
    "and run with --kernel traced"
)


def refuse_what_is_missing(cases: Sequence[Case], ask: Ask) -> None:
    """Raise ScenarioError, with the place of each mistake, if the kernel or the host lacks what a case needs.

    `ask` returns the inventory of the kernel that will run the cases, after it has tried the given settings.
    """
    base = ask(())
    if base is None:
        return
    mistakes: dict[str, Mistake] = {}
    tries: dict[Setting, tuple[Case, Where]] = {}
    for case in cases:
        for place, reason in missing_programs(case.scenario.programs):
            add(mistakes, case, place, reason)
        for place, reason in _trace_problems(base, case.scenario.monitors.tracepoints):
            add(mistakes, case, place, reason)
        fields = list(_walk(_case_fields(case)))
        settings = list(_settings(fields))
        for place, path, value in settings:
            problem = _sysctl_problem(base, path, value)
            if problem is not None:
                add(mistakes, case, place, problem)
            elif path not in _ALGORITHM_SYSCTLS:
                tries.setdefault((path, value), (case, place))
        for place, kind, name in _algorithms(fields, settings):
            problem = _algorithm_problem(base, kind, name)
            if problem is not None:
                add(mistakes, case, place, problem)
    refused = ask(tries) if tries else None
    for refusal in refused.refused if refused is not None else ():
        case, place = tries[refusal.path, refusal.value]
        problem = f"the kernel rejects {refusal.value!r}: {refusal.why}; {_default(base, refusal.path)}"
        add(mistakes, case, place, problem)
    refuse(mistakes)


def refuse(mistakes: Mapping[str, Mistake]) -> None:
    """Raise ScenarioError with these mistakes in the order of the file, if there are any."""
    if mistakes:
        raise ScenarioError(
            sorted(mistakes.values(), key=lambda mistake: (mistake.line or 0, mistake.column or 0))
        )


def add(mistakes: dict[str, Mistake], case: Case, place: Where, problem: str) -> None:
    """Add a mistake in a field of a case, unless another case has the same one."""
    source = case.scenario.source or Source("")
    mistake = source.mistake(case.place(case.scenario.place(place)), problem)
    mistakes.setdefault(str(mistake), mistake)


def _case_fields(case: Case) -> dict[str, object]:
    ignored = {"vary", "title", "description", "published"}
    return case.scenario.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=ignored)


def _walk(value: object, place: Where = ()) -> Iterator[Field]:
    """Yield every value inside mappings and lists, with its place."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*place, key), inner
        yield from _walk(inner, (*place, key))


def _settings(fields: Iterable[Field]) -> Iterator[tuple[Where, str, str]]:
    """Yield the place, path and value of every sysctl in the scenario."""
    for place, value in fields:
        if not isinstance(value, dict):
            continue
        if place[-1] == "sysctls" and place[0] != "events":
            for name, text in value.items():
                yield (*place, name), sysctls.path(name), str(text)
        elif place[0] == "events" and place[-2:-1] == ("sysctls",):
            for name, text in value.items():
                yield (*place, name), _with_default_interface(sysctls.path(name)), str(text)


def _with_default_interface(path: str) -> str:
    """Return the path with `default` in place of an interface, which exists only while a trial runs."""
    parts = path.split("/")
    if parts[2:3] == ["conf"] and len(parts) > 4:
        parts[3] = "default"
    return "/".join(parts)


def _algorithms(
    fields: Iterable[Field], settings: Iterable[tuple[Where, str, str]]
) -> Iterator[tuple[Where, str, str]]:
    """Yield the place, kind and name of every algorithm of the kernel in the scenario."""
    for place, value in fields:
        if place[-1] in _KINDS and isinstance(value, str) and "prototype" not in place:
            yield place, str(place[-1]), value
    for place, path, value in settings:
        if path in _ALGORITHM_SYSCTLS:
            yield place, _ALGORITHM_SYSCTLS[path], value


def _algorithm_problem(base: Inventory, kind: str, name: str) -> str | None:
    attribute, title = _KINDS[kind]
    names: tuple[str, ...] = getattr(base, attribute)
    if name in names:
        return None
    close = closest(name, names)
    guess = f"did you mean '{close}'? " if close is not None else ""
    hint = _BY_BPF.get(name, "")
    return f"this kernel has no {title} '{name}'; {guess}there is: {', '.join(sorted(names))}{hint}"


def _trace_problems(base: Inventory, names: Sequence[str]) -> Iterator[tuple[Where, str]]:
    """Yield the place of each trace event that the kernel lacks, and why."""
    if names and not base.trace_events:
        yield ("monitors", "tracepoints"), _NO_TRACE
        return
    for i, name in enumerate(names):
        if not any(fnmatchcase(event, name) for event in base.trace_events):
            close = closest(name, base.trace_events)
            system = name.partition(":")[0]
            beside = [event for event in base.trace_events if event.partition(":")[0] == system]
            hint = f"did you mean '{close}'?" if close is not None else "leave it out"
            if 0 < len(beside) <= _MAX_LISTED:
                hint = f"there is: {', '.join(beside)}"
            yield ("monitors", "tracepoints", i), f"this kernel has no trace event '{name}'; {hint}"


def _sysctl_problem(base: Inventory, path: str, value: str) -> str | None:
    """Return what is wrong with the name of a sysctl; does not check its value."""
    sysctl = base.sysctls.get(path)
    if sysctl is not None and (sysctl.writable or sysctl.value == value):
        return None
    name = _dotted(path)
    if sysctl is not None or path in base.shared_sysctls:
        return f"{name} is the same for all hosts or read-only; leave it out"
    parts = path.split("/")
    default = "/".join([*parts[:3], "default", *parts[4:]])
    if parts[2:3] == ["conf"] and default in base.sysctls:
        return f"plait sets this before the interfaces exist; write {_dotted(default)}"
    return f"this kernel has no sysctl {name}; {_hint(base, path)}"


def _hint(base: Inventory, path: str) -> str:
    """Return the nearest name, and the other names in its folder if they are few."""
    close = closest(path, [name for name, sysctl in base.sysctls.items() if sysctl.writable])
    hints = [f"did you mean '{_dotted(close)}'?"] if close is not None else []
    folder = path.rpartition("/")[0]
    beside = sorted(name.rpartition("/")[2] for name in base.sysctls if name.rpartition("/")[0] == folder)
    if 0 < len(beside) <= _MAX_LISTED:
        hints.append(f"in {_dotted(folder)} there is: {', '.join(beside)}")
    return " ".join(hints) or "see the kernel's Documentation/networking/ip-sysctl.rst for the names"


def _default(base: Inventory, path: str) -> str:
    sysctl = base.sysctls.get(path)
    return f"its default is {sysctl.value!r}" if sysctl is not None and sysctl.value else "leave it out"


def _dotted(path: str) -> str:
    return path.replace("/", ".")
