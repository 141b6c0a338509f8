"""What parts of a scenario must mean together. The records themselves are in `fields`."""
