"""`plait lines` has its former name `measure` as well, and asks for either a server or a hosts file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import typer.main

from plait.cli import app, main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("verb", ["lines", "measure"])
@pytest.mark.parametrize("options", [(), ("--server", "vps", "--hosts", "hosts.yaml")])
def test_it_needs_a_server_or_a_hosts_file(
    verb: str, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["plait", verb, *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "--server HOST, or the file of several hosts with --hosts hosts.yaml" in capsys.readouterr().err


def test_an_existing_file_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lines.yaml").write_text("mine")
    monkeypatch.setattr(
        "sys.argv", ["plait", "lines", "--server", "vps", "--out", str(tmp_path / "lines.yaml")]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "the file exists" in capsys.readouterr().err


def test_the_help_lists_only_the_new_name() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert commands["measure"].hidden
    assert not commands["lines"].hidden
