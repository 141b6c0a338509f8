"""The engine `machine` boots the distribution's kernel that is nearest to the laboratory's."""

from __future__ import annotations

from pathlib import Path

import pytest

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
