"""What will happen: one trial, fully resolved. See `plait.plan.model` for the shape of a plan."""
