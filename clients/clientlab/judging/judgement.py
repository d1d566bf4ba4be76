"""A run with what follows from its trials: the results of its claims, and its cautions."""

from __future__ import annotations

from pathlib import Path

from clientlab.judging.cautions import cautions_of
from clientlab.judging.claim_verdicts import judged
from clientlab.results.document import Run
from clientlab.results.store import Store, is_held, read_run


def with_judgement(run: Run) -> Run:
    """The run with claim results and cautions of the trials that it has now."""
    return run.model_copy(update={"claims": judged(run), "cautions": cautions_of(run)})


def read_judged(path: Path) -> Run:
    """The run of a run file, judged. Raises LabError.

    A run that has ended holds its judgement. The file of a run that goes on, or that was killed, holds none, or one of
    fewer trials. A run that is not finished, and that no process measures, is interrupted.
    """
    run = read_run(path)
    if run.status == "running" and not is_held(path.parent):
        run = run.model_copy(update={"status": "interrupted"})
    unjudged = run.status in ("running", "interrupted") or (run.experiment.claims and not run.claims)
    return with_judgement(run) if unjudged else run


def find_judged(store: Store, name: str) -> Run:
    """The run of that name, path or beginning of a name, judged. Raises LabError."""
    return read_judged(store.find(name))
