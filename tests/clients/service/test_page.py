"""The service's pages over real sockets: what they say, and the form that begins a run."""

from __future__ import annotations

import re

import pytest

from clientlab.experiments.file import bundled
from clientlab.results.document import Caution
from clients.documents import a_failed_trial, a_run, a_trial
from clients.service.requests_to_lab import asked, form, keep


def test_an_unknown_experiment_is_said_on_the_page(store):
    """With those there are; nothing is begun, and what was written is escaped."""
    fields = form(experiment="<script>alert(1)</script>", rounds="")
    status, text, _ = asked(store, "POST", "/start", **fields)
    assert status == 409
    assert "is unknown; there are" in text
    assert "<script>alert" not in text
    assert store.names() == []


@pytest.mark.parametrize("name", bundled())
def test_the_form_begins_whatever_experiment_it_offers(store, name):
    """Any bundled one that is on it; the others are refused, and nothing is begun."""
    on_form = f'<option value="{name}"' in asked(store, "GET", "/")[1]
    status, text, _ = asked(store, "POST", "/start", **form(experiment=name, rounds="1"))
    assert (status, len(store.names())) == ((303, 1) if on_form else (409, 0)), text


def test_every_bundled_experiment_that_can_run_here_is_on_the_form(store):
    """Others are left out with the reason: own servers, a search, environments, several links."""
    text = asked(store, "GET", "/")[1]
    offered = set(re.findall(r'<option value="([^"]+)"', text))
    left_out = {"frameworks-servers", "capacity", "overload", "pythons", "reuse", "distance", "defaults", "resilience"}
    left_out |= {"idle", "idle-5", "free-threads"}
    assert set(bundled()) - offered == left_out == set(re.findall(r"Not here, ([a-z0-9-]+): \S", text))
    assert "http://grafana.test/" in text


def test_what_a_run_file_says_is_escaped_on_the_pages(store):
    """Its names, its reasons and its question."""
    evil = "<script>alert(1)</script>"
    run = a_run(a_trial(evil), a_failed_trial("urllib3", evil), name="20240506-070809-evil-abcd", question=evil)
    keep(store, run)
    for path in ("/", f"/runs/{run.run}"):
        status, text, _ = asked(store, "GET", path)
        assert status == 200
        assert evil not in text
        assert "&lt;script&gt;alert(1)" in text


def test_the_page_has_no_script_or_style_of_its_own(store):
    """What it links to is served."""
    text = asked(store, "GET", "/")[1]
    assert not re.search(r"<script(?! src)|<style| on\w+=| style=", text)
    for link in re.findall(r'(?:src|href)="(/static/[^"]+)"', text):
        assert asked(store, "GET", link)[0] == 200
    assert asked(store, "GET", "/static/../app.py")[0] == 404


@pytest.mark.parametrize("name", ["none", "..%2F..%2Fetc"])
def test_a_run_that_is_not_there_is_not_found(store, name):
    """Nor anything beside the results folder."""
    assert asked(store, "GET", f"/api/runs/{name}")[0] == 404


def test_a_file_that_is_no_run_is_said_on_the_page_and_hides_no_other(store):
    """The page names a damaged run and still lists all others."""
    keep(store, a_run(a_trial()))
    (store.claim("20240508-070809-broken-abcd") / "run.json").write_text("{")
    text = asked(store, "GET", "/")[1]
    assert "not a whole JSON document" in text
    assert "20240506-070809-run-abcd" in text


def test_a_row_names_the_cautions_of_its_run(store):
    """Its answer must not be read without them."""
    caution = Caution(kind="percentiles-of-failures", text="percentiles fall on failed requests", advice="mend them")
    keep(store, a_run(a_trial()).model_copy(update={"cautions": [caution]}))
    assert "Cautions: percentiles fall on failed requests" in asked(store, "GET", "/")[1]
