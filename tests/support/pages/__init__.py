"""Pages in a real browser, and a visitor of those of `plait view`."""
