"""Coupled congestion controls, which plait loads into a stock kernel as BPF programs."""

from __future__ import annotations

from collections.abc import Iterator

from plait.advice.changes.commands import controls
from plait.advice.changes.model import Candidate, ChangeKind
from plait.advice.situation import Situation
from plait.errors import shell_command

COUPLED = ("lia", "olia", "balia")


def _coupled(situation: Situation) -> Iterator[Candidate]:
    for name in COUPLED:
        words = f"coupled congestion control {name} on both hosts, by BPF"
        loading = (shell_command("plait", "bpf", verb, name) for verb in ("load", "unload"))
        yield from controls(situation, name, words, *loading)


CHANGE = ChangeKind(
    "coupled congestion control", "Linux 6.12 with BTF, bpftool and plait on both hosts",
    frozenset({"shared-bottleneck"}), _coupled,
)  # fmt: skip
