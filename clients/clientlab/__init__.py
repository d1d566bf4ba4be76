"""clientlab: how should Python code make HTTP requests, and how do we know."""

__version__ = "0.1.0"
