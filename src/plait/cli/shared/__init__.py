"""Code that several verbs share: options, progress of a kernel build, and how the process ends."""
