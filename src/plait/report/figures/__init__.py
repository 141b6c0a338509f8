"""One module for each kind of figure, and which figures a report has. Writing image files is in `render`."""
