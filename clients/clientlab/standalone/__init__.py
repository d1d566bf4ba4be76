"""Runs that one process measures by itself, without the lab's service: what `clientlab run` does."""
