"""The articles' claims beside the same claims behind a link: which contradictions the network explains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clientlab import units
from clientlab.experiments.file import bundled, read_plan
from clientlab.reports.markdown import table
from clientlab.results.document import ClaimResult
from clientlab.results.plan import Claim, Plan

BEHIND_LINK = "-behind-link"
"""How the name of a claim ends that repeats another claim with arms behind the link that the article implies."""

EXPLAINED, REMAINING, UNDECIDED = "explains it", "does not explain it", "leaves it open"
UNMEASURED = "not measured yet"
_EFFECTS = {
    ("supported", "supported"): "changes nothing",
    ("supported", "contradicted"): "contradicts it",
    ("contradicted", "supported"): EXPLAINED,
    ("contradicted", "contradicted"): REMAINING,
    ("inconclusive", "supported"): "supports it",
    ("inconclusive", "contradicted"): "contradicts it",
}
"""(verdict over loopback, verdict behind the link) → what the network does to the claim. The others are left open."""

Judged = Mapping[str, Mapping[str, ClaimResult]]
"""Experiment → claim → its result, of the stored runs."""


@dataclass(frozen=True)
class Repeated:
    """A claim over loopback and behind a link; `behind` is None where the run does not have the second one."""

    experiment: str
    link: str
    loopback: ClaimResult
    behind: ClaimResult | None

    @property
    def effect(self) -> str:
        """What the network does to the claim, in words."""
        if self.behind is None:
            return UNMEASURED
        return _EFFECTS.get((self.loopback.verdict, self.behind.verdict), UNDECIDED)


def arms_of(claim: Claim) -> set[str]:
    """The names of the arms that a claim compares."""
    return {name for name in (claim.a, claim.b, claim.c, claim.d, *claim.arms) if name}


def links_of(claim: Claim, plan: Plan) -> list[str]:
    """The links of the arms that a claim compares, as texts: each once, and an empty text for none."""
    arms = {arm.name: arm for arm in plan.arms}
    return sorted({"" if (link := arms[name].link) is None else str(link) for name in arms_of(claim)})


def repeated(judged: Judged) -> list[Repeated]:
    """Every claim of the bundled experiments that another one repeats behind a link, with what the runs give."""
    return [one for name in judged for one in _of_experiment(name, judged[name])]


def _of_experiment(name: str, results: Mapping[str, ClaimResult]) -> Iterator[Repeated]:
    plan = read_plan(bundled()[name])
    for claim in plan.claims:
        first = claim.name.removesuffix(BEHIND_LINK)
        if first != claim.name:
            yield Repeated(name, ", ".join(links_of(claim, plan)), results[first], results.get(claim.name))


@dataclass(frozen=True)
class Contradictions:
    """The claims that are contradicted over loopback, as (experiment, text), by what the network does to them.

    `without`: those that no claim repeats behind a link.
    """

    explained: list[tuple[str, str]]
    remaining: list[tuple[str, str]]
    undecided: list[tuple[str, str]]
    unmeasured: list[tuple[str, str]]
    without: list[tuple[str, str]]

    @property
    def all(self) -> int:
        """How many there are."""
        return sum(map(len, (self.explained, self.remaining, self.undecided, self.unmeasured, self.without)))


def contradictions(judged: Judged) -> Contradictions:
    """What the network explains of the contradicted claims, and what it does not."""
    effects = {(one.experiment, one.loopback.name): one.effect for one in repeated(judged)}
    by_effect: dict[str | None, list[tuple[str, str]]] = {}
    for name, results in judged.items():
        plan = read_plan(bundled()[name])
        over_loopback = {claim.name for claim in plan.claims if links_of(claim, plan) == [""]}
        for result in results.values():
            if result.verdict == "contradicted" and result.name in over_loopback:
                by_effect.setdefault(effects.get((name, result.name)), []).append((name, result.text))
    return Contradictions(
        *(by_effect.get(effect, []) for effect in (EXPLAINED, REMAINING, UNDECIDED, UNMEASURED, None))
    )


def effects_table(found: list[Repeated]) -> str:
    """Each repeated claim with both verdicts, and what the network does to it."""
    heads = ("experiment", "claim of the article", "link", "over loopback", "behind the link", "the network")
    cells = [
        (one.experiment, one.loopback.text, one.link, _shown(one.loopback), _shown(one.behind), one.effect)
        for one in found
    ]
    return table(heads, cells, left=len(heads))


def _shown(result: ClaimResult | None) -> str:
    return UNMEASURED if result is None else f"{result.verdict}, {units.ratio(result.ratio, result.interval)}"
