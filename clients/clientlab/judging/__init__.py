"""Judging a run: claims, cautions, verdicts, ranking, comparison with other runs,
thresholds.
"""
