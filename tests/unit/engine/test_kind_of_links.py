"""The kind of links that the engine for virtual time makes is the user's choice, and part of a trial's identity."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.engine.engine import EngineIdentity
from plait.engine.request import EngineRequest
from plait.errors import RequestError

CHAINS = EngineIdentity("virtual", "kernel", "6.12", "agent")


def test_links_are_chains_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLAIT_LINKS", raising=False)
    assert EngineRequest().links == "chain"


def test_the_environment_makes_them_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_LINKS", "device")
    assert EngineRequest().links == "device"


def test_another_word_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_LINKS", "veth")
    with pytest.raises(RequestError, match="PLAIT_LINKS=veth"):
        EngineRequest()


def test_the_kind_is_part_of_the_identity_of_trials() -> None:
    assert replace(CHAINS, settings=("links device",)).parts != CHAINS.parts
