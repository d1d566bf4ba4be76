"""The executors: one file per concurrency model. Their specs are in `clientlab.strategies`."""
