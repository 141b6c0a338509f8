"""Generators: networks, traffic and programs from a few parameters, as plain fields of a scenario.

    network: {generator: fat-tree, k: 4}        see `kinds` for all of them
    traffic: [{permutation: {each: ..}}]        see `traffic`
    programs: [{node: "peer*", ..}]             see `programs`

A generator writes the same plain fields that a file holds, so only the scenario's model knows generators. `write_out`
adds the nodes, links and conditions of the file.
"""

from __future__ import annotations

from plait.scenario.generators.written import Written, with_traffic, write_out

__all__ = ["Written", "with_traffic", "write_out"]
