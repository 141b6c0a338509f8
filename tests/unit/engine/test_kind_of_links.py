"""The kind of links that the engine for virtual time makes is the user's choice, and part of a trial's identity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plait.engine.request import EngineRequest
from plait.engine.virtual.trial import VirtualEngine
from plait.errors import RequestError
from plait.kernel import Kernel

if TYPE_CHECKING:
    from pathlib import Path


def test_the_environment_chooses_the_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLAIT_LINKS", raising=False)
    assert EngineRequest().links is None
    monkeypatch.setenv("PLAIT_LINKS", "chain")
    assert EngineRequest().links == "chain"


def test_another_word_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_LINKS", "veth")
    with pytest.raises(RequestError, match="PLAIT_LINKS=veth"):
        EngineRequest()


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "agent"
    path.write_bytes(b"agent")
    return path


def kernel(tmp_path: Path, content: bytes) -> Kernel:
    binary = tmp_path / "linux"
    binary.write_bytes(content)
    return Kernel("a" * 64, "6.12.1", binary, "b" * 64, 1000)


def test_links_are_devices_if_the_kernel_has_them(agent: Path, tmp_path: Path) -> None:
    warnings: list[str] = []
    engine = VirtualEngine(kernel(tmp_path, b"..plait_link\0.."), agent, warn=warnings.append)
    assert engine.identity().settings == ("links device",)
    assert engine.recipe().links == "device"
    assert warnings == []


def test_a_kernel_without_them_has_chains_and_says_so(agent: Path, tmp_path: Path) -> None:
    warnings: list[str] = []
    engine = VirtualEngine(kernel(tmp_path, b"..plait_links.."), agent, warn=warnings.append)
    assert engine.identity().settings == ("links chain",)
    assert len(warnings) == 1
    assert warnings[0].startswith("the kernel 6.12.1-aaaaaaaa has no links as devices")


def test_devices_that_the_kernel_lacks_are_refused(agent: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"PLAIT_LINKS=device: the kernel 6\.12\.1-aaaaaaaa has no"):
        VirtualEngine(kernel(tmp_path, b"old"), agent, links="device")


def test_the_kind_is_part_of_the_identity_of_trials(agent: Path, tmp_path: Path) -> None:
    booted = kernel(tmp_path, b"plait_link\0")
    device, chain = (VirtualEngine(booted, agent, links=links).identity() for links in (None, "chain"))
    assert device.parts != chain.parts
