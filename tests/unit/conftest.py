"""Keep tests of this folder from the kernel and the network, and mark those that `make quick` leaves out.

A program that a test starts is not watched in turn.
"""

from __future__ import annotations

import ipaddress
import sys
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from plait.kernel.cache import kernels_root

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

HERE = Path(__file__).parent
SLOW = {
    "api/test_api.py": "whole studies",
    "artefact/test_artefact.py": "whole studies",
    "cli/test_explain_trials.py": "whole studies",
    "kernel/test_kernel_bisect_scenario.py": "hundreds of trials",
    "plan/lint/test_field_effects.py": "plans of all shipped scenarios, each field changed",
    "report/figures/test_figure_files.py": "whole reports",
    "report/figures/test_figure_kinds.py": "a hundred figures",
    "report/figures/test_many_cases.py": "reports of many cases",
    "report/test_kept_results.py": "whole reports, twice",
    "report/test_partial_report.py": "whole reports",
    "report/test_report.py": "whole reports",
    "report/test_report_figures.py": "hundreds of figures",
    "report/test_report_in_windows.py": "a browser",
    "results/test_merge.py": "whole studies",
    "test_dist.py": "archives and wheels",
    "test_release.py": "archives and wheels",
    "study/executors": "clusters of processes",
    "study/test_bundle.py": "whole studies",
    "test_site.py": "a build of the documentation",
    "view": "a browser, and exports of whole studies",
}
"""Files and folders whose tests cost seconds each, and what costs them."""

KERNELS = kernels_root()
EMULATOR = "qemu-system"
_watched = False


def refuse_boots_and_networks(event: str, arguments: Sequence[object]) -> None:
    """Refuse to start the laboratory kernel or an emulator, and to connect beyond this machine (see `sys.audit`).

    Raises:
        RuntimeError: says what the test started.
    """
    if not _watched:
        return
    if event == "subprocess.Popen":
        words = [str(arguments[0]), *map(str, arguments[1] or ())]
        boots = [word for word in words if f"{KERNELS}/" in word or EMULATOR in Path(word[:4096]).name]
        if boots:
            raise RuntimeError(
                f"starting a guest in tests/unit: {words[0]}; move the test to another folder of tests"
            )
    elif event == "socket.connect" and isinstance(arguments[1], tuple):
        refuse_remote(arguments[1][0])
    elif event == "socket.getaddrinfo":
        refuse_remote(arguments[0])


def refuse_remote(host: object) -> None:
    """Refuse an address or a name that is not this machine's; None is this machine."""
    name = host.decode() if isinstance(host, bytes) else host
    try:
        is_local = name in (None, "", "localhost") or _plain(str(name)).is_loopback
    except ValueError:
        is_local = False
    if not is_local:
        raise RuntimeError(f"connecting to {name} in tests/unit; serve it on 127.0.0.1")


def _plain(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address, as IPv4 if it is one in IPv6's form (ValueError)."""
    parsed = ipaddress.ip_address(address)
    return getattr(parsed, "ipv4_mapped", None) or parsed


sys.addaudithook(refuse_boots_and_networks)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for name in SLOW:
        if not (HERE / name).exists():
            raise pytest.UsageError(
                f"tests/unit/conftest.py marks {name} as slow, which does not exist; remove it"
            )
    slow = {HERE / name for name in SLOW}
    for path, among in groupby(items, key=attrgetter("path")):
        if not slow.isdisjoint((path, *path.parents)):
            for item in among:
                item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Watch the tests of this folder; pytest calls this hook for those of all folders."""
    global _watched  # noqa: PLW0603 - a hook of the interpreter cannot be removed, only switched off
    _watched = item.path.is_relative_to(HERE)
    try:
        return (yield)
    finally:
        _watched = False
