"""The version of plait."""

__version__ = "0.1.0"
