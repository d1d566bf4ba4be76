"""The head of a report: the question, what to know before the answer, thresholds, and who is ahead.

The answer has a line for each group of arms. It claims no difference that an interval does not show. Arms of unlike
concurrency are not compared: each concurrency has its own sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from clientlab import units
from clientlab.analysis.decisions import EQUAL_SHARE, NOT_WORTH, decision_of
from clientlab.analysis.ratios import FEWEST_ROUNDS, Ratio
from clientlab.judging.contrasts import Contrast, contrasts, environment_pairs, link_pairs, route_contrasts
from clientlab.judging.ranking import arm_key, ranked, shortfall
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports.cautions_in_brief import alerts_of, in_brief
from clientlab.reports.rows import Group, Row
from clientlab.reports.sections import Alert, Alerts, Lines, Listing, Part, Report, Section
from clientlab.results.document import ClaimResult, Run
from clientlab.results.figures import HIGHEST_RATE, cost_of, ranked_by
from clientlab.results.plan import Arm, Plan
from clientlab.results.trial import shown_time

_BOUND = ", a lower bound: it falls on failed requests"


def lines(results: Sequence[ThresholdResult]) -> list[str]:
    """A line for each threshold that failed or is not sure. If all held, one line for all; none without thresholds."""
    if not results:
        return []
    found = [f"{one.outcome.upper()}: {sentence(one)}" for one in results if one.outcome != "held"]
    return found or [f"all thresholds held ({len(results)} checked)"]


def sentence(result: ThresholdResult) -> str:
    """The threshold, the arm, the run and the figure."""
    parts = [] if result.found is None and result.lost else [_figure(result)]
    if result.lost:
        parts.append(f"{result.lost} {'trial' if result.lost == 1 else 'trials'} failed")
    return f"{result.threshold.text} · {result.arm} · {result.run}: {', and '.join(parts)}"


def _figure(result: ThresholdResult) -> str:
    figure = result.threshold.figure
    if result.threshold.change and result.at_least:
        return f"no change of {figure.label} is known{_BOUND}"
    if result.found is None:
        return "no trial of the arm that counts has this figure"
    unsure = f"; its interval reaches back within the threshold: {_rounds(result)}" if result.interval else ""
    if not result.threshold.change:
        value = figure.text(result.found, at_least=result.at_least)
        ends = _ends(result, figure.text)
        doubt = _BOUND if result.at_least else unsure if result.outcome == "not sure" else ""
        return f"{figure.label} {value}{ends}{doubt}"
    change = (
        f"{units.signed(100 * result.found)} points"
        if figure.unit == "share"
        else f"{units.signed(100 * (result.found - 1))} %{_ends(result, _percent)}"
    )
    return f"{figure.label} {change}{unsure if result.outcome == 'not sure' else ''}"


def _rounds(result: ThresholdResult) -> str:
    """How many rounds would decide a threshold that is not sure."""
    if result.rounds is None:
        return f"to decide takes {NOT_WORTH}"
    return f"about {result.rounds} rounds in all would decide (--rounds {result.rounds})"


def _percent(ratio: float) -> str:
    return f"{units.signed(100 * (ratio - 1))} %"


def _ends(result: ThresholdResult, text: Callable[[float], str]) -> str:
    """The interval by which it was judged, in parentheses."""
    return "" if result.interval is None else f" ({' to '.join(map(text, result.interval))})"


def claim_lines(claims: Iterable[ClaimResult]) -> list[str]:
    """A line for each contradicted claim."""
    return [f"FAILED: claim {one.name}: {one.text}: {one.measured}" for one in claims if one.verdict == "contradicted"]


_P99 = ranked_by(open_load=True)

_MOST_CLASSES = 4
"""Values of the concurrency that have a sentence, those with the fastest arms first."""


_MOST_HIGHLIGHTED = 3
"""Answers that stand out. Further ones are plain lines."""


def headline(report: Report) -> Section[Part]:
    """The question, a sentence for each question that the run answers, then details, cautions, limits and the run."""
    run = report.run
    environments = environment_answers(run)
    groups = group_answers(report.groups)
    found = [
        *environments,
        *([] if environments else groups),
        *session_answers(run),
        *_contrast_answers(run, "link", contrasts(run, link_pairs(run.experiment.arms))),
        *_contrast_answers(run, "route", route_contrasts(run)),
    ]
    sentences = [one.sentence for one in found]
    details = [*sentences[_MOST_HIGHLIGHTED:], *(line for one in found for line in one.more)]
    details += [" ".join([one.sentence, *one.more]) for one in groups] if environments else []
    parts = [Lines(details), *_cautions(run), *_limits(report), Lines([*load_lines(run.experiment), _run_line(run)])]
    return Section(
        "answer", run.experiment.question, parts, label="Answer", sentences=sentences[:_MOST_HIGHLIGHTED], brief=True
    )


def load_lines(plan: Plan) -> list[str]:
    """What each trial sends. Experiments with several workloads name them in their tables."""
    if len(plan.workloads) != 1:
        return []
    [one] = plan.workloads.values()
    parts = ["recorded requests" if one.replay else f"{one.method} {one.path}"]
    parts += [] if one.delay is None else [f"delay {one.delay}"]
    if plan.find_max is not None:
        parts.append(f"at rates that the search for the highest with {plan.find_max} chooses")
    elif one.rate is not None:
        parts.append(f"{units.rate(one.rate)} requests/s, {one.arrivals}")
    parts += [] if one.stages is None else [f"stages {one.stages}, {one.arrivals}"]
    parts += [] if one.duration is None else [f"for {units.time(one.duration)}"]
    parts += [] if one.requests is None else [f"{one.requests:,} requests"]
    return [f"Each trial: {', '.join(parts)}."]


def _run_line(run: Run) -> str:
    """Name, status and time of the run, how much was measured, and on which machine."""
    done = sum(trial.status == "done" for trial in run.trials)
    probes = f", {len(run.probes)} trials of searches" if run.probes else ""
    requests = sum(trial.requests for trial in run.trials)
    measured = f"{done} of {len(run.trials)} trials done{probes}, {requests:,} requests"
    machine = f"{run.surroundings.cpu_model}, {run.surroundings.cpu_usable:g} cores"
    began = shown_time(run.created)
    return " · ".join((f"run {run.run}", run.status, began, measured, machine, run.surroundings.python))


def _cautions(run: Run) -> list[Part]:
    """What makes the numbers doubtful: the run is not finished, its cautions, or its quick form."""
    status = f"This run is {run.status}"
    unfinished = Alert(status, [(f"{status}.", "The report shows the trials that finished.")])
    found = alerts_of(run)
    quick = any(caution.kind == "quick" for caution in run.cautions)
    return [
        Alerts([unfinished] if run.status != "done" else [], f"{status}: the report shows the trials that finished."),
        Alerts(found, in_brief(found)),
        Listing("Shortened", [] if quick else run.experiment.shortened, alert=True),
    ]


def _limits(report: Report) -> list[Part]:
    failed = any(one.outcome == "failed" for one in report.judged)
    title = "Limits that did not hold" if failed else "Limits"
    return [Listing(title, lines(report.judged), alert=failed)]


@dataclass(frozen=True)
class Answer:
    """The answer to one question in a sentence. `more`: lines of details, such as what is undecided."""

    sentence: str
    more: Sequence[str] = ()


def group_answers(groups: Sequence[Group]) -> list[Answer]:
    """An answer for each group."""
    return [_answer(group, named=len(groups) > 1) for group in groups] or [Answer("No trial finished.")]


def answers(groups: Sequence[Group]) -> list[str]:
    """A line for each group, with its details."""
    return [" ".join([one.sentence, *one.more]) for one in group_answers(groups)]


def _answer(group: Group, *, named: bool) -> Answer:
    where = f"{group.title}: " if named else ""
    unranked = [f"{group.name_of(row)} is not ranked: {row.shortfall}." for row in group.rows if row.shortfall]
    if not group.mixed:
        first, *more = [*_lead_of(group.rows), *unranked]
        return _with_details(where, first, more)
    classes = group.by_load
    found = []
    for rows in classes[:_MOST_CLASSES]:
        lead, *rest = _lead_of(rows) or ["no arm is ranked."]
        found.append([f"With {group.place_of(rows[0])}, {lead}", *rest])
    if classes[_MOST_CLASSES:] and all(row.alone for row in group.rows):  # such as a sweep of c
        what = "No two arms have the same load." if group.open_load else "No two arms have the same c."
        found = [found[0], [what]]
    elif left := len(classes[_MOST_CLASSES:]):
        what = "load" if group.open_load else "c"
        found.append([f"The table has the arms of {left} more {'value' if left == 1 else 'values'} of {what}."])
    first, *more = [sentence for of_class in found for sentence in of_class]
    return _with_details(where, first, [*more, *unranked])


def _with_details(where: str, sentence: str, more: Sequence[str]) -> Answer:
    """The details of a group are one line."""
    return Answer(f"{where}{sentence}", [f"{where}{' '.join(more)}"] if more else [])


def _lead_of(rows: Sequence[Row]) -> list[str]:
    """The fastest of arms with equal concurrency, its rate and its lead; then sentences on arms that are not slower.

    Empty if no arm is ranked.
    """
    rows = [row for row in rows if not row.shortfall]
    if not rows:
        return []
    best = next(row for row in rows if row.fastest)
    if best.rate is not None:
        return _least_p99(best, [row for row in rows if row is not best])
    rate = best.figures["throughput"]
    speed = f"{best.name} was the fastest" if rate is None else f"{best.name} made {units.rate(rate)} requests/s"
    if best.figures[HIGHEST_RATE.key] is not None:
        speed = f"{best.name} held {best.text(HIGHEST_RATE)} requests/s"
    others = [row for row in rows if row is not best]
    return [f"{speed}{_lead(others)}.", *_not_slower(best, others)] if others else [f"{speed}."]


def _least_p99(best: Row, others: list[Row]) -> list[str]:
    """The arm of an open load with the least p99, and its lead. An arm whose p99 is only a lower bound has none."""
    known = [row for row in others if _P99.key not in row.bounds]
    slower = [row for row in known if _slower(row)]
    ends = {row.name: row for row in (slower[0], slower[-1])} if slower else {}
    parts = [f"that of {name} is {units.ratio_of(row.ratio)} times as long" for name, row in ends.items()]
    sentences = [f"{best.name} had a p99 of {best.text(_P99)} from the planned start{'; ' if parts else ''}"]
    sentences[0] += f"{' and '.join(parts)}."
    sentences += _not_slower(best, known)
    if unknown := [f"{row.name} ({row.text(_P99)})" for row in others if row not in known]:
        sentences.append(f"So many requests failed or were dropped that p99 is only a lower bound: {_list(unknown)}.")
    return sentences


def _lead(others: list[Row]) -> str:
    """The ratio to the next arm that is surely slower, and to the slowest of these."""
    slower = [row for row in others if _slower(row)]
    if not slower:
        return ""
    ends = {row.name: row for row in (slower[0], slower[-1])}
    parts = [f"{units.ratio_of(row.ratio)} times as fast as {name}" for name, row in ends.items()]
    return f", {' and '.join(parts)}"


def _slower(row: Row) -> bool:
    return decision_of(row.ratio).word == "slower"


def _not_slower(best: Row, others: Sequence[Row]) -> list[str]:
    """Which arms are as fast as the best, and which are undecided, each with what the rounds show so far."""
    equal = [row.name for row in others if decision_of(row.ratio).word == "equal"]
    found = [f"{_list(equal)} {'is' if len(equal) == 1 else 'are'} equal within {EQUAL_SHARE}."] if equal else []
    unsure = [row for row in others if decision_of(row.ratio).word in ("undecided", "faster")]
    if unsure:
        what = "Undecided" if len(unsure) > 1 else f"{unsure[0].name} is undecided"
        parts = [f"{f'{row.name}, ' if len(unsure) > 1 else ''}{_so_far(best, row)}" for row in unsure]
        found.append(f"{what}: {'; '.join(parts)}. {_deciding(unsure)}")
    return found


def _deciding(unsure: Sequence[Row]) -> str:
    """How many rounds in all would decide, and for which arms that is not worth it."""
    if all(row.ratio is None or row.ratio.interval is None for row in unsure):
        return f"An interval takes {FEWEST_ROUNDS} rounds."
    needed = {row.name: decision_of(row.ratio).rounds for row in unsure}
    worth = [rounds for rounds in needed.values() if rounds is not None]
    if not worth:
        return f"To decide takes {NOT_WORTH}."
    far = [name for name, rounds in needed.items() if rounds is None]
    others = f" all but {_list(far)}, which would take {NOT_WORTH}" if far else ""
    return f"In all, about {max(worth)} rounds would decide{others}."


def _so_far(best: Row, row: Row) -> str:
    """The ratio, and in how many rounds the arm was slower."""
    if row.ratio is None:
        return "no round has both"
    these, those = ({trial.round: cost_of(trial) for trial in one.trials} for one in (row, best))
    common = these.keys() & those.keys()
    slower = sum(these[number] > those[number] for number in common)
    return f"{units.ratio_of(row.ratio)} times as long, slower in {slower} of {len(common)} rounds"


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def environment_answers(run: Run) -> list[Answer]:
    """Return an answer for each environment beside the first."""
    return _contrast_answers(run, "environment", contrasts(run, environment_pairs(run.experiment.arms)))


def _contrast_answers(run: Run, part: str, found: Iterable[Contrast]) -> list[Answer]:
    """Return an answer for each two environments, links or routes."""
    families: dict[tuple[str, str], list[Contrast]] = {}
    for one in found:
        name, base = (str(getattr(arm, part) or "none") for arm in (one.arm, one.base))
        families.setdefault((name, base), []).append(one)
    return [
        Answer(_of_pair(run, family[0]))
        if len(family) == 1
        else Answer(
            _of_family(run, f"{part.capitalize()} {name} instead of {base}", family),
            [_of_pair(run, one) for one in family] if part == "environment" else [],
        )
        for (name, base), family in families.items()
    ]


_PER_THREAD = "-per-thread"


def session_answers(run: Run) -> list[Answer]:
    """Whether one session for all threads or one per thread is faster, for each library that is measured in both."""
    arms = {arm_key(arm): arm.strategy for arm in run.experiment.arms}
    found = []
    for group, rows in ranked(run).items():
        forms = {arms.get((group, row.name), row.name): row for row in rows}
        for strategy, own in forms.items():
            client, _, executor = strategy.partition("@")
            if not client.endswith(_PER_THREAD):
                continue
            shared = forms.get(f"{client.removesuffix(_PER_THREAD)}@{executor or 'threads'}")
            ratio = None if shared is None else own.compared.ratio(own.name, shared.name)
            if shared is not None and ratio is not None:
                found.append(Answer(_of_session(own.name, shared.name, ratio)))
    return found


def _of_session(own: str, shared: str, ratio: Ratio) -> str:
    decision = decision_of(ratio)
    word = f"equal within {EQUAL_SHARE}" if decision.word == "equal" else decision.word
    if decision.word == "undecided":
        word += f"; to decide takes {f'about {decision.rounds} rounds in all' if decision.rounds else NOT_WORTH}"
    times = f"{units.ratio_of(ratio)} times as long"
    return f"One session per thread ({own}) takes {times} as one for all threads ({shared}): {word}."


def _shortfalls(run: Run, arms: Iterable[Arm]) -> str:
    """Why these arms are not ranked; empty if they are."""
    return "; ".join(f"{arm.name}: {why}" for arm in arms if (why := shortfall(run.trials_of(arm.name))))


def _of_pair(run: Run, found: Contrast) -> str:
    known = [
        f"{units.ratio_of(ratio)} times the {label}"
        for ratio, label in ((found.time, found.figure.label), (found.cpu, "CPU time per request"))
        if ratio is not None
    ]
    if not known:
        why = _shortfalls(run, (found.arm, found.base)) or "no round has trials of both without errors"
        return f"{found.arm.name} and {found.base.name} are not compared: {why}."
    return f"{found.arm.name} takes {' and '.join(known)} of {found.base.name}."


def _of_family(run: Run, change: str, family: list[Contrast]) -> str:
    """All arms of two environments, links or routes, in a sentence."""
    decided: dict[str, list[Contrast]] = {}
    for one in family:
        decided.setdefault(decision_of(one.time).word, []).append(one)
    words = {
        "slower": "longer with", "faster": "shorter with", "equal": f"equal within {EQUAL_SHARE} with",
        "undecided": "undecided with",
    }  # fmt: skip
    parts = [
        f"{said} {_list([_named(run, one, ratio=word != 'equal') for one in decided[word]])}"
        for word, said in words.items()
        if word in decided
    ]
    return f"{change}, {family[0].figure.label}: {'; '.join(parts)}."


def _named(run: Run, one: Contrast, *, ratio: bool = True) -> str:
    name = one.arm.label or one.arm.strategy
    if one.time is None:
        return f"{name} ({'not ranked' if _shortfalls(run, (one.arm, one.base)) else 'no round has both'})"
    return f"{name} ({units.ratio_of(one.time)} times)" if ratio else name
