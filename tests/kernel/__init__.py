"""The arithmetic of the kernel sources, built for the host and tested there."""
