"""What deploy/kubernetes has of Compose: environments, ports, images; and what the Prometheus operator scrapes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml

from clientlab.testbeds.compose import ADDRESSES

ROOT = Path(__file__).parents[1]
_BASE = "deploy/kubernetes/base"
_MONITORING = "deploy/kubernetes/components/monitoring"

_HEADER = "# Written by scripts/generate from compose.yaml and .env.\n"

_NOT_THERE = {
    # The proxy's CA is no file of a volume. Nothing emulates a network, and there is no other dashboard's address.
    "PROXY_CA_FILE", "LINK_RTT", "LINK_BANDWIDTH", "LINK_BUFFER", "GRAFANA_URL",
    # The lab begins nothing by itself, and its key is drawn.
    "EXPERIMENT", "ROUNDS", "QUICK", "LAB_HOSTS", "LAB_KEY",
    # Only where something scrapes: components/monitoring and components/podmonitor.
    "WORKER_SCRAPED",
}  # fmt: skip
"""Variables of Compose that no pod has."""

_SERVICES = {"flask": "flask", "aiohttp": "aiohttp", "proxy": "proxy", "lab": "lab", "worker": "client-any"}
"""Component of the base → the service in compose.yaml with its environment."""

_VARIABLE = re.compile(r"\$\{(\w+)(?:(:?[-?])([^}]*))?\}")


def files(dashboards: list[str]) -> dict[str, Callable[[], str]]:
    """Path of a file → its text. `dashboards`: their names."""
    return {
        **{f"{_BASE}/{component}.env": partial(environment, component) for component in _SERVICES},
        f"{_BASE}/services.yaml": services,
        f"{_MONITORING}/services.yaml": monitoring_services,
        f"{_MONITORING}/prometheus.env": prometheus_environment,
        f"{_MONITORING}/grafana.env": partial(environment, "grafana"),
        "deploy/kubernetes/components/podmonitor/podmonitors.yaml": pod_monitors,
        "dashboards/kustomization.yaml": partial(dashboard_maps, dashboards),
    }


def blocks(dashboards: list[str]) -> dict[tuple[str, str], Callable[[], str]]:
    """Path and name of a block → its text."""
    containers = {
        f"{_BASE}/upstreams.yaml": ("flask", "aiohttp"),
        f"{_BASE}/proxy.yaml": ("proxy",),
        f"{_BASE}/lab.yaml": ("lab",),
        f"{_MONITORING}/prometheus.yaml": ("prometheus",),
        f"{_MONITORING}/grafana.yaml": ("grafana",),
    }
    return {
        **{(path, f"{name}-ports"): partial(ports, name) for path, names in containers.items() for name in names},
        (f"{_BASE}/worker.yaml", "worker-ports"): partial(ports, "worker", indent=16),
        (f"{_BASE}/kustomization.yaml", "images"): images,
        (f"{_MONITORING}/kustomization.yaml", "monitoring-images"): monitoring_images,
        (f"{_MONITORING}/grafana.yaml", "dashboards"): partial(dashboard_sources, dashboards),
    }


def environment(component: str) -> str:
    """The environment of a component, a variable in each line."""
    found = _compose()["services"][_SERVICES.get(component, component)]["environment"]
    lines = [f"{name}={_resolved(str(value))}" for name, value in found.items() if name not in _NOT_THERE]
    return "\n".join([_HEADER.rstrip(), *lines])


def prometheus_environment() -> str:
    """What Prometheus' arguments name."""
    return f"{_HEADER}PROMETHEUS_RETENTION={_settings()['PROMETHEUS_RETENTION']}"


def images() -> str:
    """The image of the proxy, in the form of kustomize."""
    return _image("caddy", "CADDY_IMAGE")


def monitoring_images() -> str:
    """The images of Prometheus and Grafana."""
    return _image("prom/prometheus", "PROMETHEUS_IMAGE") + _image("grafana/grafana", "GRAFANA_IMAGE")


def ports(component: str, indent: int = 12) -> str:
    """The ports of a component's container."""
    rows = ports_of(component).items()
    return "".join(f"{' ' * indent}- {{name: {name}, containerPort: {number}}}\n" for name, number in rows)


def ports_of(component: str) -> dict[str, int]:
    """The names and numbers of a component's ports."""
    if component == "proxy":
        own = {name: address for name, address in ADDRESSES.items() if name.startswith("PROXY_")}
        return {
            name.removeprefix("PROXY_").removesuffix("_ADDRESS").lower().replace("_", "-"): _port(address)
            for name, address in own.items()
        }
    if component in {"flask", "aiohttp"}:
        return {"http": _port(ADDRESSES[f"{component.upper()}_ADDRESS"])}
    services = _compose()["services"]
    if component == "lab":
        return {"http": int(services["lab"]["environment"]["LAB_PORT"])}
    if component == "worker":
        return {"metrics": int(services["client-any"]["environment"]["WORKER_PORT"])}
    return {"http": int(services[component]["ports"][0].rpartition(":")[2])}


def services() -> str:
    """The Services of upstreams, proxy, lab and workers, by the names that they have in Compose's networks.

    What is measured has no virtual address: clients connect to the pod, and no rule of the node rewrites their packets.
    """
    made = [_service(name, name, headless=True) for name in ("flask", "aiohttp", "proxy")]
    clients = _service("clients", "worker", headless=True)
    clients["spec"]["publishNotReadyAddresses"] = True
    return _documents([*made, _service("lab", "lab"), clients])


def monitoring_services() -> str:
    """The Services of Prometheus and Grafana."""
    return _documents([_service(name, name) for name in ("prometheus", "grafana")])


def dashboard_maps(names: list[str]) -> str:
    """dashboards/kustomization.yaml: the configuration of Prometheus and Grafana as ConfigMaps.

    A dashboard has a map of its own, because `kubectl apply` keeps 256 KiB of each object at most.
    """
    maps = {
        "prometheus-configuration": ["prometheus/prometheus.yml", "prometheus/rules.yml"],
        "grafana-providers": ["grafana/provisioning/dashboards/clientlab.yml"],
        "grafana-sources": ["grafana/provisioning/datasources/prometheus.yml"],
        **{f"dashboard-{name}": [f"grafana/dashboards/{name}.json"] for name in names},
    }
    head = (
        "# For deploy/kubernetes: kustomize reads files in or below its own folder only. Written by scripts/generate.\n"
    )
    generator = [{"name": name, "files": files} for name, files in maps.items()]
    return head + _dumped(
        {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "configMapGenerator": generator}
    )


def dashboard_sources(names: list[str]) -> str:
    """The sources of the volume with all dashboards."""
    return "".join(f"              - configMap: {{name: dashboard-{name}}}\n" for name in names)


def pod_monitors() -> str:
    """The jobs of dashboards/prometheus for the Prometheus operator, and its rules."""
    configuration = yaml.safe_load((ROOT / "dashboards/prometheus/prometheus.yml").read_text(encoding="utf-8"))
    rules = yaml.safe_load((ROOT / "dashboards/prometheus/rules.yml").read_text(encoding="utf-8"))
    components = {"clients": ["worker"], "upstreams": ["flask", "aiohttp"], "proxy": ["proxy"], "lab": ["lab"]}
    monitors = [
        _pod_monitor(job, components[job["job_name"]], configuration["global"])
        for job in configuration["scrape_configs"]
        if job["job_name"] in components
    ]
    rule = _object("monitoring.coreos.com/v1", "PrometheusRule", "clientlab", {"groups": rules["groups"]})
    return _documents([*monitors, rule], "# Written by scripts/generate from dashboards/prometheus.\n")


def _pod_monitor(job: dict[str, Any], components: list[str], defaults: dict[str, Any]) -> dict[str, Any]:
    relabelings: list[dict[str, Any]] = [{"targetLabel": "job", "replacement": job["job_name"]}]
    if any("upstream" in static.get("labels", {}) for static in job.get("static_configs", ())):
        label = "__meta_kubernetes_pod_label_app_kubernetes_io_component"
        relabelings.append({"sourceLabels": [label], "targetLabel": "upstream"})
    endpoint = {
        "port": "metrics" if "metrics" in ports_of(components[0]) else "http",
        "interval": job.get("scrape_interval", defaults["scrape_interval"]),
        "scrapeTimeout": job.get("scrape_timeout", defaults["scrape_timeout"]),
        "relabelings": relabelings,
    }
    among = {"key": "app.kubernetes.io/component", "operator": "In", "values": components}
    spec = {"selector": {"matchExpressions": [among]}, "podMetricsEndpoints": [endpoint]}
    return _object("monitoring.coreos.com/v1", "PodMonitor", job["job_name"], spec)


def _service(name: str, component: str, *, headless: bool = False) -> dict[str, Any]:
    rows = [{"name": port, "port": number, "targetPort": port} for port, number in ports_of(component).items()]
    spec: dict[str, Any] = {"selector": {"app.kubernetes.io/component": component}, "ports": rows}
    return _object("v1", "Service", name, {**({"clusterIP": "None"} if headless else {}), **spec})


def _object(version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _documents(objects: list[dict[str, Any]], head: str = _HEADER) -> str:
    return head + "---\n".join(map(_dumped, objects))


class _Dumper(yaml.SafeDumper):  # type: ignore[misc] # PyYAML has no types
    """Lists are indented below their key, as yamllint wants them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - PyYAML's
        super().increase_indent(flow, False)


def _dumped(document: dict[str, Any]) -> str:
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=160, allow_unicode=True)
    return text


def _image(name: str, variable: str) -> str:
    """A line for kustomize. A digest stays with the tag's name."""
    new, at, digest = _settings()[variable].partition("@")
    repository, _, tag = new.rpartition(":")
    version = f'digest: "{digest}"' if at else f"newTag: {tag}"
    return f"  - {{name: {name}, newName: {repository}, {version}}}\n"


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


def _resolved(text: str) -> str:
    """A value of compose.yaml with the settings of .env in it."""

    def value(found: re.Match[str]) -> str:
        name, operator, default = found.groups()
        return _settings().get(name) or (default if operator and operator.endswith("-") else "")

    return _VARIABLE.sub(value, text)


@cache
def _settings() -> dict[str, str]:
    lines = (ROOT / ".env").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


@cache
def _compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    return found
