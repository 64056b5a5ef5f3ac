"""Tests of the suite: conformance, cheats, benchmarks, and one folder of tests for each folder of code."""
