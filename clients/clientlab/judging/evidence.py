"""What the claims of a run are judged by: figures by round and cautions, each found once for the same arms."""

from __future__ import annotations

from functools import cache

from clientlab.judging.cautions import cautions_of
from clientlab.results.document import Caution, Run
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import of_claim
from clientlab.results.plan import Arm, AxisValue, Claim
from clientlab.results.trial import Trial


def by_round(run: Run, arm: str, figure: Figure) -> dict[int, float]:
    """Round → figure of an arm, without trials that had errors: they did less work."""
    return {
        trial.round: value
        for trial in run.trials_of(arm)
        if not trial.errors
        for value in figure.values([trial])
        if value > 0
    }


def arms_of_claim(claim: Claim) -> frozenset[str]:
    """The names of the arms that a claim is about."""
    return frozenset(name for name in (claim.a, claim.b, claim.c, claim.d, *claim.arms) if name is not None)


class ClaimEvidence:
    """The trials of a run, as claims need them. A run file may have hundreds of claims about the same trials."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.arms: dict[str, Arm] = {arm.name: arm for arm in run.experiment.arms}
        self.done = cache(self._done)
        self.failed_rounds = cache(self._failed_rounds)
        self.has_bounds = cache(self._has_bounds)
        self._series = cache(self._by_round)
        self._cautions = cache(self._cautions_of)

    def series(self, arm: str, figure: str) -> dict[int, float]:
        """Round → the figure that claims call so, of an arm, without trials that had errors."""
        return self._series(arm, of_claim(figure).key)

    def cautions(self, claim: Claim) -> list[str]:
        """The kinds of the cautions that the trials of the claim's arms give rise to, whatever other arms there are.

        A caution that doubts certain figures concerns only the claims that compare one of them.
        """
        key = of_claim(claim.figure).key
        found = self._cautions(arms_of_claim(claim))
        return [one.kind for one in found if one.arms and (not one.figures or key in one.figures)]

    def sweep(self, claim: Claim) -> dict[AxisValue, str]:
        """Value of the axis → arm, of a claim about a sweep; empty for all others."""
        names = frozenset(claim.arms)
        return {next(iter(arm.axes.values())): name for name, arm in self.arms.items() if name in names}

    def _done(self, arm: str) -> list[Trial]:
        return [trial for trial in self.run.trials_of(arm) if trial.status == "done"]

    def _failed_rounds(self, arm: str) -> int:
        return sum(bool(trial.errors) for trial in self.done(arm))

    def _has_bounds(self, arm: str, figure: str) -> bool:
        return of_claim(figure).has_bounds(self.done(arm))

    def _by_round(self, arm: str, figure: str) -> dict[int, float]:
        return by_round(self.run, arm, of_claim(figure))

    def _cautions_of(self, names: frozenset[str]) -> list[Caution]:
        run = self.run
        arms = [arm for arm in run.experiment.arms if arm.name in names]
        # Listing the unavailable arms for each claim would take long.
        plan = run.experiment.model_copy(update={"arms": arms, "unavailable_arms": {}})
        trials = [trial for trial in run.trials if trial.arm in names]
        return cautions_of(run.model_copy(update={"trials": trials, "experiment": plan}))
