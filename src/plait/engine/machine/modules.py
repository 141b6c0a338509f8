"""The modules of a stock kernel that a plan needs, in the order in which they load.

A distribution's package has no `modules.dep` before its installation, so plait reads the dependencies where depmod
reads them: in the `.modinfo` of each module (`depends=a,b`).
"""

from __future__ import annotations

import gzip
import lzma
import re
import subprocess
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from plait.errors import MachineError
from plait.plan.links.chain import with_chains
from plait.plan.model.plan import Plan

_PORTS = ("virtio_pci", "virtio_console")
"""The modules that open the ports through which the agent answers."""
_EVERY_PLAN = (
    *_PORTS,
    *("veth", "sch_netem", "sch_tbf", "sch_ingress", "cls_matchall", "act_mirred"),
    *("inet_diag", "tcp_diag", "mptcp_diag"),
)
_BY_QDISC = {"codel": "sch_codel", "fq_codel": "sch_fq_codel", "red": "sch_red"}
_BY_PART = {
    "bridges": ("bridge",),
    "ifbs": ("ifb",),
    "datapaths": ("openvswitch",),
    "nats": ("nf_tables", "nft_chain_nat", "nft_masq"),
    "middleboxes": ("nf_tables", "nft_fwd_netdev", "nft_exthdr_tcp"),
}
"""By the part of a network that needs them."""
PARAMETERS = {"ifb": "numifbs=0"}
"""Of modules, by their names."""
_CONGESTION_CONTROL = re.compile(r"^kernel/net/ipv4/tcp_(?!diag)\w+\.ko")
_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")
_MAX_BYTES = 64 << 20
_MAX_REASON, _ZSTD_S = 2000, 60


class ModuleTree:
    """The modules of one kernel, by name (with underscores)."""

    def __init__(self, root: Path | None) -> None:
        """`root`: the folder with the kernel's modules (`lib/modules/VERSION`); None: a kernel without modules."""
        self._root = root
        self._files: dict[str, Path] = {}
        if root is None:
            return
        for path in sorted(root.rglob("*.ko*")):
            if path.is_file() and not path.is_symlink():
                self._files[_name(path)] = path

    @property
    def congestion_controls(self) -> list[str]:
        """The modules with congestion controls."""
        files = self._files.items()
        return [name for name, path in files if _CONGESTION_CONTROL.match(self._inside(path))]

    def load_order(self, wanted: Iterable[str]) -> dict[str, bytes]:
        """Return the modules `wanted` with those that they need first; those in the kernel itself are left out.

        A module that the kernel does not have is left out too: the kernel then refuses what needs it, by name.
        Raises MachineError for a damaged module.
        """
        ordered: dict[str, bytes] = {}
        for name in wanted:
            self._add(name, ordered, ())
        return ordered

    def _add(self, name: str, ordered: dict[str, bytes], dependents: tuple[str, ...]) -> None:
        path = self._files.get(name)
        if name in ordered or path is None or name in dependents:
            return
        content = _unpacked(path)
        for needed in _dependencies(content):
            self._add(needed, ordered, (*dependents, name))
        ordered[name] = content

    def _inside(self, path: Path) -> str:
        assert self._root is not None
        return path.relative_to(self._root).as_posix()


def wanted_modules(plan: Plan, tree: ModuleTree) -> Iterator[str]:
    """Yield the names of the modules that `plan` needs, on kernels that do not have them built in."""
    yield from _EVERY_PLAN
    for kind in sorted({qdisc.options.kind for qdisc in with_chains(plan, exact=False).network.qdiscs}):
        if kind in _BY_QDISC:
            yield _BY_QDISC[kind]
    network = with_chains(plan).network
    for part, names in _BY_PART.items():
        if getattr(network, part):
            yield from names
    yield from tree.congestion_controls


def _name(path: Path) -> str:
    return path.name.partition(".ko")[0].replace("-", "_")


def _dependencies(content: bytes) -> list[str]:
    match = _DEPENDS.search(content)
    return [name.replace("-", "_") for name in match[1].decode().split(",") if name] if match else []


def _unpacked(path: Path) -> bytes:
    """Return the content of a module, which distributions compress with xz, zstd or gzip."""
    try:
        match path.suffix:
            case ".xz":
                with lzma.open(path) as file:
                    content = file.read(_MAX_BYTES + 1)
            case ".gz":
                with gzip.open(path) as file:
                    content = file.read(_MAX_BYTES + 1)
            case ".zst":
                content = _zstd(path)
            case _:
                with path.open("rb") as file:
                    content = file.read(_MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, subprocess.SubprocessError) as error:
        raise MachineError(f"unpacking the kernel's module {path}: {error}") from error
    if len(content) > _MAX_BYTES:
        raise MachineError(f"unpacking the kernel's module {path}: it is larger than {_MAX_BYTES} bytes")
    if not content.startswith(b"\x7fELF"):
        raise MachineError(f"reading the kernel's module {path}: it is not an ELF file")
    return content


def _zstd(path: Path) -> bytes:
    """Return what the program zstd unpacks, up to one byte beyond the limit."""
    command = ["zstd", "--decompress", "--stdout", "--quiet", "--", str(path)]
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except FileNotFoundError as error:
        raise MachineError(
            f"unpacking the kernel's module {path}: zstd is not installed; install it (`apt-get install zstd`)"
        ) from error
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        content = process.stdout.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            process.kill()
            return content
        reason = process.stderr.read(_MAX_REASON).decode(errors="replace").strip()
        if process.wait(timeout=_ZSTD_S) != 0:
            raise MachineError(f"unpacking the kernel's module {path}: {reason or 'zstd failed'}")
    return content
