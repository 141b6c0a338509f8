"""A running network with a prompt in any node: what is behind `plait shell`, and behind `pause` in a run."""
