"""Nodes, interfaces, addresses, switches and kernel settings. Queues are in `links`, routes in `routes`."""
