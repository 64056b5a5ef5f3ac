"""What every plugin of a kind must satisfy; a new one is tested by being listed."""
