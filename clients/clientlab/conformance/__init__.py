"""Conformance: what every strategy has to keep to, seen by a server that shares no code with the lab."""
