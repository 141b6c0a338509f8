"""`plait exec --gdb`: a guest whose kernel waits for a debugger.

User-Mode Linux is a process, so gdb(1) attaches to it like to any other. A virtual clock stands while that process is
stopped: breakpoints and the time that a person needs change nothing in the guest.
"""

from __future__ import annotations

import shlex
import shutil
from typing import TYPE_CHECKING

from plait.engine.packages import install_hint
from plait.errors import MachineError, RequestError, shell_command
from plait.files import Folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from plait.engine.virtual.guest import Guest
    from plait.kernel import Kernel

SCRIPT = "attach.gdb"
_SCRIPT = """\
# gdb reads this file: the guest's kernel is process {pid}.
set debuginfod enabled off
set sysroot {empty}
exec-file {binary}
symbol-file {symbols}
# The guest's kernel uses these signals itself.
handle SIGSEGV SIGUSR1 SIGUSR2 SIGALRM SIGIO SIGWINCH nostop noprint pass
# plait stopped the process with it.
handle SIGSTOP nostop noprint nopass
set print inferior-events off
set auto-load libthread-db off
attach {pid}
"""


def require(kernel: Kernel) -> None:
    """Raise RequestError if the kernel has no symbols, MachineError if this machine has no gdb."""
    if kernel.symbols is None:
        raise RequestError(
            f"--gdb: the kernel {kernel.name} has no symbols; build one with "
            "`plait kernel build --tree DIR --tracing --name traced`, and choose it with `--kernel traced`"
        )
    if shutil.which("gdb") is None:
        raise MachineError(f"--gdb: this machine has no gdb; {install_hint('gdb')}")


def invite(guest: Guest, kernel: Kernel, folder: Path, report: Callable[[str], None]) -> None:
    """Stop the guest, write the script with which gdb attaches to it, and report the command to type."""
    guest.suspend()
    empty = folder / "sysroot"
    empty.mkdir()
    script = folder / SCRIPT
    text = _SCRIPT.format(
        pid=guest.pid,
        empty=empty,  # gdb takes the rest of this line as it is, and parses the two others like a shell
        binary=shlex.quote(str(kernel.binary)),
        symbols=shlex.quote(str(kernel.symbols)),
    )
    Folder(folder).write(SCRIPT, text.encode())
    report(
        f"the guest's kernel waits for a debugger. Type in another terminal:\n{shell_command('gdb', '-x', script)}"
    )
