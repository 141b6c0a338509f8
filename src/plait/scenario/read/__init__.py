"""From YAML text to a scenario: places, messages, input files. The meaning of fields is in `fields` and `check`."""
