"""The judgement of a run: what follows from its trials, the results of its claims and its cautions."""

from __future__ import annotations

from pathlib import Path

from clientlab.judging.cautions import cautions_of
from clientlab.judging.claim_verdicts import judged
from clientlab.results.document import Run
from clientlab.results.store import Store, is_held, read_run


def with_judgement(run: Run) -> Run:
    """Return the run with the claim results and cautions of the trials that it has now."""
    return run.model_copy(update={"claims": judged(run), "cautions": cautions_of(run)})


def read_judged(path: Path) -> Run:
    """Read a run file, and judge the run unless it has ended: then the file holds its judgement. Raise LabError.

    A run that is not finished, and that no process measures, is interrupted.
    """
    run = read_run(path)
    if run.status == "running" and not is_held(path.parent):
        run = run.model_copy(update={"status": "interrupted"})
    unjudged = run.status in ("running", "interrupted") or (run.experiment.claims and not run.claims)
    return with_judgement(run) if unjudged else run


def find_judged(store: Store, name: str) -> Run:
    """Read the run of that name, path or beginning of a name, judged. Raise LabError."""
    return read_judged(store.find(name))
