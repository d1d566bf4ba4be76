"""Experiments: the file, the plan that it expands to, and checks; the bundled
experiments lie beside the code.
"""
