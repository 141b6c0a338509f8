"""The plan of one trial, with nothing left to decide. `plait.plan.model.plan` defines the shape of a plan."""
