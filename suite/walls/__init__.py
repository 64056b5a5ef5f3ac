"""What the kernel offers against code that nobody trusts, one file each; imports the standard library alone.

Used twice: beside a candidate, where nothing else of ours is (`suite/child`), and around a method (`suite/confine.py`).
"""
