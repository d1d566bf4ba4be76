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
    """The whole document: the answer with short tables, and the rest folded, where a reader of Markdown can unfold."""
    sections = text_sections(Report(run, judged))
    shown = [block for section in sections if section.brief for block in _section(section)]
    folded = [block for section in sections for block in _rest(section)]
    heading = f"**{escaped(sections[0].heading)}**\n"
    return "\n".join([heading, *shown, f"<details><summary>{_FOLDED}</summary>\n", *folded, "</details>\n"])


_FOLDED = "All columns, cautions in full, surroundings"


def _section(section: Section[TextPart]) -> Iterator[str]:
    """The short form of a section."""
    if section.sentences:
        yield "".join(f"**{escaped(sentence)}**  \n" for sentence in section.sentences)
    for part in section.parts:
        match part:
            case Alerts():
                yield from [f"> {escaped(part.brief)}\n"] if part.brief else []
            case Lines():
                yield from _paragraphs(part.items if part.brief else [])
            case Tables():
                yield from (_titled(one if one.brief is None else one.short) for one in part.items)
            case _:
                yield from _part(part)


def _rest(section: Section[TextPart]) -> Iterator[str]:
    """What the short form leaves out."""
    for part in section.parts:
        match part:
            case _ if not section.brief:
                yield from _part(part)
            case Alerts():
                yield from _part(part)
            case Lines():
                yield from _paragraphs([] if part.brief else part.items)
            case Tables():
                yield from (_titled(one) for one in part.items if one.brief is not None)
    yield from _paragraphs(section.notes)


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
    return f"{escaped(found.title)}\n\n{data_table(found)}"


def _paragraphs(lines: Sequence[str]) -> Iterator[str]:
    return (f"{escaped(line)}\n" for line in lines)


def data_table(found: DataTable) -> str:
    """The table in Markdown, without its title."""
    return table(found.headings, found.rows, left=found.keys, texts=found.texts)


def _claim(claim: ClaimResult) -> list[str]:
    ratio = units.ratio(claim.ratio, claim.interval)
    return [sentence(claim), claim.verdict, ratio, str(claim.rounds), claim.measured + doubts(claim)]
