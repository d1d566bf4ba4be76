"""The client of docs/own-client.md, as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clientlab.cli import run_command_line
from clientlab.conformance.server import counting_server
from clientlab.results.store import Store
from docs.pages import TEXTS


@pytest.mark.real
def test_it_is_measured_beside_a_listed_one(tmp_path, monkeypatch):
    found = re.search(
        r"<!-- client.py -->\n```python\n(.*?)```",
        TEXTS["docs/own-client.md"],
        re.DOTALL,
    )
    assert found
    (tmp_path / "client.py").write_text(found[1])
    monkeypatch.chdir(tmp_path)
    names = ["client.py:Mine@threads?block=false", "urllib3"]
    asked = [word for name in names for word in ("-t", name)]
    with counting_server() as server:
        assert (
            run_command_line(
                [
                    "run",
                    *asked,
                    "-n",
                    "20",
                    "-c",
                    "3",
                    "--rounds",
                    "1",
                    "--url",
                    server.url,
                ]
            )
            == 0
        )
    run = Store(Path("results")).read("last")
    assert {
        trial.planned.strategy: (trial.figures.requests, trial.figures.errors)
        for trial in run.trials
    } == dict.fromkeys(names, (20, {}))
    assert run.surroundings.libraries[str(Path("client.py").resolve())].startswith(
        "sha256:"
    )
