"""Explain why messages were late or lost. The modules above this folder explain why a bulk flow was slow."""
