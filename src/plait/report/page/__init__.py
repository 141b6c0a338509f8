"""The page report.html and its sections. The terminal has its own folder, `terminal`."""
