"""Judging a run: ranking, cautions, claims, thresholds, and comparison of runs."""
