"""What one trial does, with nothing left to decide. `plait.plan.model.plan` defines the shape of a plan."""
