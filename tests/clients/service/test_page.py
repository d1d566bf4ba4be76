"""The service's pages."""

from __future__ import annotations

from clients.documents import a_failed_trial, a_run, a_trial
from clients.service.requests_to_lab import asked, keep


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
