"""`plait import`: converts a Mininet or minitopo topology, or a report of MPTCP, to a scenario file."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plait.binaries import AGENT
from plait.cli.shared.kernel import build_with_progress
from plait.cli.shared.outputs import output_file, write_output
from plait.errors import RequestError, TrialError, shell_command

if TYPE_CHECKING:
    from plait.engine.interactive import ProgramEnd
    from plait.engine.virtual.session import Session
    from plait.importers.draft import Draft

_LIMIT_US = 60_000_000
_WALL_S = 300.0
_OUTPUT_BYTES = 16 << 20
_MOST_LETTERS = 16 << 20
"""Of a file that somebody else may have written."""


def command(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE..",
            help="A minitopo topology, a Python file with a Mininet `Topo` class, or the files of a report: a shell "
            "script with `ip netns`, and the output of `ss -tinM` and `nstat`",
        ),
    ],
    *,
    topo: Annotated[
        str | None, typer.Option(metavar="NAME", help="Class, or entry of `topos`, to convert")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Scenario file to write", show_default="standard output"),
    ] = None,
) -> None:
    """Convert a Mininet or minitopo topology, or the script, sockets and counters of a report, to a scenario.

    Comments in the scenario list what plait cannot convert.
    """
    from plait.scenario import parse as parse_scenario

    output = None if out is None else output_file(out, "--out", new=True)
    draft = _draft(files, [_text(file) for file in files], topo)
    scenario_text = draft.text()
    parse_scenario(scenario_text, out.name if out else "the imported scenario")
    if output is None:
        sys.stdout.write(scenario_text)
        return
    write_output(output, "--out", scenario_text.encode(), new=True)
    count = len(dict.fromkeys(draft.remarks))
    typer.echo(f"{out}: {len(draft.links)} links; not converted: {count} (listed in its comments)")


def _text(file: Path) -> str:
    from plait.scenario.read.load import without_waiting

    try:
        # also with the line ends of other systems
        with open(file, encoding="utf-8", opener=without_waiting) as source:
            text = source.read(_MOST_LETTERS + 1)
    except UnicodeDecodeError as error:
        raise RequestError(f"reading {file}: this is not a text file in UTF-8") from error
    except OSError as error:
        raise RequestError(f"reading {file}: {error.strerror}; check the path and its permissions") from error
    if not text and not file.is_file():
        raise RequestError(
            f"reading {file}: it is no regular file, and no program writes to it; name another file"
        )
    if len(text) > _MOST_LETTERS:
        raise RequestError(f"reading {file}: it has more than {_MOST_LETTERS >> 20} MiB; import less of it")
    return text


def _draft(files: list[Path], texts: list[str], topo: str | None) -> Draft:
    """Return the draft of a topology, or of the files of a report."""
    from plait.importers import mininet, minitopo, netns, observed

    if len(files) == 1 and mininet.looks_like(texts[0]):
        return _mininet_draft(files[0], topo)
    if len(files) == 1 and minitopo.looks_like(texts[0]):
        return minitopo.draft(texts[0], files[0].name)
    for file, text in zip(files, texts, strict=True):
        if not netns.looks_like(text) and not observed.looks_like(text):
            raise RequestError(
                f"{file}: this is neither a minitopo topology, nor a Python file that imports mininet, nor a script "
                "with `ip netns` and veth pairs, nor the output of `ss` or `nstat`; plait imports nothing else, and "
                "several files only of a report"
            )
    whole, names = "\n".join(texts), ", ".join(file.name for file in files)
    draft = netns.draft(whole, names) if netns.looks_like(whole) else observed.draft(whole, names)
    observed.observe(whole, draft)
    return draft


def _mininet_draft(file: Path, topo: str | None) -> Draft:
    from plait.importers import mininet

    record = _record(file, topo)
    classes = record.get("classes")
    if classes is not None and not classes:
        raise RequestError(
            f"{file}: this file has no Topo class; if it is a script that builds its own network, run it unchanged: "
            f"{shell_command('plait', 'exec', '--', '/usr/bin/python3', file)}"
        )
    if classes is not None:
        problem = "this file has several topologies" if topo is None else f"it has no topology {topo!r}"
        raise RequestError(
            f"{file}: {problem}; write {' or '.join(shell_command('--topo', name) for name in classes)}"
        )
    return mininet.draft(record, file.name)


def _record(file: Path, topo: str | None) -> dict[str, Any]:
    """Build the topology in a guest, because the file is a program that may do anything, and return its contents."""
    from plait.cli.laboratory.exec import plan_of
    from plait.cli.shared.environment import environment_of
    from plait.engine.interactive import ProgramStart
    from plait.engine.virtual.session import Session, SessionRequest
    from plait.engine.workspace import working_folder
    from plait.importers import mininet, recorder

    if not file.is_file():
        raise RequestError(
            f"reading {file}: a guest runs a Mininet script from its own file; save it to one, and name that"
        )
    argv = [
        "/usr/bin/python3",
        str(Path(recorder.__file__).resolve()),
        str(file.resolve()),
        *([topo] if topo else []),
    ]
    start = ProgramStart(1, argv, environment_of([], terminal=False), directory=str(file.resolve().parent))
    request = SessionRequest(start=start, time_limit_us=_LIMIT_US)
    with (
        working_folder() as workspace,
        Session(build_with_progress(), AGENT, workspace.job(), plan_of(1, 1024), request) as session,
    ):
        end, printed, errors = _followed(file, session)
    if end.code != 0:
        lines = errors.decode(errors="replace").split("\n")
        reason = next((line for line in reversed(lines) if line.strip()), end.error)
        raise RequestError(
            f"{file}: building its topology failed ({reason or 'it did not end'}); if it is a script "
            "that builds its own network, run it unchanged: "
            f"{shell_command('plait', 'exec', '--', '/usr/bin/python3', file)}"
        )
    try:
        return mininet.recorded(printed)
    except ValueError as error:
        raise RequestError(
            f"{file}: reading its topology failed: {error}; the file must print nothing after its topology is built"
        ) from error


def _followed(file: Path, session: Session) -> tuple[ProgramEnd, bytes, bytes]:
    """Wait for the end of the program; return how it ended and what it printed. Raises RequestError at a bound."""
    from plait.engine.interactive import END, STDERR, STDOUT, ProgramEnd

    output = {STDOUT: bytearray(), STDERR: bytearray()}
    deadline = time.monotonic() + _WALL_S
    while time.monotonic() < deadline:
        session.wait()
        gone = session.guest.process.poll() is not None
        for frame in session.frames():
            if frame.kind == END:
                return ProgramEnd.read(frame.content), bytes(output[STDOUT]), bytes(output[STDERR])
            output.get(frame.kind, bytearray()).extend(frame.content)
            if sum(map(len, output.values())) > _OUTPUT_BYTES:
                raise RequestError(
                    f"{file}: it printed more than {_OUTPUT_BYTES >> 20} MiB; let it print less"
                )
        session.check_disk()
        if gone:
            session.explain_end()
            raise TrialError(f"{file}: the guest ended without reporting the end of the program")
    raise RequestError(
        f"{file}: building its topology did not end within {_WALL_S:.0f} s; let it build less, or wait for nothing"
    )
