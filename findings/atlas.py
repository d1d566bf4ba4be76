"""The atlas: answers for common situations in docs/choosing-a-client.md, and the map that they are taken from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from clientlab import units
from clientlab.analysis.ratios import FEWEST_ROUNDS
from clientlab.judging.judgement import read_judged, with_judgement
from clientlab.reports.charts import picture
from clientlab.reports.markdown import code, escaped, table
from clientlab.reports.rows import Group, Row, groups_of
from clientlab.results.document import Run
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import BY_KEY
from clientlab.strategies import STRATEGIES
from clientlab.workload.workload import Workload
from findings.contest import WIDEST
from findings.page import ATLAS, DOCS
from findings.situations import SituationAnswer, answers

UNMEASURED = (
    "Not measured yet: the arms were chosen before any data. A run of `scripts/findings atlas` puts its figures here."
)
_SPREAD, _PLAIN = (BY_KEY["throughput"], BY_KEY["cpu"]), (BY_KEY["memory"], BY_KEY["connections"])
_HEADS = ("strategy", "c", "requests/s", "CPU/request", "memory (PSS)", "connections", "cautions")
_OMITTED = frozenset({"unlike-concurrency", "few-beyond-p99"})
"""Kinds of cautions that the tables omit: c has a column of its own, and no table shows a p99."""


@cache
def stored(path: Path = ATLAS) -> Run | None:
    """The run of the atlas with today's cautions; None before it was measured. Raises LabError for an unreadable file.

    The verdict of each trial is that of the code that measured it: it may need evidence that the file does not hold.
    """
    return with_judgement(read_judged(path)) if path.exists() else None


def stored_answers() -> str:
    """`shown_answers` of the stored run."""
    run = stored()
    return UNMEASURED if run is None else shown_answers(run)


def stored_map() -> str:
    """`whole_map` of the stored run."""
    run = stored()
    return UNMEASURED if run is None else whole_map(run)


def shown_answers(run: Run) -> str:
    """Each situation of the page: a sentence, a picture and a table."""
    return "\n".join([_basis(run), *(_shown(one) for one in answers(run) if one.situation.title)])


def write_pictures(folder: Path = DOCS / "atlas") -> None:
    """Draw the picture of each situation of the page, if the atlas was measured. Raises LabError."""
    run = stored()
    if run is None:
        return
    folder.mkdir(exist_ok=True)
    for one in answers(run):
        if one.situation.title and one.chart is not None:
            picture.save(one.situation.title, [one.chart], folder / f"{one.situation.key}.svg", run.run)


def basis_of(run: Run) -> str:
    """When, where and how often it was measured."""
    where, rounds = run.surroundings, run.experiment.rounds
    day = run.run[:8]
    machine = f"{where.cpu_model}, {where.cpu_usable:g} cores, {where.python}"
    return f"Measured on {day[:4]}-{day[4:6]}-{day[6:]} on {machine}, in {rounds} rounds, over loopback"


def _basis(run: Run) -> str:
    """How sure the sentences are."""
    rounds = run.experiment.rounds
    few = "" if rounds >= FEWEST_ROUNDS else f" With fewer than {FEWEST_ROUNDS} rounds there is no interval."
    return (
        f"{escaped(basis_of(run))}. *Slower* means that the whole 95 % confidence interval of the typical ratio to the "
        "first strategy is above 1, *equal* that it lies within 1/1.05 and 1.05; else it is *undecided*. All intervals "
        f"of a situation hold together. Of an interval that is wider than {WIDEST:g} from end to end, only the lower "
        f"end is quoted.{few} A mark (!) follows strategies whose trials a caution doubts.\n"
    )


def _shown(answer: SituationAnswer) -> str:
    key = answer.situation.key
    parts = [f"### {answer.situation.title}", f"**{answer.sentence}**"]
    if answer.chart is not None:
        parts.append(f"![{_alt(answer)}](atlas/{key}.svg)")
    if answer.cells:
        parts.append(table(answer.heads, answer.cells, left=2).rstrip())
        more = f"{answer.left} more, and all figures: " if answer.left else "All figures: "
        chooser = "" if answer.situation.by == "versions" else f" [In the chooser](chooser.html#{key})"
        parts.append(f"{more}{map_link(answer.situation.workload)}.{chooser}")
    return "\n\n".join(parts) + "\n"


def map_link(workload: str) -> str:
    """Where the map has a workload, from another page."""
    return f"[workload {workload}](atlas.md#workload-{workload})"


def _alt(answer: SituationAnswer) -> str:
    """What the picture shows, in words."""
    of = "CPU time" if answer.situation.by == "cpu" else "Time"
    return f"{of} per request of {len(answer.cells)} strategies as ratios with their intervals, and the band of 5 %"


def whole_map(run: Run) -> str:
    """A table for each workload, what is left out, and the command that measures it again."""
    parts = [_table(run, group) for group in groups_of(run)]
    return "\n".join(
        [*parts, "## What is unequal or left out\n", *(f"- {escaped(one)}" for one in _left_out(run)), "", _again(run)]
    )


def _table(run: Run, group: Group) -> str:
    workload = run.experiment.workloads[group.rows[0].trials[0].workload]
    key = group.key
    title = f"## Workload {key.workload}\n\n{_described(workload)}, {key.upstream} upstream, route {key.route}.\n"
    return f"{title}\n{table(_HEADS, (_cells(run, row) for row in group.rows), left=1)}"


def _described(workload: Workload) -> str:
    """The fields that make it what it is."""
    parts = [f"{workload.requests:,} requests" if workload.requests else f"{workload.duration:g} s"]
    parts += [f"{workload.method} {code(workload.path)}"]
    parts += [code(f"{name}: {value}") for name, value in workload.headers.items()]
    parts += [f"delay {workload.delay}"] if workload.delay else []
    parts += [f"c = {workload.concurrency} where several are in flight"] if workload.concurrency else []
    return ", ".join(parts)


def _cells(run: Run, row: Row) -> list[str]:
    return [
        row.strategy,
        str(row.concurrency),
        *(_spread(row, figure) for figure in _SPREAD),
        *(row.text(figure) for figure in _PLAIN),
        ", ".join(_doubts(run, row)) or units.UNKNOWN,
    ]


def _spread(row: Row, figure: Figure) -> str:
    """The median over the rounds, and the lowest and highest round."""
    values = figure.values(row.trials)
    ends = f" ({figure.text(min(values))} to {figure.text(max(values))})" if len(values) > 1 else ""
    return f"{row.text(figure)}{ends}"


def _doubts(run: Run, row: Row) -> Iterator[str]:
    """Kinds of the run's cautions about the arm."""
    arm = row.trials[0].arm
    yield from dict.fromkeys(one.kind for one in run.cautions if arm in one.arms and one.kind not in _OMITTED)


def _left_out(run: Run) -> Iterator[str]:
    """What the experiment leaves out, what no trial finished, and what is listed since."""
    yield from run.experiment.uncontrolled
    if missing := run.experiment.unavailable_among(run.experiment.unavailable_arms):
        yield f"The machine could not run: {missing}."
    done = {trial.arm for trial in run.trials if trial.status == "done"}
    if lost := [arm.name for arm in run.experiment.arms if arm.name not in done]:
        yield f"No trial finished of: {', '.join(lost)}."
    known = {arm.strategy for arm in run.experiment.arms}
    known |= {arm.partition(" ")[2] for arm in run.experiment.unavailable_arms}  # "json ab": workload and strategy
    if new := [name for name in STRATEGIES if name not in known]:
        yield f"Listed since, and not measured yet: {', '.join(new)}."


def _again(run: Run) -> str:
    doubts = [one.text for one in run.cautions if not one.arms]
    about = f"Cautions of the whole run: {escaped('; '.join(doubts))}. " if doubts else ""
    shown = "`clientlab report findings/runs/atlas.json.gz` shows it with all figures."
    return f"{about}Measure again: {code(run.experiment.command)}. {shown}\n"
