"""The TLS side of a budget, for clients that take an `ssl.SSLContext`."""

from __future__ import annotations

import functools
import ssl
from collections.abc import Callable
from pathlib import Path

from clientlab.clients.client_interface import Budget

OTHERS = "# clientlab: the CAs from here on are those that libraries trust by default\n"
"""A line of the PEM files that testbeds write: the CA of the target is before it. Readers of PEM skip it."""


def tls_context(budget: Budget) -> ssl.SSLContext | None:
    """Return a context that trusts only the budget's CA, or None without a CA: the library then makes its own context.

    It verifies certificate and host name. ALPN offers HTTP/1.1; libraries that speak HTTP/2 replace it.
    """
    if budget.ca_file is None:
        return None
    context = ssl.create_default_context(cafile=budget.ca_file)
    context.set_alpn_protocols(["http/1.1"])
    return context


def trusting(budget: Budget, trust: str, library_context: Callable[[], ssl.SSLContext]) -> ssl.SSLContext | None:
    """Return `tls_context`, or with ``trust=default`` the library's own context, which also trusts the target's CA.

    What `library_context` costs differs: one library reads 140 certificates, another one opens a folder.
    """
    if trust != "default" or budget.ca_file is None:
        return tls_context(budget)
    context = library_context()
    context.load_verify_locations(cadata=_own_ca(budget.ca_file))
    return context


@functools.cache
def _own_ca(ca_file: str) -> str:
    """Return the PEM text of the target's CA alone. A file without the line holds no other CAs."""
    return Path(ca_file).read_text(encoding="utf-8").partition(OTHERS)[0]
