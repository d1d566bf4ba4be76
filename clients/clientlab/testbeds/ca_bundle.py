"""The CAs that clients trust on a route with TLS: that of the lab's proxy, and all that libraries trust by default."""

from __future__ import annotations

import certifi

from clientlab.clients.tls_context import OTHERS


def ca_bundle(own: str) -> str:
    """The text of a PEM file with the target's CA and those of certifi. `own`: the PEM text of the target's CA.

    A line between them keeps them apart: a trial may run where certifi is missing, or has other CAs.
    """
    return f"{own.rstrip()}\n{OTHERS}{certifi.contents()}"
