"""The head of a report: the question, the answer, cautions and thresholds.

The answer states no difference that an interval does not show. Arms of unlike concurrency are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clientlab import units
from clientlab.analysis.decisions import EQUAL_SHARE, NOT_WORTH, decision_of
from clientlab.analysis.ratios import FEWEST_ROUNDS
from clientlab.judging.cautions import MINOR, PHRASES
from clientlab.judging.contrasts import Contrast, contrasts, environment_pairs, link_pairs, route_contrasts
from clientlab.judging.ranking import group_of, shortfall
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports.rows import Group, Row
from clientlab.reports.sections import Alerts, Lines, Listing, Part, Report, Section
from clientlab.results.document import ClaimResult, Run
from clientlab.results.figures import BY_KEY, HIGHEST_RATE, cost_of
from clientlab.results.plan import Plan
from clientlab.results.trial import shown_time

_P99 = BY_KEY["p99"]
_VERDICTS = {"equal": f": equal within {EQUAL_SHARE}", "undecided": ": undecided"}
_BOUND = ", a lower bound: it falls on failed requests"

_MOST_HIGHLIGHTED = 3
"""Answers that stand out. Further ones are plain lines."""


@dataclass(frozen=True)
class Answer:
    """The answer to one question in a sentence. `more`: details, such as what is undecided."""

    sentence: str
    more: Sequence[str] = ()


def headline(report: Report) -> Section:
    """Return the question, a sentence for each question that the run answers, then cautions, thresholds and the run."""
    run = report.run
    environments, groups = environment_answers(run), group_answers(report.groups)
    found = [
        *([Answer(tally(run.claims))] if run.claims else []),
        *(environments or groups),
        *_session_answers(run),
        *_contrast_answers(run, "link", contrasts(run, link_pairs(run.experiment.arms))),
        *_contrast_answers(run, "route", route_contrasts(run)),
    ]
    sentences = [one.sentence for one in found]
    details = [*sentences[_MOST_HIGHLIGHTED:], *(line for one in found for line in one.more)]
    details += answers(report.groups) if environments else []
    failed = any(one.outcome == "failed" for one in report.judged)
    limits = "Limits that did not hold" if failed else "Limits"
    done, probes = sum(trial.status == "done" for trial in run.trials), len(run.probes)
    facts = (
        f"run {run.run}",
        run.status,
        shown_time(run.created),
        f"{done} of {len(run.trials)} trials done{f', {probes} trials of searches' if probes else ''}",
        f"{sum(trial.requests for trial in run.trials):,} requests",
        f"{run.surroundings.cpu_model}, {run.surroundings.cpu_usable:g} cores",
        run.surroundings.python,
    )
    loads = load_lines(run.experiment)
    parts: list[Part] = [
        Lines(details, brief=not run.claims),
        _cautions(run),
        Listing(limits, lines(report.judged), alert=failed),
        Lines([*(loads if len(loads) == 1 else []), " · ".join(facts)]),
    ]
    shown = sentences[:_MOST_HIGHLIGHTED]
    return Section("answer", run.experiment.question, parts, label="Answer", sentences=shown, brief=True)


def _cautions(run: Run) -> Alerts:
    """Return the cautions by kind. The short form is a line that names those that matter for a decision."""
    by_kind: dict[str, list[tuple[str, str]]] = {}
    if run.status != "done":
        status = f"this run is {run.status}"
        by_kind[status] = [(f"{status}.", "the report shows the trials that finished")]
    for one in run.cautions:
        by_kind.setdefault(one.kind, []).append((one.text, one.advice))
    titles = {kind: PHRASES.get(kind, kind.replace("-", " ")) for kind in by_kind}
    named = [title for kind, title in titles.items() if kind not in MINOR]
    alerts = [(titles[kind], reasons) for kind, reasons in by_kind.items()]
    return Alerts(alerts, f"Cautions: {', '.join(named)}." if named else "")


def tally(claims: Sequence[ClaimResult]) -> str:
    """Return how many claims of the source, and how many controls of the lab, have each verdict."""
    sentences = []
    for name, is_control in (("claims", False), ("controls", True)):
        found = [one.verdict for one in claims if one.control == is_control]
        words = ("supported", "contradicted", "inconclusive")
        counts = [f"{count} {word}" for word in words if (count := sum(verdict == word for verdict in found))]
        sentences += [f"Of {len(found)} {name if len(found) > 1 else name[:-1]}: {', '.join(counts)}."] if found else []
    return " ".join(sentences)


def load_lines(plan: Plan) -> list[str]:
    """Return what the trials of each workload send."""
    lines = []
    for name, one in plan.workloads.items():
        parts = ["recorded requests" if one.replay else f"{one.method} {one.path}"]
        parts += [] if one.delay is None else [f"delay {one.delay}"]
        if plan.find_max is not None:
            parts.append(f"at rates that the search for the highest with {plan.find_max} chooses")
        elif one.rate is not None:
            parts.append(f"{units.rate(one.rate)} requests/s, {one.arrivals}")
        parts += [] if one.stages is None else [f"stages {one.stages}, {one.arrivals}"]
        parts += [] if one.duration is None else [f"for {units.time(one.duration)}"]
        parts += [] if one.requests is None else [f"{one.requests:,} requests"]
        lines.append(f"Each trial{'' if len(plan.workloads) == 1 else f' of {name}'}: {', '.join(parts)}.")
    return lines


def lines(results: Sequence[ThresholdResult]) -> list[str]:
    """Return a line for each threshold that failed or is not sure; if all held, one line for all."""
    found = [f"{one.outcome.upper()}: {sentence(one)}" for one in results if one.outcome != "held"]
    return found or ([f"all thresholds held ({len(results)} checked)"] if results else [])


def sentence(result: ThresholdResult) -> str:
    """Return the threshold, the arm, the run and what was found."""
    figure, change = result.threshold.figure, result.threshold.change

    def shown(value: float) -> str:
        if not change:
            return figure.text(value, at_least=result.at_least)
        in_points = figure.unit == "share"
        return f"{units.signed(100 * value)} points" if in_points else f"{units.signed(100 * (value - 1))} %"

    parts = []
    if change and result.at_least:
        parts.append(f"no change of {figure.label} is known{_BOUND}")
    elif result.found is not None:
        ends = f" ({' to '.join(map(shown, result.interval))})" if result.interval else ""
        doubt = _BOUND if result.at_least else ""
        if result.outcome == "not sure" and ends and not doubt:
            rounds = f"about {result.rounds} rounds in all would decide (--rounds {result.rounds})"
            decides = rounds if result.rounds else f"to decide takes {NOT_WORTH}"
            doubt = f"; its interval reaches back within the threshold: {decides}"
        parts.append(f"{figure.label} {shown(result.found)}{ends}{doubt}")
    elif not result.lost:
        parts.append("no trial of the arm that counts has this figure")
    parts += [f"{result.lost} {'trial' if result.lost == 1 else 'trials'} failed"] if result.lost else []
    return f"{result.threshold.text} · {result.arm} · {result.run}: {', and '.join(parts)}"


def group_answers(groups: Sequence[Group]) -> list[Answer]:
    """Return an answer for each group."""
    return [_answer(group, named=len(groups) > 1) for group in groups] or [Answer("No trial finished.")]


def answers(groups: Sequence[Group]) -> list[str]:
    """Return a line for each group, with its details."""
    return [" ".join([one.sentence, *one.more]) for one in group_answers(groups)]


def _answer(group: Group, *, named: bool) -> Answer:
    """Return the lead of the fastest load, and as details those of the other loads that have several arms."""
    where = f"{group.title}: " if named else ""
    found: list[str] = []
    for rows in group.by_load:
        if (leads := _leads(rows)) and (len(rows) > 1 or not found):
            load = f"With {group.place_of(rows[0])}, " if group.mixed else ""
            found += [f"{load}{leads[0]}", *leads[1:]]
    found += [f"{group.name_of(row)} is not ranked: {row.shortfall}." for row in group.rows if row.shortfall]
    first, *more = found
    return Answer(f"{where}{first}", [f"{where}{' '.join(more)}"] if more else [])


def _leads(rows: Sequence[Row]) -> list[str]:
    """Return the fastest of arms with equal load and its lead, then sentences on arms that are not surely slower.

    Empty if no arm is ranked. An open load's arms are ranked by p99; one whose p99 is only a lower bound has no ratio.
    """
    rows = [row for row in rows if not row.shortfall]
    if not rows:
        return []
    best = next(row for row in rows if row.fastest)
    others = [row for row in rows if row is not best]
    bounded = [row for row in others if best.rate is not None and _P99.key in row.bounds]
    known = [row for row in others if row not in bounded]
    slower = [row for row in known if decision_of(row.ratio).word == "slower"]
    ends = [*slower[:1], *slower[1:][-1:]]
    if best.rate is not None:
        lead = f"{best.name} had a p99 of {best.text(_P99)} from the planned start{'; ' if ends else ''}"
        lead += " and ".join(f"that of {row.name} is {units.ratio_of(row.ratio)} times as long" for row in ends)
    else:
        lead = f"{best.name} was the fastest"
        if best.figures[HIGHEST_RATE.key] is not None:
            lead = f"{best.name} held {best.text(HIGHEST_RATE)} requests/s"
        elif (rate := best.figures["throughput"]) is not None:
            lead = f"{best.name} made {units.rate(rate)} requests/s"
        lead += ", " if ends else ""
        lead += " and ".join(f"{units.ratio_of(row.ratio)} times as fast as {row.name}" for row in ends)
    found = [f"{lead}.", *_not_slower(best, known)]
    if bounded:
        names = _list([f"{row.name} ({row.text(_P99)})" for row in bounded])
        found.append(f"So many requests failed or were dropped that p99 is only a lower bound: {names}.")
    return found


def _not_slower(best: Row, others: Sequence[Row]) -> list[str]:
    """Return which arms equal the best, and which are undecided, with what the rounds show and what would decide."""
    equal = [row.name for row in others if decision_of(row.ratio).word == "equal"]
    found = [f"{_list(equal)} {'is' if len(equal) == 1 else 'are'} equal within {EQUAL_SHARE}."] if equal else []
    unsure = [row for row in others if decision_of(row.ratio).word in {"undecided", "faster"}]
    if not unsure:
        return found
    states = []
    for row in unsure:
        these, those = ({trial.round: cost_of(trial) for trial in one.trials} for one in (row, best))
        slower = [these[number] > those[number] for number in these.keys() & those.keys()]
        so_far = f"{units.ratio_of(row.ratio)} times as long, slower in {sum(slower)} of {len(slower)} rounds"
        states.append(f"{row.name}, {so_far if row.ratio else 'no round has both'}")
    rounds = {row.name: decision_of(row.ratio).rounds for row in unsure}
    worth = [count for count in rounds.values() if count is not None]
    far = [name for name, count in rounds.items() if count is None]
    if all(row.ratio is None or row.ratio.interval is None for row in unsure):
        deciding = f"An interval takes {FEWEST_ROUNDS} rounds."
    elif worth:
        deciding = f"About {max(worth)} rounds in all would decide{f' all but {_list(far)}' if far else ''}."
    else:
        deciding = f"To decide takes {NOT_WORTH}."
    return [*found, f"Undecided: {'; '.join(states)}. {deciding}"]


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def environment_answers(run: Run) -> list[Answer]:
    """Return an answer for each environment beside the first."""
    return _contrast_answers(run, "environment", contrasts(run, environment_pairs(run.experiment.arms)))


def _contrast_answers(run: Run, part: str, found: Iterable[Contrast]) -> list[Answer]:
    """Return an answer for each two environments, links or routes: of a single arm, or of all in one sentence."""
    families: dict[tuple[str, str], list[Contrast]] = {}
    for one in found:
        name, base = (str(getattr(arm, part) or "none") for arm in (one.arm, one.base))
        families.setdefault((name, base), []).append(one)
    answers = []
    for (name, base), family in families.items():
        pairs = [_pair_sentence(run, one) for one in family]
        if len(pairs) == 1:
            answers.append(Answer(pairs[0]))
        else:
            whole = _family_sentence(f"{part.capitalize()} {name} instead of {base}", family)
            answers.append(Answer(whole, pairs if part == "environment" else []))
    return answers


def _pair_sentence(run: Run, found: Contrast) -> str:
    """Return how many times the time and the CPU time one arm takes of the other, or why they are not compared."""
    ratios = {found.figure.label: found.time, "CPU time per request": found.cpu}
    known = [f"{units.ratio_of(ratio)} times the {label}" for label, ratio in ratios.items() if ratio is not None]
    if known:
        verdict = _VERDICTS.get(decision_of(found.time).word, "")
        return f"{found.arm.name} takes {' and '.join(known)} of {found.base.name}{verdict}."
    arms = (found.arm, found.base)
    why = "; ".join(f"{arm.name}: {why}" for arm in arms if (why := shortfall(run.trials_of(arm.name))))
    return f"{found.arm.name} and {found.base.name} are not compared: {why or 'no round has both without errors'}."


def _family_sentence(change: str, family: Sequence[Contrast]) -> str:
    """Return what a change of environment, link or route does to all its arms."""
    words = {"slower": "longer", "faster": "shorter", "equal": f"equal within {EQUAL_SHARE}", "undecided": "undecided"}
    named: dict[str, list[str]] = {said: [] for said in words.values()}
    for one in family:
        ratio = "not compared" if one.time is None else f"{units.ratio_of(one.time)} times"
        named[words[decision_of(one.time).word]].append(f"{one.arm.label or one.arm.strategy} ({ratio})")
    parts = [f"{said} with {_list(names)}" for said, names in named.items() if names]
    return f"{change}, {family[0].figure.label}: {'; '.join(parts)}."


def _session_answers(run: Run) -> list[Answer]:
    """Return how one session per thread compares with one for all, for each library that is measured in both forms."""
    arms = {(group_of(arm), arm.strategy): arm for arm in run.experiment.arms}
    pairs = []
    for (group, strategy), arm in arms.items():
        client, _, executor = strategy.partition("@")
        shared = arms.get((group, f"{client.removesuffix('-per-thread')}@{executor or 'threads'}"))
        if client.endswith("-per-thread") and shared is not None:
            pairs.append((arm, shared))
    return [Answer(_pair_sentence(run, one)) for one in contrasts(run, pairs)]
