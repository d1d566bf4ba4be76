"""Measuring: a trial in a fresh process, the recorder that owns the clock, and the
resources that a trial used.
"""
