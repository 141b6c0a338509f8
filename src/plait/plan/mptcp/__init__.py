"""The path manager's endpoints and limits, and the subflows that follow from them. Routes are in `routes`."""
