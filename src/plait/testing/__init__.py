"""Tools for tests of the pipeline without a kernel: plans, plausible fake data, and result folders."""
