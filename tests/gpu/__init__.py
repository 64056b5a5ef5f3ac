"""What needs a GPU, or compiles for one."""
