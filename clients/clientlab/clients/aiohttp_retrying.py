"""aiohttp-retry around a session of aiohttp, by a policy."""

from __future__ import annotations

import random
from typing import Any

from clientlab.clients.retry_policy import RetryPolicy


def retrying_session(session: Any, policy: RetryPolicy) -> Any:
    """A `RetryClient` on the session. Imports the package.

    aiohttp-retry repeats a request until its headers have come: a body that breaks off is the caller's. It waits before
    the n-th retry 2^n times `backoff`, 30 s at most. Without `exceptions`, it repeats none, although a comment in its
    code promises all.
    """
    import aiohttp_retry  # noqa: PLC0415 - only strategies with the policy import it

    class FullJitter(aiohttp_retry.ExponentialRetry):
        def get_timeout(self, attempt: int, response: Any = None) -> float:
            return random.random() * super().get_timeout(attempt, response)  # noqa: S311 - no secret

    options = FullJitter if policy.jitter == "full" else aiohttp_retry.ExponentialRetry
    return aiohttp_retry.RetryClient(
        session,
        retry_options=options(
            attempts=policy.attempts,
            start_timeout=policy.backoff,
            statuses=set(policy.statuses),
            exceptions={Exception} if policy.errors else None,
            methods=None if policy.methods is None else set(policy.methods),
            retry_all_server_errors=False,
        ),
    )
