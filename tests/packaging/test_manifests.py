"""What the manifests of deploy/kubernetes permit."""

from __future__ import annotations

import shutil
import subprocess

import pytest
import yaml

from running import ROOT

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed"),
]


def pod_specs(overlay: str) -> dict[str, dict]:
    """Component → what its pods are made of."""
    words = ["kubectl", "kustomize", str(ROOT / "deploy" / "kubernetes" / overlay)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    objects = list(yaml.safe_load_all(done.stdout))
    return {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in objects if one["kind"] == "Deployment"}


def test_no_pod_can_do_more_than_it_needs():
    found = pod_specs("") | pod_specs("monitoring")
    assert set(found) == {"flask", "aiohttp", "proxy", "scheduler", "worker", "lab", "prometheus", "grafana"}
    for name, spec in found.items():
        (container,) = spec["containers"]
        assert spec["securityContext"]["runAsNonRoot"], name
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }, name  # fmt: skip
        assert spec["enableServiceLinks"] is False, name
        assert spec["automountServiceAccountToken"] is False, name


def test_what_is_measured_has_guaranteed_resources():
    for name in ("flask", "aiohttp", "proxy", "worker"):
        resources = pod_specs("base")[name]["containers"][0]["resources"]
        assert resources["requests"] == resources["limits"], name
        assert str(resources["requests"]["cpu"]).isdigit(), name
        assert set(pod_specs("")[name]["containers"][0]["resources"]["limits"]) == {"memory"}, name
