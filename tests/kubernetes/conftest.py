"""One lab on a cluster for all tests of this folder, and what a cluster without storage and network lacks for it."""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import sys

import pytest

from kubernetes.cluster import Cluster, why_not
from optional_programs import leave_out
from running import eventually

CLASS_DEFAULT = "storageclass.kubernetes.io/is-default-class"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A namespace of a cluster that has the images; without a cluster, these tests are left out, and fail in CI."""
    reason = why_not()
    if reason is not None:
        leave_out(f"left out: {reason}")
    folder = tmp_path_factory.mktemp("kubernetes")
    return Cluster(f"clientlab-test-{secrets.token_hex(3)}", folder)


@pytest.fixture(scope="session")
def api_for_pods(cluster):
    """The API server as pods reach it. Where it listens on loopback only, a relay leads there from a node's address."""
    endpoints = cluster.call("get", "endpointslices", "-n", "default", "-l", "kubernetes.io/service-name=kubernetes")
    with contextlib.ExitStack() as stack:
        if "kubernetes" not in endpoints.stdout:
            stack.enter_context(relayed(cluster))
        yield


@contextlib.contextmanager
def relayed(cluster):
    """The Service of the API server leads to a relay on this machine, which has to be a node."""
    (node, *_) = cluster.get("nodes")["items"]
    address = next(one["address"] for one in node["status"]["addresses"] if one["type"] == "InternalIP")
    server = cluster.call("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}").stdout
    target = server.partition("://")[2].strip("/")
    words = ["-m", "clientlab.link", "--rtt", "0ms", "--forward", target, "--listen", f"{address}:0"]
    with subprocess.Popen([sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as relay:
        (port,) = json.loads(relay.stdout.readline())["ports"]
        metadata = {
            "name": "kubernetes-of-tests",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        }
        endpoints = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "addressType": "IPv4",
            "metadata": metadata,
            "endpoints": [{"addresses": [address]}],
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        }
        try:
            cluster.call("create", "-n", "default", "-f", "-", document=endpoints)
            yield
        finally:
            cluster.call("delete", "endpointslice", "-n", "default", "kubernetes-of-tests", "--ignore-not-found")
            relay.terminate()


@pytest.fixture(scope="session")
def volume(cluster, tmp_path_factory):
    """A volume for the lab, where the cluster makes none: a folder of this machine, which has to be a node."""
    classes = cluster.get("storageclasses")["items"]
    if any(one["metadata"].get("annotations", {}).get(CLASS_DEFAULT) == "true" for one in classes):
        yield
        return
    folder = tmp_path_factory.mktemp("volume")
    node = cluster.get("nodes")["items"][0]["metadata"]["name"]
    among = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec = {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"namespace": cluster.namespace, "name": "results-lab-0"},
        "local": {"path": str(folder)},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [among]}]}},
    }
    made = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": cluster.namespace}, "spec": spec}
    try:
        cluster.call("create", "-f", "-", document=made)
        yield
    finally:
        cluster.call("delete", "pv", cluster.namespace, "--ignore-not-found", "--wait=false")


@pytest.fixture(scope="session")
def applied(cluster, api_for_pods, volume):  # noqa: ARG001 - needed first
    """The demo, applied; what kubectl said."""
    folder = cluster.overlay("demo")
    try:
        done = cluster.call("apply", "-k", str(folder))
        cluster.keep_template()
        yield done
    finally:
        cluster.call("delete", "-k", str(folder), "--ignore-not-found", "--wait=false")


@pytest.fixture
def lab(cluster, applied):  # noqa: ARG001 - needed first
    """That lab, when no run is in progress."""
    with cluster.lab() as lab:
        eventually(lambda: not lab.document("/api/state")["measuring"], "no run is in progress", 120)
    return cluster
