"""The cases of a study: ranges, overrides and combinations. How a case becomes a plan is in `plait.plan`."""
