"""What follows from a run's trials: judged when it ends, or when a run that never ended is read."""

from __future__ import annotations

import pytest

from clientlab.judging.claim_verdicts import judged
from clientlab.judging.judgement import find_judged
from clientlab.reports import run_list
from clientlab.results.document import Run
from clientlab.results.plan import Claim
from clientlab.results.store import Store
from clients.documents import a_failed_trial, a_run, a_trial

NAME = "20240102-000000-run-cccc"
CLAIM = Claim(name="faster", text="a is faster", kind="less", a="a", b="b")


def killed() -> Run:
    """What is left of a run with a claim, whose process was killed in its fourth round."""
    walls = [("a", 1.0), ("b", 2.0)]
    trials = [
        a_trial(name, number, wall + number / 100, order=2 * number - 2 + place)
        for number in (1, 2, 3)
        for place, (name, wall) in enumerate(walls)
    ]
    trials.append(a_failed_trial("a", round=4, order=6))
    return a_run(*trials, name=NAME, claims=[CLAIM]).model_copy(update={"status": "running"})


@pytest.mark.parametrize(
    "stale", [[], judged(killed().model_copy(update={"trials": []}))], ids=["no verdicts", "those of before"]
)
def test_the_claims_of_a_run_that_was_killed_are_judged_when_it_is_read(stale, tmp_path):
    store = Store(tmp_path)
    store.claim(NAME)
    store.save(killed().model_copy(update={"claims": stale, "trials": killed().trials[:2]}))
    for trial in killed().trials[2:]:
        store.append(NAME, trial)
    read = find_judged(store, "last")
    assert [(claim.verdict, claim.rounds) for claim in read.claims] == [("supported", 3)]
    assert [caution.kind for caution in read.cautions] == ["failed-trials"]
    expected = killed().model_copy(update={"status": "interrupted"})
    assert read.model_copy(update={"claims": [], "cautions": []}) == expected
    assert run_list.rows(store)[-1]["claims"]["supported"] == 1
