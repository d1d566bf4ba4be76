"""The run document and its files: what was measured, its figures, and where
it is kept.
"""
