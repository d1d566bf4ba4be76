"""Cautions about what was measured: strategies, forms and rounds that are not the experiment's."""

from __future__ import annotations

from collections.abc import Iterator

from clientlab.analysis.ratios import FEWEST_ROUNDS
from clientlab.results.document import Caution, Run


def left_out(run: Run) -> Iterator[Caution]:
    """Strategies that could not be loaded."""
    for strategy, reason in run.experiment.left_out.items():
        yield Caution(
            kind="left-out",
            text=f"{strategy} was not measured: {reason}",
            advice="fix it and run again: the ratios compare the other strategies only",
        )


def unavailable(run: Run) -> Iterator[Caution]:
    """Arms that the machine of the run could not run."""
    if found := run.experiment.unavailable_among(run.experiment.unavailable_arms):
        yield Caution(
            kind="unavailable-arms",
            text=f"not measured: {found}",
            advice="install what is missing and run again: the ratios compare the other arms only",
        )


def replaced(run: Run) -> Iterator[Caution]:
    """Strategies that are not installed, and what was measured in their place."""
    for strategy, other in run.experiment.replaced.items():
        yield Caution(
            kind="replaced-strategy",
            arms=sorted(arm.name for arm in run.experiment.arms if arm.strategy == other),
            text=f"{strategy} is not installed: {other} replaced it",
            advice=f"its figures are not those of {strategy}: install {strategy} ('clientlab list' shows how)",
        )


def resumed(run: Run) -> Iterator[Caution]:
    """A run that went on in other surroundings."""
    for one in run.resumed:
        if one.differences:
            yield Caution(
                kind="resumed",
                text=f"from trial {one.trials + 1} on, the surroundings were others: {'; '.join(one.differences)}",
                advice="rounds before and after may differ for that reason: measure anew before you quote it",
            )


def shortened(run: Run) -> Iterator[Caution]:
    """The experiment's quick form."""
    if run.experiment.shortened:
        yield Caution(
            kind="quick",
            text=f"the quick form was measured: {'; '.join(run.experiment.shortened)}",
            advice="run it without --quick before you quote it",
        )


def changed(run: Run) -> Iterator[Caution]:
    """Values that the command line replaced."""
    if run.experiment.changed:
        yield Caution(
            kind="changed",
            text=f"changed on the command line: {'; '.join(run.experiment.changed)}",
            advice="the run differs from the experiment file: leave these options out before you quote it",
        )


def time_budget(run: Run) -> Iterator[Caution]:
    """Rounds that ended before every interval was narrow enough."""
    if run.rounds_ended == "time-budget":
        yield Caution(
            kind="time-budget",
            text=f"the time budget ended the rounds before every interval was within {run.experiment.precision:.2%}",
            advice="raise --budget, or use a quieter machine",
        )


def few_rounds(run: Run) -> Iterator[Caution]:
    """Too few rounds for a confidence interval."""
    if run.experiment.rounds < FEWEST_ROUNDS:
        yield Caution(
            kind="few-rounds",
            text=f"{run.experiment.rounds} of at least {FEWEST_ROUNDS} rounds: no confidence interval is computed",
            advice=f"use --rounds {FEWEST_ROUNDS} or more before you believe a difference",
        )
