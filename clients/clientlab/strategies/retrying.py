"""Which retry policies a strategy can have: the own one of its library, and the packages that go around any client."""

from __future__ import annotations

from clientlab.clients.retry_policy import POLICIES, SETTING, WRAPPERS, RetryPolicy, policy_of
from clientlab.errors import LabError
from clientlab.strategies.known import client_spec, executor_spec, load
from clientlab.strategies.pairs import Strategy


def policies_of(strategy: Strategy) -> tuple[str, ...]:
    """The names of the policies that the strategy can have, that of its library first. Loads the client's class.

    Its executor must call the client's `send`: one that drives the client itself, and a program, can have none.
    """
    spec = client_spec(strategy.client)
    if spec.program or spec.streams_only or executor_spec(strategy.executor).drives_client:
        return ()
    own = getattr(load(spec.import_path), "own_retry", "")
    return (*([own] if own else []), *WRAPPERS)


def retry_package(strategy: Strategy) -> str:
    """The distribution that the strategy's policy needs beside its library; empty without one. Loads nothing."""
    kind = POLICIES.get(strategy.settings.get(SETTING) or "")
    return "" if kind is None else kind.distribution


def retries(strategy: Strategy) -> bool:
    """Whether the strategy sends requests again."""
    return strategy.settings.get(SETTING) is not None


def retry_of(strategy: Strategy) -> RetryPolicy | None:
    """The policy of the strategy; None if nothing is sent again. Raises LabError for one that it cannot have."""
    try:
        policy = policy_of(strategy.settings)
    except ValueError as error:
        raise LabError(f"strategy {strategy.name!r}: {error}") from error
    if policy is None:
        return None
    if strategy.settings.get("as_written") and not policy.kind.wrapper:
        raise LabError(f"strategy {strategy.name!r}: as_written has the retries of the library; leave out {SETTING}")
    able = policies_of(strategy)
    if policy.kind.name not in able:
        message = f"setting {SETTING}={policy.kind.name}; it has {', '.join(('none', *able))}"
        raise LabError(f"strategy {strategy.name!r}: {message}")
    return policy
