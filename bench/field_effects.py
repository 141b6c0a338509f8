"""List fields of shipped scenarios that change nothing, and whether lint knows: `python bench/field_effects.py`.

Each field of the first case of a scenario gets another value, and settings that it lacks are added, one at a time. If
the tables of a trial stay the same to the byte, the field has no effect there; `plait lint` must then have a caution
about it. Names of scenarios as arguments choose some; without them it takes some hours. Exit code 1: lint does
not know why a field has no effect.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from plait.binaries import AGENT
from plait.dataset.convert import convert
from plait.dataset.digest import trial_digest
from plait.engine.engine import Job
from plait.engine.uml.trial import VirtualEngine
from plait.errors import PlaitError
from plait.kernel import ensure
from plait.scenario import library, load
from plait.testing.field_variants import additions, lint_knows, planned, raw_case, variants

if TYPE_CHECKING:
    from plait.plan.case_plan import CasePlan


def measured(engine: VirtualEngine, plan: CasePlan) -> str:
    """Return the digest of a trial's tables, or the error that ended the trial."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            engine.execute(Job(plan.plan(1), {}, Path(folder)))
        except PlaitError as failed:
            return str(failed)
        return trial_digest(convert(Path(folder) / "data", Path(folder) / "tables"))


def main() -> int:
    """Print a line for each field without an effect; return 1 if lint does not know one of them."""
    base_folder = library.folder() or Path()
    names = sys.argv[1:] or sorted(path.stem for path in base_folder.glob("*.yaml"))
    engine, unknown = VirtualEngine(ensure(), AGENT), 0
    for name in names:
        raw = raw_case(load(name))
        base = planned(raw, base_folder)
        before = measured(engine, base)
        tried = 0
        for variant in (*variants(raw, base_folder), *additions(raw, base_folder)):
            tried += 1
            if measured(engine, variant.plan) == before:
                known = lint_knows(variant, base)
                unknown += not known
                change = f"{variant.name}: {variant.before} -> {variant.after}"
                sys.stdout.write(f"{name}: {'lint knows' if known else 'UNKNOWN'}: {change}\n")
        sys.stdout.write(f"{name}: {tried} fields\n")
        sys.stdout.flush()
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
