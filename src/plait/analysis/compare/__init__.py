"""Cases against their baseline and studies against each other. Metrics of single trials are in `metrics`."""
