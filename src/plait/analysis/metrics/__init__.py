"""The metrics of one trial, and the catalogue of their names, titles and units. Comparing them is in `compare`."""
