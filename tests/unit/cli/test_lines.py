"""`plait lines` has its former name `measure` as well, and asks for either a server or a hosts file."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer.main

from plait.cli import app, lines, main


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
    commands = typer.main.get_command(app).commands
    assert commands["measure"].hidden
    assert not commands["lines"].hidden


def test_a_further_measurement_has_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert lines._free_name() == Path("lines.yaml")
    Path("lines.yaml").touch()
    Path("lines-2.yaml").touch()
    assert lines._free_name() == Path("lines-3.yaml")
