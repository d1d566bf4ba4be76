"""The clients: one file per library and connection policy. Their specs are in `clientlab.strategies`."""
