"""Sentences of the findings are refused where their interval does not exclude the contrary."""

from __future__ import annotations

import re

import pytest

from clientlab.results.document import Run
from clients.documents import a_run, a_trial
from findings import page
from findings.page import HERE, Found
from findings.statements import UnsureSentence, borne_out


@pytest.mark.parametrize(
    ("interval", "statement", "refusal"),
    [
        ((1.01, 1.2), "more", None),
        ((1.0, 1.2), "more", "does not exclude 1 or less"),
        ((0.5, 0.9), "more", "does not exclude 1 or less"),
        ((0.5, 0.9), "less", None),
        ((0.9, 1.1), "less", "does not exclude 1 or more"),
        ((0.9, 1.1), "no difference", None),
        ((1.01, 1.1), "no difference", "excludes 1"),
        (None, "more", "has no interval"),
    ],
)
def test_a_sentence_needs_an_interval_that_excludes_its_contrary(interval, statement, refusal):
    """The refusal names the experiment and the claim; what is borne out is shown with its interval."""
    if refusal is None:
        assert borne_out("mine, claim c", 1.05, interval, statement).startswith("1.05 (")
        return
    with pytest.raises(UnsureSentence, match=rf"mine, claim c: its sentence states '{statement}'.*{refusal}"):
        borne_out("mine, claim c", 1.05, interval, statement)


def a_pair(other: float) -> Run:
    """Two arms over five rounds; the second takes about so many times as long."""
    rounds = range(1, 6)
    trials = [a_trial("urllib3", number, 1 + number / 100) for number in rounds]
    return a_run(*trials, *(a_trial("pycurl", number, other * (1 + (number % 3) / 10)) for number in rounds))


def test_times_of_two_arms_are_compared_by_round():
    """One that is surely slower is stated with its ratio; one that may be as fast is refused."""
    arms = [arm.name for arm in a_pair(2.0).experiment.arms]
    assert re.fullmatch(r"2\.\d+ \(.+ to .+\)", Found(a_pair(2.0)).slower(arms[1], arms[0]))
    with pytest.raises(UnsureSentence, match=f"arms {arms[1]} and {arms[0]}"):
        Found(a_pair(1.0)).slower(arms[1], arms[0])


def test_a_page_whose_run_does_not_bear_it_out_is_not_written(monkeypatch, tmp_path):
    """The claims of a stored run are turned round: the page is refused, and the old one stays."""
    found = page.runs()
    monkeypatch.setattr(page, "runs", lambda: found)
    monkeypatch.setattr(page, "DOCS", tmp_path)
    monkeypatch.setattr(page, "PICTURES", tmp_path)
    monkeypatch.setattr(page.picture, "write", lambda *_: None)
    run = found["httpx2-blocking"]
    claims = [one.model_copy(update={"a": one.b, "b": one.a}) for one in run.experiment.claims if one.name == "serial"]
    plan = run.experiment.model_copy(
        update={"claims": [*claims, *(one for one in run.experiment.claims if one.name != "serial")]}
    )
    found["httpx2-blocking"] = run.model_copy(update={"experiment": plan})
    with pytest.raises(UnsureSentence, match="httpx2-blocking, claim serial: its sentence states 'more'"):
        page.write()
    assert not (tmp_path / "findings.md").exists()


def test_no_sentence_of_the_page_states_a_ratio_without_a_direction():
    """`ratio` has no check: it is left to claims whose verdict stands beside it, and to bands around 1."""
    template = (HERE / "findings.md.jinja").read_text(encoding="utf-8")
    bare = {
        found[1]
        for found in re.finditer(r'\.ratio\("([^"]+)"\)', template)
        if f'.verdict("{found[1]}")' not in template[max(0, found.start() - 150) : found.start()]
    }
    assert bare == {"session-saves", "memory-of-chunks"}
