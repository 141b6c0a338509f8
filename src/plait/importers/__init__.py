"""Topologies that others have described, as scenarios: what could not be carried over stands in them as a comment."""
