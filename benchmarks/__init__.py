"""Benchmarks of the model families."""
