"""Seeded damage to what plait reads, and what plait must then do: shared by tests/security and bench/fuzz.py."""
