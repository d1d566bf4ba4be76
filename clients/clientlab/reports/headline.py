"""The answer of a run: the head of its report, and its line in the list of runs.

The answer states no difference that an interval does not show. Arms of unlike
concurrency are not compared.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
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
from clientlab.statistics.decisions import EQUAL, EQUAL_SHARE, NOT_WORTH, decide
from clientlab.statistics.ratios import FEWEST_ROUNDS, Estimate
from clientlab.text import mask_text, shorten
from clientlab.trial.result import format_time
from clientlab.workload.workload import Workload

_P99, _FIRST_RESPONSE, _CPU_PER_EVENT = (
    BY_KEY["p99"],
    BY_KEY["first_response"],
    BY_KEY["cpu_per_event"],
)
_CLAIM_VERDICTS = ("supported", "contradicted", "inconclusive")
_ONLY_BOUNDS = "so many requests failed or were dropped that p99 is only a lower bound"
_BOUND = ", a lower bound: it falls on failed requests"
_MOST_PACKAGES = 8  # in a line about an environment; the page has all of them
_MOST_HIGHLIGHTED = 3  # answers that stand out; further ones are plain lines
_MOST_TIED = 3  # names in a sentence; more arms are counted
_FEWEST_OF_P99 = 1000  # requests of a trial whose p99 is compared in a sentence

# The answer to one question in a sentence, then its details, for example what is
# undecided.
Answer = list[str]


def headline(report: Report) -> Section:
    """Return the question, a sentence for each question that the run answers, the
    thresholds, and the run's facts.
    """
    run = report.run
    versions, groups = version_answers(run), group_answers(report.groups)
    found = [
        *([[tally(run.claims)]] if run.claims else []),
        *(versions or groups),
        *_session_answers(run),
        *_contrast_answers("link", run),
        *_contrast_answers("route", run),
    ]
    sentences = [sentence for sentence, *_ in found]
    details = [
        *sentences[_MOST_HIGHLIGHTED:],
        *(line for _, *more in found for line in more),
    ]
    details += [" ".join(answer) for answer in groups] if versions else []
    failed = any(one.outcome == "failed" for one in report.judged)
    done, probes = sum(trial.status == "done" for trial in run.trials), len(run.probes)
    facts = (
        f"run {run.run}",
        run.status,
        format_time(run.created),
        (
            f"{done} of {done + len(failed_for_good(run))} trials"
            f" done{f', {probes} trials of searches' if probes else ''}"
        ),
        f"{sum(trial.figures.requests for trial in run.trials):,} requests",
        f"{run.surroundings.cpu_model}, {run.surroundings.cpu_usable:g} cores",
        run.surroundings.python,
    )
    loads = load_lines(run.experiment)
    doubts = [
        title
        for title in reasons_for_doubt(run)
        if title not in {PHRASES[kind] for kind in MINOR}
    ]
    parts: list[Part] = [
        Lines(details, brief=not run.claims),
        Lines(
            [
                *([f"Cautions: {', '.join(doubts)}."] if doubts else []),
                *alike_environments(run),
            ],
            alert=True,
        ),
        Lines(
            threshold_lines(report.judged),
            "Limits that did not hold" if failed else "Limits",
            alert=failed,
        ),
        Lines(
            [
                *(loads if len(loads) == 1 else []),
                *environment_lines(run),
                " · ".join(facts),
            ]
        ),
    ]
    shown = sentences[:_MOST_HIGHLIGHTED]
    question = run.experiment.question.replace("`", "")
    return Section(
        "answer", question, parts, label="Answer", sentences=shown, brief=True
    )


def environment_lines(run: Run) -> list[str]:
    """Return a line for each environment: its name, Python, GIL, and the versions of
    the packages that differ.
    """
    environments = run.surroundings.environments or {}
    names = dict.fromkeys(
        name for one in environments.values() for name in sorted(one.packages)
    )
    differing = [
        name
        for name in names
        if len({one.packages.get(name) for one in environments.values()}) > 1
    ]
    more = (
        [f"and {len(differing) - _MOST_PACKAGES} more"]
        if len(differing) > _MOST_PACKAGES
        else []
    )
    lines = []
    for name, one in environments.items():
        parts = [one.python]
        if is_free_threaded(one.python_build):
            parts.append("free-threading")
            trials = [
                trial for trial in run.trials if trial.planned.environment == name
            ]
            gils = {
                trial.planned.arm: trial.measured.gil
                for trial in trials
                if trial.measured is not None
            }
            locked = [
                arm for arm, gil in gils.items() if gil
            ]  # a library may switch it on
            where = f" in {', '.join(locked)}" if 0 < len(locked) < len(gils) else ""
            parts += [f"GIL {'on' if locked else 'off'}{where}"] if gils else []
        parts += [
            f"{package} {one.packages.get(package, units.UNKNOWN)}"
            for package in differing[:_MOST_PACKAGES]
        ]
        lines.append(f"{name}: {', '.join([*parts, *more])}")
    return lines


def alike_environments(run: Run) -> list[str]:
    """Return a sentence for each two environments in which nothing differs but their
    folders.
    """
    pairs = combinations((run.surroundings.environments or {}).items(), 2)
    return [
        f"{name} and {other} hold the same Python and the same packages: check what you"
        " meant to compare."
        for (name, one), (other, two) in pairs
        if one.model_copy(update={"folder": two.folder}) == two
    ]


def reasons_for_doubt(run: Run) -> dict[str, list[tuple[str, str]]]:
    """Return the cautions of a run: each title with its texts and advice."""
    found: dict[str, list[tuple[str, str]]] = {}
    if run.status != "done":
        status = f"this run is {run.status}"
        found[status] = [(f"{status}.", "the report shows the trials that finished")]
    for one in run.cautions:
        found.setdefault(PHRASES.get(one.kind, one.kind.replace("-", " ")), []).append(
            (one.text, one.advice)
        )
    return found


def tally(claims: Sequence[ClaimResult]) -> str:
    """Return how many claims of the source, and how many controls of the lab, have each
    verdict.
    """
    sentences = []
    for name, is_control in (("claim", False), ("control", True)):
        found = Counter[str](one.verdict for one in claims if one.control == is_control)
        counts = ", ".join(
            f"{found[verdict]} {verdict}"
            for verdict in _CLAIM_VERDICTS
            if found[verdict]
        )
        sentences += (
            [f"Of {found.total()} {name}{'' if found.total() == 1 else 's'}: {counts}."]
            if found
            else []
        )
    return " ".join(sentences)


def load_lines(plan: Plan) -> list[str]:
    """Return what the trials of each workload send."""
    alone = len(plan.workloads) == 1
    return [
        f"Each trial{'' if alone else f' of {name}'}: {load_line(plan, workload)}."
        for name, workload in plan.workloads.items()
    ]


def load_line(plan: Plan, one: Workload) -> str:
    """Return what a trial of a workload sends: ``GET /, delay 5ms, for 600 ms``."""
    parts = [
        (
            "recorded requests"
            if one.replay
            else mask_text(f"{one.method} {shorten(one.path)}")
        )
    ]
    parts += ["at their recorded times"] if one.replay_times else []
    if one.max_gap is not None:
        parts.append(f"gaps of at most {units.time(one.max_gap)}")
    parts += [] if one.delay is None else [f"delay {one.delay}"]
    parts += (
        []
        if one.stream is None
        else [f"streams ({'&'.join(filter(None, (one.stream, one.stream_options)))})"]
    )
    if one.events == 1:
        parts.append(f"one event after {one.first}")
    elif one.events is not None:
        parts.append(
            f"{one.events:,} events every {one.every}, the first after {one.first}"
        )
    if plan.find_max is not None:
        parts.append(
            f"at rates that the search for the highest with {plan.find_max} chooses"
        )
    elif one.rate is not None:
        parts.append(f"{units.rate(one.rate)} requests/s, {one.arrivals}")
    parts += [] if one.stages is None else [f"stages {one.stages}, {one.arrivals}"]
    parts += [] if one.duration is None else [f"for {units.time(one.duration)}"]
    if one.requests is not None:
        parts.append(
            "one request from a new interpreter"
            if one.cold
            else f"{one.requests:,} requests"
        )
    return ", ".join(parts)


def threshold_lines(results: Sequence[ThresholdResult]) -> list[str]:
    """Return a line for each threshold that failed or is not sure; if all held, one
    line for all.
    """
    found = [
        f"{one.outcome.upper()}: {threshold_sentence(one)}"
        for one in results
        if one.outcome != "held"
    ]
    return found or (
        [f"all thresholds held ({len(results)} checked)"] if results else []
    )


def threshold_sentence(result: ThresholdResult) -> str:
    """Return the threshold, the arm, the run and what was found."""
    figure, change = result.threshold.figure, result.threshold.change

    def shown(value: float) -> str:
        if result.threshold.in_seconds:
            return units.time_change(value)
        if not change:
            return figure.text(value, at_least=result.at_least)
        in_points = figure.unit == "share"
        return (
            f"{units.signed(100 * value)} points"
            if in_points
            else f"{units.signed(100 * (value - 1))} %"
        )

    parts = []
    if change and result.at_least:
        parts.append(f"no change of {figure.label} is known{_BOUND}")
    elif result.found is not None:
        ends = (
            f" ({' to '.join(map(shown, result.interval))})" if result.interval else ""
        )
        parts.append(f"{figure.label} {shown(result.found)}{ends}{_doubt(result)}")
    elif not result.lost and not result.reason:
        parts.append("no trial of the arm that counts has this figure")
    parts += [f"it cannot be judged: {result.reason}"] if result.reason else []
    parts += (
        [f"{result.lost} {'trial' if result.lost == 1 else 'trials'} failed"]
        if result.lost
        else []
    )
    return (
        f"{result.threshold.text} · {result.arm} · {result.run}: {', and '.join(parts)}"
    )


def _doubt(result: ThresholdResult) -> str:
    """Return why the outcome is not sure, and what would decide it; empty if it is
    sure.
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
    decides = (
        "more rounds make it narrower"
        if result.threshold.in_seconds
        else f"to decide takes {NOT_WORTH}"
    )
    if result.rounds:
        decides = (
            f"about {units.rounds(result.rounds)} in all would decide (--rounds"
            f" {result.rounds})"
        )
    return f"; its interval reaches back within the threshold: {decides}"


def group_answers(groups: Sequence[Group]) -> list[Answer]:
    """Return an answer for each group: the lead of its fastest load, and as details
    those of the other loads.
    """
    found = []
    for group in groups:
        where = f"{group.title}: " if len(groups) > 1 else ""
        parts: list[str] = []
        for rows in group.by_load:
            if (leads := _leads(rows)) and (len(rows) > 1 or not parts):
                load = f"With {group.place_of(rows[0])}, " if group.mixed else ""
                parts += [f"{load}{leads[0]}", *leads[1:]]
        parts += [
            f"{group.name_of(row)} is not ranked: {row.shortfall}."
            for row in group.rows
            if row.shortfall
        ]
        first, *more = parts
        found.append(
            [f"{where}{first}", *([f"{where}{' '.join(more)}"] if more else [])]
        )
    return found or [["No trial finished."]]


def _leads(rows: Sequence[Row]) -> list[str]:
    """Return the fastest of arms with equal load and its lead, then sentences on arms
    that are not surely slower.

    Empty if no arm is ranked. The arms of an open load are ranked by p99; one whose p99
    is a lower bound has no ratio.
    """
    rows = [row for row in rows if not row.shortfall]
    if not rows:
        return []
    best = next((row for row in rows if row.fastest), None)
    if best is None:
        bounds = [f"{row.name} ({row.text(_P99)})" for row in rows if row.bounded]
        return [f"{_list(bounds)}: {_ONLY_BOUNDS}."] if bounds else []
    others = [row for row in rows if row is not best]
    by_cpu = (
        best.figures[_CPU_PER_EVENT.key] is not None
        and best.figures[HIGHEST_RATE.key] is None
    )
    bounded = [row for row in others if row.bounded]
    known = [row for row in others if row not in bounded]
    slower = [row for row in known if decide(row.ratio).word == "slower"]
    ends = [*slower[:1], *slower[1:][-1:]]
    if by_cpu:
        lead = (
            f"{best.name} took {best.text(_CPU_PER_EVENT)} of CPU time per"
            f" event{'; ' if ends else ''}"
        )
        lead += " and ".join(
            f"{row.name} takes {row.quoted_ratio} times as much" for row in ends
        )
    elif best.load.rate is not None:
        lead = (
            f"{best.name} had a p99 of {best.text(_P99)} from the planned"
            f" start{'; ' if ends else ''}"
        )
        lead += " and ".join(
            f"that of {row.name} is {row.quoted_ratio} times as long" for row in ends
        )
    else:
        lead, times = f"{best.name} was the fastest", "times as fast as"
        if best.figures[HIGHEST_RATE.key] is not None:
            lead, times = (
                f"{best.name} held {best.text(HIGHEST_RATE)} requests/s",
                "times the rate of",
            )
        elif best.figures[_FIRST_RESPONSE.key] is not None:
            lead = (
                f"{best.name} had its first response {best.text(_FIRST_RESPONSE)} after"
                " the start of the interpreter"
            )
        elif (rate := best.figures["throughput"]) is not None:
            lead = f"{best.name} made {units.rate(rate)} requests/s"
        lead += ", " if ends else ""
        lead += " and ".join(f"{row.quoted_ratio} {times} {row.name}" for row in ends)
    tied = [row for row in known if row not in slower]
    found = [
        f"{lead}{_ties(best, tied)}.{_what_differs([best, *tied])}",
        *_not_slower(best, known),
    ]
    if bounded:
        names = _list([f"{row.name} ({row.text(_P99)})" for row in bounded])
        found.append(f"{_ONLY_BOUNDS[0].upper()}{_ONLY_BOUNDS[1:]}: {names}.")
    return found


def _ties(best: Row, tied: Sequence[Row]) -> str:
    """Return the end of a sentence: which of these arms equal the best, and which are
    undecided.
    """
    equal, unsure = list[str](), list[str]()
    for row in tied:
        (equal if decide(row.ratio).word == "equal" else unsure).append(row.name)
    text = ""
    for names, what in (
        (equal, f"equal to {best.name} within {EQUAL_SHARE}"),
        (unsure, "undecided"),
    ):
        if names:
            shown = _list(names) if len(names) <= _MOST_TIED else f"{len(names)} arms"
            text += f"; {shown} {'is' if len(names) == 1 else 'are'} {what}"
    return text


def _what_differs(tied: Sequence[Row]) -> str:
    """Return a further sentence on CPU time and p99 of equally fast arms if their
    intervals show a difference.

    A p99 that rests on few requests is left out, and one that holds the wait for a
    connection in some arms only.
    """
    phrases = {"cpu": "needs {} times the CPU time per request of"}
    fewest = min(trial.figures.requests for row in tied for trial in row.trials)
    is_search = tied[0].figures[HIGHEST_RATE.key] is not None
    if (
        fewest >= _FEWEST_OF_P99
        and not is_search
        and len({row.waits for row in tied}) == 1
    ):
        phrases[_P99.key] = "has {} times the p99 of"
    parts = []
    for key, compared in tied[0].compared_by.items():
        names = sorted(
            {row.name for row in tied} & set(compared.known),
            key=compared.levels.__getitem__,
        )
        if key in phrases and len(names) > 1:
            ratio = compared.ratio(names[0], names[-1])
            if ratio and ratio.value < 1 / EQUAL and decide(ratio).word == "faster":
                parts.append(
                    f"{names[0]} {phrases[key].format(units.ratio_of(ratio))}"
                    f" {names[-1]}"
                )
    return f" {'; '.join(parts)}." if parts else ""


def _not_slower(best: Row, others: Sequence[Row]) -> list[str]:
    """Return which arms are undecided, with what the rounds show and what
    would decide.
    """
    unsure = [
        row for row in others if decide(row.ratio).word in {"undecided", "faster"}
    ]
    if not unsure:
        return []
    states = []
    for row in unsure:
        these, those = (ranking.by_round(one.trials, cost_of) for one in (row, best))
        slower = [
            these[number] > those[number] for number in these.keys() & those.keys()
        ]
        times, rounds = (
            units.ratio_of(row.ratio),
            f"in {sum(slower)} of {len(slower)} rounds",
        )
        so_far = f"{times} times as long, slower {rounds}"
        if best.figures[HIGHEST_RATE.key] is not None:
            so_far = f"{best.name} held {times} times its rate, more {rounds}"
        elif best.figures[_CPU_PER_EVENT.key] is not None:
            so_far = f"{times} times as much, more {rounds}"
        states.append(f"{row.name}, {so_far if row.ratio else 'no round has both'}")
    needed = {row.name: decide(row.ratio).more_rounds for row in unsure}
    worth = [count for count in needed.values() if count is not None]
    far = [name for name, count in needed.items() if count is None]
    if all(row.ratio is None or row.ratio.interval is None for row in unsure):
        has_enough = all(len(row.trials) >= FEWEST_ROUNDS for row in (best, *unsure))
        failures = " in which no request fails" if has_enough else ""
        deciding = f"An interval takes {FEWEST_ROUNDS} rounds{failures}."
    elif worth:
        deciding = (
            f"About {units.rounds(max(worth))} in all would"
            f" decide{f' all but {_list(far)}' if far else ''}."
        )
    else:
        deciding = f"To decide takes {NOT_WORTH}."
    return [f"Undecided: {'; '.join(states)}. {deciding}"]


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def version_answers(run: Run) -> list[Answer]:
    """Return an answer for each environment, and each server, beside the first."""
    return [
        answer for part in ranking.VERSIONS for answer in _contrast_answers(part, run)
    ]


def _contrast_answers(part: ranking.Part, run: Run) -> list[Answer]:
    """Return an answer for each two environments, servers, links or routes: of one arm,
    or of all in one sentence.
    """
    families: dict[tuple[str, str], list[ranking.Contrast]] = {}
    contrasts = ranking.contrasts_by(part, run)
    latencies = {}
    if part in ranking.VERSIONS:
        latencies = ranking.latency_differences(
            run, [(one.arm, one.base) for one in contrasts]
        )
    for one in contrasts:
        name, base = (str(getattr(arm, part) or "none") for arm in (one.arm, one.base))
        families.setdefault((name, base), []).append(one)
    answers = []
    for (name, base), family in families.items():
        pairs = [
            _pair_sentence(run, one)
            + _latency_sentence(latencies.get((one.arm.name, one.base.name), {}))
            for one in family
        ]
        if len(pairs) > 1:
            whole = _family_sentence(
                f"{part.capitalize()} {name} instead of {base}", family
            )
            pairs = [whole, *(pairs if part in ranking.VERSIONS else [])]
        answers.append(pairs)
    return answers


def _pair_sentence(run: Run, found: ranking.Contrast) -> str:
    """Return how many times the time and the CPU time one arm takes of the other, or
    why they are not compared.
    """
    ratios = {found.figure.label: found.time}
    if found.figure is not _CPU_PER_EVENT:
        ratios[BY_KEY["cpu"].label] = found.cpu
    known = [
        f"{units.ratio_of(ratio)} times the {label}"
        for label, ratio in ratios.items()
        if ratio is not None
    ]
    if known:
        verdict = {"equal": f": equal within {EQUAL_SHARE}", "undecided": ": undecided"}
        ending = verdict.get(decide(found.time).word, "")
        return (
            f"{found.arm.name} takes {' and '.join(known)} of"
            f" {found.base.name}{ending}."
        )
    unlike, arms = ranking.unlike_arms(run), (found.arm, found.base)
    reasons = {
        arm.name: ranking.shortfall(run.trials_of(arm.name)) or unlike.get(arm.name)
        for arm in arms
    }
    why = "; ".join(f"{name}: {reason}" for name, reason in reasons.items() if reason)
    return (
        f"{found.arm.name} and {found.base.name} are not compared:"
        f" {why or 'no round has both without errors'}."
    )


def _latency_sentence(differences: Mapping[str, Estimate]) -> str:
    """Return how latencies differ in milliseconds; empty if that is unknown."""
    parts = []
    for key, difference in differences.items():
        ends = " to ".join(map(units.time_change, difference.interval or ()))
        parts.append(
            f"{key} {units.time_change(difference.value)}{f' ({ends})' if ends else ''}"
        )
    return f" Latency: {', '.join(parts)}." if parts else ""


def _family_sentence(change: str, family: Sequence[ranking.Contrast]) -> str:
    """Return what a change of environment, server, link or route does to
    all its arms.
    """
    arms = [one.arm for one in family]
    names = [arm.label or arm.strategy for arm in arms]
    for part in ("upstream", "route", "link"):
        values = [str(getattr(arm, part) or "no link") for arm in arms]
        if len(set(names)) < len(names) and len(set(values)) > 1:
            names = [
                f"{name} · {value}" for name, value in zip(names, values, strict=True)
            ]
    decided: dict[str, list[str]] = {
        "slower": [],
        "faster": [],
        "equal": [],
        "undecided": [],
    }
    for name, one in zip(names, family, strict=True):
        ratio = (
            "not compared" if one.time is None else f"{units.ratio_of(one.time)} times"
        )
        decided[decide(one.time).word].append(f"{name} ({ratio})")
    direction = family[0].figure.direction
    said = {
        "equal": f"equal within {EQUAL_SHARE}",
        "slower": direction.worse,
        "faster": direction.better,
    }
    parts = [
        f"{said.get(word, word)} with {_list(arms)}"
        for word, arms in decided.items()
        if arms
    ]
    return f"{change}, {family[0].figure.label}: {'; '.join(parts)}."


def _session_answers(run: Run) -> list[Answer]:
    """Return how one session per thread compares with one for all, for each library
    that is measured in both forms.
    """
    arms = {(ranking.arm_key(arm)[0], arm.strategy): arm for arm in run.experiment.arms}
    pairs = []
    for (group, strategy), arm in arms.items():
        client, _, executor = strategy.partition("@")
        shared = arms.get(
            (group, f"{client.removesuffix('-per-thread')}@{executor or 'threads'}")
        )
        if client.endswith("-per-thread") and shared is not None:
            pairs.append((arm, shared))
    return [[_pair_sentence(run, one)] for one in ranking.contrasts(run, pairs)]


def summarize_run(store: Store, name: str) -> dict[str, Any]:
    """Return what the list of runs says.

    A run that cannot be read has `status` ``unreadable`` and a `reason`.
    """
    try:
        run = read_judged(store.folder / name / RUN_FILE)
    except LabError as error:
        nothing = dict.fromkeys(
            (
                "experiment",
                "strategies",
                "when",
                "machine",
                "trials",
                "failed",
                "answer",
            )
        )
        return {
            "run": name,
            **nothing,
            "status": "unreadable",
            "claims": {},
            "reason": f"unreadable: {error}",
        }
    answer = (
        tally(run.claims)
        if run.claims
        else (version_answers(run) or group_answers(groups_of(run)))[0][0]
    )
    verdicts = Counter[str](claim.verdict for claim in run.claims)
    return {
        "run": name,
        "experiment": run.experiment.name,
        "strategies": list(dict.fromkeys(arm.strategy for arm in run.experiment.arms)),
        "when": run.created,
        "machine": f"{run.surroundings.host}, {run.surroundings.cpu_model}",
        "trials": run.measured,
        "failed": len(failed_for_good(run)),
        "status": run.status,
        "claims": (
            {verdict: verdicts[verdict] for verdict in _CLAIM_VERDICTS}
            if verdicts
            else {}
        ),
        "answer": textwrap.shorten(
            answer, 120, placeholder=" … undecided" if "undecided" in answer else " …"
        ),
        "reason": None,
    }


def runs_table(found: Sequence[dict[str, Any]]) -> Table:
    """Return a table of listed runs for the terminal."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("run", no_wrap=True)
    for name in ("measured", "when", "status", "trials", "answer"):
        table.add_column(
            name, overflow="fold", justify="right" if name == "trials" else "left"
        )
    for row in found:
        measured = row["experiment"]
        if (
            measured == "run"
        ):  # its command line named strategies instead of an experiment
            measured = textwrap.shorten(
                ", ".join(row["strategies"]), 60, placeholder=" …"
            )
        failed = f" ({row['failed']} failed)" if row["failed"] else ""
        trials = None if row["trials"] is None else f"{row['trials']}{failed}"
        when = row["when"] and row["when"][: len("2024-05-06T07:08")].replace("T", " ")
        cells = (
            row["run"],
            measured,
            when,
            row["reason"] or row["status"],
            trials,
            row["answer"],
        )
        table.add_row(*(Text(cell or units.UNKNOWN) for cell in cells))
    return table
