"""Guests of User-Mode Linux: their start in a sandbox, supervision, orders, and results."""
