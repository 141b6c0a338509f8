"""Intervals, tests and effect sizes over numbers. Nothing here knows what the numbers measure."""
