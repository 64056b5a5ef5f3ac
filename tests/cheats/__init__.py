"""Cheats as test cases: every file in kernels/ is one trick; its first lines say what must come of it."""
