"""A run as Markdown, for a README, an issue or a comment: its sections as paragraphs, lists and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from clientlab import units
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports.charts.shapes import DataTable
from clientlab.reports.claims_section import doubts, sentence
from clientlab.reports.contents import text_sections
from clientlab.reports.markdown import code, escaped, table
from clientlab.reports.sections import Alerts, Command, Lines, Listing, Report, Section, Tables, TextPart, Verdicts
from clientlab.results.document import ClaimResult, Run

_CLAIM_HEADS = ("claim", "verdict", "ratio (95 %)", "rounds", "measured")


def render(run: Run, judged: Sequence[ThresholdResult] = ()) -> str:
    """The whole document. `judged`: the limits of its user, with their outcomes."""
    sections = text_sections(Report(run, judged))
    blocks = [block for section in sections for block in _section(section)]
    return "\n".join([f"**{escaped(sections[0].heading)}**\n", *blocks])


def _section(section: Section[TextPart]) -> Iterator[str]:
    for part in section.parts:
        yield from _part(part)
    if section.sentences:
        yield "".join(f"{escaped(sentence)}  \n" for sentence in section.sentences)
    yield from _paragraphs(section.notes)


def _part(part: TextPart) -> Iterator[str]:
    match part:
        case Alerts():
            yield "".join(f"> **{escaped(text)}** - {escaped(advice)}  \n" for text, advice in part.items)
        case Listing():
            yield f"{escaped(part.title)}:\n\n" + "".join(f"- {escaped(line)}\n" for line in part.items)
        case Lines():
            yield from _paragraphs(part.items)
        case Tables():
            yield from (f"{escaped(one.title)}\n\n{data_table(one)}" for one in part.items)
        case Verdicts():
            yield table(_CLAIM_HEADS, map(_claim, part.items), left=len(_CLAIM_HEADS))
        case Command():
            yield from (f"Command: {code(line)}\n" for line in part.items)
        case _:
            assert_never(part)


def _paragraphs(lines: Sequence[str]) -> Iterator[str]:
    return (f"{escaped(line)}\n" for line in lines)


def data_table(found: DataTable) -> str:
    """The table in Markdown, without its title."""
    return table(found.headings, found.rows, left=found.keys, texts=found.texts)


def _claim(claim: ClaimResult) -> list[str]:
    ratio = units.ratio(claim.ratio, claim.interval)
    return [sentence(claim), claim.verdict, ratio, str(claim.rounds), claim.measured + doubts(claim)]
