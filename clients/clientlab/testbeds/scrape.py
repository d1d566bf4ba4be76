"""Scraping the counters of upstreams and proxy from their `/metrics`, in every testbed."""

from __future__ import annotations

import contextlib
import http.client
import ssl
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from clientlab.errors import IncompleteRun, ServerLost
from clientlab.results.server_counters import ServerUse

_TIMEOUT = 10.0
HEALTH_SECONDS = 5.0
"""Limit of a health check. A server that works answers at once, unless requests hold all its threads."""


@dataclass(frozen=True)
class Endpoint:
    """A listening server."""

    host: str
    port: int
    ca_file: Path | None = None  # of a server with TLS

    @property
    def url(self) -> str:
        return f"{'https' if self.ca_file else 'http'}://{self.host}:{self.port}"

    def connect(self, timeout: float) -> http.client.HTTPConnection:
        """Return a connection that is not yet open. Raise OSError if the CA file is missing."""
        if self.ca_file is None:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        context = ssl.create_default_context(cafile=str(self.ca_file))
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=context)


def get(endpoint: Endpoint, path: str, timeout: float = _TIMEOUT) -> tuple[int, str]:
    """Return status and body of one GET on a new connection. Raise OSError or HTTPException."""
    with contextlib.closing(endpoint.connect(timeout)) as connection:
        connection.request("GET", path, headers={"Connection": "close"})
        response = connection.getresponse()
        return response.status, response.read().decode()


def unhealthy(endpoint: Endpoint) -> str | None:
    """Return why the server's health check fails; None if it is answered."""
    where = f"{endpoint.url}/healthz"
    try:
        status = get(endpoint, "/healthz", HEALTH_SECONDS)[0]
    except (OSError, http.client.HTTPException) as error:
        return f"{where} does not answer within {HEALTH_SECONDS:g} s ({str(error) or type(error).__name__})"
    return None if status == http.HTTPStatus.OK else f"{where} answers {status}"


def upstream_use(endpoint: Endpoint) -> ServerUse:
    """Return the CPU time and the counters of an upstream since its start. Raise IncompleteRun."""
    samples = _samples(endpoint, "mockupstream_")

    def total(name: str) -> float:
        return _total(samples, f"mockupstream_{name}")

    def by_worker(name: str) -> list[float] | None:
        found = {int(one.labels["worker"]): one.value for one in samples if one.name == f"mockupstream_{name}"}
        return [found[number] for number in sorted(found)] or None

    requests = [one for one in samples if one.name == "mockupstream_requests_total"]
    return ServerUse(
        cpu_seconds=total("cpu_seconds_total"),
        requests=int(sum(one.value for one in requests)),
        failed_requests=int(sum(one.value for one in requests if one.labels["status"] >= "400")),
        request_body_bytes=int(total("request_body_bytes_total")),
        response_body_bytes=int(total("response_body_bytes_total")),
        request_digest=int(total("request_digest_total")),
        in_flight=int(total("requests_in_flight")),
        connections=int(total("connections_accepted_total")),
        held_seconds=total("hold_seconds_sum"),
        processes=int(total("workers")),
        slots=int(total("request_slots")) or None,
        cores=total("cores") or None,
        cpu_step_seconds=0.0,
        worker_cpu_seconds=by_worker("worker_cpu_seconds_total"),
        worker_held_seconds=by_worker("worker_hold_seconds_total"),
    )


def proxy_use(endpoint: Endpoint) -> ServerUse:
    """Return the CPU time of the proxy since its start, and the time that it held requests. Raise IncompleteRun.

    Caddy counts each request once, with the time of its outermost handler, also those for its metrics.
    """
    samples = _samples(endpoint, "process_cpu_seconds_total", "caddy_http_", "go_sched_gomaxprocs_threads")
    counts = any(one.name.startswith("caddy_http_") for one in samples)
    return ServerUse(
        cpu_seconds=_total(samples, "process_cpu_seconds_total"),
        held_seconds=_total(samples, "caddy_http_request_duration_seconds_sum") if counts else None,
        cores=_total(samples, "go_sched_gomaxprocs_threads") or None,
    )


def _samples(endpoint: Endpoint, *prefixes: str) -> list[Sample]:
    """Return the samples with such names, without buckets: to parse all takes longer than to get them."""
    try:
        status, text = get(endpoint, "/metrics")
    except (OSError, http.client.HTTPException) as error:
        raise ServerLost(f"{endpoint.url}/metrics does not answer: {error}") from error
    if status != http.HTTPStatus.OK:
        raise IncompleteRun(f"{endpoint.url}/metrics answered {status}")
    lines = (line for line in text.splitlines() if line.startswith(prefixes) and "_bucket{" not in line)
    return [one for family in text_string_to_metric_families("\n".join(lines)) for one in family.samples]


def _total(samples: list[Sample], name: str) -> float:
    return sum(one.value for one in samples if one.name == name)
