"""The run document, its list of figures, its files, and where a run was measured."""
