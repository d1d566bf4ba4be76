"""Benchmarks of the lab itself: each figure with its spread and its target."""
