"""What tests of the pages share: a browser, studies, and an address of a server or of an export."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fake_plans import FakeFlow, FakePath, fake_plan
from pages.browser import browser
from pages.view_visitor import Visitor, served
from plait.report import build
from plait.view.export import export_site
from result_folders import FakeCase, fresh_cache, two_paths, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chrome]:
    with browser() as driver:
        yield driver


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        fresh_cache(patch, tmp_path_factory.mktemp("cache"))
        yield


def point(transport: str, rate: int, delay: int) -> FakeCase:
    paths = (FakePath(), FakePath(rate_bps=rate * 10**6, delay_ns=delay * 10**6))
    settings = {
        "transport": transport,
        "network.links.h1-s2.rate": f"{rate}mbit",
        "network.links.h1-s2.delay": f"{delay}ms",
    }
    name = f"transport={transport},rate={rate}mbit,delay={delay}ms"
    failed = {1: "the guest panicked"} if (transport, rate, delay) == ("tcp", 2, 5) else {}
    return FakeCase(
        name, settings, lambda seed: fake_plan(FakeFlow(transport=transport), paths=paths, seed=seed), failed
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with a map and a failed trial, and two studies of the same two cases."""
    folder = tmp_path_factory.mktemp("results")
    points = tuple(
        point(kind, rate, delay) for kind in ("tcp", "mptcp") for rate in (2, 8) for delay in (5, 50)
    )
    caution = {"code": "QUEUE", "message": "the queue is short", "remedy": "make it longer"}
    write_study(folder / "grid", points, repeat=2, title="A grid", cautions=(caution,))
    for name in ("after", "before"):
        write_study(folder / name, two_paths(), repeat=1, title=f"A pair, {name}")
    build(folder / "grid")
    return folder


@pytest.fixture(scope="module")
def address(results: Path) -> Iterator[str]:
    with served(results) as server:
        yield server.address


@pytest.fixture(scope="module")
def exported(results: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    target = tmp_path_factory.mktemp("site")
    export_site([results], target, lambda _: None)
    return (target / "index.html").as_uri()


@pytest.fixture(params=["server", "export"])
def visitor(request: pytest.FixtureRequest, chromium: Chrome) -> Visitor:
    """A visitor of the server, and of an export that was opened as a file."""
    return Visitor(chromium, request.getfixturevalue("address" if request.param == "server" else "exported"))
