"""A BPF program for stock kernels, compiled as a module, does the same at each ACK as the module of plait's kernel.

Virtual time is exact, so the tables of one seed are equal only if each window was. The program brings its own map of
subflows, arithmetic and clock; only what a loader of BPF provides comes from `program_as_module.h`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from conftest import run_plan
from plait.binaries import AGENT
from plait.engine.request import links_of_environment
from plait.engine.virtual.trial import VirtualEngine
from plait.kernel import additions, ensure
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

pytestmark = pytest.mark.guest

ROOT = Path(__file__).parents[2]
ALGORITHMS = ("lia", "olia", "balia", "wvegas")
THE_KERNELS_OWN = {"kernel.h", "plait_coupled.h"}
"""Headers that describe the kernel to a program, or a module's interface that `bpf/coupled.h` replaces."""


def with_headers(path: Path) -> Iterator[str]:
    """Yield the lines of a source of plait, with those of plait's headers and sources that it includes."""
    folders = (path.parent, ROOT / "bpf", ROOT / "kernel/congestion")
    for line in path.read_text(encoding="utf-8").splitlines():
        name = re.sub(r'#include "(.+)"|.*', r"\1", line)
        included = [folder / name for folder in folders if (folder / name).is_file()]
        if not included:
            yield line
        elif name not in THE_KERNELS_OWN:
            yield from with_headers(included[0])


def module_source() -> bytes:
    """Return the source of one module with all programs."""
    sources = [ROOT / "tests/coupling/program_as_module.h", ROOT / "bpf/coupled.h"]
    sources += [ROOT / f"bpf/{name}.bpf.c" for name in ALGORITHMS]
    lines = [line for path in sources for line in with_headers(path)]
    lines += ["int init_module(void)", "{", "return"]
    lines += [f"tcp_register_congestion_control(&{name}_program) ?:" for name in ALGORITHMS]
    return "\n".join([*lines, "0;", "}", 'MODULE_LICENSE("GPL");', ""]).encode()


def network(number: int, control: str) -> tuple[dict[str, object], list[object], list[object]]:
    """Return links, traffic and events: two ways to a bottleneck shared with TCP and one past it, and a dying path."""
    m, s, v, a, b, c, d = (f"{letter}{number}" for letter in "msvabcd")
    near = {"delay": "2ms", "jitter": {"within": "1ms", "reorder": False}}
    links = {
        f"{m}-{a}": near, f"{m}-{a}#2": near, f"{s}-{a}": near, f"{b}-{v}": {"delay": "1ms"},
        f"{a}-{b}": {"rate": "4mbit", "delay": "10ms", "queue": "40pkt"},
        f"{m}-{c}": {"rate": "3mbit", "delay": "30ms"}, f"{c}-{v}": {"delay": "1ms"},
        f"{m}-{d}": {"rate": "6mbit", "delay": "5ms"}, f"{m}-{d}#2": {"rate": "2mbit", "delay": "40ms"},
    }  # fmt: skip
    bulk = {"start": f"{100 + 70 * number}ms", "duration": "20s", "congestion_control": control}
    reno = bulk | {"transport": "tcp", "congestion_control": "reno"}
    traffic = [{"bulk": {"from": m, "to": to, "name": f"{m}-{to}"} | bulk} for to in (v, d)]
    events: list[object] = [{"at": "6s", "cut": f"{m}-{d}"}, {"at": "11s", "up": f"{m}-{d}"}]
    return links, [*traffic, {"bulk": {"from": s, "to": v, "name": f"{s}-{v}"} | reno}], events


def scenario(suffix: str) -> str:
    networks = [network(number, name + suffix) for number, name in enumerate(ALGORITHMS)]
    numbers = range(len(ALGORITHMS))
    return json.dumps({
        "title": "Each algorithm on networks of its own",
        "network": {
            "hosts": [f"{letter}{number}" for number in numbers for letter in "msvd"],
            "routers": [f"{letter}{number}" for number in numbers for letter in "abc"],
            "links": {name: link for links, _, _ in networks for name, link in links.items()},
        },
        "traffic": [flow for _, traffic, _ in networks for flow in traffic],
        "events": [event for _, _, events in networks for event in events],
        "sample": "50ms",
    })  # fmt: skip


@pytest.fixture(scope="module")
def engine_and_module(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[VirtualEngine, additions.AlgorithmSource]:
    """Return an engine that finds the module of all programs, and its source."""
    source = additions.AlgorithmSource("programs.c", module_source())
    kernel, target = ensure(), tmp_path_factory.mktemp("module") / "programs.ko"
    target.write_bytes(additions.compile_module(kernel, source).content)
    return VirtualEngine(kernel, AGENT, links=links_of_environment(), build=lambda _: target), source


def test_each_sample_of_a_program_is_that_of_the_module(
    engine_and_module: tuple[VirtualEngine, additions.AlgorithmSource], tmp_path: Path
) -> None:
    engine, source = engine_and_module
    tables: dict[str, dict[str, pl.DataFrame]] = {}
    for suffix in ("", "_bpf"):
        plan = resolve(expand(parse(scenario(suffix), "test.yaml"))[0].scenario, 7)
        machine = plan.machine.model_copy(update={"modules": (source.module,)})
        folder = tmp_path / f"with{suffix}"
        folder.mkdir()
        tables[suffix] = run_plan(engine, plan.model_copy(update={"machine": machine}), folder).tables
    module, program = tables.values()
    controls = program["flows"]["congestion_control"]
    assert set(controls) == {"reno", *(f"{name}_bpf" for name in ALGORITHMS)}
    assert set(module) == set(program)
    assert module["subflows"].height > 10_000
    assert program["flows"].with_columns(controls.str.strip_suffix("_bpf")).equals(module["flows"])
    for name in set(module) - {"flows"}:
        assert program[name].equals(module[name]), name
