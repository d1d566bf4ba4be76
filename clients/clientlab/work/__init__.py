"""The worker: a small process that waits for its turn, and starts the one that measures."""
