"""What was seen: the tables of one trial. See `plait.dataset.model` for their columns."""
