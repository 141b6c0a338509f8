"""The documents of a bundle: README, claims, replicability, environment and licences, as Markdown.

Names in results are anybody's. They appear as text only: no name becomes markup, and commands have only numbers and
quoted names.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata

from plait.analysis.statistics import triscale
from plait.analysis.wording import all_of, percent
from plait.artefact.check import MINUTES, SHARE_USED, recorded_s, trials_of
from plait.artefact.citation import CITATION, ZENODO, Publication
from plait.artefact.claims import FILE, Artefact
from plait.artefact.replicability import Replicability
from plait.dataset.study_file import EngineFacts, StudyFile
from plait.errors import printable, shell_command
from plait.kernel.cache import list_built
from plait.study.bundle.record import ALGORITHMS, INPUTS, PACKAGES, RECORD, SCENARIO, STUDY, BundleRecord

_SPDX = re.compile(r"SPDX-License-Identifier:\s*([A-Za-z0-9.+() -]{1,80})")
_MARKUP = re.compile(r"([\\`*_\[\]<>|#&~!])")
_NO_CLAIMS = "No comparison of this study shows a difference, and no case has a value."
_ENGINES = {
    "virtual": "The engine `virtual` needs no root and no emulator.",
    "machine": "The engine `machine` needs QEMU, and a stock kernel that plait downloads.",
    "host": "The engine `host` needs root, and runs in real time.",
    "remote": "The engine `remote` needs the hosts of the study, and runs in real time.",
}


def words(text: str) -> str:
    """Return a text of anybody as one line of Markdown that is nothing but text."""
    return _MARKUP.sub(r"\\\1", printable(" ".join(text.split())))


def duration(seconds: float) -> str:
    """Return seconds in words: `less than a second`, `12 s`, `3 min`."""
    if seconds < 1:
        return "less than a second"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


@dataclass(frozen=True)
class Contents:
    """A bundle, to write about."""

    title: str
    study: StudyFile
    record: BundleRecord
    artefact: Artefact
    further_claims: int
    """How many claims artefact.json leaves out."""
    replicability: Sequence[Replicability]
    sources: Mapping[str, bytes]
    """The content of the bundled algorithms, by name."""
    publication: Publication | None
    is_benchmark: bool

    @property
    def repeats(self) -> bool:
        """Whether equal seeds give equal bytes in all cases."""
        return all(self.study.repeats_seeds(case.settings) for case in self.study.cases)


def _blocks(*blocks: str) -> str:
    """Return blocks of Markdown, without those that are empty, with an empty line between two."""
    return "\n\n".join(filter(None, blocks))


def _page(*blocks: str) -> str:
    return _blocks(*blocks) + "\n"


def _list(*items: str) -> str:
    return "\n".join(f"- {item}" for item in items)


def readme(bundle: Contents) -> str:
    """Return README.md."""
    record, kernel = bundle.record, bundle.record.kernel
    kind = "benchmark entry" if bundle.is_benchmark else "study"
    return _page(
        f"# Artefact: {words(bundle.title)}",
        f"This bundle has a {kind} of plait, a Multipath TCP laboratory: what ran, its data, and what they show. "
        f"{_count(len(record.trials), 'trial')} ran on the engine {words(record.engine or 'virtual')} with plait "
        f"{words(record.plait_version)} and Linux {words(kernel.version or 'unknown')}.",
        words(bundle.study.description or ""),
        "## What you need",
        f"Linux on x86-64, and plait {words(record.plait_version)} with its kernel. {_engines(record)} "
        "ENVIRONMENT.md says how to install plait, and has the identities of everything that ran.",
        _algorithms(record),
        "Run all commands in the folder that has this README.",
        _checks(bundle),
        "## Files",
        _list(*(f"`{name}`: {text}." for name, text in _files(bundle))),
        "## Times",
        _times(bundle.record),
    )


def _engines(record: BundleRecord) -> str:
    names = [name.strip().partition("@")[0] for name in (record.engine or "virtual").split(",")]
    return " ".join(_ENGINES[name] for name in dict.fromkeys(names) if name in _ENGINES)


def _algorithms(record: BundleRecord) -> str:
    if not record.algorithms:
        return ""
    commands = [shell_command("plait", "kernel", "add", f"{ALGORITHMS}/{name}") for name in record.algorithms]
    return _blocks("Read the added algorithms, then build them:", _block(*commands))


def _block(*commands: str) -> str:
    return "\n".join(["```", *commands, "```"])


def _checks(bundle: Contents) -> str:
    record, claims = bundle.record, bundle.artefact.claims
    used = MINUTES * 60 * SHARE_USED
    total = recorded_s(record.trials)
    compared = (
        "compares the digests of all their tables. The same kernel gives the same bytes. With another build of the "
        "kernel, values within the range of the study pass as well"
        if bundle.repeats
        else "compares their values with the range that the study has. Trials in real time never repeat to the byte"
    )
    drawn = (
        f"all of them, which took {duration(total)} one after the other"
        if total <= used
        else f"as many as took {duration(used)} one after the other"
    )
    most = max((recorded_s(trials_of(record, [claim])) for claim in claims), default=0.0)
    of_claims = _blocks(
        _block("plait verify . --claim 1", "plait verify . --claims"),
        f"CLAIMS.md lists {_count(len(claims), 'claim')} with value and tolerance. The first command repeats the "
        "trials of one claim, the second one those of all. The exit code is 1 if a claim does not hold. "
        f"A claim takes up to {duration(most)} of trials, one after the other.",
    )
    return _blocks(
        f"## Check it in {MINUTES:.0f} minutes",
        _block("plait verify ."),
        f"This draws trials ({drawn}), runs them again, and {compared}. The exit code is 0 if every trial "
        "passes, and 1 otherwise. `--draw N` repeats a draw.",
        "## Repeat all of it",
        _block("plait run . --verify --out again"),
        f"This runs {all_of(len(record.trials), 'trial')}, writes a report into `again`, and compares each digest. "
        f"It took {duration(total)} in sum; several run at once.",
        "## Check the claims",
        of_claims if claims else _NO_CLAIMS,
    )


def _files(bundle: Contents) -> list[tuple[str, str]]:
    record = bundle.record
    report = "benchmark.html" if bundle.is_benchmark else "report.html"
    files = [
        ("CLAIMS.md", f"each claim with its command; `{FILE}` has them for programs"),
        ("REPLICABILITY.md", "how far results depend on the seeds (TriScale)"),
        ("ENVIRONMENT.md", "versions, identities, and how to build the kernel"),
        ("LICENCES.md", "the licence of each part"),
    ]
    if bundle.publication is not None:
        files += [(CITATION, "how to cite the data"), (ZENODO, "metadata that Zenodo reads")]
    files += [
        (SCENARIO, "network, traffic and what varies"),
        (RECORD, "what plait needs to repeat the trials, and their digests"),
        (PACKAGES, "the Python packages of the machine that wrote this bundle"),
        (f"{STUDY}/{report}", "the results for people"),
        (f"{STUDY}/trials/", "plan, tables (Parquet) and provenance of each trial"),
    ]
    files += [(f"{INPUTS}/", "files that the scenario names")] if record.inputs else []
    return files + ([(f"{ALGORITHMS}/", "source of added algorithms")] if record.algorithms else [])


def _times(record: BundleRecord) -> str:
    known = [trial.wall_s for trial in record.trials if trial.wall_s is not None]
    if not known:
        return "The trials do not say how long they took."
    machines = "; ".join(map(words, record.machines))
    return (
        f"Measured while the study ran, on {machines}: {len(known)} trials took {duration(sum(known))} in sum, and "
        f"the longest one {duration(max(known))}. Starting plait and reading the data take some seconds more."
    )


def claims_page(bundle: Contents) -> str:
    """Return CLAIMS.md."""
    rows = ["| claim | value | tolerance | time | command |", "| -- | --: | -- | --: | -- |"]
    for claim in bundle.artefact.claims:
        took = duration(recorded_s(trials_of(bundle.record, [claim])))
        value, low, high = (words(claim.show(number)) for number in (claim.value, claim.low, claim.high))
        command = f"`{shell_command('plait', 'verify', '.', '--claim', claim.number)}`"
        tolerance = low if low == high else f"{low} to {high}"
        rows.append(f"| {words(claim.sentence)} | {value} | {tolerance} | {took} | {command} |")
    table = _blocks(
        "Each command repeats the trials of one claim, and exits with 1 if the value is not within the tolerance. "
        "The tolerance is the 95 % interval of the value, or the smallest difference of interest if that is wider. "
        "The time is that of the trials when the study ran, one after the other.",
        "\n".join(rows),
    )
    more = f"{bundle.further_claims} more are in {STUDY}/summary.json; no command checks them alone."
    return _page(
        "# Claims",
        table if bundle.artefact.claims else _NO_CLAIMS,
        more if bundle.further_claims else "",
    )


def replicability_page(bundle: Contents) -> str:
    """Return REPLICABILITY.md."""
    needed = triscale.RUNS * triscale.SERIES
    same = (
        "With the same seeds, a repeat has the same bytes, so nothing varies at all."
        if bundle.repeats
        else "Some trials ran in real time. No repeat has the same bytes, and what else the machine and the network "
        "did at that time is in the values."
    )
    seasons = (
        "TriScale spreads series over days, because networks have seasons. In virtual time there is no day, so "
        "seasonal components do not apply."
        if bundle.repeats
        else "TriScale spreads series over days, because networks have seasons. These series ran one after the other, "
        "so seasonal components are not excluded."
    )
    scores = _list(
        f"A run is a trial. It has converged if the trend of its goodput (Theil-Sen slope, "
        f"{percent(triscale.CONVERGENCE_CONFIDENCE, 2)} interval) is within "
        f"{percent(triscale.CONVERGENCE_TOLERANCE, 1)}. This applies to goodput only.",
        f"The KPI bounds the median of the runs on one side with {percent(triscale.KPI_CONFIDENCE, 2)}, by order "
        f"statistics. It needs {triscale.RUNS} runs.",
        "Independent: runs in their order show no trend and no autocorrelation. Each run has a seed of its "
        "own, so runs are independent by construction; few runs that vary much cannot show it.",
        f"The variability score is the width of the interval that covers the middle half of the KPIs of "
        f"{triscale.SERIES} series with {percent(triscale.SCORE_CONFIDENCE, 2)}. It needs {needed} runs. The "
        "percentage is relative to the middle of the interval.",
        f"{seasons}",
    )
    of_runs = "A run is the score of one seed. The suite has six seeds, too few for a variability score."
    rows = [
        "| what | runs | converged | KPI | independent | variability |",
        "| -- | --: | --: | -- | -- | -- |",
    ]
    rows += [f"| {' | '.join(map(words, _row(row)))} |" for row in bundle.replicability]
    return _page(
        "# Replicability",
        f"{same} With other seeds, results vary. The scores are those of TriScale (Jacob et al., JSys 2021):",
        scores,
        of_runs if bundle.is_benchmark else "",
        "\n".join(rows),
    )


def _row(row: Replicability) -> tuple[str, ...]:
    runs, kpi, interval = len(row.values), row.kpi, row.variability
    converged = "-" if row.converged is None else f"{sum(row.converged)} of {len(row.converged)}"
    side = "at least" if row.more_is_better else "at most"
    independent = {True: "shown", False: "not shown", None: "too few runs"}[
        triscale.looks_independent(row.values)
    ]
    if interval is None:
        score = f"none: {runs} runs, {triscale.RUNS * triscale.SERIES} needed"
    else:
        low, high = interval
        middle = (low + high) / 2
        relative = f" ({percent((high - low) / middle, 2)})" if middle else ""
        score = f"{row.show(high - low)}{relative}"
    return (
        row.title, str(runs), converged,
        f"none: {runs} runs, {triscale.RUNS} needed" if kpi is None else f"{side} {row.show(kpi)}",
        independent, score,
    )  # fmt: skip


def environment(bundle: Contents) -> str:
    """Return ENVIRONMENT.md."""
    record = bundle.record
    libraries = sorted(
        {_requirement(text) for text in metadata.requires("plait") or () if "extra ==" not in text}
    )
    return _page(
        "# Environment",
        "## What ran the trials",
        _list(
            f"plait {words(record.plait_version)}",
            f"agent (SHA-256): {words(record.agent_sha256 or 'not recorded')}",
            *(f"machine: {words(machine)}" for machine in record.machines),
            *(_kernel(engine) for engine in _engine_facts(bundle.study)),
        ),
        "## Install plait",
        f"Get plait {words(record.plait_version)} and its kernel, as wheels or as a clone, and install both:",
        _block("python3 -m venv plait", "plait/bin/pip install --find-links dist 'plait[kernel]'"),
        "In a clone, `make setup` compiles plait. If no package has the kernel, the first run builds it, and so does:",
        _block("plait kernel build", "plait kernel list"),
        "The list shows the identity of each kernel. The identity is a hash of source, patches and configuration, "
        "so it does not depend on the compiler. `plait doctor` says what a machine lacks.",
        "## The machine that wrote this bundle",
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()}, with:",
        _list(*(f"{name} {metadata.version(name)}" for name in libraries)),
        f"`{PACKAGES}` lists all Python packages in the form that pip reads.",
    )


def _requirement(text: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", text)
    return match[0] if match else text


def _engine_facts(study: StudyFile) -> Sequence[EngineFacts]:
    return study.engines or [
        EngineFacts(name=study.engine or "virtual", kernel=study.kernel, agent_sha256=study.agent_sha256)
    ]


def _kernel(engine: EngineFacts) -> str:
    kernel = engine.kernel
    built = {key: build for known, build in list_built() for key in (known.identity, known.binary_sha256)}
    line = (
        f"engine {words(engine.name)}: Linux {words(kernel.version or 'unknown')}, identity "
        f"{words(kernel.identity or 'not recorded')}"
    )
    build = built.get(kernel.identity or "")
    if build is None:
        return line
    source = f"{build.source.kind}: {build.source.name}, SHA-256 {build.source.content_sha256}"
    return (
        f"{line}; source {words(source)}; recipe {build.recipe_sha256}; compiler "
        f"{words(build.compiler)}; binary (SHA-256) {build.binary_sha256}"
    )


def licences(bundle: Contents) -> str:
    """Return LICENCES.md."""
    record = bundle.record
    chosen = bundle.publication
    rest = (
        f"{chosen.licence} (https://spdx.org/licenses/{chosen.licence}.html), by its authors in {CITATION}"
        if chosen
        else "not stated: whoever wrote this bundle named no licence; ask them before you publish anything of it"
    )
    lines = [f"Everything that this list does not name, data and documents: {rest}."]
    if not bundle.is_benchmark:
        lines.append(f"Style and script in `{STUDY}/report.html`: Apache-2.0, by the plait authors.")
    for name, content in bundle.sources.items():
        match = _SPDX.search(content[:4000].decode(errors="replace"))
        stated = match[1].strip() if match else "the file states none"
        lines.append(f"{words(f'{ALGORITHMS}/{name}')}: {words(stated)}.")
    for number, file in enumerate(record.inputs):
        lines.append(f"{words(f'{INPUTS}/{number}/{file.name}')}: as its source says; plait copied the file.")
    return _page(
        "# Licences",
        _list(*lines),
        "The bundle has no part of plait itself (Apache-2.0; its kernel patches and modules: GPL-2.0-only), of the "
        "kernel (GPL-2.0-only), or of Python packages.",
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
