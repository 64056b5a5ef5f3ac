"""Each task by itself."""
