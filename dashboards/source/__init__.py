"""The dashboards as code, one file each; `house` has what they share. `scripts/generate` writes the JSON files."""
