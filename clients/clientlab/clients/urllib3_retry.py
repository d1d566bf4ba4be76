"""`Retry` of urllib3 by a policy: for requests and urllib3, and for niquests with the same class of urllib3-future."""

from __future__ import annotations

import random
from typing import Any

from clientlab.clients.retry_policy import RetryPolicy


def retry_of(retry_class: Any, policy: RetryPolicy) -> Any:
    """A `Retry` of the class. Once its attempts are over, the last answer is returned, whatever its status.

    urllib3 sends the first retry at once, and waits before the n-th one 2^(n-1) times `backoff`.
    """
    made = _full_jitter(retry_class) if policy.jitter == "full" else retry_class
    return made(
        total=policy.attempts - 1,
        allowed_methods=policy.methods,
        status_forcelist=policy.statuses,
        backoff_factor=policy.backoff,
        respect_retry_after_header=policy.retry_after,
        retry_after_max=policy.retry_after_max,
        redirect=0,
        raise_on_status=False,
    )


def _full_jitter(retry_class: Any) -> Any:
    """The class with a random part of its backoff in place of all. urllib3 itself can only add a random time."""

    def random_part(self: Any) -> float:
        return random.random() * float(retry_class.get_backoff_time(self))  # noqa: S311 - no secret

    return type("FullJitterRetry", (retry_class,), {"get_backoff_time": random_part})
