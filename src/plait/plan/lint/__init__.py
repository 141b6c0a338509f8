"""Warnings about a scenario that runs but may not show what its author expects. `plait.scenario` finds errors."""
