"""The run document and its files: what was measured, its figures, where it is kept, and how it is given away."""
