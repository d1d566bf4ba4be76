"""The TLS side of a budget, for clients that take an `ssl.SSLContext`."""

from __future__ import annotations

import ssl

from clientlab.clients.interfaces import Budget


def tls_context(budget: Budget) -> ssl.SSLContext | None:
    """A context that trusts only the budget's CA; None without a CA: the library then makes its own context.

    Certificate and host name are verified, as by `ssl.create_default_context`, with TLS 1.2 or newer. ALPN offers
    HTTP/1.1, as for all clients; libraries that speak HTTP/2 replace it. Reads a file, so call it once, in `open`.
    Raises OSError if the file is missing or holds no certificate.
    """
    if budget.ca_file is None:
        return None
    context = ssl.create_default_context(cafile=budget.ca_file)
    context.set_alpn_protocols(["http/1.1"])
    return context
