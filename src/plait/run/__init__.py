"""Doing it: trials of a study on an engine, each at most once, and the result folder they fill."""
