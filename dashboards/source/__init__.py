"""The dashboards as code.

`python -m dashboards.source` writes the JSON files that Grafana loads.
"""
