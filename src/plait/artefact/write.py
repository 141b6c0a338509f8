"""Writes a study or a benchmark as a bundle with its documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from plait.artefact import citation, documents
from plait.artefact.check import RESULTS
from plait.artefact.claims import FILE, artefact_of
from plait.artefact.replicability import replicability
from plait.benchmark.results_file import Results, measured, read_results
from plait.benchmark.run import PATHS
from plait.benchmark.suite import NAME, cells
from plait.dataset.study_file import StudyFile, read_study_file
from plait.errors import DataError, RequestError, shell_command
from plait.files import Folder
from plait.results.read import StudyData, read_study
from plait.study.bundle.pack import write_bundle
from plait.study.bundle.record import BundleRecord


def write_artefact(
    folder: Path,
    target: Path | None = None,
    *,
    scenario_folder: Path | None = None,
    authors: Sequence[str] = (),
    licence: str | None = None,
) -> Path:
    """Write the study or benchmark in `folder` as a bundle and return its path; see `write_bundle`.

    Raises RequestError also for an author or licence that is incomplete.
    """
    _refuse_several(folder)
    study_file = read_study_file(folder)
    title = title_of(folder, study_file)
    description = " ".join((study_file.description or title).split())
    cited = citation.publication(authors, licence, title, description)

    def written(record: BundleRecord, sources: Mapping[str, bytes]) -> Mapping[str, bytes]:
        study = read_study(folder)
        results = _results(folder, study)
        artefact, further = artefact_of(study, results)
        bundle = documents.Contents(
            title, study_file, record, artefact, further, tuple(replicability(folder, study, results)),
            sources, cited, results is not None,
        )  # fmt: skip
        pages = {
            "README.md": documents.readme(bundle),
            "CLAIMS.md": documents.claims_page(bundle),
            "REPLICABILITY.md": documents.replicability_page(bundle),
            "ENVIRONMENT.md": documents.environment(bundle),
            "LICENCES.md": documents.licences(bundle),
            FILE: artefact.model_dump_json(by_alias=True, indent=1) + "\n",
        }
        return {name: text.encode() for name, text in pages.items()} | _cited(cited, record)

    return write_bundle(folder, target, scenario_folder=scenario_folder, documents=written)


def _cited(cited: citation.Publication | None, record: BundleRecord) -> dict[str, bytes]:
    if cited is None:
        return {}
    return {
        citation.CITATION: citation.citation_cff(cited, record.plait_version),
        citation.ZENODO: citation.zenodo_json(cited, record.plait_version),
    }


def title_of(folder: Path, study: StudyFile) -> str:
    """Return the title of a bundle: the name of the study and, of a benchmark, its entry and subset (DataError)."""
    if not _is_benchmark(study) or RESULTS not in Folder(folder).names():
        return study.heading
    results = read_results(folder / RESULTS)
    return f"{results.entry.name} in the benchmark {NAME}, {results.subset}"


def _is_benchmark(study: StudyFile) -> bool:
    return study.command.startswith("plait benchmark ")


def _refuse_several(folder: Path) -> None:
    """Raise RequestError for the benchmark of TCP, which is a study for each path."""
    names = Folder(folder).names()
    if "study.json" not in names and all(path in names for path in PATHS):
        commands = " and ".join(f"`{shell_command('plait', 'bundle', folder / path)}`" for path in PATHS)
        raise RequestError(f"bundling {folder}: TCP ran over each path, in a study of its own: {commands}")


def _results(folder: Path, study: StudyData) -> Results | None:
    """Return the results of a benchmark; None for a study.

    Raises RequestError if the benchmark has no results yet, DataError if they are not those of its trials.
    """
    if not _is_benchmark(study.about):
        return None
    if RESULTS not in Folder(folder).names():
        if "--transport tcp" in study.about.command:
            return None  # one of the paths: the results are those of both
        raise RequestError(
            f"bundling {folder}: it has no {RESULTS}, because the benchmark was interrupted; the same command "
            f"(`{study.about.command}`) continues"
        )
    results = read_results(folder / RESULTS)
    if results.cells != measured(study, cells(results.subset), results.seeds):
        raise DataError(
            f"{folder / RESULTS} has other values than the trials beside it; run the benchmark again"
        )
    return results
