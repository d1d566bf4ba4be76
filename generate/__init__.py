"""Files, and blocks of files, that follow from the code: written by `scripts/generate`, compared by a test."""
