"""The judge of the cpu lane and the processes it starts."""
