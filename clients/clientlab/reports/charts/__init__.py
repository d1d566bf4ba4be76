"""Charts of a run: `row_charts` and `sweeps` define them, and `drawing` draws them all."""
