"""Scraping the counters of upstreams and proxy from their `/metrics`, in every testbed."""

from __future__ import annotations

import contextlib
import http.client
import ssl
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from clientlab.errors import IncompleteRun, ServerLost
from clientlab.results.server_counters import ServerUse

_TIMEOUT = 10.0
HEALTH_SECONDS = 5.0
"""Limit of a health check during a trial. A server that works answers at once, unless requests hold all its threads."""


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
        """A connection that is not yet open. Raises OSError where the CA file is missing."""
        if self.ca_file is None:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        context = ssl.create_default_context(cafile=str(self.ca_file))
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=context)

    def greet(self, timeout: float) -> None:
        """Connect, with the TLS handshake, and close. Raises OSError."""
        with contextlib.closing(self.connect(timeout)) as connection:
            connection.connect()


def get(endpoint: Endpoint, path: str, timeout: float = _TIMEOUT) -> tuple[int, str]:
    """Status and body of one GET on a new connection. Raises OSError or HTTPException."""
    connection = endpoint.connect(timeout)
    try:
        connection.request("GET", path, headers={"Connection": "close"})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def unhealthy(endpoint: Endpoint) -> str | None:
    """Why the server's health check fails; None where it is answered."""
    where = f"{endpoint.url}/healthz"
    try:
        status = get(endpoint, "/healthz", HEALTH_SECONDS)[0]
    except (OSError, http.client.HTTPException) as error:
        return f"{where} does not answer within {HEALTH_SECONDS:g} s ({str(error) or type(error).__name__})"
    return None if status == http.HTTPStatus.OK else f"{where} answers {status}"


def upstream_use(endpoint: Endpoint) -> ServerUse:
    """CPU time and counters of an upstream since its start. Raises IncompleteRun."""
    figures = _figures(endpoint, "mockupstream_")
    return ServerUse(
        cpu_seconds=_sum(figures, "mockupstream_cpu_seconds_total"),
        requests=int(_sum(figures, "mockupstream_requests_total")),
        failed_requests=int(_failed(figures)),
        request_body_bytes=int(_sum(figures, "mockupstream_request_body_bytes_total")),
        response_body_bytes=int(_sum(figures, "mockupstream_response_body_bytes_total")),
        request_digest=int(_sum(figures, "mockupstream_request_digest_total")),
        in_flight=int(_sum(figures, "mockupstream_requests_in_flight")),
        connections=int(_sum(figures, "mockupstream_connections_accepted_total")),
        held_seconds=_sum(figures, "mockupstream_hold_seconds_sum"),
        processes=int(_sum(figures, "mockupstream_workers")),
        slots=int(_sum(figures, "mockupstream_request_slots")) or None,
        cores=_sum(figures, "mockupstream_cores") or None,
        cpu_step_seconds=0.0,
        worker_cpu_seconds=_by_worker(figures, "mockupstream_worker_cpu_seconds_total"),
        worker_held_seconds=_by_worker(figures, "mockupstream_worker_hold_seconds_total"),
    )


def proxy_use(endpoint: Endpoint) -> ServerUse:
    """CPU time of the proxy since its start, and the time that it held requests. Raises IncompleteRun.

    Caddy counts each request once, with the time of its outermost handler. A scrape of some milliseconds is among them.
    """
    figures = _figures(endpoint, "process_cpu_seconds_total", "caddy_http_", "go_sched_gomaxprocs_threads")
    counts = any(name.startswith("caddy_http_") for name, _ in figures)
    return ServerUse(
        cpu_seconds=_sum(figures, "process_cpu_seconds_total"),
        held_seconds=_sum(figures, "caddy_http_request_duration_seconds_sum") if counts else None,
        cores=_sum(figures, "go_sched_gomaxprocs_threads") or None,
    )


_Figures = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def _figures(endpoint: Endpoint, *prefixes: str) -> _Figures:
    """The samples whose names begin so, without buckets: to parse all takes longer than to get them."""
    try:
        status, text = get(endpoint, "/metrics")
    except (OSError, http.client.HTTPException) as error:
        raise ServerLost(f"{endpoint.url}/metrics does not answer: {error}") from error
    if status != http.HTTPStatus.OK:
        raise IncompleteRun(f"{endpoint.url}/metrics answered {status}")
    lines = (line for line in text.splitlines() if line.startswith(prefixes) and "_bucket{" not in line)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families("\n".join(lines))
        for sample in family.samples
    }


def _sum(figures: _Figures, name: str) -> float:
    return sum(value for (found, _), value in figures.items() if found == name)


def _failed(figures: _Figures) -> float:
    requests = "mockupstream_requests_total"
    return sum(
        value for (name, labels), value in figures.items() if name == requests and dict(labels)["status"] >= "400"
    )


def _by_worker(figures: _Figures, name: str) -> list[float] | None:
    """The counter of each worker by its number; None from an upstream that does not have it."""
    found = {int(dict(labels)["worker"]): value for (of, labels), value in figures.items() if of == name}
    return [found[number] for number in sorted(found)] or None
