"""plait fetches a source archive; a local web server and a fake apt-get stand in for the network."""

from __future__ import annotations

import functools
import hashlib
import http.server
import threading
from typing import TYPE_CHECKING

import pytest

from plait.errors import KernelBuildError
from plait.kernel import fetch
from plait.kernel.model import silent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONTENT = b"an archive" * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the folder; what is called `cut` ends before its announced length."""

    def do_GET(self) -> None:
        if self.path == "/cut":
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT[:100])
        else:
            super().do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    root = tmp_path / "served"
    root.mkdir()
    (root / "linux.tar.xz").write_bytes(CONTENT)
    handler = functools.partial(Handler, directory=str(root))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as service:
        thread = threading.Thread(target=service.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{service.server_address[1]}"
        service.shutdown()
        thread.join()


def test_the_pinned_file_is_fetched_once(server: str, tmp_path: Path) -> None:
    folder = tmp_path / "sources"
    pinned = fetch.Pinned(f"{server}/linux.tar.xz", DIGEST)
    shares: list[float | None] = []
    path = fetch.download(pinned, folder, lambda _, share: shares.append(share))
    assert path.read_bytes() == CONTENT
    assert shares[-1] == 1.0
    (tmp_path / "served" / "linux.tar.xz").unlink()
    assert fetch.download(pinned, folder, silent) == path


def test_a_damaged_copy_is_fetched_again(server: str, tmp_path: Path) -> None:
    folder = tmp_path / "sources"
    pinned = fetch.Pinned(f"{server}/linux.tar.xz", DIGEST)
    fetch.download(pinned, folder, silent).write_bytes(b"damaged")
    assert fetch.download(pinned, folder, silent).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("name", "digest", "reason"),
    [
        ("linux.tar.xz", "0" * 64, f"the SHA-256 is {DIGEST}, but plait expects 0000"),
        ("absent.tar.xz", DIGEST, "HTTP Error 404"),
        ("cut", DIGEST, "ended after 100 of 10000 bytes"),
    ],
)
def test_a_download_with_another_hash_is_refused_and_removed(
    server: str, tmp_path: Path, name: str, digest: str, reason: str
) -> None:
    folder = tmp_path / "sources"
    with pytest.raises(KernelBuildError, match=reason):
        fetch.download(fetch.Pinned(f"{server}/{name}", digest), folder, silent)
    assert list(folder.iterdir()) == []


def test_no_server_is_reported_with_the_address(tmp_path: Path) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as service:
        url = f"http://127.0.0.1:{service.server_address[1]}/linux.tar.xz"
    with pytest.raises(KernelBuildError, match=url):
        fetch.download(fetch.Pinned(url, DIGEST), tmp_path, silent)


def fake_apt(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    for name in ("apt-get", "dpkg-deb"):
        program = folder / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_empty_package_lists_are_reported_with_the_command_that_fills_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_apt(
        tmp_path / "bin", "echo 'E: Unable to locate package linux-source-6.12' >&2; exit 100", monkeypatch
    )
    with pytest.raises(KernelBuildError, match=r"Unable to locate.*`sudo apt-get update`"):
        fetch.package(tmp_path / "sources", silent)


def test_old_package_lists_are_reported_with_the_command_that_renews_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_apt(tmp_path / "bin", "echo 'E: Failed to fetch x  404  Not Found' >&2; exit 100", monkeypatch)
    with pytest.raises(KernelBuildError, match=r"404  Not Found.*`sudo apt-get update`"):
        fetch.package(tmp_path / "sources", silent)


def test_a_package_without_an_archive_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_apt(
        tmp_path / "bin", 'test "$1" = download && touch linux-source-6.12_1_all.deb; exit 0', monkeypatch
    )
    with pytest.raises(KernelBuildError, match="it has no source archive"):
        fetch.package(tmp_path / "sources", silent)


def test_a_machine_without_apt_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(KernelBuildError, match="no apt-get"):
        fetch.package(tmp_path, silent)
