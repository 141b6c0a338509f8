"""What will happen: one trial, fully resolved. See `plait.plan.model.plan` for the shape of a plan."""
