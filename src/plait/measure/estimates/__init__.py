"""Estimates of a line from the times of its packets. Pure."""
