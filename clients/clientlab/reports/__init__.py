"""Reports of runs: their sections, charts and formats."""
