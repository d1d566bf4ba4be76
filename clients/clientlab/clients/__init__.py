"""The clients: one file per library, with the entry of each client next to
its class.
"""
