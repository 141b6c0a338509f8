"""The one-page summary of a benchmark: figure, scores, ranks and parts, as HTML and as Markdown."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from plait.benchmark.standing import PART_TITLES, SCORE_WORDS, SHOWN_PARTS, Standing, overall
from plait.benchmark.suite import NAME
from plait.files import Folder
from plait.report.render.render import draw_all
from plait.report.render.theme import LIGHT

_WIDTH_MM = 170.0


def write(standing: Standing, folder: Path) -> None:
    """Write benchmark.html, benchmark.md and the figure into a result folder (OSError)."""
    target = Folder(folder)
    drawing = draw_all({"profile": standing.figure()}, _WIDTH_MM)["profile"]
    target.write("profile.svg", drawing.svg.encode())
    target.write("benchmark.md", markdown(standing).encode())
    target.write("benchmark.html", page(standing, drawing.svg).encode())


def markdown(standing: Standing) -> str:
    """Return the scores and ranks as a Markdown page."""
    lines = [f"# {NAME}, {standing.subset}: {standing.title}", "", f"Score: {SCORE_WORDS}.", ""]
    lines += ["| class | score | rank | first |", "| -- | --: | --: | -- |"]
    lines += [f"| {' | '.join(row)} |" for row in standing.rows()]
    lines += ["", *(f"- {sentence}" for sentence in standing.sentences()), "", "## Parts", ""]
    lines += [
        f"| class | {' | '.join(PART_TITLES[part] for part in SHOWN_PARTS)} |",
        "| -- |" + " --: |" * len(SHOWN_PARTS),
    ]
    lines += [
        f"| {title} | {' | '.join(words[part] for part in SHOWN_PARTS)} |"
        for title, words in standing.parts()
    ]
    return "\n".join(lines) + "\n"


def page(standing: Standing, svg: str) -> str:
    """Return the summary as one HTML page that needs no other file, and fits one sheet of paper."""
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(
        files("plait.benchmark").joinpath("page.html.j2").read_text(encoding="utf-8")
    )
    entry = standing.own.entry
    return template.render(
        suite=NAME, standing=standing, entry=entry, words=SCORE_WORDS, colours=LIGHT,
        figure=Markup(svg),  # noqa: S704 - plait has drawn it
        titles=[PART_TITLES[part] for part in SHOWN_PARTS], parts=list(standing.parts()), names=SHOWN_PARTS,
        overall=overall(standing),
    )  # fmt: skip
