"""Runs that the service begins, one at a time, and goes on with after a restart; the test plays the worker."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from clientlab import __version__
from clientlab.experiments.file import bundled, read_plan
from clientlab.results.target import Target
from clientlab.service.run_manager import MARK
from clients.documents import a_run, a_trial
from clients.service.requests_to_lab import ASSIGNMENT_REQUEST, BEARER, asked, form, keep, serving

STACK = Target(testbed="compose")


def test_the_form_begins_an_experiment_and_one_at_a_time(store):
    """The run's first trial waits for a worker; a second run is refused, and stopping keeps what there is."""

    async def go():
        async with serving(store) as client:

            async def post(path, **fields):
                answer = await client.post(path, **form(**fields))
                return answer.status_code, answer.text

            assert (await post("/start", experiment="demo", rounds="1"))[0] == 303
            status, text = await post("/start", experiment="demo")
            assert (status, "is in progress" in text) == (409, True)
            (name,) = store.names()
            anything = ASSIGNMENT_REQUEST | {"strategies": ["*"]}
            assignment = (await client.post("/api/assignments", headers=BEARER, json=anything)).json()
            assert assignment["run"] == name
            state = (await client.get("/api/state")).json()
            assert (state["measuring"], state["experiment"], state["planned"]) == (True, "demo", 12)
            assert [worker["state"] for worker in state["workers"]] == ["measuring"]
            left = f'clientlab_schedule_trials{{experiment="demo",run="{name}",state="left"}} 12.0'
            assert left in (await client.get("/metrics")).text
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
    run = a_run(a_trial()).model_copy(update={"status": "running", "clientlab": __version__, "target": STACK})
    (store.claim(run.run) / MARK).touch()
    store.save(run)

    async def go():
        with store.alone(lambda: None):  # the run's thread waits as long, as it does for a moment at any start
            async with serving(store) as client:

                async def post(path, **document):
                    answer = await client.post(path, headers=BEARER, json={"worker": "a" * 16, **document})
                    return answer.status_code, answer.json()

                for order, wanted in ((0, False), (1, True), (2, False)):
                    trial = a_trial(order=order).model_dump(mode="json") | {"wall_seconds": 3.0}
                    heartbeat = await post("/api/heartbeats", run=run.run, order=order, finished=1)
                    assert heartbeat == (200, {"wanted": wanted})
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
            "target": STACK,
            "experiment": run.experiment.model_copy(update={"name": experiment}),
        }
    )
    (store.claim(run.run) / MARK).write_text(mark)
    store.save(run)
    first = read_plan(bundled()["demo"])

    async def go():
        async with serving(store, first=first) as client:
            return (await client.get("/api/state")).json()

    state = asyncio.run(go())
    assert store.read(run.run).trials == run.trials
    if goes_on:
        assert (store.names(), store.read(run.run).status) == ([run.run], "running")
    else:
        assert (len(store.names()), store.read(run.run).status, state["experiment"]) == (2, "incomplete", "demo")


def test_a_run_that_runs_a_file_is_not_gone_on_with_at_the_start(store):
    """Whoever can write to the results folder could have put it there."""
    run = a_run(a_trial("mine.py:Client"), name="20240506-070809-demo-abcd", rounds=2)
    (store.claim(run.run) / MARK).write_text("demo")
    store.save(run.model_copy(update={"status": "running", "clientlab": __version__, "target": STACK}))

    async def go():
        async with serving(store, first=read_plan(bundled()["demo"])) as client:
            return (await client.get("/api/state")).json()

    assert asyncio.run(go())["run"] != run.run
    assert len(store.read(run.run).trials) == 1


def test_a_run_of_other_servers_is_left_as_it_is(store):
    """A run of local servers, or of a URL, may lie in the folder with the service's mark: it is not gone on with."""
    run = a_run(a_trial(), name="20240506-070809-demo-abcd", rounds=2)
    (store.claim(run.run) / MARK).write_text("demo")
    store.save(run.model_copy(update={"status": "running", "clientlab": __version__}))

    async def go():
        async with serving(store, first=read_plan(bundled()["demo"])) as client:
            return (await client.get("/api/state")).json()

    assert asyncio.run(go())["run"] != run.run
    assert len(store.read(run.run).trials) == 1


def test_a_run_that_another_process_has_finished_is_left_alone(store):
    """Two services have one results folder: the second reads the run again when the first has finished."""
    run = a_run(a_trial(), name="20240506-070809-demo-abcd", rounds=2)
    run = run.model_copy(update={"status": "running", "clientlab": __version__, "target": STACK})
    (store.claim(run.run) / MARK).write_text("demo")
    store.save(run)
    finished = run.model_copy(update={"status": "done", "trials": [a_trial(), a_trial(number=2, order=1)]})

    async def go():
        with contextlib.ExitStack() as first_service:
            first_service.enter_context(store.alone(pytest.fail))
            async with serving(store, first=read_plan(bundled()["demo"])) as client:
                store.save(finished)
                first_service.close()
                while (await client.get("/api/state")).json()["measuring"]:  # noqa: ASYNC110 - it has no event
                    await asyncio.sleep(0.01)
                return (await client.get("/api/state")).json()["message"]

    assert asyncio.run(go()) == f"{run.run} was ended by another process with 2 trials"
    assert store.read(run.run) == finished


@pytest.mark.parametrize("executor", ["", "@threads"])
def test_a_run_of_a_strategy_file_is_not_run_again_and_its_file_is_not_loaded(store, tmp_path, executor):
    """A run file may come from anybody, and the file that it names may lie on this machine."""
    mark = tmp_path / "was-run"
    code = tmp_path / "own.py"
    code.write_text(f"open({str(mark)!r}, 'w')\n")
    run = a_run(a_trial(f"{code}:Own{executor}"))
    keep(store, run)
    status, text, _ = asked(store, "POST", f"/runs/{run.run}/again", **form())
    assert (status, store.names(), mark.exists()) == (409, [run.run], False)
    assert "measure it with &#39;clientlab run&#39;" in text


def test_a_run_of_very_many_rounds_is_not_run_again(store):
    """It would keep the service busy for years."""
    run = a_run(a_trial(), rounds=1001)
    keep(store, run)
    status, text, _ = asked(store, "POST", f"/runs/{run.run}/again", **form())
    assert (status, store.names()) == (409, [run.run])
    assert "1,001 rounds; the service begins 1,000 at most" in text


def test_a_run_against_another_server_is_not_run_again(store):
    """The service has only its own upstreams."""
    run = a_run(a_trial(upstream="example.test:80"))
    keep(store, run)
    status, text, _ = asked(store, "POST", f"/runs/{run.run}/again", **form())
    assert status == 409
    assert "measured example.test:80, and not the lab&#39;s own upstreams" in text
    assert store.names() == [run.run]


async def ended(client) -> None:
    """Wait until no run is in progress."""
    while True:
        if not (await client.get("/api/state")).json()["measuring"]:
            return
        await asyncio.sleep(0.01)


def test_a_worker_of_one_run_is_answered_410_when_that_run_is_not_in_progress(store):
    """Nor is it listed among the refusals: that is how each worker of a run learns of its end."""

    async def go():
        async with serving(store) as client:
            document = ASSIGNMENT_REQUEST | {"run": "20240506-070809-small-abcd"}
            answer = await client.post("/api/assignments", headers=BEARER, json=document)
            assert (answer.status_code, answer.json()) == (
                410, {"error": "run '20240506-070809-small-abcd' is not in progress"},
            )  # fmt: skip
            assert (await client.get("/api/state")).json()["refusals"] == []
            assert (await client.post("/start", **form(experiment="demo", rounds="1"))).status_code == 303
            waits = asyncio.ensure_future(
                client.post(
                    "/api/assignments", headers=BEARER, json=document | {"run": store.names()[0], "strategies": ["x"]}
                )
            )
            await asyncio.sleep(0)
            assert (await client.post("/stop", **form())).status_code == 303
            assert (await asyncio.wait_for(waits, 10)).status_code == 410

    asyncio.run(go())
