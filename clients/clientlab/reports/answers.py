"""The answers of a run in sentences: which arm is the fastest, and what a change of
environment, server, link or route does.

They state no difference that an interval does not show. Arms of unlike concurrency are
not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from clientlab import units
from clientlab.judging import ranking
from clientlab.reports.rows import Group, Order, Row
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY, cost_of
from clientlab.statistics.decisions import EQUAL, EQUAL_SHARE, NOT_WORTH, decide
from clientlab.statistics.ratios import FEWEST_ROUNDS, Estimate

_P99 = BY_KEY["p99"]
_CPU_PER_EVENT = BY_KEY["cpu_per_event"]
_ONLY_BOUNDS = "so many requests failed or were dropped that p99 is only a lower bound"
_MOST_TIED = 3  # names in a sentence; more arms are counted
_FEWEST_OF_P99 = 1000  # requests of a trial whose p99 is compared in a sentence

Answer = list[str]
"""The answer to a question in a sentence, then its details, like what is undecided."""


def group_answers(groups: Sequence[Group]) -> list[Answer]:
    """Return an answer for each group: which arm of its fastest load leads.

    Its details are the leads of the other loads, and arms that are not ranked.
    """
    answers = []
    for group in groups:
        where = f"{group.title}: " if len(groups) > 1 else ""
        sentences: list[str] = []
        for rows in group.by_load:
            leads = list(_leads(rows, group.order))
            if leads and (len(rows) > 1 or not sentences):
                load = f"With {group.place_of(rows[0])}, " if group.mixed else ""
                sentences += [load + leads[0], *leads[1:]]
        for row in group.rows:
            if row.shortfall:
                name = group.name_of(row)
                sentences.append(f"{name} is not ranked: {row.shortfall}.")
        first, *details = sentences
        answer = [where + first]
        if details:
            answer.append(where + " ".join(details))
        answers.append(answer)
    return answers or [["No trial finished."]]


def _leads(rows: Sequence[Row], order: Order) -> Iterator[str]:
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
    lead = _lead(best, slower, order)
    ties = _ties(best, tied)
    yield f"{lead}{ties}.{_what_differs([best, *tied])}"
    yield from _undecided(best, others, order)
    if bounds:
        yield f"{_ONLY_BOUNDS.capitalize()}: {_list(bounds)}."


def _lead(best: Row, slower: Sequence[Row], order: Order) -> str:
    """Return how fast the best arm is, and how much slower the next and the last are.

    `slower`: fastest first.
    """
    lead = "was the fastest"
    if best.figures[order.leading.key] is not None:
        lead = order.lead.format(best.text(order.leading))
    shown = slower if len(slower) <= 2 else [slower[0], slower[-1]]
    comparisons = [order.compared.format(row.quoted_ratio, row.name) for row in shown]
    if comparisons:
        lead += order.separator + " and ".join(comparisons)
    return f"{best.name} {lead}"


def _ties(best: Row, tied: Sequence[Row]) -> str:
    """Return the end of a sentence: which arms equal the best, which are undecided."""
    equal = [row.name for row in tied if decide(row.ratio).word == "equal"]
    unsure = [row.name for row in tied if row.name not in equal]
    names_by_verdict = {
        f"equal to {best.name} within {EQUAL_SHARE}": equal,
        "undecided": unsure,
    }
    text = ""
    for verdict, names in names_by_verdict.items():
        if names:
            shown = _list(names) if len(names) <= _MOST_TIED else f"{len(names)} arms"
            verb = "is" if len(names) == 1 else "are"
            text += f"; {shown} {verb} {verdict}"
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
        if key in phrases and len(names) > 1:
            least, *_, most = sorted(names, key=compared.levels.__getitem__)
            ratio = compared.ratio(least, most)
            if ratio and ratio.value < 1 / EQUAL and decide(ratio).word == "faster":
                phrase = phrases[key].format(units.ratio_of(ratio))
                parts.append(f"{least} {phrase} {most}")
    if not parts:
        return ""
    return f" {'; '.join(parts)}."


def _undecided(best: Row, others: Sequence[Row], order: Order) -> Iterator[str]:
    """Yield which arms are undecided, what the rounds show, and what would decide."""
    unsure = [
        row for row in others if decide(row.ratio).word in {"undecided", "faster"}
    ]
    best_costs = ranking.by_round(best.trials, cost_of)
    states = []
    for row in unsure:
        costs = ranking.by_round(row.trials, cost_of)
        both = costs.keys() & best_costs.keys()
        slower = [number for number in both if costs[number] > best_costs[number]]
        state = "no round has both"
        if row.ratio is not None:
            ratio = units.ratio_of(row.ratio)
            state = order.undecided.format(ratio, best=best.name)
            state += f" in {len(slower)} of {len(both)} rounds"
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
    *others, last = names
    if not others:
        return last
    return f"{', '.join(others)} and {last}"


def version_answers(run: Run) -> list[Answer]:
    """Return an answer for each environment, and each server, beside the first."""
    answers = []
    for part in ranking.VERSIONS:
        answers += contrast_answers(part, run)
    return answers


def contrast_answers(part: ranking.Part, run: Run) -> list[Answer]:
    """Return an answer for each two environments, servers, links or routes.

    Several arms share a sentence; those of environments and servers have details.
    """
    contrasts = ranking.contrasts_by(part, run)
    is_version = part in ranking.VERSIONS
    pairs = [(contrast.arm, contrast.base) for contrast in contrasts if is_version]
    latencies = ranking.latency_differences(run, pairs)
    families: dict[str, list[ranking.Contrast]] = {}
    for contrast in contrasts:
        value = getattr(contrast.arm, part) or "none"
        base = getattr(contrast.base, part) or "none"
        change = f"{part.capitalize()} {value} instead of {base}"
        families.setdefault(change, []).append(contrast)
    answers = []
    for change, family in families.items():
        answer = []
        for contrast in family:
            names = (contrast.arm.name, contrast.base.name)
            latency = _latency_sentence(latencies.get(names, {}))
            answer.append(_pair_sentence(run, contrast) + latency)
        if len(family) > 1:
            details = answer if is_version else []
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
            ends = map(units.time_change, difference.interval)
            part += f" ({' to '.join(ends)})"
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
        verdict = decide(contrast.time).word
        decided[verdict].append(f"{name} ({ratio})")
    parts = []
    for word, phrase in phrases.items():
        if decided[word]:
            parts.append(f"{phrase} with {_list(decided[word])}")
    return f"{change}, {figure.label}: {'; '.join(parts)}."


def session_answers(run: Run) -> list[Answer]:
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
