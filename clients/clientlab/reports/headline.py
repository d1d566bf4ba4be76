"""The head of a report, its sentences on loads and thresholds, and the list of runs."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from typing import Any

from rich.table import Table
from rich.text import Text

from clientlab import units
from clientlab.errors import LabError
from clientlab.judging.cautions import MINOR, PHRASES
from clientlab.judging.judgement import read_judged
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports.answers import (
    contrast_answers,
    group_answers,
    session_answers,
    version_answers,
)
from clientlab.reports.rows import Report, groups_of
from clientlab.reports.sections import Lines, Section
from clientlab.results.document import ClaimResult, Run, failed_for_good
from clientlab.results.plan import Plan
from clientlab.results.store import RUN_FILE, Store
from clientlab.results.surroundings import is_free_threaded
from clientlab.results.trial import format_time
from clientlab.statistics.decisions import NOT_WORTH
from clientlab.text import mask_text, shorten
from clientlab.workload.workload import Workload

_CLAIM_VERDICTS = ("supported", "contradicted", "inconclusive")
_BOUND = ", a lower bound: it falls on failed requests"
_MOST_PACKAGES = 8  # in a line about an environment; the page has all of them
_MOST_HIGHLIGHTED = 3  # answers that stand out; further ones are plain lines


def headline(report: Report) -> Section:
    """Return the question, the answers, the thresholds, and the facts of a run."""
    run = report.run
    versions = version_answers(run)
    groups = group_answers(report.groups)
    answers = [
        *(versions or groups),
        *session_answers(run),
        *contrast_answers("link", run),
        *contrast_answers("route", run),
    ]
    if run.claims:
        answers.insert(0, [tally(run.claims)])
    sentences = [answer[0] for answer in answers]
    details = sentences[_MOST_HIGHLIGHTED:]
    for answer in answers:
        details += answer[1:]
    if versions:
        details += [" ".join(answer) for answer in groups]
    minor = {PHRASES[kind] for kind in MINOR}
    doubts = [title for title in reasons_for_doubt(run) if title not in minor]
    alerts = alike_environments(run)
    if doubts:
        alerts.insert(0, f"Cautions: {', '.join(doubts)}.")
    failed = any(result.outcome == "failed" for result in report.judged)
    limits = "Limits that did not hold" if failed else "Limits"
    facts = [*environment_lines(run), _facts(run)]
    if len(run.experiment.workloads) == 1:
        facts = [*load_lines(run.experiment), *facts]
    parts = (
        Lines(details, brief=not run.claims),
        Lines(alerts, alert=True),
        Lines(
            threshold_lines(report.judged),
            limits,
            alert=failed,
        ),
        Lines(facts),
    )
    return Section(
        "answer",
        run.experiment.question.replace("`", ""),
        parts,
        label="Answer",
        sentences=sentences[:_MOST_HIGHLIGHTED],
        brief=True,
    )


def _facts(run: Run) -> str:
    """Return what was measured, when and where, in a line."""
    done = [trial for trial in run.trials if trial.status == "done"]
    trials = f"{len(done)} of {len(done) + len(failed_for_good(run))} trials done"
    if run.probes:
        trials += f", {len(run.probes)} trials of searches"
    requests = sum(trial.figures.requests for trial in run.trials)
    machine = run.surroundings
    facts = (
        f"run {run.run}",
        run.status,
        format_time(run.created),
        trials,
        f"{requests:,} requests",
        f"{machine.cpu_model}, {machine.cpu_usable:g} cores",
        machine.python,
    )
    return " · ".join(facts)


def environment_lines(run: Run) -> list[str]:
    """Return a line for each environment: Python, GIL, and packages that differ."""
    environments = run.surroundings.environments or {}
    listed = (sorted(environment.packages) for environment in environments.values())
    packages = dict.fromkeys(chain.from_iterable(listed))
    differing = [
        name
        for name in packages
        if len({other.packages.get(name) for other in environments.values()}) > 1
    ]
    lines = []
    for name, environment in environments.items():
        parts = [environment.python]
        if is_free_threaded(environment.python_build):
            parts += ["free-threading", *_gil_state(run, name)]
        parts += [
            f"{package} {environment.packages.get(package, units.UNKNOWN)}"
            for package in differing[:_MOST_PACKAGES]
        ]
        if len(differing) > _MOST_PACKAGES:
            parts.append(f"and {len(differing) - _MOST_PACKAGES} more")
        lines.append(f"{name}: {', '.join(parts)}")
    return lines


def _gil_state(run: Run, environment: str) -> Iterator[str]:
    """Yield whether the GIL was on in trials, which a library may have caused."""
    gils = {
        trial.planned.arm: trial.measured.gil
        for trial in run.trials
        if trial.planned.environment == environment and trial.measured is not None
    }
    locked = [arm for arm, gil in gils.items() if gil]
    if locked and all(gils.values()):
        yield "GIL on"
    elif locked:
        yield f"GIL on in {', '.join(locked)}"
    elif gils:
        yield "GIL off"


def alike_environments(run: Run) -> list[str]:
    """Return a sentence for each two environments that differ only in their folders."""
    pairs = combinations((run.surroundings.environments or {}).items(), 2)
    return [
        f"{name} and {other} hold the same Python and the same packages: check what you"
        " meant to compare."
        for (name, first), (other, second) in pairs
        if first.updated(folder=second.folder) == second
    ]


def reasons_for_doubt(run: Run) -> dict[str, list[tuple[str, str]]]:
    """Return the cautions of a run: each title with its texts and advice."""
    reasons: dict[str, list[tuple[str, str]]] = {}
    if run.status != "done":
        title = f"this run is {run.status}"
        advice = "the report shows the trials that finished"
        reasons[title] = [(f"{title}.", advice)]
    for caution in run.cautions:
        title = PHRASES.get(caution.kind, caution.kind.replace("-", " "))
        reasons.setdefault(title, []).append((caution.text, caution.advice))
    return reasons


def tally(claims: Sequence[ClaimResult]) -> str:
    """Return how many claims of the source, and controls of the lab, have a verdict."""
    sentences = []
    for noun, is_control in (("claim", False), ("control", True)):
        counts = Counter[str](
            claim.verdict for claim in claims if claim.control == is_control
        )
        known = [f"{counts[key]} {key}" for key in _CLAIM_VERDICTS if counts[key]]
        if known:
            nouns = noun if counts.total() == 1 else f"{noun}s"
            sentences.append(f"Of {counts.total()} {nouns}: {', '.join(known)}.")
    return " ".join(sentences)


def load_lines(plan: Plan) -> list[str]:
    """Return what the trials of each workload send."""
    lines = []
    for name, workload in plan.workloads.items():
        of_workload = f" of {name}" if len(plan.workloads) > 1 else ""
        lines.append(f"Each trial{of_workload}: {load_line(plan, workload)}.")
    return lines


def load_line(plan: Plan, workload: Workload) -> str:
    """Return what a trial of a workload sends: ``GET /, delay 5ms, for 600 ms``."""
    return ", ".join([*_request_parts(workload), *_schedule_parts(plan, workload)])


def _request_parts(workload: Workload) -> Iterator[str]:
    request, replay, stream = workload.request, workload.replay, workload.stream
    if replay is None:
        yield mask_text(f"{request.method} {shorten(request.path)}")
    else:
        yield "recorded requests"
        if replay.times:
            yield "at their recorded times"
        if replay.max_gap is not None:
            yield f"gaps of at most {units.time(replay.max_gap)}"
    if workload.delay is not None:
        yield f"delay {workload.delay}"
    if workload.faults is not None:
        yield f"faults {workload.faults}"
    if stream is not None:
        options = filter(None, (stream.format, stream.options))
        yield f"streams ({'&'.join(options)})"
        first = f"after {stream.first}"
        if stream.events == 1:
            yield f"one event {first}"
        elif stream.events is not None:
            yield f"{stream.events:,} events every {stream.every}, the first {first}"


def _schedule_parts(plan: Plan, workload: Workload) -> Iterator[str]:
    load = workload.load
    if plan.find_max is not None:
        yield f"at rates that the search for the highest with {plan.find_max} chooses"
    elif load.rate is not None:
        yield f"{units.rate(load.rate)} requests/s, {load.arrivals}"
    if load.stages is not None:
        yield f"stages {load.stages}, {load.arrivals}"
    if load.duration is not None:
        yield f"for {units.time(load.duration)}"
    if load.requests is not None and workload.cold:
        yield "one request from a new interpreter"
    elif load.requests is not None:
        yield f"{load.requests:,} requests"


def threshold_lines(results: Sequence[ThresholdResult]) -> list[str]:
    """Return a line for each threshold that failed or is not sure.

    If all held, one line says so.
    """
    lines = [
        f"{result.outcome.upper()}: {threshold_sentence(result)}"
        for result in results
        if result.outcome != "held"
    ]
    if results and not lines:
        return [f"all thresholds held ({len(results)} checked)"]
    return lines


def threshold_sentence(result: ThresholdResult) -> str:
    """Return the threshold, the arm, the run and what was found."""
    findings = ", and ".join(_findings(result))
    return f"{result.threshold.text} · {result.arm} · {result.run}: {findings}"


def _findings(result: ThresholdResult) -> Iterator[str]:
    label = result.threshold.figure.label
    if result.threshold.change and result.at_least:
        yield f"no change of {label} is known{_BOUND}"
    elif result.found is not None:
        found = _value_text(result, result.found)
        if result.interval:
            ends = " to ".join(_value_text(result, end) for end in result.interval)
            found += f" ({ends})"
        yield f"{label} {found}{_doubt(result)}"
    elif not result.lost and not result.reason:
        yield "no trial of the arm that counts has this figure"
    if result.reason:
        yield f"it cannot be judged: {result.reason}"
    if result.lost:
        trials = "trial" if result.lost == 1 else "trials"
        yield f"{result.lost} {trials} failed"


def _value_text(result: ThresholdResult, value: float) -> str:
    """Return a figure or its change in the threshold's unit."""
    threshold = result.threshold
    if threshold.in_seconds:
        return units.time_change(value)
    if not threshold.change:
        return threshold.figure.text(value, at_least=result.at_least)
    if threshold.figure.unit == "share":
        return f"{units.signed(100 * value)} points"
    return f"{units.signed(100 * (value - 1))} %"


def _doubt(result: ThresholdResult) -> str:
    """Return why the outcome is not sure, and what would decide it.

    Empty if it is sure.
    """
    if result.at_least:
        return _BOUND
    if result.outcome != "not sure" or result.reason:
        return ""
    if result.floor:
        return (
            f"; runs may differ by {units.share(result.floor)}, so measure both in"
            " one run"
        )
    decides = f"to decide takes {NOT_WORTH}"
    if result.rounds:
        rounds = units.rounds(result.rounds)
        decides = f"about {rounds} in all would decide (--rounds {result.rounds})"
    elif result.threshold.in_seconds:
        decides = "more rounds make it narrower"
    return f"; its interval reaches back within the threshold: {decides}"


def summarize_run(store: Store, name: str) -> dict[str, Any]:
    """Return what the list of runs says.

    A run that cannot be read has `status` ``unreadable`` and a `reason`.
    """
    try:
        run = read_judged(store.folder / name / RUN_FILE)
    except LabError as error:
        unknown = ("strategies", "when", "machine", "trials", "failed", "answer")
        return {
            "run": name,
            "experiment": None,
            **dict.fromkeys(unknown),
            "status": "unreadable",
            "claims": {},
            "reason": f"unreadable: {error}",
        }
    if run.claims:
        answer = tally(run.claims)
    else:
        answers = version_answers(run) or group_answers(groups_of(run))
        answer = answers[0][0]
    omission = " … undecided" if "undecided" in answer else " …"
    verdicts = Counter[str](claim.verdict for claim in run.claims)
    counts = {verdict: verdicts[verdict] for verdict in _CLAIM_VERDICTS}
    return {
        "run": name,
        "experiment": run.experiment.name,
        "strategies": list(dict.fromkeys(arm.strategy for arm in run.experiment.arms)),
        "when": run.created,
        "machine": f"{run.surroundings.host}, {run.surroundings.cpu_model}",
        "trials": run.measured,
        "failed": len(failed_for_good(run)),
        "status": run.status,
        "claims": counts if run.claims else {},
        "answer": textwrap.shorten(answer, 120, placeholder=omission),
        "reason": None,
    }


def runs_table(summaries: Sequence[dict[str, Any]]) -> Table:
    """Return a table of listed runs for the terminal."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("run", no_wrap=True)
    for heading in ("measured", "when", "status", "trials", "answer"):
        table.add_column(heading, overflow="fold")
    table.columns[4].justify = "right"
    for row in summaries:
        measured = row["experiment"]
        if measured == "run":  # the command line named strategies
            strategies = ", ".join(row["strategies"])
            measured = textwrap.shorten(strategies, 60, placeholder=" …")
        trials = str(row["trials"] or "")
        if row["failed"]:
            trials += f" ({row['failed']} failed)"
        when = (row["when"] or "")[: len("2024-05-06T07:08")].replace("T", " ")
        status = row["reason"] or row["status"]
        cells = (row["run"], measured, when, status, trials, row["answer"])
        table.add_row(*(Text(cell or units.UNKNOWN) for cell in cells))
    return table
