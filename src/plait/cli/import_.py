"""`plait import`: a topology that was described for Mininet or minitopo, as a scenario file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plait.binaries import AGENT
from plait.cli.shared.kernel import build_with_progress

if TYPE_CHECKING:
    from plait.importers.draft import Draft

_LIMIT_US = 60_000_000


def command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A minitopo topology, or a Python file with a Topo.")
    ],
    *,
    topo: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which class, or which of its `topos`.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The scenario file. Default: standard output.")] = None,
) -> None:
    """Turn a Mininet `Topo` or a minitopo topology into a scenario; what has no place in it is named in comments."""
    from plait import scenario as scenarios
    from plait.errors import RequestError
    from plait.importers import mininet, minitopo

    if out is not None and out.exists():
        raise RequestError(
            f"{out} is there already, and may have been changed; remove it, or write another --out"
        )
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"reading {file}: {error}") from error
    if mininet.looks_like(text):
        draft = _mininet_draft(file, topo)
    elif minitopo.looks_like(text):
        draft = minitopo.draft(text, file.name)
    else:
        raise RequestError(
            f"{file}: this is neither a minitopo topology nor a Python file that imports mininet"
        )
    scenario_text = draft.text()
    scenarios.parse(scenario_text, out.name if out else "the imported scenario")
    if out is None:
        sys.stdout.write(scenario_text)
        return
    out.write_text(scenario_text, encoding="utf-8")
    count = len(dict.fromkeys(draft.remarks))
    typer.echo(
        f"{out}: {len(draft.links)} links; {count} things were not carried over, and stand in it as comments"
    )


def _mininet_draft(file: Path, topo: str | None) -> Draft:
    from plait.errors import RequestError
    from plait.importers import mininet

    record = _record(file, topo)
    classes = record.get("classes")
    if classes is not None and not classes:
        raise RequestError(
            f"{file}: there is no Topo class in it; a script that builds its network by itself runs unchanged: "
            f"plait exec -- /usr/bin/python3 {file}"
        )
    if classes is not None:
        raise RequestError(f"{file}: say which topology is meant: --topo {' or --topo '.join(classes)}")
    return mininet.draft(record, file.name)


def _record(file: Path, topo: str | None) -> dict[str, Any]:
    """Makes the topology in a guest, since the file is a program that may do anything, and returns what is in it."""
    import json

    from plait.cache import cache_root
    from plait.cli.exec import plan_of
    from plait.cli.shared.environment import environment_of
    from plait.engine.interactive import END, STDERR, STDOUT, ProgramStart
    from plait.engine.uml.session import Session, SessionRequest
    from plait.engine.workspace import Workspace
    from plait.errors import RequestError
    from plait.importers import recorder

    argv = [
        "/usr/bin/python3",
        str(Path(recorder.__file__).resolve()),
        str(file.resolve()),
        *([topo] if topo else []),
    ]
    start = ProgramStart(1, argv, environment_of([], terminal=False), directory=str(file.resolve().parent))
    request = SessionRequest(start=start, time_limit_us=_LIMIT_US)
    output = {STDOUT: b"", STDERR: b""}
    with (
        Workspace(cache_root() / "exec", ".work-") as workspace,
        Session(build_with_progress(), AGENT, workspace.job(), plan_of(1, 1024), request) as session,
    ):
        while True:
            session.wait()
            gone = session.guest.process.poll() is not None
            for frame in session.frames():
                if frame.kind == END:
                    end = json.loads(frame.content)
                    if end["code"] != 0:
                        reason = (
                            output[STDERR].decode(errors="replace").strip()
                            or end["error"]
                            or "it did not end"
                        )
                        raise RequestError(
                            f"{file}: making its topology failed; if it is no file of Topo classes, but a script "
                            f"that builds its network by itself: plait exec -- /usr/bin/python3 {file}\n{reason}"
                        )
                    return dict(json.loads(output[STDOUT].splitlines()[-1]))
                output[frame.kind] = output.get(frame.kind, b"") + frame.content
            if gone:
                session.explain_end()
