"""The engine `machine` boots the distribution's kernel that is nearest to the laboratory's."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from plait.errors import MachineError
from plait.kernel import stock

PACKAGES = [f"linux-image-{version}-amd64" for version in ("6.1.0-50", "6.1.0-56", "6.12.117+deb12", "7.4.2")]


@pytest.mark.parametrize(
    ("version", "package"),
    [
        ("6.1.9", "linux-image-6.1.0-56-amd64"),
        ("6.5.0", "linux-image-6.1.0-56-amd64"),
        ("6.18.2", "linux-image-6.12.117+deb12-amd64"),
        ("7.3.0-rc7", "linux-image-7.4.2-amd64"),
        ("8.0.1", "linux-image-7.4.2-amd64"),
        ("5.10.1", "linux-image-6.1.0-56-amd64"),
    ],
)
def test_the_nearest_kernel_is_the_last_before_another_first_number(
    monkeypatch: pytest.MonkeyPatch, version: str, package: str
) -> None:
    fetched: list[str] = []
    monkeypatch.setattr(stock, "_cached", lambda: iter(()))
    monkeypatch.setattr(stock, "_known_packages", lambda: PACKAGES)
    monkeypatch.setattr(stock, "_fetch", lambda name, _: fetched.append(name))
    stock.nearest(version)
    assert fetched == [package]


def test_a_kernel_of_the_cache_is_not_fetched_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    image = tmp_path / PACKAGES[2] / "boot" / "vmlinuz"
    kernel = stock.StockKernel(image, tmp_path, "6.12.117+deb12-amd64", "a" * 64)
    monkeypatch.setattr(stock, "_root", lambda: tmp_path)
    monkeypatch.setattr(stock, "_cached", lambda: iter([kernel]))
    monkeypatch.setattr(stock, "_known_packages", lambda: PACKAGES[:3])
    assert stock.nearest("7.3.0-rc7") == kernel


def test_two_who_lack_a_kernel_download_it_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The second would otherwise replace the folder that the first one boots from."""
    other_is_there, began = threading.Event(), threading.Event()
    downloads: list[str] = []

    def answer(command: list[str], folder: Path, _: float) -> str:
        if command[:2] == ["apt-get", "download"]:
            downloads.append(command[3])
            began.set()
            if len(downloads) == 1:
                assert other_is_there.wait(60)
            (folder / "any.deb").touch()
        elif command[0] == "dpkg-deb":
            image = Path(command[3]) / "boot" / "vmlinuz-7.4.2-amd64"
            image.parent.mkdir(parents=True)
            image.write_bytes(header("7.4.2-amd64"))
            (Path(command[3]) / "lib/modules/7.4.2-amd64").mkdir(parents=True)
        return ""

    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path))
    monkeypatch.setattr(stock, "_known_packages", lambda: PACKAGES)
    monkeypatch.setattr(stock, "_run", answer)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(stock.of_distribution, "7.4")
        assert began.wait(60)
        second = pool.submit(stock.of_distribution, "7.4", lambda *_: other_is_there.set())
        assert first.result(60) == second.result(60)
    assert downloads == [PACKAGES[3]]


def header(version: str) -> bytes:
    """Return the beginning of a bzImage of this version."""
    begin = bytearray(0x400)
    begin[0x202:0x206] = b"HdrS"
    begin[0x20E:0x210] = (0x100).to_bytes(2, "little")
    return bytes(begin[:0x300]) + f"{version} (builder)".encode() + b"\0"


@pytest.mark.parametrize(
    ("version", "image", "split"),
    [
        ("6.12.117+deb12-amd64", "boot/vmlinuz-6.12.117+deb12-amd64", False),
        ("7.3.4+deb13-cloud-amd64", "", True),
    ],
)
def test_a_kernel_is_unpacked_from_one_package_or_from_those_that_it_depends_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, image: str, split: bool
) -> None:
    """Debian's packages of images have no file but documents from 7.2 on."""
    modules = f"usr/lib/modules/{version}"
    image = image or f"{modules}/vmlinuz"
    files = {image: header(version), f"{modules}/kernel/net/mptcp.ko": b"module"}
    binary = [f"linux-binary-{version}", f"linux-modules-{version}"]
    downloaded: list[str] = []

    def answer(command: list[str], folder: Path, _: float) -> str:
        if command[:2] == ["apt-cache", "show"]:
            needed = ", ".join(f"{name} (= 1)" for name in [*binary, "kmod"] if split or name == "kmod")
            return f"Package: {command[-1]}\nDepends: {needed}\nRecommends: {binary[0]}\n"
        if command[:2] == ["apt-get", "download"]:
            downloaded.extend(command[3:])
            for name in command[3:]:
                (folder / f"{name}.deb").touch()
        else:
            name, target = Path(command[2]).stem, Path(command[3])
            holds = [image] if name == binary[0] else [*files][1:] if name == binary[1] else [*files]
            for path in holds if split != name.startswith("linux-image") else []:
                (target / path).parent.mkdir(parents=True, exist_ok=True)
                (target / path).write_bytes(files[path])
            target.mkdir(exist_ok=True)
        return ""

    monkeypatch.setattr(stock, "_root", lambda: tmp_path / "stock")
    monkeypatch.setattr(stock, "_known_packages", lambda: [f"linux-image-{version}"])
    monkeypatch.setattr(stock, "_run", answer)
    kernel = stock.of_distribution(".".join(version.split(".")[:2]))
    package = tmp_path / "stock" / f"linux-image-{version}"
    assert downloaded == [package.name, *(binary if split else [])]
    assert (kernel.version, kernel.image, kernel.modules) == (version, package / image, package / modules)
    assert stock.of_distribution(version.split("+", maxsplit=1)[0]) == kernel


def test_a_package_without_a_kernel_is_no_full_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def answer(command: list[str], folder: Path, _: float) -> str:
        if command[0] == "apt-get":
            (folder / "any.deb").touch()
        return ""

    monkeypatch.setattr(stock, "_root", lambda: tmp_path)
    monkeypatch.setattr(stock, "_known_packages", lambda: PACKAGES)
    monkeypatch.setattr(stock, "_run", answer)
    with pytest.raises(MachineError, match=r"linux-image-7\.4\.2-amd64: it has no image with modules"):
        stock.of_distribution("7.4")
