"""All network generators by name."""

from __future__ import annotations

from plait.scenario.generators.access import BehindNat, TwoWans, WifiCellular
from plait.scenario.generators.base import Generator
from plait.scenario.generators.khalili import KhaliliA, KhaliliB, KhaliliC, TopologyA
from plait.scenario.generators.paths import Dumbbell, NPaths
from plait.scenario.generators.regions import Regions
from plait.scenario.generators.trees import FatTree, Swarm, TwoLayerTree

KINDS: dict[str, type[Generator]] = {
    kind.model_fields["generator"].default: kind
    for kind in (
        NPaths,
        Dumbbell,
        KhaliliA,
        KhaliliB,
        KhaliliC,
        TopologyA,
        FatTree,
        TwoLayerTree,
        WifiCellular,
        TwoWans,
        BehindNat,
        Regions,
        Swarm,
    )
}
