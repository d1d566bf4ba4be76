"""tenacity and stamina around a client: the loops of their documentation, with the client's `send` in the middle.

The wrapped client is one to the recorder: a sample is the caller's whole request, with all its attempts.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable
from typing import Any

from clientlab.clients.client_interface import StatusAndBody
from clientlab.clients.retry_policy import RetryBudget, RetryPolicy
from clientlab.errors import PluginError
from clientlab.workload.workload import Request


class _Again(Exception):
    """An attempt that is to be repeated: with the answer, or because of the exception that is its cause."""

    def __init__(self, answer: StatusAndBody | None = None) -> None:
        super().__init__()
        self.answer = answer

    def last(self) -> StatusAndBody:
        """What the caller gets if the package gives up. Raises the exception of the attempt."""
        if self.__cause__ is not None:
            raise self.__cause__
        assert self.answer is not None  # noqa: S101 - there is one or the other
        return self.answer


class _Wrapped:
    """What both kinds of client have in common: the policy, its budget, and the methods of the wrapped client."""

    def __init__(self, client: Any, policy: RetryPolicy, attempts: Callable[[], Any]) -> None:
        self._client = client
        self._policy = policy
        self._attempts = attempts
        self._budget = RetryBudget(policy.budget)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def _check(self, answer: StatusAndBody, number: int) -> StatusAndBody:
        """The answer of attempt `number`. Raises _Again for one to repeat."""
        if answer[0] in self._policy.statuses and self._may_follow(number):
            raise _Again(answer)
        return answer

    def _repeats(self, error: Exception, number: int) -> bool:
        """Whether the attempt that failed is to be repeated."""
        return self._policy.errors and not isinstance(error, PluginError) and self._may_follow(number)

    def _may_follow(self, number: int) -> bool:
        return number < self._policy.attempts and self._budget.take()


class RetriedClient(_Wrapped):
    """A blocking client, in a loop of attempts."""

    def send(self, request: Request) -> StatusAndBody:
        """Send the request until an attempt succeeds, or the policy gives up."""
        self._budget.request()
        if not self._policy.repeats(request.method):
            return self._client.send(request)  # type: ignore[no-any-return]
        attempts: Iterable[Any] = self._attempts()
        try:
            for number, attempt in enumerate(attempts, 1):
                with attempt:
                    return self._once(request, number)
        except _Again as again:
            return again.last()
        raise AssertionError("a loop of attempts ends with an answer or an exception")

    def _once(self, request: Request, number: int) -> StatusAndBody:
        try:
            answer = self._client.send(request)
        except Exception as error:
            if self._repeats(error, number):
                raise _Again from error
            raise
        return self._check(answer, number)


class RetriedAsyncClient(_Wrapped):
    """An asyncio client, in a loop of attempts."""

    async def send(self, request: Request) -> StatusAndBody:
        """Send the request until an attempt succeeds, or the policy gives up."""
        self._budget.request()
        if not self._policy.repeats(request.method):
            return await self._client.send(request)  # type: ignore[no-any-return]
        attempts: AsyncIterable[Any] = self._attempts()
        number = 0
        try:
            async for attempt in attempts:
                number += 1
                with attempt:
                    return await self._once(request, number)
        except _Again as again:
            return again.last()
        raise AssertionError("a loop of attempts ends with an answer or an exception")

    async def _once(self, request: Request, number: int) -> StatusAndBody:
        try:
            answer = await self._client.send(request)
        except Exception as error:
            if self._repeats(error, number):
                raise _Again from error
            raise
        return self._check(answer, number)


def around(client: Any, policy: RetryPolicy, *, awaited: bool) -> Any:
    """The client with the package's loop around it. Imports the package."""
    attempts = _LOOPS[policy.kind.name](policy, awaited)
    return (RetriedAsyncClient if awaited else RetriedClient)(client, policy, attempts)


def _of_tenacity(policy: RetryPolicy, awaited: bool) -> Callable[[], Any]:  # noqa: FBT001 - by position, as the other
    import tenacity  # noqa: PLC0415 - only its strategies import it

    waits = {"none": tenacity.wait_exponential, "full": tenacity.wait_random_exponential}
    wait = waits[policy.jitter](multiplier=policy.backoff) if policy.backoff else tenacity.wait_none()
    retrying = tenacity.AsyncRetrying if awaited else tenacity.Retrying
    stop, again = tenacity.stop_after_attempt(policy.attempts), tenacity.retry_if_exception_type(_Again)
    return lambda: retrying(stop=stop, wait=wait, retry=again, reraise=True)


def _of_stamina(policy: RetryPolicy, awaited: bool) -> Callable[[], Any]:  # noqa: ARG001, FBT001 - one loop for both
    import stamina  # noqa: PLC0415 - only its strategies import it

    # By default, each retry writes a line to the log, and counts in Prometheus.
    stamina.instrumentation.set_on_retry_hooks(())
    jitter = {} if policy.jitter == "added" else {"wait_jitter": 0.0}
    words: dict[str, Any] = {"attempts": policy.attempts, "wait_initial": policy.backoff, **jitter}
    return lambda: stamina.retry_context(on=_Again, **words)


_LOOPS = {"tenacity": _of_tenacity, "stamina": _of_stamina}
