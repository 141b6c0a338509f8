"""From a scenario to a result folder: which trials run, in which order, and which come from the store."""
