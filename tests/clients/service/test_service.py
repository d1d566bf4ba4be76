"""The service's pages and API over real sockets, in this process; its workers are played by the test."""

from __future__ import annotations

import asyncio
import io
import re
from contextlib import asynccontextmanager

import pytest
from aiohttp.test_utils import TestClient, TestServer
from openapi_spec_validator import validate
from prometheus_client.parser import text_string_to_metric_families

from clientlab import __version__
from clientlab.runs.experiment_file import bundled, read_experiment
from clientlab.runs.store import Store
from clientlab.service.app import ROUTES, Settings, application
from clientlab.service.conductor import MARK
from clientlab.service.guard import RESULT_BODY, SMALL_BODY, known_hosts
from clientlab.service.turns import Bounds
from clients.documents import a_failed_trial, a_run, a_trial

TOKEN = "of the test"  # noqa: S105 - as it says
BEARER = {"Authorization": f"Bearer {TOKEN}"}
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
ASKING = {"worker": "a" * 16, "host": "here", "strategies": ["urllib3"]}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def keep(store: Store, run) -> None:
    """Put a run into the store."""
    store.claim(run.run)
    store.save(run)


@asynccontextmanager
async def serving(store: Store, token: str = TOKEN, patience: float = 30.0):
    """The service on a free port, and a client for it."""
    settings = Settings(store.folder, token, "http://grafana.test/", None, {}, Bounds(patience, 0.1, 30.0))
    async with TestClient(TestServer(application(settings))) as client:
        yield client


def asked(store: Store, method: str, path: str, token: str = TOKEN, **request):
    """Status, text and headers of one request to a service of its own."""

    async def go():
        async with (
            serving(store, token) as client,
            client.request(method, path, allow_redirects=False, **request) as got,
        ):
            return got.status, await got.text(), got.headers

    return asyncio.run(go())


def test_the_description_is_valid_and_has_every_route(store):
    """By a validator of OpenAPI 3.1; each route of the router, and none that is not there."""

    async def go():
        async with serving(store) as client:
            async with client.get("/api/openapi.json") as answer:
                described = await answer.json()
            routes = {
                (route.method.lower(), route.resource.canonical)
                for route in client.app.router.routes()
                if route.method != "HEAD"
            }
            return described, routes

    described, routes = asyncio.run(go())
    validate(described)
    assert {(method, path) for path, methods in described["paths"].items() for method in methods} == routes
    assert len(routes) == len(ROUTES)
    assert described["paths"]["/api/results"]["post"]["security"] == [{"token": []}]


@pytest.mark.parametrize("path", ["/api/turns", "/api/beats", "/api/results", "/api/runs"])
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer another"}, {"Authorization": TOKEN + "x"}])
def test_who_does_not_know_the_token_is_refused(store, path, headers):
    """Before a word of the body is read."""
    status, text, _ = asked(store, "POST", path, headers=headers, data=b"x" * 10)
    assert status == 401
    assert "wrong token" in text


def test_a_token_that_is_no_text_and_a_path_with_a_line_break_are_refused_in_one_line(store, caplog):
    """Bytes that are no UTF-8 are the wrong token, and no path writes a line of its own into the log."""

    async def go():
        async with serving(store) as client:
            reader, writer = await asyncio.open_connection(client.host, client.port)
            writer.write(b"POST /runs/x%0A2026%20forged/again HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
            forged = await reader.readline()
            writer.close()
            reader, writer = await asyncio.open_connection(client.host, client.port)
            writer.write(b"POST /api/turns HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \xff\xfe\r\n\r\n")
            token = await reader.readline()
            writer.close()
            return forged, token

    forged, token = asyncio.run(go())
    assert b" 403 " in forged
    assert b" 401 " in token
    said = [record.getMessage() for record in caplog.records if record.name == "clientlab.service"]
    assert any("x%0A2026%20forged" in line for line in said)
    assert not any("\n" in line for line in said)


def test_a_service_without_a_token_trusts_everybody(store):
    """It listens on loopback only; the command sees to that."""
    status, text, _ = asked(store, "POST", "/api/runs", token="", json={"experiment": "none"})
    assert (status, "is unknown" in text) == (409, True)


@pytest.mark.parametrize(
    ("path", "size"), [("/api/turns", SMALL_BODY), ("/api/runs", SMALL_BODY), ("/api/results", RESULT_BODY)]
)
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_limit_is_refused_with_the_limit(store, path, size, chunked):
    """Whether its length is said beforehand or not."""

    async def pieces():
        for _ in range(size // 1024 + 1):
            yield b"x" * 1024

    body = pieces() if chunked else io.BytesIO(b"x" * (size + 1))
    headers = {**BEARER, "Content-Type": "application/json"}
    status, text, _ = asked(store, "POST", path, headers=headers, data=body)
    assert status == 413
    assert f"larger than {size:,} bytes" in text


@pytest.mark.parametrize(
    ("path", "document", "where"),
    [
        ("/api/turns", ASKING | {"more": 1}, "more: "),
        ("/api/turns", ASKING | {"worker": "../../etc"}, "worker: "),
        ("/api/turns", ASKING | {"strategies": []}, "strategies: "),
        ("/api/turns", [], "body: "),
        ("/api/beats", {"worker": "a" * 16, "run": "r", "order": -1, "finished": 0}, "order: "),
        ("/api/results", {"worker": "a" * 16, "run": "r", "trial": {"arm": "x"}}, "trial.strategy: "),
        ("/api/runs", {"experiment": "demo", "rounds": 0}, "rounds: "),
    ],
)
def test_what_has_another_shape_is_refused_with_the_field(store, path, document, where):
    """Unknown fields too."""
    status, text, _ = asked(store, "POST", path, headers=BEARER, json=document)
    assert status == 422
    assert where in text


def test_what_is_no_json_is_refused(store):
    """A browser could send it for another site without asking."""
    assert asked(store, "POST", "/api/runs", headers=BEARER, data="{}")[0] == 415


def test_a_result_for_another_run_is_refused(store):
    """With its name in the line."""
    document = {"worker": "a" * 16, "run": "another", "trial": a_trial().model_dump(mode="json")}
    status, text, _ = asked(store, "POST", "/api/results", headers=BEARER, json=document)
    assert status == 409
    assert "trial 0 of run 'another' is not waited for" in text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.test"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "http://evil.test"}, 403),
        (SAME_ORIGIN, 409),
    ],
)
def test_a_form_of_another_site_is_refused(store, headers, status):
    """A browser says where it comes from; without a word of it nothing is begun."""
    assert asked(store, "POST", "/stop", headers=headers)[0] == status


def test_an_unknown_experiment_is_said_on_the_page(store):
    """With those there are; nothing is begun, and what was written is escaped."""
    form = {"experiment": "<script>alert(1)</script>", "rounds": ""}
    status, text, _ = asked(store, "POST", "/start", headers=SAME_ORIGIN, data=form)
    assert status == 409
    assert "is unknown; there are" in text
    assert "<script>alert" not in text
    assert store.names() == []


@pytest.mark.parametrize("name", bundled())
def test_the_form_begins_whatever_experiment_it_offers(store, name):
    """Any bundled one that is on it; the others are refused, and nothing is begun."""
    on_form = f'<option value="{name}"' in asked(store, "GET", "/")[1]
    status, text, _ = asked(store, "POST", "/start", headers=SAME_ORIGIN, data={"experiment": name, "rounds": "1"})
    assert (status, len(store.names())) == ((303, 1) if on_form else (409, 0)), text


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:1", 200), ("127.0.0.1:9", 200), ("[::1]:8", 200), ("lab:8080", 200), ("LAB", 200), ("evil.test", 421),
     ("evil.test:8000", 421), ("lab.evil.test", 421), ("[", 421)],
)  # fmt: skip
def test_the_service_answers_only_to_its_own_names(store, host, status):
    """A name of another site that leads here is refused, with the variable that allows it."""
    got, text, _ = asked(store, "GET", "/api/state", headers={"Host": host})
    assert got == status
    assert ("LAB_HOSTS" in text) == (status == 421)


def test_names_of_the_variable_are_known_as_well():
    """Beside the host that it listens on."""
    assert {"mine.test", "two.test", "10.0.0.5", "lab"} <= known_hosts("10.0.0.5", " Mine.test,two.test,")
    assert "" not in known_hosts("", "")


def test_what_was_refused_is_on_the_page_escaped_and_bounded(store):
    """The last ten, with the reason."""

    async def go():
        async with serving(store) as client:
            for number in range(12):
                async with client.post(f"/api/turns?<b>{number}", headers={}) as answer:
                    assert answer.status == 401
            async with client.get("/api/state") as answer:
                refusals = (await answer.json())["refusals"]
            async with client.get("/") as answer:
                return refusals, await answer.text()

    refusals, page = asyncio.run(go())
    assert len(refusals) == 10
    assert "401, wrong token" in refusals[-1]
    assert page.count("401, wrong token") == 10
    assert "<b>" not in page


def test_the_form_begins_an_experiment_and_one_at_a_time(store):
    """The run's first trial waits for a worker; a second run is refused, and stopping keeps what there is."""

    async def go():
        async with serving(store) as client:

            async def post(path, **form):
                async with client.post(path, headers=SAME_ORIGIN, data=form, allow_redirects=False) as answer:
                    return answer.status, await answer.text()

            assert (await post("/start", experiment="demo", rounds="1"))[0] == 303
            status, text = await post("/start", experiment="demo")
            assert (status, "is in progress" in text) == (409, True)
            (name,) = store.names()
            async with client.post("/api/turns", headers=BEARER, json=ASKING | {"strategies": ["*"]}) as answer:
                turn = await answer.json()
            assert turn["run"] == name
            async with client.get("/api/state") as answer:
                state = await answer.json()
            assert (state["measuring"], state["experiment"], state["planned"]) == (True, "demo", 16)
            assert [worker["state"] for worker in state["workers"]] == ["measuring"]
            async with client.get("/metrics") as answer:
                left = f'clientlab_schedule_trials{{experiment="demo",run="{name}",state="left"}} 16.0'
                assert left in await answer.text()
            assert (await post("/stop"))[0] == 303
            await asyncio.wait_for(ended(client), 10)
            run = store.read(name)
            assert (run.status, run.trials[0].reason) == ("incomplete", "stopped on request")
            assert (await post(f"/runs/{name}/again"))[0] == 303
            assert len(store.names()) == 2
            again = store.read(store.names()[1])
            assert (again.experiment, again.status, again.trials) == (run.experiment, "running", [])

    asyncio.run(go())


def test_between_a_restart_and_the_next_trial_a_worker_that_has_it_is_told_to_go_on(store):
    """Its result is to be sent again, and not thrown away; any other trial is refused as ever."""
    run = a_run(a_trial()).model_copy(update={"status": "running", "clientlab": __version__})
    (store.claim(run.run) / MARK).touch()
    store.save(run)

    async def go():
        with store.alone(lambda: None):  # the run's thread waits as long, as it does for a moment at any start
            async with serving(store) as client:

                async def post(path, **document):
                    async with client.post(path, headers=BEARER, json={"worker": "a" * 16, **document}) as answer:
                        return answer.status, await answer.json()

                for order, wanted in ((0, False), (1, True), (2, False)):
                    trial = a_trial(order=order).model_dump(mode="json") | {"wall_seconds": 3.0}
                    beat = await post("/api/beats", run=run.run, order=order, finished=1)
                    assert beat == (200, {"go_on": wanted})
                    status, said = await post("/api/results", run=run.run, trial=trial)
                    assert (status == 503) == wanted, said

    asyncio.run(go())


@pytest.mark.parametrize(
    ("mark", "experiment", "goes_on"), [("demo", "demo", True), ("demo", "other", True), ("semaphore", "other", False)]
)
def test_another_experiment_than_before_is_begun_and_the_unfinished_run_is_kept(store, mark, experiment, goes_on):
    """The same one goes on, and so does what was started on the page of a service for the same."""
    run = a_run(a_trial(), name="20240506-070809-other-abcd", rounds=2)
    run = run.model_copy(
        update={
            "status": "running",
            "clientlab": __version__,
            "experiment": run.experiment.model_copy(update={"name": experiment}),
        }
    )
    (store.claim(run.run) / MARK).write_text(mark)
    store.save(run)
    first = (read_experiment(bundled()["demo"]), "clientlab run demo")
    settings = Settings(store.folder, TOKEN, "", first, {}, Bounds(30.0, 0.1, 30.0))

    async def go():
        async with TestClient(TestServer(application(settings))) as client, client.get("/api/state") as answer:
            return await answer.json()

    state = asyncio.run(go())
    assert store.read(run.run).trials == run.trials
    if goes_on:
        assert (store.names(), store.read(run.run).status) == ([run.run], "running")
    else:
        assert (len(store.names()), store.read(run.run).status, state["experiment"]) == (2, "incomplete", "demo")


def test_a_run_against_another_server_is_not_run_again(store):
    """The service has only its own upstreams."""
    run = a_run(a_trial(upstream="example.test:80"))
    keep(store, run)
    status, text, _ = asked(store, "POST", f"/runs/{run.run}/again", headers=SAME_ORIGIN)
    assert status == 409
    assert "measured example.test:80, and not the lab&#39;s own upstreams" in text
    assert store.names() == [run.run]


async def ended(client) -> None:
    """Wait until no run is in progress."""
    while True:
        async with client.get("/api/state") as answer:
            if not (await answer.json())["measuring"]:
                return
        await asyncio.sleep(0.01)


def test_every_bundled_experiment_that_can_run_here_is_on_the_form(store):
    """By its name; one that sets up its own servers is left out, with the reason."""
    text = asked(store, "GET", "/")[1]
    offered = set(re.findall(r'<option value="([^"]+)"', text))
    assert set(bundled()) - offered == {"frameworks-servers"} == set(re.findall(r"Not here, ([a-z-]+): \S", text))
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


@pytest.mark.parametrize("path", ["/", "/api/state", "/nothing", "/metrics"])
def test_every_answer_forbids_what_the_page_does_not_need(store, path):
    """No inline script or style, no frame, no guessing of types."""
    headers = asked(store, "GET", path)[2]
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"


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


def test_finished_runs_are_metrics(store):
    """The figures of the run file: medians over rounds, an interval from three on, errors in all."""
    walls = (1.0, 2.0, 4.0)
    trials = [a_trial("urllib3", number, wall, errors={"reset": 1}) for number, wall in enumerate(walls, 1)]
    keep(store, a_run(*trials, a_failed_trial("pycurl")))
    keep(store, a_run(a_trial(), name="20240507-070809-run-abcd").model_copy(update={"status": "running"}))
    found = {}
    for family in text_string_to_metric_families(asked(store, "GET", "/metrics")[1]):
        for sample in family.samples:
            if "run" in sample.labels:
                assert sample.labels["run"] == "20240506-070809-run-abcd"
                key = (
                    sample.name.removeprefix("clientlab_run_"),
                    sample.labels.get("quantile", sample.labels.get("verdict")),
                )
                found[key] = sample.value
    assert found["wall_seconds", None] == 2.0
    assert found["wall_seconds_low", None] < 2.0 < found["wall_seconds_high", None]
    assert found["requests_per_second", None] == 500
    assert (found["latency_seconds", "0.5"], found["latency_seconds", "0.99"]) == (0.002, 0.009)
    assert found["cpu_seconds_per_request", None] == 0.0005
    assert found["peak_memory_bytes", None] == 32 << 20
    assert found["connections_opened", None] == 1
    assert found["errors", None] == 3
    assert found["verdict", "client-bound"] == 1
    assert found["created_timestamp_seconds", None] == 1714979289
    assert found["info", None] == 1
    assert ("overhead_seconds", None) not in found


def test_a_figure_that_is_not_known_has_no_sample(store):
    """A 0 would look measured; where some of the rounds know it, theirs is the median."""
    unknown = {"connections_opened": None, "cpu_seconds": None, "peak_rss_bytes": None}
    trials = [a_trial(**unknown), a_trial(round=2, order=1, **unknown | {"connections_opened": 5})]
    keep(store, a_run(*trials))
    text = asked(store, "GET", "/metrics")[1]
    samples = [line for line in text.splitlines() if line.startswith("clientlab_run_")]
    assert [line.split()[-1] for line in samples if "connections_opened{" in line] == ["5.0"]
    assert not [line for line in samples if "cpu_seconds" in line or "peak_memory" in line]


def test_a_file_that_is_no_run_is_said_on_the_page_and_hides_no_other(store):
    """What was damaged is named."""
    keep(store, a_run(a_trial()))
    (store.claim("20240508-070809-broken-abcd") / "run.json").write_text("{")
    text = asked(store, "GET", "/")[1]
    assert "not a whole JSON document" in text
    assert "20240506-070809-run-abcd" in text
