"""A finished trial: made by validation, so that no impossible figure gets into a run."""

from __future__ import annotations

import json
import math

import pytest
from pydantic import ValidationError

from clientlab.results.part import first_problem, is_printable
from clientlab.results.trial import Trial, utc_now
from clients.documents import a_planned_trial

DONE = {"status": "done", "requests": 7, "wall_seconds": 0.1}


@pytest.mark.parametrize(
    ("figures", "problem"),
    [
        ({"connections_opened": -1}, "connections_opened: Input should be greater than or equal to 0"),
        ({"requests_per_second": math.nan}, "requests_per_second: Input should be a finite number"),
        ({"wall_seconds": math.inf}, "wall_seconds: Input should be a finite number"),
        ({"busy": {"client": math.nan}}, "busy.client: Input should be a finite number"),
        ({"errors": {"reset": -1}}, "errors.reset: Input should be greater than or equal to 0"),
        ({"errors": {"reset": 7}}, "a trial that is done has a request that succeeded: 7 errors of 7"),
        ({"wall_seconds": None}, "a trial that is done took some time, and not wall_seconds None"),
        ({"latency_seconds": {"mean": 1.0}}, "latency_seconds.p50: Field required"),
        ({"partial": True}, "a trial that is done is whole, and not partial"),
        ({"speed": 3}, "speed: Extra inputs are not permitted"),
        ({"status": "planned"}, "status: Input should be 'done', 'failed' or 'lost'"),
    ],
)
def test_an_impossible_figure_is_refused_when_the_trial_is_made(figures, problem):
    """In one line that names the figure."""
    with pytest.raises(ValidationError) as caught:
        Trial.of(a_planned_trial(), started=utc_now(), **DONE | figures)
    assert first_problem(caught.value) == problem


def test_an_impossible_figure_is_refused_in_a_copy_too():
    """Pydantic's own copies are not validated."""
    trial = Trial.of(a_planned_trial(), started=utc_now(), **DONE)
    assert trial.model_copy(update={"requests": 8}).requests == 8
    with pytest.raises(ValidationError, match="connections_opened"):
        trial.model_copy(update={"connections_opened": -1})


def test_a_finished_trial_has_what_was_planned():
    """And the time at which it began."""
    planned = a_planned_trial("aiohttp", 3, 8)
    trial = Trial.of(planned, started="2024-05-06T07:08:09.000+00:00", **DONE)
    assert {name: getattr(trial, name) for name in type(planned).model_fields} == planned.model_dump()
    assert (trial.status, trial.started) == ("done", "2024-05-06T07:08:09.000+00:00")


@pytest.mark.parametrize("text", ["plain", "µ × – 中", 'quote " and \\', "two\nlines\tand a tab", "\\uzzzz and \\u00"])
def test_a_document_of_printable_texts_need_not_be_walked(text):
    """By its bytes alone, whether they are escaped or not."""
    for ascii_only in (True, False):
        assert is_printable(json.dumps({text: text}, ensure_ascii=ascii_only).encode())


@pytest.mark.parametrize("text", ["\x1b[2J", "\x7f", "\x9b", "\u202e", "\u2028", "\r", "\b", "\f", "\x00"])
def test_a_document_with_a_control_character_is_walked(text):
    """Control characters are found in a document however JSON writes them."""
    for ascii_only in (True, False):
        assert not is_printable(json.dumps([text], ensure_ascii=ascii_only).encode())
