"""Answers that are not about the fastest: what cancelled requests leave, and what retry policies serve."""

from __future__ import annotations

from clientlab.reports.headline import answers_of
from clientlab.reports.rows import groups_of
from clientlab.results.cancel_counts import Cancelled, Probe
from clientlab.results.plan import Arm
from clientlab.results.server_counters import ServerUse
from clients.documents import a_run, a_trial


def answer(run) -> list[str]:
    """The sentences at the head of its report."""
    return answers_of(run, groups_of(run))


def given_up(*, slots: int, threads: int = 1) -> Cancelled:
    """Ten of them; so many slots and threads behind the measured part, of ten and one before it."""
    before = Probe(at_once=10, answered=10, seconds=0.01, sockets=10, threads=1, tasks=0)
    after = before.model_copy(update={"at_once": slots, "threads": threads})
    return Cancelled(
        asked=10, by_timeout=4, by_task=6, ended={}, seconds=0.1, before=before, after=after,
        held_before=0, held_after=0,
    )  # fmt: skip


def cancelled_run(*found: tuple[str, Cancelled]):
    """An arm for each, on an axis of cancelled requests."""
    trials = [
        a_trial(strategy, place, arm=f"{strategy}[cancel={place}]", cancelled=one)
        for place, (strategy, one) in enumerate(found, start=1)
    ]
    arms = [
        Arm(name=trial.arm, strategy=trial.strategy, upstream="aiohttp", route="direct", workload="workload",
            axes={"cancel": str(trial.round)}, sweep=trial.strategy) for trial in trials
    ]  # fmt: skip
    return a_run(*trials, arms=arms)


def test_an_axis_of_cancelled_requests_is_answered_by_what_they_leave():
    """The worst of all rounds and shares of a client; what nobody lost is said, too."""
    run = cancelled_run(("a", given_up(slots=7)), ("a", given_up(slots=9)), ("b", given_up(slots=10, threads=2)))
    assert answer(run) == [
        "2 clients gave up 30 requests, and none hung.",
        "Pool slots lost, in the worst round: a (3).",
        "Threads left, in the worst round: b (1).",
        "In no round: sockets left, tasks left, requests held by the upstream.",
    ]


def test_what_is_unknown_is_not_called_none():
    """Where the lab may not read a client's sockets."""
    hidden = given_up(slots=10)
    hidden = hidden.model_copy(update={"after": hidden.after.model_copy(update={"sockets": None})})
    assert answer(cancelled_run(("a", hidden)))[-1] == (
        "In no round: pool slots lost, tasks left, threads left, requests held by the upstream."
    )


def test_a_client_that_hangs_is_named():
    """A trial that its limits ended has no second probe."""
    run = cancelled_run(("a", given_up(slots=10)), ("b", given_up(slots=10).model_copy(update={"after": None})))
    hung = run.trials[1].model_copy(update={"status": "failed", "reason": "stalled: …", "hangs": True})
    assert answer(run.model_copy(update={"trials": [run.trials[0], hung]}))[:2] == [
        "2 clients gave up 20 requests.",
        "Hung: b.",
    ]


def policies(*, errors: int, reached: int):
    """A client without a policy, and one that sends each failed request again."""
    plain = a_trial(
        "urllib3",
        errors={"status-5xx": errors} if errors else {},
        upstream_use=ServerUse(cpu_seconds=0.1, requests=1000),
    )
    trying = a_trial("urllib3?retry=tenacity", upstream_use=ServerUse(cpu_seconds=0.1, requests=reached), wall=2.0)
    return a_run(plain, trying)


def test_policies_are_answered_by_what_they_serve_and_what_the_upstream_bears():
    """The one that serves most is first, although it took twice as long."""
    assert answer(policies(errors=100, reached=1111)) == [
        "Served requests, and those at the upstream for each of the caller's.",
        "urllib3?retry=tenacity 100 %, 1.11; urllib3 90.0 %, 1.",
    ]


def test_policies_that_had_nothing_to_repeat_are_ranked_as_all_arms():
    """Their cost is what differs."""
    assert answer(policies(errors=0, reached=1000))[0].startswith("urllib3 made 1,000 requests/s")
