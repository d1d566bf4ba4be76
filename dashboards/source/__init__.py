"""The dashboards as code: `python -m dashboards.source` writes the JSON that Grafana loads.

One file a dashboard, and `house` for what they have in common. A test holds the JSON to the code.
"""
