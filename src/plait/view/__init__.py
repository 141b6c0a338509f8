"""Studies in a browser: a local server, or static files. What figures and tables mean is in `analysis` and `report`."""
