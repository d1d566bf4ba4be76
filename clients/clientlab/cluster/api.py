"""The API of the cluster in which this process runs: a pod's own service account watches objects of its namespace.

This module uses no library for the API. Each of them is built on a library that the lab measures, and would decide on
its version in the lab's image: lightkube on httpx2, kr8s on httpx, kubernetes on urllib3, requests and aiohttp. The lab
needs one GET.
"""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"

_WATCH_SECONDS = 60
"""After which a watch is begun anew, with a token that may be newer: the kubelet replaces it within its hour."""

_LATE_SECONDS = 15


class WatchEnded(Exception):
    """The API refused a watch, or ended it with an error."""


@dataclass(frozen=True)
class ClusterApi:
    """The API server as a pod reaches it. `account`: the folder with the token, the CA and the namespace."""

    host: str
    port: int
    account: Path

    @classmethod
    def of(cls, environment: Mapping[str, str], account: Path = _ACCOUNT) -> Self | None:
        """The API of this pod's cluster; None where this is no pod, or one without a service account."""
        host = environment.get(_HOST)
        if not host or not (account / "token").is_file():
            return None
        return cls(host, int(environment.get(_PORT) or 443), account)

    def watch(self, resource: str, **selectors: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """All objects as ``ADDED``, then each change with its type, for a minute. `selectors`: parameters of the API.

        Raises OSError, http.client.HTTPException or WatchEnded.
        """
        namespace = (self.account / "namespace").read_text(encoding="ascii").strip()
        query = urllib.parse.urlencode({"watch": "1", "timeoutSeconds": str(_WATCH_SECONDS), **selectors})
        headers = {"Authorization": f"Bearer {(self.account / 'token').read_text(encoding='ascii').strip()}"}
        connection = http.client.HTTPSConnection(
            self.host, self.port, timeout=_WATCH_SECONDS + _LATE_SECONDS, context=self._trust()
        )
        try:
            connection.request("GET", f"/api/v1/namespaces/{namespace}/{resource}?{query}", headers=headers)
            response = connection.getresponse()
            if response.status != http.HTTPStatus.OK:
                raise WatchEnded(f"{resource}: {response.status} {_message(response.read())}")
            for line in response:
                change = json.loads(line)
                if change["type"] == "ERROR":
                    raise WatchEnded(f"{resource}: {change['object'].get('message')}")
                yield change["type"], change["object"]
        finally:
            connection.close()

    def _trust(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.account / "ca.crt"))
        # From Python 3.13 on the default. The certificates of many clusters lack the identifier of their CA's key.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context


def _message(content: bytes) -> str:
    try:
        return str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        return ""
