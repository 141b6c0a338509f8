"""Read a scenario from YAML text: places, messages, input files; `fields` and `check` define its content."""
