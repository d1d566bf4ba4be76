"""Measures a trial in a fresh process, in which the recorder owns the clock.

It also reads the resources that the trial used.
"""
