"""The figures of a study: the base of all kinds, which of them a report has, and their panels, captions and data."""
