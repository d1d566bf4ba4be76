"""The executors: one file a way of running MANY requests. Their list is in `clientlab.strategies`."""
