"""The short form of a report: each caution has a phrase in the line of cautions."""

from __future__ import annotations

import ast
from pathlib import Path

from clientlab.judging import cautions
from clientlab.reports import as_markdown
from clientlab.reports.cautions_in_brief import PHRASES, alerts_of, in_brief
from clientlab.reports.rows import groups_of
from clientlab.results.bottleneck import Bound
from clientlab.results.document import Caution
from clientlab.results.trial import Noise
from clients.bundled_runs import a_bundled_run
from clients.documents import a_run, a_trial
from clients.reports.test_table import shown


def test_every_caution_of_the_lab_has_its_words():
    """A kind that has none would be shown as its key."""
    trees = [ast.parse(path.read_text()) for path in Path(cautions.__file__).parent.glob("*.py")]
    named = {
        word.value.value
        for tree in trees for call in ast.walk(tree) if isinstance(call, ast.Call)
        for word in call.keywords if word.arg == "kind" and isinstance(word.value, ast.Constant)
    }  # fmt: skip
    assert named
    assert named <= PHRASES.keys()
    assert PHRASES.keys() - named <= {*Bound.__args__}
    assert PHRASES.keys() >= cautions.REORDERING | cautions.MINOR
    assert not cautions.REORDERING & cautions.MINOR


def test_only_cautions_that_could_reorder_the_arms_mark_them():
    """An arm whose rounds differ widely or were disturbed is not marked: the intervals of its ratios hold that."""
    noisy = Noise(seconds=2.0, others_cpu_seconds=0.9)
    quiet = [a_trial("urllib3", number, wall, noise=noisy) for number, wall in enumerate((1.0, 1.4, 1.9), 1)]
    full = [a_trial("pycurl", number, verdict="machine", busy={"machine": 0.95}) for number in (1, 2, 3)]
    run = a_run(*quiet, *full)
    run = run.model_copy(update={"cautions": cautions.cautions_of(run)})
    assert {caution.kind for caution in run.cautions} == {"noisy-trials", "machine"}
    assert {row.strategy: row.doubtful for group in groups_of(run) for row in group.rows} == {
        "urllib3": False, "pycurl": True,
    }  # fmt: skip


def test_the_line_of_cautions_leaves_out_those_that_change_no_decision():
    """The whole report has them; without others there is no such line."""
    few = Caution(kind="few-requests", text="p99 rests on 3 requests", advice="send more")
    errors = Caution(kind="errors", text="requests failed", advice="look at the errors", arms=["urllib3"])
    minor, both = (a_run(a_trial()).model_copy(update={"cautions": found}) for found in ([few], [few, errors]))
    assert in_brief(alerts_of(minor)) == ""
    assert PHRASES["errors"] in in_brief(alerts_of(both))
    assert PHRASES["few-requests"] not in in_brief(alerts_of(both))
    assert [len(alerts_of(run)) for run in (minor, both)] == [1, 2]
    for text in (shown(minor, whole=False), as_markdown.render(minor, whole=False)):
        assert "autions" not in text.replace("cautions in full", "")
    assert few.text in shown(minor)


def test_the_short_form_of_a_run_with_claims_begins_with_their_verdicts():
    """In Markdown: a tally, the claims, and tables without columns that no row has a value in."""
    run = a_bundled_run("keepalive")
    text = as_markdown.render(run, whole=False)
    claims = [claim.text for claim in run.claims]
    assert text.index("Of 4 claims: ") < text.index("Of 3 controls: ") < text.index(claims[0]) < text.index("| arm |")
    assert len(text.split()) < len(as_markdown.render(run).split()) / 2
    assert "| arm | c | req/s | bottleneck |" in text
