"""Observes connections that plait did not make, and keeps them as a study of one trial.

`watching.py` runs the agent, `seen.py` derives the paths from what it saw, and `study.py` writes the result folder.
"""
