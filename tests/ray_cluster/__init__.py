"""Tests of the roof: the command line, race cards, placement."""
