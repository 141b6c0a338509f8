"""The records of a plan, as the agent reads them. The other folders of `plait.plan` derive their values."""
