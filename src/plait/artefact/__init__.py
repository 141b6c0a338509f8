"""A bundle as an artefact for evaluations: documents, claims, and the check of both on another machine."""
