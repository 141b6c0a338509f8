"""The drawing of the network as SVG. Charts of results are in `figures`."""
