"""Verbs for the laboratory itself: its kernels, its guests, and what this machine can run."""
