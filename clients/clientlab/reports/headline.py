"""The answer of a run: the head of its report, and its line in the list of runs.

The answer states no difference that an interval does not show. Arms of unlike
concurrency are not compared.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import Any

from rich.table import Table
from rich.text import Text

from clientlab import units
from clientlab.errors import LabError
from clientlab.judging import ranking
from clientlab.judging.cautions import MINOR, PHRASES
from clientlab.judging.judgement import read_judged
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports.rows import Group, Report, Row, groups_of
from clientlab.reports.sections import Lines, Part, Section
from clientlab.results.document import ClaimResult, Run, failed_for_good
from clientlab.results.figures import BY_KEY, HIGHEST_RATE, cost_of
from clientlab.results.plan import Plan
from clientlab.results.store import RUN_FILE, Store
from clientlab.results.surroundings import is_free_threaded
from clientlab.results.trial import format_time
from clientlab.statistics.decisions import EQUAL, EQUAL_SHARE, NOT_WORTH, decide
from clientlab.statistics.ratios import FEWEST_ROUNDS, Estimate
from clientlab.text import mask_text, shorten
from clientlab.workload.workload import Workload

_P99 = BY_KEY["p99"]
_CPU_PER_EVENT = BY_KEY["cpu_per_event"]
_CLAIM_VERDICTS = ("supported", "contradicted", "inconclusive")
_ONLY_BOUNDS = "so many requests failed or were dropped that p99 is only a lower bound"
_BOUND = ", a lower bound: it falls on failed requests"
_MOST_PACKAGES = 8  # in a line about an environment; the page has all of them
_MOST_HIGHLIGHTED = 3  # answers that stand out; further ones are plain lines
_MOST_TIED = 3  # names in a sentence; more arms are counted
_FEWEST_OF_P99 = 1000  # requests of a trial whose p99 is compared in a sentence

# The answer to a question in a sentence, then its details, like what is undecided.
Answer = list[str]


def headline(report: Report) -> Section:
    """Return the question, the answers, the thresholds, and the facts of a run."""
    run = report.run
    versions = version_answers(run)
    groups = group_answers(report.groups)
    answers = [
        *(versions or groups),
        *_session_answers(run),
        *_contrast_answers("link", run),
        *_contrast_answers("route", run),
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
    parts: list[Part] = [
        Lines(details, brief=not run.claims),
        Lines(alerts, alert=True),
        Lines(
            threshold_lines(report.judged),
            limits,
            alert=failed,
        ),
        Lines(facts),
    ]
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
    packages: dict[str, None] = {}
    for environment in environments.values():
        packages |= dict.fromkeys(sorted(environment.packages))
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
    locked = ", ".join(arm for arm, gil in gils.items() if gil)
    if not locked and gils:
        yield "GIL off"
    elif locked:
        yield "GIL on" if all(gils.values()) else f"GIL on in {locked}"


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


def group_answers(groups: Sequence[Group]) -> list[Answer]:
    """Return an answer for each group: which arm of its fastest load leads.

    Its details are the leads of the other loads, and arms that are not ranked.
    """
    answers = []
    for group in groups:
        where = f"{group.title}: " if len(groups) > 1 else ""
        sentences: list[str] = []
        for rows in group.by_load:
            leads = list(_leads(rows))
            if leads and (len(rows) > 1 or not sentences):
                load = f"With {group.place_of(rows[0])}, " if group.mixed else ""
                sentences += [load + leads[0], *leads[1:]]
        sentences += [
            f"{group.name_of(row)} is not ranked: {row.shortfall}."
            for row in group.rows
            if row.shortfall
        ]
        answer = [where + sentences[0]]
        if len(sentences) > 1:
            answer.append(where + " ".join(sentences[1:]))
        answers.append(answer)
    return answers or [["No trial finished."]]


def _leads(rows: Sequence[Row]) -> Iterator[str]:
    """Yield which of the arms with equal load is the fastest, and by how much.

    Further sentences name arms that may be as fast. Nothing is said if no arm is
    ranked. Arms of an open load are ranked by p99. An arm whose p99 is only a lower
    bound is named, but not compared.
    """
    rows = [row for row in rows if not row.shortfall]
    bounds = [f"{row.name} ({row.text(_P99)})" for row in rows if row.standing.bounded]
    best = next((row for row in rows if row.fastest), None)
    if best is None:
        if bounds:
            yield f"{_list(bounds)}: {_ONLY_BOUNDS}."
        return
    others = [row for row in rows if row is not best and not row.standing.bounded]
    slower = [row for row in others if decide(row.ratio).word == "slower"]
    tied = [row for row in others if row not in slower]
    lead = _lead(best, [*slower[:1], *slower[1:][-1:]])
    yield f"{lead}{_ties(best, tied)}.{_what_differs([best, *tied])}"
    yield from _undecided(best, others)
    if bounds:
        yield f"{_ONLY_BOUNDS[0].upper()}{_ONLY_BOUNDS[1:]}: {_list(bounds)}."


def _lead(best: Row, slower: Sequence[Row]) -> str:
    """Return how fast the best arm is, and how much slower some others are."""
    name = best.name
    figures = best.figures
    separator = ", "
    compared = "{ratio} times as fast as {name}"
    if figures["cpu_per_event"] is not None and figures["highest_rate"] is None:
        lead = f"{name} took {best.text(_CPU_PER_EVENT)} of CPU time per event"
        separator = "; "
        compared = "{name} takes {ratio} times as much"
    elif best.load.rate is not None:
        lead = f"{name} had a p99 of {best.text(_P99)} from the planned start"
        separator = "; "
        compared = "that of {name} is {ratio} times as long"
    elif figures["highest_rate"] is not None:
        lead = f"{name} held {best.text(HIGHEST_RATE)} requests/s"
        compared = "{ratio} times the rate of {name}"
    elif figures["first_response"] is not None:
        first_response = best.text(BY_KEY["first_response"])
        lead = (
            f"{name} had its first response {first_response} after the start of the"
            " interpreter"
        )
    elif figures["throughput"] is not None:
        lead = f"{name} made {units.rate(figures['throughput'])} requests/s"
    else:
        lead = f"{name} was the fastest"
    if not slower:
        return lead
    comparisons = (
        compared.format(name=row.name, ratio=row.quoted_ratio) for row in slower
    )
    return lead + separator + " and ".join(comparisons)


def _ties(best: Row, tied: Sequence[Row]) -> str:
    """Return the end of a sentence: which arms equal the best, which are undecided."""
    equal = [row.name for row in tied if decide(row.ratio).word == "equal"]
    unsure = [row.name for row in tied if row.name not in equal]
    text = ""
    for names, what in (
        (equal, f"equal to {best.name} within {EQUAL_SHARE}"),
        (unsure, "undecided"),
    ):
        if names:
            shown = _list(names) if len(names) <= _MOST_TIED else f"{len(names)} arms"
            verb = "is" if len(names) == 1 else "are"
            text += f"; {shown} {verb} {what}"
    return text


def _what_differs(tied: Sequence[Row]) -> str:
    """Return a sentence on CPU time and p99 if they differ among equally fast arms.

    A p99 that rests on few requests is left out, and one that holds the wait for a
    connection in some arms only.
    """
    phrases = {"cpu": "needs {} times the CPU time per request of"}
    trials = chain.from_iterable(row.trials for row in tied)
    fewest = min(trial.figures.requests for trial in trials)
    is_search = tied[0].figures["highest_rate"] is not None
    wait_alike = len({row.waits for row in tied}) == 1
    if fewest >= _FEWEST_OF_P99 and wait_alike and not is_search:
        phrases["p99"] = "has {} times the p99 of"
    parts = []
    for key, compared in tied[0].compared_by.items():
        names = [row.name for row in tied if row.name in compared.known]
        names.sort(key=compared.levels.__getitem__)
        if key in phrases and len(names) > 1:
            ratio = compared.ratio(names[0], names[-1])
            if ratio and ratio.value < 1 / EQUAL and decide(ratio).word == "faster":
                phrase = phrases[key].format(units.ratio_of(ratio))
                parts.append(f"{names[0]} {phrase} {names[-1]}")
    return f" {'; '.join(parts)}." if parts else ""


def _undecided(best: Row, others: Sequence[Row]) -> Iterator[str]:
    """Yield which arms are undecided, what the rounds show, and what would decide."""
    unsure = [
        row for row in others if decide(row.ratio).word in {"undecided", "faster"}
    ]
    states = []
    for row in unsure:
        these, those = (ranking.by_round(arm.trials, cost_of) for arm in (row, best))
        both = these.keys() & those.keys()
        slower = [number for number in both if these[number] > those[number]]
        rounds = f"in {len(slower)} of {len(both)} rounds"
        times = f"{units.ratio_of(row.ratio)} times"
        state = f"{times} as long, slower {rounds}"
        if row.ratio is None:
            state = "no round has both"
        elif best.figures["highest_rate"] is not None:
            state = f"{best.name} held {times} its rate, more {rounds}"
        elif best.figures["cpu_per_event"] is not None:
            state = f"{times} as much, more {rounds}"
        states.append(f"{row.name}, {state}")
    if unsure:
        yield f"Undecided: {'; '.join(states)}. {_what_decides(best, unsure)}"


def _what_decides(best: Row, unsure: Sequence[Row]) -> str:
    """Return how many rounds would decide."""
    if not any(row.ratio and row.ratio.interval for row in unsure):
        has_enough = all(len(row.trials) >= FEWEST_ROUNDS for row in (best, *unsure))
        failures = " in which no request fails" if has_enough else ""
        return f"An interval takes {FEWEST_ROUNDS} rounds{failures}."
    needed = {row.name: decide(row.ratio).more_rounds for row in unsure}
    most = max(filter(None, needed.values()), default=None)
    if most is None:
        return f"To decide takes {NOT_WORTH}."
    far = [name for name, rounds in needed.items() if rounds is None]
    except_far = f" all but {_list(far)}" if far else ""
    return f"About {units.rounds(most)} in all would decide{except_far}."


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def version_answers(run: Run) -> list[Answer]:
    """Return an answer for each environment, and each server, beside the first."""
    by_part = (_contrast_answers(part, run) for part in ranking.VERSIONS)
    return list(chain.from_iterable(by_part))


def _contrast_answers(part: ranking.Part, run: Run) -> list[Answer]:
    """Return an answer for each two environments, servers, links or routes.

    Several arms share a sentence; those of environments and servers have details.
    """
    contrasts = ranking.contrasts_by(part, run)
    latencies = {}
    if part in ranking.VERSIONS:
        pairs = [(contrast.arm, contrast.base) for contrast in contrasts]
        latencies = ranking.latency_differences(run, pairs)
    families: dict[tuple[str, str], list[ranking.Contrast]] = {}
    for contrast in contrasts:
        arms = (contrast.arm, contrast.base)
        name, base = (str(getattr(arm, part) or "none") for arm in arms)
        families.setdefault((name, base), []).append(contrast)
    answers = []
    for (name, base), family in families.items():
        answer = []
        for contrast in family:
            names = (contrast.arm.name, contrast.base.name)
            latency = _latency_sentence(latencies.get(names, {}))
            answer.append(_pair_sentence(run, contrast) + latency)
        if len(family) > 1:
            change = f"{part.capitalize()} {name} instead of {base}"
            details = answer if part in ranking.VERSIONS else []
            answer = [_family_sentence(change, family), *details]
        answers.append(answer)
    return answers


def _pair_sentence(run: Run, contrast: ranking.Contrast) -> str:
    """Return how an arm's time and CPU time compare, or why they are not compared."""
    name = contrast.arm.name
    base = contrast.base.name
    ratios = {contrast.figure.label: contrast.time}
    if contrast.figure is not _CPU_PER_EVENT:
        ratios[BY_KEY["cpu"].label] = contrast.cpu
    known = [
        f"{units.ratio_of(ratio)} times the {label}"
        for label, ratio in ratios.items()
        if ratio is not None
    ]
    if known:
        verdicts = {
            "equal": f": equal within {EQUAL_SHARE}",
            "undecided": ": undecided",
        }
        verdict = verdicts.get(decide(contrast.time).word, "")
        return f"{name} takes {' and '.join(known)} of {base}{verdict}."
    unlike = ranking.unlike_arms(run)
    reasons = []
    for arm in (name, base):
        reason = ranking.shortfall(run.trials_of(arm)) or unlike.get(arm)
        if reason:
            reasons.append(f"{arm}: {reason}")
    why = "; ".join(reasons) or "no round has both without errors"
    return f"{name} and {base} are not compared: {why}."


def _latency_sentence(differences: Mapping[str, Estimate]) -> str:
    """Return how latencies differ in milliseconds; empty if that is unknown."""
    parts = []
    for key, difference in differences.items():
        part = f"{key} {units.time_change(difference.value)}"
        if difference.interval:
            part += f" ({' to '.join(map(units.time_change, difference.interval))})"
        parts.append(part)
    return f" Latency: {', '.join(parts)}." if parts else ""


def _family_sentence(change: str, family: Sequence[ranking.Contrast]) -> str:
    """Return what a change of environment, server, link or route does to its arms."""
    arms = [contrast.arm for contrast in family]
    names = [arm.label or arm.strategy for arm in arms]
    for part in ("upstream", "route", "link"):
        values = [str(getattr(arm, part) or "no link") for arm in arms]
        if len(set(names)) < len(names) and len(set(values)) > 1:
            pairs = zip(names, values, strict=True)
            names = [f"{name} · {value}" for name, value in pairs]
    figure = family[0].figure
    phrases = {
        "slower": figure.direction.worse,
        "faster": figure.direction.better,
        "equal": f"equal within {EQUAL_SHARE}",
        "undecided": "undecided",
    }
    decided: dict[str, list[str]] = {word: [] for word in phrases}
    for name, contrast in zip(names, family, strict=True):
        ratio = "not compared"
        if contrast.time is not None:
            ratio = f"{units.ratio_of(contrast.time)} times"
        decided[decide(contrast.time).word].append(f"{name} ({ratio})")
    parts = [
        f"{phrases[word]} with {_list(found)}"
        for word, found in decided.items()
        if found
    ]
    return f"{change}, {figure.label}: {'; '.join(parts)}."


def _session_answers(run: Run) -> list[Answer]:
    """Return how one session per thread compares with one for all, for each library."""
    arms = {(ranking.arm_key(arm)[0], arm.strategy): arm for arm in run.experiment.arms}
    pairs = []
    for (group, strategy), arm in arms.items():
        client, _, executor = strategy.partition("@")
        library = client.removesuffix("-per-thread")
        shared = arms.get((group, f"{library}@{executor or 'threads'}"))
        if library != client and shared is not None:
            pairs.append((arm, shared))
    contrasts = ranking.contrasts(run, pairs)
    return [[_pair_sentence(run, contrast)] for contrast in contrasts]


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
    table = Table(
        box=None,
        header_style="bold",
        pad_edge=False,
    )
    table.add_column("run", no_wrap=True)
    for heading in ("measured", "when", "status"):
        table.add_column(heading, overflow="fold")
    table.add_column(
        "trials",
        overflow="fold",
        justify="right",
    )
    table.add_column("answer", overflow="fold")
    for row in summaries:
        measured = row["experiment"]
        if measured == "run":  # the command line named strategies
            strategies = ", ".join(row["strategies"])
            measured = textwrap.shorten(strategies, 60, placeholder=" …")
        trials = row["trials"] and str(row["trials"])
        if row["failed"]:
            trials += f" ({row['failed']} failed)"
        when = row["when"] and row["when"][: len("2024-05-06T07:08")].replace("T", " ")
        status = row["reason"] or row["status"]
        cells = (row["run"], measured, when, status, trials, row["answer"])
        table.add_row(*(Text(cell or units.UNKNOWN) for cell in cells))
    return table
