"""The kernel's own self-test of simultaneous flows: its cases with equal rates finish within its own bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import RunTrial

pytestmark = pytest.mark.guest

CASES = 8
RATES = 2 * 10_000_000
BOUND_US = 1000 * (16 * 2**20 * 8 * 10 * 1000 // (RATES * 9)) + 450_000
"""Of simult_flows.sh: nine tenths of both rates, and 450 ms."""


@pytest.mark.parametrize("case", range(CASES))
def test_simultaneous_flows_finish_within_the_kernels_own_bound(run_trial: RunTrial, case: int) -> None:
    assert BOUND_US == 7_906_000
    flows = run_trial("simult-flows", case=case, repeat=case).tables["flows"]
    assert flows["completed"].to_list() == [True, True]
    sizes = sorted(flows["received_bytes"].to_list())
    assert sizes == [80 * 1024, 16 * 2**20]
    took = flows["end_us"].max() - flows["start_us"].min()  # type: ignore[operator]  # of numbers
    assert took <= BOUND_US


def test_seeds_are_trials_of_their_own(run_trial: RunTrial) -> None:
    """Each seed has other delays, so that fifty are fifty; equal times would say that one was run fifty times."""
    ends = {
        run_trial("simult-flows", case=6, repeat=seed).tables["flows"]["end_us"].max() for seed in range(3)
    }
    assert len(ends) == 3
