"""The executors: one file per concurrency model, with the entry of each executor next
to its class.
"""
