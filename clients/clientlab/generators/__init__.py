"""Load generators that are programs, such as wrk: their command lines, and what they report. None is a strategy."""
