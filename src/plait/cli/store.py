"""`plait store`: lists the entries of the user's cache, and removes those unused for long."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from plait.cli.shared.ending import notify
from plait.cli.shared.verbs import Verbs
from plait.errors import RequestError
from plait.limits import remedy

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from plait.api.storage import CacheEntry, CachePart

# Verbs import what they need when they run, so that `plait list` and `plait --help` answer at once.

app = typer.Typer(cls=Verbs, help="List and prune the entries of the cache.", no_args_is_help=True)


@app.command("list")
def show() -> None:
    """List the parts of the cache with their sizes."""
    from plait.api.storage import PARTS, entries, size_text
    from plait.cache import cache_root

    cache = cache_root()
    present = list(entries(cache))
    typer.echo(f"{cache}: {size_text(sum(entry.size for entry in present))}\n")
    by_part = _by_part(present)
    typer.echo(_line("part", "entries", "size", "oldest", "what it has"))
    for part in PARTS:
        title = part.title if part.cheap else f"{part.title} *"
        typer.echo(_row(part.name, by_part[part.name], title))
    typer.echo("\n* `plait store prune` removes it only with --part NAME")


OlderThanOption = Annotated[
    str | None,
    typer.Option(metavar="AGE", help="Remove entries unused for AGE: 12h, 30d, 4w", show_default=False),
]
KeepOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="Keep the most recently used entries, up to SIZE: 2GB", show_default=False
    ),
]
PartOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Part of the cache; repeat the option for several",
        show_default="those without *",
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show the entries to remove, and remove nothing")
]


@app.command("prune")
def prune(
    *,
    older_than: OlderThanOption = None,
    keep: KeepOption = None,
    part: PartOption = None,
    dry_run: DryRunOption = False,
) -> int:
    """Remove entries of the cache that are unused for long.

    Result folders stay. A running study continues, and runs again the trials that it misses.
    """
    from plait.api.storage import age_s, chosen_parts
    from plait.cache import alone, cache_root
    from plait.cli.shared.sandbox import bytes_of

    if older_than is None and keep is None:
        raise RequestError(
            "plait store prune: state what to remove (--older-than 30d), or how much to keep (--keep 2GB)"
        )
    limits = (
        None if older_than is None else age_s(older_than),
        None if keep is None else bytes_of("--keep", keep),
    )
    cache, chosen = cache_root(), chosen_parts(part or ())
    with nullcontext() if dry_run else alone("prune", lambda holder: notify(f"waiting for {holder}")):
        return _pruned(cache, chosen, limits, named=bool(part), dry_run=dry_run)


def _pruned(
    cache: Path,
    chosen: tuple[CachePart, ...],
    limits: tuple[float | None, int | None],
    *,
    named: bool,
    dry_run: bool,
) -> int:
    """Remove entries, or show what would be, and return the exit code. No other prune runs meanwhile."""
    from plait.api.storage import entries, remove, to_remove, without_needed
    from plait.cache import unless_used

    gone, left = [], []
    with unless_used(cache) as unused:  # plaits that start wait until the entries are gone
        parts = without_needed(chosen, used=not unused, named=named)
        left_out = [other.name for other in chosen if other not in parts]
        if left_out:
            notify(f"plait runs on this machine and may need {', '.join(left_out)}, so that stays")
        for entry in to_remove(entries(cache, parts), *limits):
            try:
                if not dry_run:
                    remove(cache, entry)
                gone.append(entry)
            except OSError as error:
                left.append(error)
    _show_removed(gone, dry_run=dry_run)
    if left:
        first = f"{left[0].filename}: {left[0].strerror}; {remedy(left[0], 'check its permissions')}"
        notify(f"removing {len(left)} of {len(gone) + len(left)} entries failed, such as {first}")
    return 1 if left else 0


def _show_removed(gone: list[CacheEntry], *, dry_run: bool) -> None:
    from plait.api.storage import size_text

    if gone:
        typer.echo(_line("part", "entries", "size", "oldest", ""))
    for name, entries in _by_part(gone).items():
        typer.echo(_row(name, entries, ""))
    size = size_text(sum(entry.size for entry in gone))
    if dry_run:
        typer.echo(f"dry run: nothing is removed. Without --dry-run, {len(gone)} entries go, {size}.")
    else:
        typer.echo(f"Removed {len(gone)} entries, {size}.")


def _by_part(entries: Iterable[CacheEntry]) -> dict[str, list[CacheEntry]]:
    by_part: dict[str, list[CacheEntry]] = defaultdict(list)
    for entry in entries:
        by_part[entry.part.name].append(entry)
    return by_part


def _row(name: str, entries: list[CacheEntry], title: str) -> str:
    """Return the line of a part."""
    from plait.api.storage import age_text, size_text

    if not entries:
        return _line(name, "0", "", "", title)
    oldest = age_text(time.time() - min(entry.used_s for entry in entries))
    return _line(name, str(len(entries)), size_text(sum(entry.size for entry in entries)), oldest, title)


def _line(name: str, count: str, size: str, oldest: str, title: str) -> str:
    return f"{name:<11} {count:>7} {size:>9} {oldest:>9}  {title}".rstrip()
