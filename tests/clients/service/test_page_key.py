"""The key of the page's buttons: who can reach the page reads it, and who has the key starts and stops runs."""

from __future__ import annotations

import contextlib
import re

import httpx
import pytest

from browser import headless_chromium
from clientlab.errors import LabError
from clientlab.service.page_key import KEY_FILE, page_key
from clients.documents import a_run, a_trial
from clients.labs import Labs, state
from clients.service.requests_to_lab import KEY, SAME_ORIGIN, TOKEN, asked, keep
from running import eventually


@pytest.mark.parametrize("path", ["/start", "/stop", "/runs/20240506-070809-run-abcd/again"])
@pytest.mark.parametrize("fields", [{}, {"key": ""}, {"key": "a guess"}, {"key": TOKEN}, {"key": "%ED%A0%80"}])
@pytest.mark.parametrize("token", [TOKEN, ""])
def test_no_form_is_obeyed_without_the_key(store, path, fields, token):
    """Another container can send all that a browser sends; it knows no key. The page is the answer, and says why."""
    keep(store, a_run(a_trial()))
    data = "&".join(f"{name}={value}" for name, value in fields.items())
    status, text, _ = asked(store, "POST", path, token, headers=SAME_ORIGIN, content=f"{data}&experiment=demo")
    assert (status, len(store.names())) == (403, 1)
    assert "the key is missing or wrong; open the link that the lab printed" in text
    assert KEY.text not in text


def test_no_page_and_no_answer_holds_the_key(store):
    """Who reads everything that is served has not learnt it."""
    run = a_run(a_trial())
    keep(store, run)
    for path in ("/", f"/runs/{run.run}", "/api/state", "/api/runs", "/api/standings", "/metrics", "/static/lab.js"):
        assert KEY.text not in asked(store, "GET", path)[1]


def test_a_key_is_drawn_once_and_only_its_owner_reads_it(tmp_path):
    """The link of an earlier start goes on to work."""
    results = tmp_path / "results"
    first = page_key({}, results)
    assert page_key({}, results) == first
    assert len(first.text) >= 43
    assert (results / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert first.line("http://localhost:8080").endswith(f"http://localhost:8080/#key={first.text}")


def test_a_key_of_the_users_own_is_not_printed(tmp_path):
    """It needs no link, and a log may be read by others. A short one could be guessed."""
    key = page_key({"LAB_KEY": "0123456789abcdef"}, tmp_path)
    assert key.fits("0123456789abcdef")
    assert key.text not in key.line("http://localhost:8080")
    for bad in ("short", "with a space in it", "ü" * 20):
        with pytest.raises(LabError, match="LAB_KEY: write 16 to 200 letters"):
            page_key({"LAB_KEY": bad}, tmp_path)


def test_a_key_file_that_is_empty_or_can_not_be_written_is_refused(tmp_path):
    """With the file's name: nobody could press a button, or everybody could."""
    (tmp_path / KEY_FILE).touch()
    with pytest.raises(LabError, match=f"{KEY_FILE}: the file is empty"):
        page_key({}, tmp_path)
    with pytest.raises(LabError, match=r"results folder .*: Not a directory"):
        page_key({}, tmp_path / KEY_FILE / "results")


@pytest.mark.slow
def test_the_link_of_the_log_makes_the_buttons_work_without_typing(tmp_path):
    """In a browser, also after the page was opened again without the key; and without the link, a field asks for it."""
    text = 'question = "?"\nstrategies = ["requests"]\n[workloads.small]\nrequests = 1000'
    with contextlib.ExitStack() as stack:
        lab = Labs(tmp_path, 1, stack).serve(text, "--idle")
        eventually(lambda: "#key=" in lab.said, "the link")
        link = re.search(r"(http://\S+)/#key=(\S+)", lab.said)
        context = stack.enter_context(headless_chromium()).new_context()
        page = context.new_page()
        page.goto(link[1])
        assert page.get_by_label("Key").first.is_visible()
        page.goto(link[0])
        page.reload()
        page.goto(link[1])
        assert page.url == f"{link[1]}/"
        assert not page.get_by_label("Key").first.is_visible()
        page.get_by_role("button", name="Start").click()
        eventually(lambda: state(lab)["measuring"], "the run begins")
        page.get_by_role("button", name="Stop this run").click()
        eventually(lambda: not state(lab)["measuring"], "the run has ended")
        assert context.cookies() == []
        answer = httpx.post(f"{lab.url}/stop", headers=SAME_ORIGIN, data={"key": "another"})
        assert answer.status_code == 403
