"""A plan as a shell script of iproute2 commands. Nothing here runs them."""
