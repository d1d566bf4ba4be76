"""The page: prose from its template, every number in it from the run files, a chart for each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import jinja2

from clientlab import units
from clientlab.analysis.ratios import CONFIDENCE
from clientlab.experiments.file import bundled, read_plan
from clientlab.judging.claim_verdicts import judged
from clientlab.judging.judgement import read_judged
from clientlab.reports import as_markdown, servers
from clientlab.reports.charts import picture
from clientlab.reports.charts.sweeps import Curve, sweeps_of
from clientlab.reports.claims_section import PAIRED, with_band
from clientlab.reports.markdown import table
from clientlab.reports.rows import Row, groups_of
from clientlab.results.document import ClaimResult, Run
from clientlab.results.plan import Claim, Plan
from findings import distance, network, reuse
from findings.moves import FROM_3_11, FROM_HTTPX, moves_table

HERE = Path(__file__).parent
RUNS = HERE / "runs"
_SUFFIX = ".json.gz"


def run_file(name: str) -> Path:
    """The stored run of an experiment."""
    return RUNS / f"{name}{_SUFFIX}"


ATLAS = run_file("atlas")
"""Its figures are in docs/choosing-a-client.md: it has no claims, and no publication behind it."""
MOVING = ("httpx2", "httpx2-blocking", "pythons")
"""Experiments on whether to move to another library or Python: their sources are no articles on fast HTTP."""
DOCS = HERE.parent / "docs"
PAGE = DOCS / "findings.md"
PICTURES = DOCS / "findings"


class Found:
    """A run as the template asks for it."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.claims = {claim.name: claim for claim in judged(run)}
        self._rows = {row.trials[0].arm: row for group in groups_of(run) for row in group.rows}

    def row(self, arm: str) -> Row:
        """An arm's medians."""
        return self._rows[arm]

    def time(self, arm: str) -> str:
        """An arm's wall time."""
        return units.time(self.row(arm).figures["wall"])

    def cpu(self, arm: str) -> str:
        """An arm's CPU time, of all its requests."""
        return units.time(self.row(arm).figures["cpu_total"])

    def rate(self, arm: str) -> str:
        """An arm's requests per second."""
        return units.rate(self.row(arm).figures["throughput"])

    def quantile(self, arm: str, key: str) -> str:
        """A quantile of an arm's latencies."""
        return units.time(self.row(arm).figures[key])

    def kept(self, few: str, many: str) -> str:
        """The requests per second of an arm as a share of those of another."""
        before, after = (self.row(arm).figures["throughput"] or math.nan for arm in (few, many))
        return f"{units.digits(100 * after / before, 2)} %"

    def ratio(self, name: str) -> str:
        """What was measured of a claim, with its interval."""
        claim = self.claims[name]
        return units.ratio(claim.ratio, claim.interval)

    def verdict(self, name: str) -> str:
        return self.claims[name].verdict

    def claims_table(self, *, control: bool) -> str:
        """Those of the article, or the lab's own."""
        found = [claim for claim in self.claims.values() if claim.control == control]
        published = any(claim.published for claim in found) and not control
        heads = ("claim", *(("published",) if published else ()), "verdict", "ratio (95 %)", "rounds", "cautions")
        return table(heads, [_cells(claim, published=published) for claim in found], left=len(heads))

    def open_claims(self) -> list[ClaimResult]:
        """Those without a verdict."""
        return [claim for claim in self.claims.values() if claim.settles]

    def servers_table(self) -> str:
        """Requests a second by server, beside the article's."""
        return as_markdown.data_table(servers.table_of(self.run))

    def curve(self, name: str) -> Curve:
        """A sweep's curve."""
        (found,) = [curve for sweep in sweeps_of(self.run) for curve in sweep.curves if curve.name == name]
        return found


def _cells(claim: ClaimResult, *, published: bool) -> list[str]:
    source = [claim.published or units.UNKNOWN] if published else []
    ratio, cautions = units.ratio(claim.ratio, claim.interval), ", ".join(claim.cautions) or units.UNKNOWN
    return [with_band(claim), *source, claim.verdict, ratio, str(claim.rounds), cautions]


def stored_names() -> list[str]:
    """The experiments that have a stored run on the page."""
    return [path.name.removesuffix(_SUFFIX) for path in sorted(RUNS.glob(f"*{_SUFFIX}")) if path != ATLAS]


def runs() -> dict[str, Run]:
    """Experiment → its stored run. The run's own claims are judged: a claim that was written later needs new data."""
    return {name: read_judged(run_file(name)) for name in stored_names()}


def render(found: dict[str, Run]) -> str:
    """The page's text."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - Markdown, from the repository's own files
    )
    shown = {name: Found(run) for name, run in found.items()}
    pages = {name.replace("-", "_"): one for name, one in shown.items()}
    judged_claims = {name: one.claims for name, one in shown.items()}
    all_claims = [(name, claim) for name, one in shown.items() for claim in one.claims.values()]
    published = {name for name, run in found.items() if run.experiment.source}
    of_sources = [(name, claim) for name, claim in all_claims if name in published and not claim.control]
    return environment.get_template("findings.md.jinja").render(
        found=pages,
        from_httpx=moves_table("httpx", FROM_HTTPX, lambda run, arm: pages[run].row(arm)),
        from_3_11=moves_table("Python 3.11", FROM_3_11, lambda run, arm: pages[run].row(arm)),
        articles=_tally(claim for name, claim in of_sources if name not in MOVING),
        moving=_tally(claim for name, claim in of_sources if name in MOVING),
        own=_tally(claim for name, claim in all_claims if name not in published or claim.control),
        estimand=PAIRED,
        fallen=_fallen(found, len(all_claims)),
        unmeasured=unmeasured(found),
        effects=network.effects_table(network.repeated(judged_claims)),
        contradictions=network.contradictions(judged_claims),
        saved_table=reuse.saved_table,
        saved_from=reuse.answer,
        order_table=distance.order_table,
    )


def unmeasured(found: Mapping[str, Run]) -> dict[str, tuple[int, int]]:
    """Bundled experiments with claims that no run here has → how many of them, and how many claims there are.

    A run lacks the claims that were written after it was measured.
    """
    plans = {name: read_plan(path) for name, path in bundled().items()}
    counts = {name: (len(missing_claims(plan, found.get(name))), len(plan.claims)) for name, plan in plans.items()}
    return {name: (missing, claims) for name, (missing, claims) in counts.items() if missing}


def missing_claims(plan: Plan, run: Run | None) -> list[Claim]:
    """The claims of an experiment as it is now that its stored run does not have."""
    measured = set() if run is None else {claim.name for claim in run.experiment.claims}
    return [claim for claim in plan.claims if claim.name not in measured]


def _fallen(found: dict[str, Run], claims: int) -> list[tuple[str, str]]:
    """Experiment and text of the claims whose verdict falls if all intervals of the page are to hold together.

    By Bonferroni's inequality.
    """
    confidence = 1 - (1 - CONFIDENCE) / claims
    return [
        (name, alone.text)
        for name, run in found.items()
        for alone, together in zip(judged(run, CONFIDENCE), judged(run, confidence), strict=True)
        if alone.verdict != together.verdict
    ]


def _tally(claims: Iterable[ClaimResult]) -> dict[str, int]:
    counts = {"supported": 0, "contradicted": 0, "inconclusive": 0}
    for claim in claims:
        counts[claim.verdict] += 1
    return counts | {"all": sum(counts.values())}


def write() -> None:
    """Write the page and its pictures. Raises LabError for a run file that can't be read."""
    found = runs()
    PICTURES.mkdir(exist_ok=True)
    for name, run in found.items():
        picture.write(run, PICTURES / f"{name}.svg")
    PAGE.write_text(render(found), encoding="utf-8")
