"""A study as one archive that others can repeat: what it holds, how plait writes it, and how plait checks a repeat."""
