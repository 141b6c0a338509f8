"""From a scenario to a result folder: which trials run, in which order, and which are taken from the store."""
