"""Results as text for a terminal of 80 columns. The page is in `page`."""
