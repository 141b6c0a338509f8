"""plait: a Multipath TCP laboratory that runs a real Linux kernel in virtual time."""

__version__ = "0.1.0"
