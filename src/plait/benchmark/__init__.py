"""The benchmark: a fixed suite of networks and traffic, its scores, and the place of a result among published ones."""
