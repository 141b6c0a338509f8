"""Run packetdrill's scripts in a guest, each in a network namespace of its own, and print the results as TAP.

    packetdrill_driver.py PROGRAM TOLERANCE_US [NAME SCRIPT OPTIONS]..

TOLERANCE_US is empty for each script's own tolerance; 0 measures the slack, the smallest tolerance with which the
script passes. OPTIONS are those of the address family, in one word. A result ends in `# FAIL why` or `# SLACK n us`.
The driver imports nothing dear, because each guest starts it.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from fcntl import ioctl

SECONDS = 300
"""The virtual time after which a script that waits for ever ends."""
ATTEMPTS = 24
"""How many tolerances to try for one script."""
_VALUES = f"{__file__.rpartition('/')[0]}/sysctl.sh"
_LIBC = ctypes.CDLL(None, use_errno=True)
_NEW_NETWORK, _NEW_MOUNTS = 0x4000_0000, 0x2_0000
_BIND, _RECURSIVE_SLAVE, _DETACH = 0x1000, 0x4000 | 1 << 19, 2
_NAMES, _MOUNTS = "/run/netns", "/proc/self/ns/mnt"
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1
_SECCOMP, _SET_FILTER, _NEW_LISTENER = 317, 1, 8
_RECEIVE, _ANSWER, _CONTINUE = 0xC050_2100, 0xC018_2101, 1
_COARSE = 6
"""The clock of clock_gettime(2) that moves with the interrupt of the timer."""
_TICK_NS = 10_000_000
"""The unit of times(2)."""


def call(name: str, *arguments: int | bytes | str | None) -> None:
    """Call a function of the C library; raise OSError if it fails."""
    words = [word.encode() if isinstance(word, str) else word for word in arguments]
    if getattr(_LIBC, name)(*words) < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}{arguments}: {os.strerror(error)}")


class Ticks:
    """Lets `times(NULL)` of all later processes return just after a tick of its clock.

    packetdrill asks thousands of times until ten ticks have passed. Each call takes virtual time, so the same ten ticks
    pass while it sleeps in the call. The kernel answers the call itself.
    """

    def __init__(self) -> None:
        """Find a tick, and ask the kernel to report the calls from now on."""
        step_ns = round(time.clock_getres(_COARSE) * 1e9)
        before = now = os.times().elapsed
        while now == before:
            tick_ns = _sleep_to_multiple(step_ns)
            now = os.times().elapsed
        self._step_ns = step_ns if _TICK_NS % step_ns else _TICK_NS
        self._phase_ns = tick_ns % self._step_ns
        self.listener = _listener()

    def answer(self) -> None:
        """Let a process go on that waits in the call, after the next tick."""
        _sleep_to_multiple(self._step_ns, self._phase_ns)
        notice = bytearray(80)
        try:
            ioctl(self.listener, _RECEIVE, notice)
            reply = notice[:8] + bytes(12) + _CONTINUE.to_bytes(4, "little")
            ioctl(self.listener, _ANSWER, reply)
        except FileNotFoundError:
            return  # the process has ended


def _sleep_to_multiple(step_ns: int, phase_ns: int = 0) -> int:
    """Sleep until the clock is a multiple of the step, beyond the phase; return that time."""
    now_ns = time.monotonic_ns()
    until_ns = now_ns + step_ns - (now_ns - phase_ns) % step_ns
    time.sleep((until_ns - now_ns) / 1e9)
    return until_ns


def _listener() -> int:
    """Return a descriptor that reports each `times(NULL)` of the processes that start from now on (seccomp(2))."""
    code = (
        (0x20, 0, 0, 4), (0x15, 0, 6, 0xC000_003E),  # the architecture is x86-64,
        (0x20, 0, 0, 0), (0x15, 0, 4, 100),  # the call is times,
        (0x20, 0, 0, 16), (0x15, 0, 2, 0),  # and its argument is NULL, in both halves
        (0x20, 0, 0, 20), (0x15, 1, 0, 0),
        (0x06, 0, 0, 0x7FFF_0000), (0x06, 0, 0, 0x7FC0_0000),
    )  # fmt: skip
    filters = b"".join(
        operation.to_bytes(2, "little") + bytes((true, false)) + value.to_bytes(4, "little")
        for operation, true, false, value in code
    )
    pointer = ctypes.cast(ctypes.c_char_p(filters), ctypes.c_void_p).value or 0
    program = len(code).to_bytes(8, "little") + pointer.to_bytes(8, "little")
    listener = _LIBC.syscall(_SECCOMP, _SET_FILTER, _NEW_LISTENER, program)
    if listener < 0:
        raise OSError(ctypes.get_errno(), "waiting for ticks in place of packetdrill")
    return int(listener)


class ScriptNamespace:
    """A new network namespace with a name, mounts of its own for what runs in it, and nothing but loopback.

    It is what `ip netns add` and `ip netns exec` make, without a process.
    """

    def __init__(self, name: str) -> None:
        """Make it, and enter it."""
        self._path = f"{_NAMES}/{name}"
        self._mounts = os.open(_MOUNTS, os.O_RDONLY | os.O_CLOEXEC)
        call("unshare", _NEW_NETWORK)
        call("mknod", self._path, 0o100000, 0)
        call("mount", "/proc/self/ns/net", self._path, None, _BIND, None)
        call("unshare", _NEW_MOUNTS)
        call("mount", "none", "/", None, _RECURSIVE_SLAVE, None)
        call("umount2", "/sys", _DETACH)
        call("mount", "sysfs", "/sys", "sysfs", 0, None)
        _loopback_up()

    def close(self) -> None:
        """Leave its mounts, and remove its name."""
        call("setns", self._mounts, _NEW_MOUNTS)
        os.close(self._mounts)
        call("umount2", self._path, _DETACH)
        call("unlink", self._path)


def _loopback_up() -> None:
    import _socket  # `socket` imports much more

    with_flags = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    flags = ioctl(with_flags.fileno(), _GET_FLAGS, b"lo".ljust(40, b"\0"))
    ioctl(with_flags.fileno(), _SET_FLAGS, flags[:16] + bytes((flags[16] | _UP,)) + flags[17:])
    with_flags.close()


class ScriptRunner:
    """Runs scripts with a program in place of packetdrill."""

    def __init__(self, program: str) -> None:
        """Prepare the environment of the program: bash reads `sysctl.sh` by BASH_ENV, which spares processes."""
        self._program = program
        self._environment = {**os.environ, "BASH_ENV": _VALUES}
        self._ticks = Ticks()
        self._runs = 0

    def attempt(self, name: str, script: str, options: list[str]) -> tuple[int, str]:
        """Run a script once; return its exit code and its output."""
        self._runs += 1
        plain = "".join(letter if letter.isalnum() or letter in "_.-" else "-" for letter in name)
        namespace = ScriptNamespace(f"{plain[:60]}-{self._runs}")
        folder, file = os.path.split(script)
        os.chdir(folder)
        output = os.memfd_create("output")
        process = os.posix_spawn(
            self._program,
            [self._program, "--send_omit_free", *options, file],
            self._environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)],
            setpgroup=0,
        )
        ended = self._follow(process)
        # A kernel whose clock stands while it works never ends a wait for a thread that is still leaving /proc. A sleep
        # ends when nothing else can run.
        time.sleep(0.001)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        said = os.pread(output, os.fstat(output).st_size, 0).decode(errors="replace").rstrip("\n")
        os.close(output)
        os.chdir("/")
        namespace.close()
        return code, said if ended else f"it did not end within {SECONDS} s of virtual time"

    def _follow(self, process: int) -> bool:
        """Answer the calls of the process until it ends; return False if it did not, and kill its group."""
        ended = os.pidfd_open(process)
        until = time.monotonic() + SECONDS
        ready: list[int] = []
        while ended not in ready and time.monotonic() < until:
            ready, _, _ = select.select([ended, self._ticks.listener], [], [], until - time.monotonic())
            if self._ticks.listener in ready and ended not in ready:
                self._ticks.answer()
        os.close(ended)
        if ended not in ready:
            os.killpg(process, signal.SIGKILL)
        return ended in ready


def missed_by_us(said: str) -> int | None:
    """Return by how much an event missed its time, if that is why a script failed.

    packetdrill says `expected X at 0.1 sec but happened at 0.2 sec`, or `in time range 0.1~0.2 sec`.
    """
    import re

    number = r"[+-]?(\d+\.\d{6})"
    found = re.search(rf"timing error:.* \+?(?:[\d.]+~\+?)?{number} *sec but happened at {number} sec", said)
    return found and abs(round(float(found[2]) * 1e6) - round(float(found[1]) * 1e6))


def slack_us(runner: ScriptRunner, name: str, script: str, options: list[str]) -> int | None:
    """Return the smallest tolerance with which a script passes, or None if none was found."""
    most = 1
    for _ in range(ATTEMPTS):
        code, said = runner.attempt(name, script, [*options, f"--tolerance_usecs={most}"])
        if code == 0:
            return most
        late = missed_by_us(said)
        most = late if late is not None and late > most else most * 2
    return None


def reason_of(code: int, said: str) -> str:
    """Return the line of the output that says why a script failed."""
    lines = said.splitlines()
    placed = (line for line in lines if any(part.isdigit() for part in line.split(": ")[0].split(":")[1:]))
    return next(placed, lines[-1] if lines else "") or f"it ended with exit code {code}"


def main(words: list[str]) -> int:
    """Run all scripts; return 1 if one failed."""
    program, tolerance, *rest = words
    runner = ScriptRunner(program)
    failed = 0
    print("TAP version 13", flush=True)
    for number, (name, script, text) in enumerate(zip(*[iter(rest)] * 3, strict=True), 1):
        options = text.split()
        own = [f"--tolerance_usecs={tolerance}"] if int(tolerance or 0) else []
        code, said = runner.attempt(name, script, options + own)
        result = f"ok {number} - {name}"
        if code != 0:
            failed = 1
            result = f"not {result} # FAIL {reason_of(code, said)}"
        elif tolerance == "0":
            slack = slack_us(runner, name, script, options)
            result += f" # SLACK {'unknown' if slack is None else slack} us"
        print(*([f"{name}: {said}"] if said else []), result, sep="\n", flush=True)
    print(f"1..{len(rest) // 3}")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
