"""Builds a kernel from a git tree of its developer: a commit or the working files, with patches, incrementally.

    git tree --ref REV--> source --patches--> content --plait's patches, sources--> checkout --make--> the cache

The checkout (`plait.kernel.checkout`) stays below the cache, so that the next build compiles only what changed. There
is one for each tree and configuration.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path

from plait.errors import KernelBuildError, RequestError
from plait.kernel import cache, recipe, unpack
from plait.kernel.build import check_tools
from plait.kernel.checkout import Checkout, GitTree
from plait.kernel.model import BuildRecord, Kernel, KernelEngine, Progress, SourceRecord, silent
from plait.kernel.obtain import check_processor, compile_tree, finished_folder, utc_now
from plait.kernel.recipe import Recipe


@dataclass(frozen=True)
class TreeRequest:
    """The request of a build."""

    tree: Path
    ref: str | None = None
    """The commit; None: the working files with all uncommitted changes."""
    patches: tuple[Path, ...] = ()
    """The user's patches, in their order."""
    fragments: tuple[Path, ...] = ()
    """Files with options of the configuration."""
    without: tuple[str, ...] = ()
    """Patches of plait to leave out."""
    label: str | None = None
    """The name of the kernel."""
    debug: bool = False
    engine: KernelEngine = "virtual"


def build_tree(request: TreeRequest, progress: Progress = silent) -> Kernel:
    """Return the kernel of a git tree, from the cache or after an incremental build.

    Raises:
        RequestError: there is no such tree, commit or patch of plait.
        KernelBuildError: a patch does not apply, or the build fails.
        MachineError: programs for the build are missing, or this processor cannot run the kernel.
    """
    check_processor()
    check_tools(engine=request.engine)
    tree = GitTree.at_folder(request.tree)
    if request.label is not None:
        _check_label(request.label)
    started = time.monotonic()
    try:
        with cache.building(progress):
            progress(f"reading {tree.folder.name}", None)
            checkout = Checkout(_folder(tree, request), tree)
            state = checkout.working_state() if request.ref is None else tree.tree(request.ref)
            content = checkout.with_patches(state, request.patches)
            version = unpack.version_of(checkout.version_text(content))
            changes = recipe.Changes(request.fragments, request.without, nearest=True)
            chosen = recipe.load(version, debug=request.debug, changes=changes, engine=request.engine)
            identity = chosen.identity(f"git {content}")
            kernel = cache.of_identity(identity, by_default=False)
            if kernel is None:
                progress("patching", None)
                checkout.switch(_prepared(checkout, content, chosen))
                built = compile_tree(checkout.folder, version, chosen, identity, progress, prepared=True)
                source = SourceRecord(
                    kind="given",
                    name=f"{tree.folder.name} {_origin(tree, request)}",
                    content_sha256=f"git {content}",
                )
                record = BuildRecord(
                    schema_version=1, identity=identity, version=version, hz=chosen.hz, recipe_sha256=chosen.sha256,
                    chosen_by_default=False, source=source, compiler=built.compiler,
                    binary_sha256=unpack.file_sha256(built.binary), binary_bytes=built.binary.stat().st_size,
                    built_at=utc_now(), build_s=round(time.monotonic() - started, 1), jobs=built.jobs,
                    engine=request.engine,
                )  # fmt: skip
                with cache.workplace() as workplace:
                    kernel = cache.install(finished_folder(workplace / "finished", built, record), identity)
            return cache.label(kernel, request.label) if request.label is not None else kernel
    except OSError as error:
        raise KernelBuildError(
            f"building the tree {tree.folder} in {cache.kernels_root()}: {error.strerror}: {error.filename}"
        ) from error


def _origin(tree: GitTree, request: TreeRequest) -> str:
    """Return what the kernel of a tree is made of: "v6.12 (adc218676eef), --config small.config"."""
    options = [
        *(f"--patch {path.name}" for path in request.patches),
        *(f"--config {path.name}" for path in request.fragments),
        *(f"--without {name}" for name in request.without),
        *(["--debug"] if request.debug else []),
        *([f"--engine {request.engine}"] if request.engine != "virtual" else []),
    ]
    commit = tree.commit(request.ref or "HEAD")[:12]
    return ", ".join([f"{request.ref or 'working files'} ({commit})", *options])


def _folder(tree: GitTree, request: TreeRequest) -> Path:
    """Return the folder of the checkout; a configuration of its own needs one, or it would compile everything again."""
    parts = [str(tree.folder), str(request.debug), *(path.read_text("utf-8") for path in request.fragments)]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return (
        cache.kernels_root()
        / ".trees"
        / (f"{request.engine}-{digest}" if request.engine != "virtual" else digest)
    )


def _prepared(checkout: Checkout, content: str, chosen: Recipe) -> str:
    """Return the git tree to compile: `content` with plait's patches and sources."""
    files = {target: source.read_bytes() for source, target in chosen.additions}
    folders = sorted(
        {target.split("/")[-2] for target in files if target.endswith("/Makefile") and target.count("/") == 3}
    )
    if files:
        files[f"{recipe.ADDED}/Makefile"] = recipe.makefile_of(folders).encode()
    files["laboratory.config"] = chosen.fragment.encode()
    patched = checkout.with_patches(content, chosen.patches, removable=True)
    return checkout.with_files(patched, files)


def _check_label(label: str) -> None:
    if not label.replace("-", "a").replace("_", "a").replace(".", "a").isalnum() or not 1 <= len(label) <= 60:
        raise RequestError(
            f"--name {label[:80]}: this is no name of a kernel; write at most 60 letters, digits, '.', '_' or '-'"
        )
    if not any(character.isalpha() for character in label):
        raise RequestError(f"--name {label}: this looks like a version; add a letter")
    if label == "default":
        raise RequestError(
            "--name default: this is the mark of the kernel that plait takes by default; write another"
        )
