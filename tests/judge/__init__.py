"""The judge, tried on a small task with real processes."""
