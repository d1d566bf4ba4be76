"""The run document."""

from __future__ import annotations

import pytest

from clientlab.results.document import Run
from clients.documents import a_failed_trial, a_run, a_trial


@pytest.mark.parametrize("run", [a_run(), a_run(a_trial(), a_failed_trial("pycurl"))], ids=["new", "with trials"])
def test_run_documents_are_read_back_equal(run):
    """From their JSON."""
    assert Run.model_validate_json(run.model_dump_json()) == run
