"""The test set of `plait explain`: scenarios with one planted cause each, and controls."""
