"""The tests in this package build the arithmetic of the kernel sources for the host and check it there."""
