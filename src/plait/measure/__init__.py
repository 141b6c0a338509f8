"""Measures real lines, and writes a scenario that emulates them."""
