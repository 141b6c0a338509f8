"""A program of its own (`python -I -S confined.py FOLDER... -- CMD...`): runs CMD where only FOLDERs can be changed.

Root of a guest can mount any folder of the host that its kernel, a process of the host, can reach. So that process is
given a view of the host in which everything but FOLDERs is read-only, and a network without any device: namespaces of
mounts and network, made as root, or in a user namespace as anybody else. Then it gives up for ever what root may do
beside reading files and owning them, so that nothing of this can be undone. Needs Linux 5.12 (mount_setattr).

Exit code 3 with one line on standard error when the machine does not allow it.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import NoReturn

_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWNET = 0x0002_0000, 0x1000_0000, 0x4000_0000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x4_0000
_SYS_MOUNT_SETATTR = 442
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_ATTR_RDONLY = 1

_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_KEPT = frozenset(range(5))
"""CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_FSETID (linux/capability.h)."""

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttributes(ctypes.Structure):
    """`struct mount_attr` of linux/mount.h."""

    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _unshare() -> None:
    """Gives this process mounts and a network of its own."""
    user, group = os.getuid(), os.getgid()
    if _libc.unshare(_CLONE_NEWNS | _CLONE_NEWNET) == 0:
        return
    _check(_libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWNET), "making namespaces")
    own = Path("/proc/self")
    (own / "setgroups").write_text("deny", encoding="ascii")
    (own / "uid_map").write_text(f"{user} {user} 1", encoding="ascii")
    (own / "gid_map").write_text(f"{group} {group} 1", encoding="ascii")


def _mount(source: str | None, target: str, flags: int) -> None:
    from_ = source.encode() if source else None
    _check(_libc.mount(from_, os.fsencode(target), None, flags, None), f"mounting {target}")


def _set_attributes(target: str, flags: int, attributes: _MountAttributes) -> None:
    size = ctypes.sizeof(attributes)
    path = os.fsencode(target)
    result = _libc.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, path, flags, ctypes.byref(attributes), size)
    _check(result, f"making {target} read-only or writable")


def _confine(writable: list[str]) -> None:
    here = Path.cwd()
    _unshare()
    _mount(None, "/", _MS_REC | _MS_PRIVATE)
    for folder in writable:
        _mount(folder, folder, _MS_BIND)
    _set_attributes("/", _AT_RECURSIVE, _MountAttributes(attr_set=_MOUNT_ATTR_RDONLY))
    for folder in writable:
        _set_attributes(folder, 0, _MountAttributes(attr_clr=_MOUNT_ATTR_RDONLY))
    os.chdir(here)  # the same folder, by the mount that can be written to
    _give_up_privileges()


def _give_up_privileges() -> None:
    """What is not in the bounding set is gone with the next execve(2), also for root (capabilities(7))."""
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text(encoding="ascii"))
    for capability in set(range(last + 1)) - _KEPT:
        _check(_libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0), f"giving up capability {capability}")
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "giving up new privileges")


def main() -> NoReturn:
    """Confines this process and becomes CMD."""
    middle = sys.argv.index("--")
    writable, command = sys.argv[1:middle], sys.argv[middle + 1 :]
    try:
        _confine(writable)
    except OSError as error:
        reason = error.strerror or str(error)
        sys.stderr.write(f"plait-confined: {reason}\n")
        sys.exit(3)
    os.execv(command[0], command)  # noqa: S606 - a list of arguments, as everywhere


if __name__ == "__main__":
    main()
