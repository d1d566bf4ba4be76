"""Retry policies as settings of a strategy: defaults, what is refused, and the budget."""

from __future__ import annotations

import itertools

import pytest

from clientlab.clients.retry_policy import POLICIES, RetryBudget, policy_of
from clientlab.errors import LabError
from clientlab.strategies import check_settings, find, policies_of, retry_of
from clientlab.workload.faults import Faults
from clientlab.workload.making import requests_of
from clientlab.workload.workload import Workload


def test_settings_that_are_not_written_are_those_of_the_policy():
    """urllib3 retries idempotent methods, tenacity any; values are written as those of other settings."""
    of_urllib3 = retry_of(find("requests-session?retry=urllib3"))
    assert (of_urllib3.attempts, of_urllib3.repeats("GET"), of_urllib3.repeats("POST")) == (4, True, False)
    assert (of_urllib3.retry_after, of_urllib3.retry_after_max, of_urllib3.statuses) == (True, 21_600, frozenset())
    words = "retry=tenacity&attempts=5&backoff=100ms&jitter=full&budget=10%25&statuses=5xx,429&methods=GET,PUT"
    found = retry_of(find(f"aiohttp@workers?{words}"))
    assert (found.attempts, found.backoff, found.jitter, found.budget) == (5, 0.1, "full", 0.1)
    assert found.statuses == {429, *range(500, 600)}
    assert (found.repeats("PUT"), found.repeats("POST")) == (True, False)
    for name in ("requests-session", "requests-session?retry=none"):
        assert retry_of(find(name)) is None


@pytest.mark.parametrize(
    ("client", "policies"),
    [
        ("requests", "tenacity stamina"),
        ("requests-session@threads", "urllib3 tenacity stamina"),
        ("urllib3-per-thread@threads", "urllib3 tenacity stamina"),
        ("niquests", "niquests tenacity stamina"),
        ("httpx-async", "httpx tenacity stamina"),
        ("httpx2-client", "httpx2 tenacity stamina"),
        ("httpx-aiohttp", "tenacity stamina"),
        ("aiohttp", "aiohttp-retry tenacity stamina"),
        ("aiohttp-per-call", "tenacity stamina"),
        ("pycurl@multi", ""),
        ("ab", ""),
    ],
)
def test_a_strategy_has_its_library_s_policy_and_the_packages(client, policies):
    """An executor that drives the client itself, and a program, have none."""
    assert " ".join(policies_of(find(client))) == policies


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("requests-session?retry=httpx", "setting retry=httpx; it has none, urllib3, tenacity, stamina"),
        ("requests-session?retry=often", "setting retry=often; there are none, urllib3, niquests, httpx"),
        ("pycurl@multi?retry=tenacity", "has no setting 'retry'"),
        ("requests-session?attempts=3", "setting 'attempts' needs a policy; write retry=urllib3 or"),
        ("httpx-client?retry=httpx&backoff=1s", "setting 'backoff': httpx has none; it has attempts"),
        ("aiohttp?retry=tenacity&attempts=99", "setting attempts=99: write 1 to 20"),
        ("aiohttp?retry=tenacity&budget=200%25", "setting budget=200%: write 0 to 1"),
        ("aiohttp?retry=tenacity&statuses=302", "'302' is no status of an error; write 400 to 599"),
        ("aiohttp?retry=stamina&jitter=full", "setting jitter=full; stamina has none or added"),
        ("aiohttp?retry=stamina&backoff=soon", "setting backoff=soon: "),
        ("urllib3?as_written=true&retry=urllib3", "as_written has the retries of the library; leave out retry"),
        ("urllib3?as_written=true&block=false", "as_written leaves block to the library; write one of them"),
        ("requests-session?as_written=true&pool=5", "as_written leaves pool to the library; write one of them"),
        ("urllib3?retry=urllib3&methods=none", "setting methods=none: no request would be sent again; write any"),
        ("aiohttp?retry=stamina&methods=get", "'get' is no method; write any, or methods as GET,PUT"),
    ],
)
def test_what_a_strategy_can_not_have_is_answered_with_what_there_is(name, says):
    """In one line."""
    with pytest.raises(LabError) as raised:
        check_settings(find(name))
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_every_policy_accepts_its_own_defaults():
    """Read as if they were written."""
    for name, kind in POLICIES.items():
        assert policy_of({"retry": name}) == policy_of({"retry": name, **kind.defaults})


def test_a_budget_allows_its_share_of_retries():
    """Of 1,000 requests that all fail, with a retry each, a tenth is retried; ten retries at most are saved up."""
    budget = RetryBudget(0.1)
    taken = 0
    for _ in range(1000):
        budget.request()
        taken += budget.take()
    assert taken == 100
    for _ in range(1000):
        budget.request()
    assert sum(budget.take() for _ in range(50)) == 10
    assert all(RetryBudget(None).take() for _ in range(50))


def test_the_query_has_what_each_attempt_meets():
    """The first fault is the one that arms without retries meet; each request has an identity of its own."""
    workload = Workload(faults=Faults.parse("status=503:40%,reset:20%"), seed=4, requests=500)
    plain, again = requests_of(workload, "http://h"), requests_of(workload, "http://h", attempts=3)
    identities, shares = set(), []
    for k in range(500):
        query = dict(part.split("=", 1) for part in again(k).url.partition("?")[2].split("&"))
        identities.add(query["request"])
        met = query.get("fault", "none,none,none").split(",")
        assert len(met) == 3
        assert plain(k).url.partition("fault=")[2] == met[0].replace("none", "")
        shares.append(met)
    assert len(identities) == 500
    for attempt, fault in itertools.product(range(3), (("status=503", 0.4), ("reset", 0.2))):
        assert sum(met[attempt] == fault[0] for met in shares) / 500 == pytest.approx(fault[1], abs=0.066)  # 3 σ
    other = requests_of(workload, "http://h", attempts=3)
    assert [other(k).url.partition("&")[2] for k in range(500)] == [again(k).url.partition("&")[2] for k in range(500)]


def test_without_retries_a_request_is_what_it_was():
    """No identity, and one fault."""
    assert requests_of(Workload(), "http://h")(3).url == "http://h/"
    faulty = requests_of(Workload(faults=Faults.parse("reset:100%")), "http://h")
    assert faulty(3).url == "http://h/?fault=reset"
