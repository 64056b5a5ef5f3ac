"""Tests of methods/ksearch."""
