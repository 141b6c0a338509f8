"""The records of a scenario file, one module for each topic. What they mean together is in `check`."""
