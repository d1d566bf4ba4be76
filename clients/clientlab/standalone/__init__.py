"""Runs that one process measures: what `clientlab run` does."""
