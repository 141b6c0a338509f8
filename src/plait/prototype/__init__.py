"""A multipath transport in user space over UDP, to try packet schedulers before there is a kernel.

It takes and returns datagrams and times, and leaves sockets and clocks to its driver, `sockets.py`, and in tests
to a network in memory. It uses nothing but Python's standard library, because it runs with the guest's `python3`.
"""

from plait.prototype.scheduler import Scheduler

__all__ = ["Scheduler"]
