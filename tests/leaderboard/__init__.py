"""Tests of the board, on canned ledgers."""
