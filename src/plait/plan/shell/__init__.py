"""The plan as commands that a person can run by hand, or read."""
