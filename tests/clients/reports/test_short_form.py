"""The short form of a report: the line of cautions, doubtful arms, and claims first."""

from __future__ import annotations

from clientlab.judging import cautions
from clientlab.reports import as_markdown
from clientlab.reports.rows import groups_of
from clientlab.results.document import Caution
from clientlab.results.trial import Noise
from clients.bundled_runs import a_bundled_run
from clients.documents import a_run, a_trial
from clients.reports.test_table import shown


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
    few = Caution(kind="few-requests", text="p99 rests on 3 requests", advice="send more")
    machine = Caution(kind="machine", text="no core was idle", advice="use more cores", arms=["urllib3"])
    minor, both = (a_run(a_trial()).model_copy(update={"cautions": found}) for found in ([few], [few, machine]))
    assert "Cautions: all cores were full.\n" in shown(both, whole=False)
    assert all(caution.text in shown(both) for caution in (few, machine))
    for text in (shown(minor, whole=False), as_markdown.render(minor, whole=False)):
        assert "Cautions:" not in text


def test_the_short_form_of_a_run_with_claims_begins_with_their_verdicts():
    run = a_bundled_run("keepalive")
    text = as_markdown.render(run, whole=False)
    assert text.index("Of 4 claims: ") < text.index("Of 3 controls: ") < text.index("| arm |")
    assert all(claim.text in text for claim in run.claims)
    assert len(text.split()) < len(as_markdown.render(run).split()) / 2
