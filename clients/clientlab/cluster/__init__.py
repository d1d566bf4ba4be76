"""Measuring on the workers of a Dask cluster: trials and shards, live metrics, and the
exporter of stored runs.
"""
