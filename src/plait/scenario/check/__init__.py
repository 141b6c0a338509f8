"""Checks of the parts of a scenario against each other; the records are in `fields`."""
