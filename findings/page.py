"""The pages: prose from a template, every number in it from the run files, a chart for each experiment.

One template makes all of them, because sentences of one experiment quote another. A comment in it begins each page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import jinja2

from clientlab import units
from clientlab.analysis.ratios import CONFIDENCE, paired_ratio
from clientlab.experiments.file import bundled, read_plan
from clientlab.judging.claim_verdicts import judged
from clientlab.judging.contrasts import by_round
from clientlab.judging.judgement import read_judged, with_judgement
from clientlab.reports import as_markdown, servers
from clientlab.reports.cautions_in_brief import alerts_of, in_brief
from clientlab.reports.charts import picture
from clientlab.reports.charts.sweeps import Curve, sweeps_of
from clientlab.reports.claims_section import PAIRED, with_band
from clientlab.reports.headline import answers_of
from clientlab.reports.markdown import table
from clientlab.reports.rows import Row, groups_of
from clientlab.results.document import ClaimResult, Run
from clientlab.results.figures import BY_KEY
from clientlab.results.plan import Claim, Plan
from findings import distance, failures, free_threads, network, reuse, streams
from findings.moves import FROM_3_11, FROM_HTTPX, measured_moves, moves_table, none_slower
from findings.statements import Statement, borne_out

HERE = Path(__file__).parent
RUNS = HERE / "runs"
_SUFFIX = ".json.gz"


def run_file(name: str) -> Path:
    """The stored run of an experiment."""
    return RUNS / f"{name}{_SUFFIX}"


ATLAS = run_file("atlas")
"""Its figures are in docs/choosing-a-client.md: it has no claims, and no publication behind it."""
MOVING = ("httpx2", "httpx2-blocking", "pythons", "free-threads")
"""Experiments on whether to move to another library or Python: their sources are no articles on fast HTTP."""
DOCS = HERE.parent / "docs"
FIRST = "findings"
"""The page with what holds for all experiments, and a line for each."""

_BREAK = re.compile(r"<!-- page: ([a-z0-9-]+) -->\n")
_LIST = "<!-- experiments -->"
PICTURES = DOCS / "findings"


class Found:
    """A run as the template asks for it."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.claims = {claim.name: claim for claim in judged(run)}
        self._rows = {row.trials[0].arm: row for group in groups_of(run) for row in group.rows}

    @property
    def arms(self) -> Collection[str]:
        """The arms that were measured."""
        return self._rows.keys()

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

    def more(self, name: str) -> str:
        """The same, in a sentence that states more than 1. Raises UnsureSentence where the interval does not."""
        return self._borne_out(name, "more")

    def less(self, name: str) -> str:
        """The same, of less than 1."""
        return self._borne_out(name, "less")

    def inverse(self, name: str) -> str:
        """How many times as much the other side has, in a sentence that states more than 1. Raises UnsureSentence."""
        self._borne_out(name, "less")
        claim = self.claims[name]
        low, high = claim.interval or (1.0, 1.0)
        return units.ratio(None if claim.ratio is None else 1 / claim.ratio, (1 / high, 1 / low))

    def alike(self, name: str) -> str:
        """The same, in a sentence that both sides cannot be told apart."""
        return self._borne_out(name, "no difference")

    def _borne_out(self, name: str, statement: Statement) -> str:
        claim = self.claims[name]
        return borne_out(f"{self.run.experiment.name}, claim {name}", claim.ratio, claim.interval, statement)

    def slower(self, slow: str, quick: str) -> str:
        """How many times as long an arm takes as another, by round. Raises UnsureSentence where it may not."""
        these, those = (by_round(self.run, arm, BY_KEY["wall"]) for arm in (slow, quick))
        ratio = paired_ratio(these, those)
        where = f"{self.run.experiment.name}, arms {slow} and {quick}"
        value, interval = (None, None) if ratio is None else (ratio.value, ratio.interval)
        return borne_out(where, value, interval, "more")

    def saved(self, name: str) -> str:
        """The share of the time that the quicker side of a claim saves, from end to end of its interval."""
        self.more(name)
        low, high = self.claims[name].interval or (1.0, 1.0)
        return f"{100 * (1 - 1 / low):.0f} to {100 * (1 - 1 / high):.0f} %"

    def cautions_in_brief(self) -> str:
        """Their names, without the arms."""
        return in_brief(alerts_of(self.run))

    def surroundings(self) -> str:
        """Machine, network and Python of the run, for a sentence."""
        where = self.run.surroundings
        return f"{where.cpu_model}, {where.cpu_usable:g} cores, {where.python}, over loopback"

    def verdict(self, name: str) -> str:
        return self.claims[name].verdict

    def answers(self) -> list[str]:
        """The sentences at the head of its report."""
        return answers_of(self.run, groups_of(self.run))

    def has_claims(self, *, control: bool) -> bool:
        """Whether there are claims of the article, or of the lab's own."""
        return any(claim.control == control for claim in self.claims.values())

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


def stored_run(name: str) -> Run:
    """The stored run of an experiment, with today's cautions.

    The run's own claims are judged: a claim that was written later needs new data.
    """
    return with_judgement(read_judged(run_file(name)))


def runs() -> dict[str, Run]:
    """Experiment → its stored run."""
    return {name: stored_run(name) for name in stored_names()}


def render(found: dict[str, Run]) -> dict[str, str]:
    """File name → the page's text."""
    begin, *rest = _BREAK.split(_rendered(found))
    texts: dict[str, str] = {FIRST: begin}
    for name, text in zip(rest[::2], rest[1::2], strict=True):
        texts[name] = texts.get(name, "") + text
    lines = [_line(name, text) for name, text in texts.items() if name != FIRST]
    texts[FIRST] = texts[FIRST].replace(_LIST, "\n".join(lines))
    return {_file(name): text if name == FIRST else _raised(text) for name, text in texts.items()}


def _file(name: str) -> str:
    return f"{FIRST}.md" if name == FIRST else f"{FIRST}-{name}.md"


def _line(name: str, text: str) -> str:
    """An experiment in the list: the heading of its page, and the sentence in bold that answers it."""
    title = text.partition("\n")[0].removeprefix("## ")
    answer = re.search(r"^\*\*(.+?)\*\*", text, re.MULTILINE)
    told = "" if answer is None else f". {answer[1].rstrip('.')}."
    return f"- [{title}]({_file(name)}){told}"


def _raised(text: str) -> str:
    """A part of the template as a page of its own: its headings are a level higher."""
    return re.sub(r"^#(#+ )", r"\1", text, flags=re.MULTILINE).rstrip() + "\n"


def _rendered(found: dict[str, Run]) -> str:
    """All pages in one text."""
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
        none_slower=none_slower("httpx2", FROM_HTTPX, lambda run, arm: pages[run].row(arm)),
        from_3_11=moves_table(
            "Python 3.11", measured_moves(FROM_3_11, pages["pythons"].arms), lambda run, arm: pages[run].row(arm)
        ),
        articles=_tally(claim for name, claim in of_sources if name not in (*MOVING, *streams.STREAMS)),
        moving=_tally(claim for name, claim in of_sources if name in MOVING),
        streaming=_tally(claim for name, claim in of_sources if name in streams.STREAMS),
        own=_tally(claim for name, claim in all_claims if name not in published or claim.control),
        estimand=PAIRED,
        fallen=_fallen(found, len(all_claims)),
        unmeasured=unmeasured(found),
        effects=network.effects_table(network.repeated(judged_claims)),
        contradictions=network.contradictions(judged_claims),
        saved_table=reuse.saved_table,
        saved_from=reuse.answer,
        order_table=distance.order_table,
        scaling_table=free_threads.scaling_table,
        threads_answer=free_threads.threads_answer,
        cost_answer=free_threads.cost_answer,
        switched_answer=free_threads.switched_answer,
        events_table=streams.events_table,
        least=streams.least,
        words_table=failures.words_table,
        lost_beside=failures.lost_beside,
        hanging=failures.hanging,
        losing_slots=failures.losing_slots,
        idle_answer=failures.idle_answer,
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
    """Write the pages and their pictures. Raises LabError for a run file that can't be read."""
    found = runs()
    PICTURES.mkdir(exist_ok=True)
    for name, run in found.items():
        draw = failures.write_picture if name in failures.FAILURES else picture.write
        draw(run, PICTURES / f"{name}.svg")
    for name, text in render(found).items():
        (DOCS / name).write_text(text, encoding="utf-8")
