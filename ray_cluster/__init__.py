"""The roof: the `derby` command, race cards, placement on Ray. Nobody imports it."""
