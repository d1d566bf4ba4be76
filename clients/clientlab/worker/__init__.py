"""A worker of the lab service: it asks for a trial, measures it, shows its metrics and returns the result."""
