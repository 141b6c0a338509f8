"""The store returns what was put and rejects what is damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.study.store import MANIFEST, Store

if TYPE_CHECKING:
    from pathlib import Path

IDENTITY = "ab" * 32


def filled(tmp_path: Path, content: bytes = b"data") -> Store:
    source = tmp_path / "source"
    (source / "logs").mkdir(parents=True, exist_ok=True)
    (source / "flows.parquet").write_bytes(content)
    (source / "logs" / "console.log").write_bytes(b"")
    staging = tmp_path / "staging"
    staging.mkdir()
    store = Store(tmp_path / "store")
    store.keep(IDENTITY, source, staging)
    assert not staging.exists()
    return store


def fetched(store: Store, tmp_path: Path) -> dict[str, bytes] | None:
    target = tmp_path / "target"
    target.mkdir(exist_ok=True)
    if not store.fetch(IDENTITY, target):
        assert not any(target.iterdir())
        return None
    return {
        path.relative_to(target).as_posix(): path.read_bytes() for path in target.rglob("*") if path.is_file()
    }


def test_a_trial_comes_back_byte_for_byte(tmp_path: Path) -> None:
    assert fetched(filled(tmp_path), tmp_path) == {"flows.parquet": b"data", "logs/console.log": b""}


def test_an_unknown_trial_is_not_found(tmp_path: Path) -> None:
    assert fetched(Store(tmp_path / "store"), tmp_path) is None


def test_a_damaged_entry_is_removed_and_not_returned(tmp_path: Path) -> None:
    store = filled(tmp_path)
    entry = tmp_path / "store" / "ab" / IDENTITY
    (entry / "flows.parquet").write_bytes(b"dat")
    assert fetched(store, tmp_path) is None
    assert not entry.exists()


def test_an_entry_that_lost_a_file_or_its_manifest_is_not_returned(tmp_path: Path) -> None:
    for name in ("flows.parquet", MANIFEST):
        store = filled(tmp_path)
        (tmp_path / "store" / "ab" / IDENTITY / name).unlink()
        assert fetched(store, tmp_path) is None


def test_putting_again_replaces(tmp_path: Path) -> None:
    filled(tmp_path)
    files = fetched(filled(tmp_path, b"newer"), tmp_path)
    assert files is not None
    assert files["flows.parquet"] == b"newer"
