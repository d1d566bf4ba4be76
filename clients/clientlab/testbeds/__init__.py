"""Testbeds: local processes, the Compose stack, or the servers of the user. A trial runs against one of them."""
