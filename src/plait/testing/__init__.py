"""Checks of plait that people run too: the planted causes of `plait explain`, pages in a browser, the notebook."""
