"""The host engine: this machine's own kernel, in real time, in namespaces that the agent makes and that end with it."""
