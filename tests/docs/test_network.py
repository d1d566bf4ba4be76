"""The articles behind a link: their round trips, the claims repeated there, and what the page states about both."""

from __future__ import annotations

import re

import pytest

from clientlab.experiments.file import bundled, read_plan
from clientlab.results.plan import Plan
from clientlab.strategies import find
from docs.pages import TEXTS
from docs.stored_runs import stored_run
from findings import network

PLANS = {name: read_plan(path) for name, path in bundled().items()}
REPEATED = [
    (name, claim.name)
    for name, plan in PLANS.items()
    for claim in plan.claims
    if claim.name.endswith(network.BEHIND_LINK)
]


def results_of(name):
    """The stored results of an experiment, by claim."""
    return {claim.name: claim for claim in stored_run(name).claims}


def claim_of(plan: Plan, name: str):
    """The claim of that name."""
    return next(claim for claim in plan.claims if claim.name == name)


@pytest.mark.parametrize(("experiment", "name"), REPEATED)
def test_a_claim_behind_a_link_repeats_the_claim_of_the_article(experiment, name):
    """It has the same kind, figure, band and published figures, and the same strategies, in arms behind one link."""
    plan = PLANS[experiment]
    behind, first = claim_of(plan, name), claim_of(plan, name.removesuffix(network.BEHIND_LINK))
    kept = ("kind", "figure", "band", "published")
    assert [getattr(behind, field) for field in kept] == [getattr(first, field) for field in kept]
    assert network.links_of(first, plan) == [""]
    assert len(network.links_of(behind, plan)) == 1
    arms = {arm.name: arm for arm in plan.arms}
    for field in "abcd":
        one, other = (getattr(claim, field) and arms[getattr(claim, field)] for claim in (first, behind))
        assert (one and one.strategy) == (other and other.strategy)
        if one and other:
            of_both = (plan.workloads[arm.workload] for arm in (one, other))
            in_flight = {find(one.strategy).in_flight(work.concurrency, work.requests) for work in of_both}
            assert len(in_flight) == 1
            assert other.control
            assert other.link
    assert behind.control


def test_the_links_of_the_articles_are_those_that_the_page_derives():
    """The section of each experiment names the round trips of its arms; without a derived one, it has no such arm."""
    links = {name: {str(arm.link) for arm in plan.arms if arm.link} for name, plan in PLANS.items() if plan.source}
    assert {name: found for name, found in links.items() if found} == {
        "sessions": {"106 ms"}, "semaphore": {"31 ms"}, "frameworks": {"121 ms"}, "keepalive": {"20 ms"},
    }  # fmt: skip
    for name, found in links.items():
        sections = [text for text in TEXTS["docs/round-trips.md"].split("\n## ") if re.match(rf"{name}\b(?!-)", text)]
        assert sections or not found
        assert all(any(f"at {link}" in text for text in sections) for link in found)


def with_verdicts(over_loopback: str, behind: str | None) -> network.Judged:
    """The stored results of `sessions`, with these verdicts of what a session saves."""
    first = results_of("sessions")["session-saves"].model_copy(update={"verdict": over_loopback})
    results = {"session-saves": first}
    if behind is not None:
        name = f"session-saves{network.BEHIND_LINK}"
        results[name] = first.model_copy(update={"name": name, "verdict": behind})
    return (
        {"sessions": results_of("sessions") | results}
        if behind
        else {"sessions": without_link(results_of("sessions")) | results}
    )


def without_link(results):
    """The results of a run that has no arms behind a link."""
    return {name: result for name, result in results.items() if not name.endswith(network.BEHIND_LINK)}


@pytest.mark.parametrize(
    ("over_loopback", "behind", "effect", "kind"),
    [
        ("contradicted", "supported", "explains it", "explained"),
        ("contradicted", "contradicted", "does not explain it", "remaining"),
        ("contradicted", "inconclusive", "leaves it open", "undecided"),
        ("contradicted", None, "not measured yet", "unmeasured"),
        ("supported", "supported", "changes nothing", None),
        ("supported", "contradicted", "contradicts it", None),
        ("inconclusive", "supported", "supports it", None),
        ("supported", "inconclusive", "leaves it open", None),
    ],
)
def test_what_the_network_does_follows_from_both_verdicts(over_loopback, behind, effect, kind):
    """A contradiction is explained, remains or stays open; the table has a line for each claim that is repeated."""
    judged = with_verdicts(over_loopback, behind)
    found = {one.loopback.name: one for one in network.repeated(judged)}
    assert found["session-saves"].effect == effect
    assert found["session-saves"].link == "106 ms"
    assert len(found) == 4
    contradictions = network.contradictions(judged)
    text = results_of("sessions")["session-saves"].text
    assert [name for name, of in vars(contradictions).items() if ("sessions", text) in of] == ([kind] if kind else [])
    (line,) = [line for line in network.effects_table(list(found.values())).splitlines() if text in line]
    assert line.startswith("| sessions | ")
    assert line.endswith(f"| {effect} |")


def test_a_contradiction_that_nothing_repeats_is_named_apart():
    """The article's figures give no round trip for it."""
    (result, *_) = results_of("six-strategies").values()
    judged = {"six-strategies": {result.name: result.model_copy(update={"verdict": "contradicted"})}}
    found = network.contradictions(judged)
    assert found.without == [("six-strategies", result.text)]
    assert found.all == 1


def test_a_contradiction_about_arms_behind_a_link_is_none_over_loopback():
    """It is a claim of arithmetic, which no other one repeats."""
    result = results_of("frameworks")["diminishing-returns-as-computed"]
    contradicted = {result.name: result.model_copy(update={"verdict": "contradicted"})}
    found = network.contradictions({"frameworks": results_of("frameworks") | contradicted})
    assert result.text not in [text for claims in vars(found).values() for _, text in claims]
