"""The clients: one file a library, each saying how ONE request is sent. Their list is in `clientlab.strategies`."""
