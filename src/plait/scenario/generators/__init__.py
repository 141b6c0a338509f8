"""Generators: networks, traffic and programs from a few parameters, as plain fields of a scenario.

    network: {generator: fat-tree, k: 4}        see `kinds` for all of them
    traffic: [{permutation: {each: ..}}]        see `traffic`
    programs: [{node: "peer*", ..}]             see `programs`

A generator writes the same plain fields that a file holds, so only the scenario's model knows generators. `write_out`
adds the nodes, links and conditions of the file.
"""
