"""The records of a plan, as the agent reads them. How they are derived is in the other folders of `plait.plan`."""
