"""The standings of a run in progress: in the API, on the page, and in a browser that is not reloaded."""

from __future__ import annotations

import asyncio
import contextlib
import re

import httpx
import pytest
from playwright.sync_api import Locator, expect

from browser import headless_chromium
from clientlab.reports.charts.chart_data import HUES, colour_of
from clientlab.results.streams import Streams
from clientlab.results.trial import utc_now
from clientlab.service.standings import standings_of
from clientlab.workload.workload import Workload
from clients.documents import a_run, a_trial, an_open_trial, quantiles
from clients.labs import TOKEN, Labs
from clients.service.requests_to_lab import ASSIGNMENT_REQUEST, BEARER, asked, serving
from running import eventually

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


def test_without_a_run_there_are_no_standings(store):
    """In the API, and on the page in a sentence."""
    status, text, _ = asked(store, "GET", "/api/standings")
    assert (status, text) == (200, '{"run":null,"ended":0,"rounds_planned":null,"groups":[]}')
    assert "No trial has ended yet." in asked(store, "GET", "/")[1]


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


def test_an_arm_without_a_speed_is_listed_with_its_errors(store):
    """No bar is drawn, and an unknown number is a dash."""

    async def go():
        async with serving(store, first=a_plan()) as client:
            for _ in range(2):
                assignment = (await client.post("/api/assignments", headers=BEARER, json=ANYTHING)).json()
                result = result_of(assignment)
                if assignment["trial"]["strategy"] == "requests":
                    result["trial"] |= {"requests_per_second": None, "errors": {"timeout": 999}}
                await client.post("/api/results", headers=BEARER, json=result)
            return (await client.get("/api/standings")).json(), (await client.get("/")).text

    found, page = asyncio.run(go())
    slow = found["groups"][0]["rows"][1]
    assert (slow["name"], slow["requests_per_second"], slow["errors"]) == ("requests", None, 999)
    assert page.count("<svg") == 1
    assert "<td>–</td><td>–</td>" in page


def test_arms_of_an_open_load_stand_by_their_p99_and_not_by_a_rate_that_the_schedule_decides():
    """The bar of the quicker arm is shorter; a p99 that falls on dropped requests is a lower bound."""
    quick = [an_open_trial("urllib3", number, 0.010 + number / 1000) for number in (1, 2, 3)]
    slow = [an_open_trial("requests", number, 2.0, at_least=["p99"], errors={"dropped": 9}) for number in (1, 2, 3)]
    plan = {"workloads": {"workload": Workload(rate=200, requests=1000)}}
    (group,) = standings_of(a_run(*slow, *quick, **plan)).groups
    assert group.figure == "p99"
    assert [(row.name, row.text) for row in group.rows] == [("urllib3", "12.0 ms"), ("requests", "≥ 2.00 s")]
    assert [row.value for row in group.rows] == pytest.approx([0.012, 2.0])
    assert group.rows[0].interval[0] < 0.012 < group.rows[0].interval[1]
    assert re.fullmatch(r"[\d.]+ ms to [\d.]+ ms", group.rows[0].interval_text)
    assert group.rows[1].interval is None
    assert group.scale == 2.0


@pytest.mark.parametrize(("ranking", "figure"), [("cpu", "CPU/event"), ("lag", "lag p50")])
def test_arms_of_streams_stand_by_what_they_are_ranked_by(ranking, figure):
    """The server decides how many streams end in a second: the cheaper arm has the shorter bar, and is the first."""

    def trial(strategy: str, number: int, seconds: float):
        found = Streams(ranked_by=ranking, events=1000, most_open=1, lag_seconds=quantiles(seconds, seconds))
        return a_trial(strategy, number, cpu_seconds=1000 * seconds * (1 + number / 100), streams=found)

    trials = [trial("requests-session", number, 4e-4) for number in (1, 2, 3)]
    trials += [trial("urllib3", number, 2e-4) for number in (1, 2, 3)]
    (group,) = standings_of(a_run(*trials, workloads={"workload": Workload(stream="sse", requests=1000)})).groups
    assert group.figure == figure
    assert [row.name for row in group.rows] == ["urllib3", "requests-session"]
    assert [row.value for row in group.rows] == pytest.approx([2e-4, 4e-4], rel=0.05)
    assert all("µs" in row.text for row in group.rows)
    assert all(row.requests_per_second == 1000 for row in group.rows)


def ended_on(rows: Locator) -> int:
    """The trials that rows of standings count: "2 of 3" are two."""
    return sum(int(text.split()[0]) for text in rows.locator("td:nth-child(7)").all_inner_texts())


@pytest.mark.slow
def test_the_page_shows_a_new_leader_without_a_reload(tmp_path):
    """A browser is open while a worker's results come in; rows are sorted anew, and the leader is announced."""
    text = 'question = "?"\nstrategies = ["requests", "urllib3"]\nrounds = 3\n[workloads.small]\nrequests = 1000'
    with contextlib.ExitStack() as stack:
        lab = Labs(tmp_path, 1, stack).serve(text)
        client = stack.enter_context(httpx.Client(base_url=lab.url, headers={"Authorization": f"Bearer {TOKEN}"}))

        def measure() -> str:
            assignment = client.post("/api/assignments", json=ANYTHING, timeout=30).json()
            assert client.post("/api/results", json=result_of(assignment)).json()["taken"]
            return assignment["trial"]["strategy"]

        page = stack.enter_context(headless_chromium()).new_page()
        said = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(lab.url)
        page.evaluate("window.unchanged = true")
        rows = page.locator(".standings tbody tr")
        order = [measure()]
        expect(rows).to_have_count(1)
        assert rows.first.inner_text().startswith(order[0])
        for count in range(2, 6):
            measure()
            eventually(lambda ended=count: ended_on(rows) == ended, "the page shows the trial")
        assert rows.first.inner_text().startswith("urllib3")
        assert "3 of 3" in rows.first.inner_text() + rows.last.inner_text()
        widths = [float(rows.nth(place).locator("rect").first.get_attribute("width")) for place in (0, 1)]
        assert widths[0] > widths[1] > 0
        if order[0] == "requests":
            assert page.get_by_role("status").inner_text() == "Ahead now: urllib3"
        assert page.evaluate("window.unchanged")
        assert [line for line in said if "favicon" not in line and "404" not in line] == []
