"""What the lab found: the page says what its run files say, and the run files are whole."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from clientlab.experiments.file import bundled, read_plan
from findings.page import DOCS, PAGE, RUNS, render, runs

FOUND = runs()


def test_the_page_is_what_the_run_files_give():
    """scripts/findings writes it; nobody edits it."""
    assert PAGE.read_text(encoding="utf-8") == render(FOUND)


def test_every_published_benchmark_is_in_it():
    """A run of each bundled experiment that has a source."""
    published = {name for name, path in bundled().items() if read_plan(path).source}
    assert set(FOUND) == published


@pytest.mark.parametrize("name", FOUND)
def test_a_run_is_whole(name):
    """Its full form, in three rounds or more, and nothing in it of whose machine it was."""
    run = FOUND[name]
    assert run.experiment.shortened == []
    assert run.experiment.command.startswith(f"clientlab run {name}")
    assert run.experiment.rounds >= 3
    assert {trial.status for trial in run.trials} == {"done"}
    assert re.findall(r"/(?:home|root|tmp|Users|work)/", (RUNS / f"{name}.json").read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", FOUND)
def test_a_run_has_the_arms_of_the_experiment_as_it_is_now(name):
    """Its claims are judged as they are made today; an arm that came since has to be measured."""
    asked = {arm.name for arm in read_plan(bundled()[name]).arms}
    assert {arm.name for arm in FOUND[name].experiment.arms} == asked


def test_every_picture_is_there():
    """A whole SVG, with words for those who do not see it."""
    pictures = re.findall(r"!\[(.+?)\]\((.+?)\)", PAGE.read_text(encoding="utf-8"))
    assert len(pictures) == len(FOUND)
    for words, path in pictures:
        assert len(words) > 20
        ET.parse(DOCS / path)  # noqa: S314 - written here
