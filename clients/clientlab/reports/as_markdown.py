"""A run as Markdown, for a README, an issue or a comment: its sections as paragraphs, lists and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import assert_never

from clientlab import units
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports.charts.shapes import DataTable
from clientlab.reports.claims_section import SIGNS, doubts, sentence
from clientlab.reports.contents import text_sections
from clientlab.reports.markdown import code, escaped, table
from clientlab.reports.sections import Alerts, Command, Lines, Listing, Report, Section, Tables, TextPart, Verdicts
from clientlab.results.document import ClaimResult, Run

_CLAIM_HEADS = ("claim", "verdict", "ratio (95 %)", "rounds", "measured")
_FIRST_LEFT_OUT = "p99"
"""The first column that short tables leave out if claims answer the question."""


def render(run: Run, judged: Sequence[ThresholdResult] = (), *, whole: bool = True) -> str:
    """Return the whole report, or its short form: the answer, claims, tables, and one line each for doubts and machine.

    In the short form of a run with claims, the verdicts are the answer, and stand before smaller tables.
    """
    sections = text_sections(Report(run, judged))
    heading = f"**{escaped(sections[0].heading)}**\n"
    if whole:
        return "\n".join([heading, *(block for section in sections for block in _section(section))])
    return "\n".join([heading, *_short(sections, has_claims=bool(run.claims))])


def _section(section: Section[TextPart]) -> Iterator[str]:
    yield from _sentences(section.sentences)
    for part in section.parts:
        yield from _part(part)
    yield from _paragraphs(section.notes)


def _short(sections: Sequence[Section[TextPart]], *, has_claims: bool) -> Iterator[str]:
    answer, *others = [section for section in sections if section.brief]
    *parts, machine = answer.parts
    sentences = answer.sentences
    if has_claims:
        sentences = [_tally(part.items) for one in others for part in one.parts if isinstance(part, Verdicts)]
        parts = [part for part in parts if not isinstance(part, Lines)]
        others.sort(key=lambda section: section.id != "claims")
    yield from _sentences(sentences)
    for part in [*parts, *(part for section in others for part in section.parts), machine]:
        match part:
            case Alerts():
                yield from [f"> {escaped(part.brief)}\n"] if part.brief else []
            case Lines():
                yield from _paragraphs(part.items if part.brief else [])
            case Tables():
                yield from (_titled(_shortened(one, few=has_claims)) for one in part.items)
            case Verdicts():
                yield table(_CLAIM_HEADS[:3], (_claim(claim)[:3] for claim in part.items), left=3)
            case _:
                yield from _part(part)


def _shortened(found: DataTable, *, few: bool) -> DataTable:
    """Return the most important columns, without those that no row has a value in."""
    if found.brief is None:
        return found
    brief = found.brief
    if few:
        brief = list(takewhile(lambda place: found.headings[place] != _FIRST_LEFT_OUT, brief))
    return found.of_columns([place for place in brief if any(row[place] != units.UNKNOWN for row in found.rows)])


def _tally(claims: Sequence[ClaimResult]) -> str:
    """Return how many claims of the source, and how many controls of the lab, have each verdict."""
    found = {"claims": [one for one in claims if not one.control], "controls": [one for one in claims if one.control]}
    return " ".join(
        f"Of {len(ones)} {name}: {', '.join(f'{count} {verdict}' for verdict, count in _verdicts(ones).items())}."
        for name, ones in found.items()
        if ones
    )


def _verdicts(claims: Sequence[ClaimResult]) -> dict[str, int]:
    """Return how many claims have each verdict, in the order of `SIGNS`, without those that no claim has."""
    counts = Counter[str](claim.verdict for claim in claims)
    return {verdict: counts[verdict] for verdict in SIGNS if counts[verdict]}


def _part(part: TextPart) -> Iterator[str]:
    match part:
        case Alerts():
            reasons = (reason for alert in part.items for reason in alert.reasons)
            yield "".join(f"> **{escaped(text)}** - {escaped(advice)}  \n" for text, advice in reasons)
        case Listing():
            yield f"{escaped(part.title)}:\n\n" + "".join(f"- {escaped(line)}\n" for line in part.items)
        case Lines():
            yield from _paragraphs(part.items)
        case Tables():
            yield from map(_titled, part.items)
        case Verdicts():
            yield table(_CLAIM_HEADS, map(_claim, part.items), left=len(_CLAIM_HEADS))
        case Command():
            yield from (f"Command: {code(line)}\n" for line in part.items)
        case _:
            assert_never(part)


def _titled(found: DataTable) -> str:
    return f"{escaped(found.title)}\n\n{table(found.headings, found.rows, left=found.keys, texts=found.texts)}"


def _sentences(lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield "".join(f"**{escaped(line)}**  \n" for line in lines)


def _paragraphs(lines: Sequence[str]) -> Iterator[str]:
    return (f"{escaped(line)}\n" for line in lines)


def _claim(claim: ClaimResult) -> list[str]:
    ratio = units.ratio(claim.ratio, claim.interval)
    return [sentence(claim), claim.verdict, ratio, str(claim.rounds), claim.measured + doubts(claim)]
