"""The manifests as a cluster sees them: what it accepts, and what they permit."""

from __future__ import annotations

import json
import subprocess

import pytest
import yaml

from kubernetes.cluster import MANIFESTS, OVERLAYS, Cluster

pytestmark = pytest.mark.real


def rendered(overlay: str) -> list[dict]:
    """The objects of an overlay."""
    words = ["kubectl", "kustomize", str(MANIFESTS / overlay)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    return list(yaml.safe_load_all(done.stdout))


def pod_specs(objects: list[dict]) -> dict[str, dict]:
    """Component → what its pods are made of."""
    found = {}
    for one in objects:
        if one["kind"] in {"Deployment", "StatefulSet", "CronJob"}:
            spec = one["spec"]["jobTemplate"]["spec"] if one["kind"] == "CronJob" else one["spec"]
            found[one["metadata"]["name"]] = spec["template"]["spec"]
    return found


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_cluster_accepts_every_overlay(cluster, applied, overlay):  # noqa: ARG001
    """The API server checks each object as if it were stored, also by the restricted pod security standard."""
    done = cluster.call("apply", "--dry-run=server", "-k", str(cluster.overlay(overlay)))
    assert "PodSecurity" not in done.stderr
    assert done.stdout.count("(server dry run)") == len(rendered(overlay))


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_no_pod_can_do_more_than_it_needs(overlay):
    """No root, no capability, nothing writable but volumes, no token of the API except the lab's."""
    for name, spec in pod_specs(rendered(overlay)).items():
        (container,) = spec["containers"]
        assert spec["securityContext"]["runAsNonRoot"], name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }, name  # fmt: skip
        assert spec["enableServiceLinks"] is False, name
        assert spec.get("automountServiceAccountToken", True) == (name == "lab"), name
        assert not any("hostPath" in volume for volume in spec.get("volumes", ())), name


def test_what_is_measured_has_guaranteed_resources():
    """Equal requests and limits, of whole CPUs. The demo, for small clusters, has no limit of CPU."""
    for name in ("flask", "aiohttp", "proxy", "worker"):
        (container,) = pod_specs(rendered("base"))[name]["containers"]
        resources = container["resources"]
        assert resources["requests"] == resources["limits"], name
        assert str(resources["requests"]["cpu"]).isdigit(), name
        (container,) = pod_specs(rendered("demo"))[name]["containers"]
        assert set(container["resources"]["limits"]) == {"memory"}, name


def test_the_lab_may_read_pods_and_events_and_nothing_else(cluster, applied):  # noqa: ARG001 - needed first
    """The lab's service account may read pods and events of its own namespace only."""

    def may(*words: str) -> bool:
        account = f"system:serviceaccount:{cluster.namespace}:lab"
        command = cluster.kubectl.command("auth", "can-i", *words, "--as", account)
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        return done.stdout.strip() == "yes"

    assert all(may(verb, resource) for verb in ("get", "list", "watch") for resource in ("pods", "events"))
    others = [("create", "pods"), ("delete", "pods"), ("get", "secrets"), ("create", "jobs"), ("create", "pods/exec")]
    assert not any(may(*words) for words in others)
    assert not may("list", "pods", "--all-namespaces")


def reaches(cluster: Cluster, component: str, address: str, port: int) -> bool:
    """Whether a connection from a component's pod to an address opens."""
    (pod,) = cluster.get("pods", "--selector", f"app.kubernetes.io/component={component}")["items"]
    code = f"import socket; socket.create_connection(({address!r}, {port}), 5)"
    command = cluster.kubectl.command("exec", pod["metadata"]["name"], "--", "python3", "-c", code)
    return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0


def test_the_network_refuses_what_no_policy_permits(lab):
    """An upstream does not reach the lab. With a policy that is broken on purpose, workers do not reach it either."""
    (pod,) = lab.get("pods", "--selector", "app.kubernetes.io/component=lab")["items"]
    if reaches(lab, "flask", pod["status"]["podIP"], 8080):
        pytest.skip("this cluster's network enforces no NetworkPolicy: an upstream reaches the lab")
    broken = {"spec": {"ingress": []}}
    lab.call("patch", "networkpolicy", "lab", "--type", "merge", "--patch", json.dumps(broken))
    try:
        run = lab.run()
        code, _ = run.end()
        assert code == 3
    finally:
        lab.call("apply", "-k", str(lab.overlay("demo")))
