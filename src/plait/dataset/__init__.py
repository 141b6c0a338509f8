"""The data of a trial: tables, provenance and digest. `plait.dataset.model` defines the columns."""

from plait.dataset.convert import convert
from plait.dataset.digest import study_digest, trial_digest
from plait.dataset.provenance import Provenance
from plait.dataset.trial import Trial, read_trial

__all__ = ["Provenance", "Trial", "convert", "read_trial", "study_digest", "trial_digest"]
