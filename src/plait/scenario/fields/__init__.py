"""The records of a scenario file, one module for each topic; `check` checks them against each other."""
