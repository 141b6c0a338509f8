"""Attribute the time of each path of a flow to causes: the state at each sample, and the history of the window."""
