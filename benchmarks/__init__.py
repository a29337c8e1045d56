"""Benchmarks of the model families, run from a checkout."""
