"""The data of a trial: tables, provenance and digest. `plait.dataset.model` defines the columns."""
