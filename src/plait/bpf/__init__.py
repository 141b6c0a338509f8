"""Coupled congestion controls as BPF programs, for kernels that cannot load plait's modules."""
