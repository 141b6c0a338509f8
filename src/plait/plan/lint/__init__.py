"""Warnings about a scenario that runs but may not show what its author hopes for. Errors are in `plait.scenario`."""
