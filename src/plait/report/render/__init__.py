"""From chart specifications to SVG, PNG and PDF. What is drawn is decided in `figures`."""
