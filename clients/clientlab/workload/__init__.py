"""The workload: its requests, their delays and their bodies. No module of this package imports a library."""
