"""Watches a trial from outside, step by step, and ends it at its limits."""
