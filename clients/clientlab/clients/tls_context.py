"""The TLS side of a budget, for clients that take an `ssl.SSLContext`."""

from __future__ import annotations

import ssl

from clientlab.clients.shape import Budget


def tls_context(budget: Budget) -> ssl.SSLContext | None:
    """A context that trusts the budget's CA alone; None where there is none: then the library has its own.

    Certificate and host name are verified, as `ssl.create_default_context` has it, and TLS is 1.2 or newer.
    HTTP/1.1 is asked for by ALPN, as all do; libraries that speak HTTP/2 put their own in its place.
    Reads a file: to be called once in `open`. Raises OSError for a file that is missing or holds no certificate.
    """
    if budget.ca_file is None:
        return None
    context = ssl.create_default_context(cafile=budget.ca_file)
    context.set_alpn_protocols(["http/1.1"])
    return context
