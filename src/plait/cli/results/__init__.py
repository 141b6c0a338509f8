"""Verbs for result folders: report, look, compare, put together, explain, convert."""
