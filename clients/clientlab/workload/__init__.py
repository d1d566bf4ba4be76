"""The workload of a trial: its fields, its load model and its requests.

No module here imports an HTTP library.
"""
