"""A result folder as a whole: reading, merging, exporting and explaining it. Showing it is in `plait.report`."""
