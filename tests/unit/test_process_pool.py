"""Shared work: every request has its answer, whatever becomes of the workers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from plait import process_pool

if TYPE_CHECKING:
    from pathlib import Path

SQUARES = "operator:abs"
"""A function that workers can import; what this process computes itself is told apart by its sign."""


def answers(requests: list[Any], target: str = SQUARES) -> dict[int, Any]:
    return dict(process_pool.shared_out(target, requests, lambda at: -abs(requests[at])))


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})


@pytest.mark.usefixtures("two_cores")
def test_every_request_has_one_answer() -> None:
    given = answers(list(range(1, 200)))
    assert sorted(given) == list(range(199))
    assert all(abs(value) == place + 1 for place, value in given.items())


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize("target", ["operator:no_such_function", "operator:index"])
def test_requests_of_workers_that_die_are_answered_here(target: str) -> None:
    given = answers([1.5, 2.5, 3.5, 4.5, 5.5], target)  # operator.index(1.5) raises, and ends its worker
    assert given == {0: -1.5, 1: -2.5, 2: -3.5, 3: -4.5, 4: -5.5}


@pytest.mark.usefixtures("two_cores")
def test_workers_that_never_answer_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool, "PATIENCE_S", 0.01)
    requests = [3600.0] * 6  # time.sleep(3600)
    assert dict(process_pool.shared_out("time:sleep", requests, lambda at: at)) == {n: n for n in range(6)}


def test_without_workers_this_process_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(process_pool.subprocess, "Popen", refuse)
    assert answers([4, 5, 6]) == {0: -4, 1: -5, 2: -6}


def test_an_error_of_this_process_is_raised() -> None:
    def fail(_: int) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        dict(process_pool.shared_out(SQUARES, [1], fail))


@pytest.mark.usefixtures("two_cores")
def test_kept_workers_serve_several_pieces_of_work_and_end_with_the_block() -> None:
    with process_pool.kept() as pool:
        first = pool.ready(1)
        for _ in range(2):
            assert len(answers([1, 2])) == 2
            assert pool.ready(1) == first
            assert first[0].is_alive
    assert not first[0].is_alive


@pytest.mark.usefixtures("two_cores")
def test_an_error_among_kept_workers_ends_them_and_later_work_has_others() -> None:
    def fail(_: int) -> None:
        raise ValueError("no")

    with process_pool.kept() as pool:
        (first,) = pool.ready(1)
        with pytest.raises(ValueError, match="no"):
            dict(process_pool.shared_out(SQUARES, [1, 2], fail))
        assert not first.is_alive
        assert len(answers([1, 2, 3])) == 3


@pytest.mark.usefixtures("two_cores")
def test_what_a_worker_began_is_done_when_it_is_waited_for(tmp_path: Path) -> None:
    with process_pool.kept() as pool:
        pool.begin("os:mkdir", str(tmp_path / "made"))
        pool.finish()
        assert (tmp_path / "made").is_dir()


def test_without_spare_cores_nothing_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    with process_pool.kept() as pool:
        pool.begin("time:sleep", 3600)
        assert pool.ready(1) == []
        assert answers([1, 2]) == {0: -1, 1: -2}
