"""The standings of a run in progress: in the API and on the page."""

from __future__ import annotations

import asyncio
import re

import pytest

from clientlab.reports.charts.chart_data import HUES, colour_of
from clientlab.results.trial import utc_now
from clients.documents import a_run, a_trial
from clients.service.requests_to_lab import ASSIGNMENT_REQUEST, BEARER, serving

WALLS = {"urllib3": (1.0, 1.1, 0.9), "requests": (2.0, 2.2, 1.8)}
ANYTHING = ASSIGNMENT_REQUEST | {"strategies": ["*"]}


def a_plan():
    """An experiment of two strategies and three rounds."""
    return a_run(*(a_trial(name) for name in WALLS), rounds=3).experiment


def result_of(assignment: dict) -> dict:
    """What a worker sends for an assignment: 1,000 requests in the seconds of the round."""
    planned = assignment["trial"]
    wall = WALLS[planned["strategy"]][planned["round"] - 1]
    trial = a_trial(wall=wall, started=utc_now()).model_dump(mode="json") | planned
    return {"worker": "a" * 16, "run": assignment["run"], "trial": trial}


@pytest.mark.real
def test_the_standings_follow_each_trial_that_ends(store):
    """Sorted, with value and rounds so far, and an interval from three rounds on. The page needs no script for them."""

    async def go():
        async with serving(store, first=a_plan()) as client:
            seen = []
            for _ in range(6):
                assignment = (await client.post("/api/assignments", headers=BEARER, json=ANYTHING)).json()
                await client.post("/api/results", headers=BEARER, json=result_of(assignment))
                seen.append((await client.get("/api/standings")).json())
            return seen, (await client.get("/")).text

    seen, page = asyncio.run(go())
    assert [one["ended"] for one in seen] == [1, 2, 3, 4, 5, 6]
    assert [len(one["groups"][0]["rows"]) for one in seen][:2] == [1, 2]
    assert all(row["interval"] is None for one in seen[:4] for row in one["groups"][0]["rows"])
    (group,) = seen[-1]["groups"]
    first, second = group["rows"]
    assert (first["name"], second["name"], first["rounds"]) == ("urllib3", "requests", 3)
    assert (first["requests_per_second"], second["requests_per_second"]) == (1000, 500)
    assert first["colour"] == HUES[colour_of("urllib3")].either
    assert first["interval"][0] < 1000 < first["interval"][1] == group["scale"]
    # Twice the seconds in each round: half the speed, at both ends.
    assert second["interval"] == pytest.approx([end / 2 for end in first["interval"]])
    cells = [
        re.sub(r"<[^>]+>", " ", row).split() for row in re.findall(r'<tr><th scope="row">.*?</tr>', page, re.DOTALL)
    ]
    assert [(row[0], row[2], row[-4:]) for row in cells] == [
        ("urllib3", "1,000", ["3", "of", "3", "0"]), ("requests", "500", ["3", "of", "3", "0"]),
    ]  # fmt: skip
