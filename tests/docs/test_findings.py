"""What the lab found: the page says what its run files say, and the run files are whole."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import pytest

from clientlab import units
from clientlab.analysis.decisions import EQUAL
from clientlab.cli import run_command_line
from clientlab.experiments.file import bundled, read_plan
from clientlab.reports.markdown import escaped
from clientlab.results.regular_file import content_of
from docs.stored_runs import stored_run, stored_runs
from findings.failures import FAILURES
from findings.moves import FROM_3_11, FROM_HTTPX, UNKNOWN, measured_moves
from findings.network import arms_of
from findings.page import DOCS, missing_claims, render, run_file, stored_names, unmeasured

FIRST = (DOCS / "findings.md").read_text(encoding="utf-8")
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("findings*.md"))}
ALL = "\n".join(PAGES.values())


def test_the_pages_are_what_the_run_files_give():
    """scripts/findings writes them; nobody edits them."""
    assert render(stored_runs()) == PAGES


def test_each_experiment_opens_with_its_answer_and_its_picture():
    """A sentence in bold and a picture; claims, and cautions, are in blocks that a reader opens. The list has each."""
    for name, text in PAGES.items():
        if text == FIRST:
            continue
        paragraphs = text.split("\n\n")
        assert re.match(r"\*\*[^*]+\*\*", paragraphs[1]), name
        answer = paragraphs[1].split("**")[1].rstrip(".")
        assert f"({name}). {answer}." in FIRST
        opened = re.sub(r"<details.*?</details>", "", text, flags=re.DOTALL)
        assert "Cautions of the run" not in opened
        assert "| verdict |" not in opened
        assert name == "findings-network.md" or "\n![" in opened


def test_every_experiment_with_claims_is_in_it():
    """A run of each bundled one, and what no run has as not measured yet, with the number of claims.

    Of those on failures, some answer with words, and have no claims.
    """
    claims = {name: len(plan.claims) for name, path in bundled().items() if (plan := read_plan(path)).claims}
    found = stored_runs()
    missing = unmeasured(found)
    assert set(claims) <= set(found) | set(missing) <= set(claims) | set(FAILURES)
    assert all(missing[name] == (count, count) for name, count in claims.items() if name not in found)
    assert all(f"- `{name}`: {lacking} " in FIRST for name, (lacking, _) in missing.items())


@pytest.mark.parametrize("name", stored_names())
def test_a_run_is_whole(name):
    """Its full form, in all rounds of the experiment, and nothing in it of whose machine it was.

    A trial that hangs is a result.
    """
    run = stored_run(name)
    assert run.experiment.shortened == []
    assert run.experiment.command.startswith(f"clientlab run {name}")
    assert run.experiment.rounds >= min(3, read_plan(bundled()[name]).rounds)
    assert all(trial.status == "done" or trial.hangs for trial in run.trials)
    assert re.findall(r"/(?:home|root|tmp|Users|work)/", content_of(run_file(name)).decode()) == []


@pytest.mark.parametrize("name", stored_names())
def test_a_run_belongs_to_the_experiment_as_it_is_now(name):
    """An arm, a workload or a claim that was changed after the data was seen needs a new run.

    The run may lack what was written later, and the page names that: control arms behind a link with their claims, and
    an environment with its arms and claims about them.
    """
    run = stored_run(name)
    now, measured = read_plan(bundled()[name]), run.experiment
    later = missing_claims(now, run)
    assert measured.claims == [claim for claim in now.claims if claim not in later]
    assert measured.workloads.items() <= now.workloads.items()
    arms = {arm.name: arm for arm in now.arms}
    assert {arm.name for arm in measured.arms} <= set(arms)
    assert all(arms[arm.name] == arm for arm in measured.arms)
    added = set(arms) - {arm.name for arm in measured.arms}
    in_later_environments = {arm for arm in added if arms[arm].environment not in (*measured.environments, None)}
    assert all(arms[arm].control and arms[arm].link for arm in added - in_later_environments)
    assert all(claim.control for claim in later)
    assert all(arms_of(claim) <= added or arms_of(claim) & in_later_environments for claim in later)


@pytest.mark.parametrize("name", [name for name in stored_names() if read_plan(bundled()[name]).claims])
def test_the_page_has_the_verdicts_that_the_command_line_gives(name, capsys):
    """`clientlab claims` on the stored file: the same claims with the same verdicts, intervals and cautions."""
    assert run_command_line(["claims", str(run_file(name)), "--json"]) == 0
    for claim in json.loads(capsys.readouterr().out):
        row = next(line for line in ALL.splitlines() if line.startswith(f"| {escaped(claim['text'])}"))
        assert f"| {claim['verdict']} | {units.ratio(claim['ratio'], claim['interval'])} |" in row
        assert row.endswith(f"| {', '.join(claim['cautions']) or units.UNKNOWN} |")


def test_the_answer_to_a_move_is_what_its_interval_states():
    """Faster or slower only where the interval excludes 1; one line for each move."""
    lines = re.findall(r" \| \S+ \(([\d,.]+) to ([\d,.]+)\) \| ([a-z 5%]+) \|$", ALL, re.MULTILINE)
    moves = len(FROM_HTTPX) + len(
        measured_moves(FROM_3_11, {arm.name for arm in stored_run("pythons").experiment.arms})
    )
    assert len(lines) + len(re.findall(rf" \| {UNKNOWN} \|$", ALL, re.MULTILINE)) == moves
    for low, high, answer in lines:
        ends = [float(end.replace(",", "")) for end in (low, high)]
        equal = ends[0] >= 1 / EQUAL and ends[1] <= EQUAL
        sure = "faster" if ends[0] > 1 else "slower" if ends[1] < 1 else None
        assert answer == (sure or ("equal within 5 %" if equal else "undecided"))


def test_every_picture_is_there():
    """A whole SVG, with words for those who do not see it."""
    pictures = re.findall(r"!\[(.+?)\]\((.+?)\)", ALL)
    assert len(pictures) == len(stored_names())
    for words, path in pictures:
        assert len(words) > 20
        ET.parse(DOCS / path)  # noqa: S314 - written here
