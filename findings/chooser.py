"""docs/chooser.html: the reader sets his situation, and sees the answer of the atlas. One file that asks for nothing.

The answers are those of docs/choosing-a-client.md, and more of them: each is drawn beforehand, and the page's script
only shows the one that was asked for. Without a script, the page shows all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from clientlab.reports.as_html import TEMPLATES
from clientlab.results.document import Run
from clientlab.workload.workload import Workload
from findings.atlas import UNMEASURED, basis_of, stored
from findings.situations import SituationAnswer, answers

_CODE = re.compile(r"`([^`]+)`")

QUESTIONS = {
    "code": "Your code",
    "flight": "Requests in flight",
    "connections": "Connections",
    "tls": "TLS",
    "http": "HTTP version",
    "body": "Response body",
    "wait": "Round trip, or server's time",
    "by": "What counts",
}
"""What the reader is asked: the key of each question, and its words."""


@dataclass(frozen=True)
class Choice:
    """An answer with the settings that lead to it: question → value."""

    answer: SituationAnswer
    settings: Mapping[str, str]

    @property
    def title(self) -> str:
        return self.answer.situation.title or ", ".join(self.settings.values())


def stored_page() -> str:
    """The page of the stored run."""
    run = stored()
    return (
        f"<!DOCTYPE html>\n<title>Choosing a client</title>\n<p>{escape(UNMEASURED)}</p>\n"
        if run is None
        else page(run)
    )


def page(run: Run) -> str:
    """The whole page as one HTML document."""
    choices = choices_of(run)
    options = {key: _values(choice.settings[key] for choice in choices) for key in QUESTIONS}
    settings = json.dumps({one.answer.situation.key: dict(one.settings) for one in choices})
    loader = jinja2.ChoiceLoader(
        [jinja2.FileSystemLoader(Path(__file__).parent), TEMPLATES.loader or jinja2.DictLoader({})]
    )
    template = TEMPLATES.overlay(loader=loader).get_template("chooser.html.j2")
    return template.render(
        run=run, basis=basis_of(run), choices=choices, questions=QUESTIONS, options=options, marked=_marked,
        settings=Markup(settings.replace("<", "\\u003c")),  # noqa: S704 - of the lab's own words
    )  # fmt: skip


def choices_of(run: Run) -> list[Choice]:
    """The situations that the run answers; "HTTP/2 or HTTP/1.1" is no setting of a reader."""
    found = [one for one in answers(run) if one.cells and one.situation.by != "versions"]
    return [Choice(one, _settings(one, run.experiment.workloads[one.situation.workload])) for one in found]


def _settings(answer: SituationAnswer, workload: Workload) -> dict[str, str]:
    """The settings of a situation, from its workload."""
    situation = answer.situation
    closed = "close" in {value.lower() for value in workload.headers.values()}
    return {
        "code": "blocking" if situation.blocking else "asyncio",
        "flight": str(answer.concurrency),
        "connections": "a new one for each request" if closed else "kept",
        "tls": "yes" if situation.workload in {"per-call", "http2"} else "no",
        "http": f"HTTP/{situation.http}",
        "body": "1 MiB" if workload.path.startswith("/bytes/") else "small JSON",
        "wait": str(workload.delay or "none: one machine"),
        "by": "CPU time" if situation.by == "cpu" else "time per request",
    }


def _values(found: Iterable[str]) -> list[str]:
    """Each once: numbers in their order, and words in that of the situations."""
    each = list(dict.fromkeys(found))
    return sorted(each, key=int) if all(value.isdigit() for value in each) else each


def _marked(sentence: str) -> Markup:
    """A sentence of Markdown whose only marks are those of code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(sentence))))  # noqa: S704 - escaped before
