"""A multipath transport in user space over UDP, to try packet schedulers before there is a kernel.

It takes and returns datagrams and times, and leaves sockets and clocks to its drivers: `network.py` for tests,
`sockets.py` for the guest. It uses nothing but Python's standard library, because it runs with the guest's `python3`.
"""

from plait.prototype.scheduler import Scheduler

__all__ = ["Scheduler"]
