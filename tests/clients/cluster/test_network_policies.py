"""What the policy for a Prometheus of one's own permits."""

from __future__ import annotations

import yaml

from running import ROOT

COMPONENT = ROOT / "deploy/kubernetes/components/podmonitor"


def test_prometheus_reaches_the_ports_that_podmonitors_name_and_no_others():
    """By name, which each pod resolves to a port of its own."""
    monitors = yaml.safe_load_all((COMPONENT / "podmonitors.yaml").read_text(encoding="utf-8"))
    scraped = {
        endpoint["port"]
        for one in monitors
        if one["kind"] == "PodMonitor"
        for endpoint in one["spec"]["podMetricsEndpoints"]
    }
    policy = yaml.safe_load((COMPONENT / "network.yaml").read_text(encoding="utf-8"))
    (rule,) = policy["spec"]["ingress"]
    assert {port["port"] for port in rule["ports"]} == scraped == {"metrics", "http"}
