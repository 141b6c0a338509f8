"""The cases of a study: ranges, overrides and combinations. `plait.plan` makes a plan of each case."""
