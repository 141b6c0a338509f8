"""Networks and traffic from a few parameters: each generator is a pure function from them to what a file would say.

    network: {generator: fat-tree, k: 4}        see `kinds` for all of them
    traffic: [{permutation: {each: ..}}]        see `traffic`
    programs: [{node: "peer*", ..}]             see `programs`

A generator writes plain fields, exactly as a person would in the file, so that nothing behind the scenario's model
knows that there are generators. `write_out` puts a person's own nodes, links and conditions on top.
"""

from __future__ import annotations

from plait.scenario.generators.written import Written, with_traffic, write_out

__all__ = ["Written", "with_traffic", "write_out"]
