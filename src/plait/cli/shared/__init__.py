"""What several verbs share: progress, options of guests, and how the process ends."""
