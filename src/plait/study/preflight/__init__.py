"""Checks before the first trial: what the engines, their kernels and the host lack for the scenario."""
