"""Blocks of the documentation that hold the output of a command."""
