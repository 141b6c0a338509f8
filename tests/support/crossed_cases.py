"""Cases of crossed factors, with page loads: what tables, judgements and tests of effects are tried on."""

from __future__ import annotations

import random
from itertools import product

from plait.analysis.rows import CaseRows, TrialRow


def crossed(
    factors: dict[str, tuple[str, ...]], trials: int = 4, slower: float = 1.0
) -> tuple[CaseRows, ...]:
    """Return a case of page loads for every combination of the factors' levels."""
    cases = []
    for values in product(*factors.values()):
        settings = dict(zip(factors, values, strict=True))
        name = ",".join(f"{key}={value}" for key, value in settings.items())
        chance = random.Random(name)
        rows = []
        for index in range(trials):
            load_s = slower * (1.2 + 0.1 * len(values[0]) + chance.gauss(0, 0.05))
            metrics = {
                "page_load_s": load_s,
                "goodput_bps": 4e6 / load_s,
                "retransmits": float(chance.randrange(40)),
                "lte.path_share": 0.4,
                "wifi.path_share": 0.6,
            }
            rows.append(TrialRow(index, 1000 + index, str(index), metrics))
        cases.append(CaseRows(name, settings, tuple(rows)))
    return tuple(cases)
