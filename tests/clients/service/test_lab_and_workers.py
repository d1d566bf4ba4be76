"""The lab service and its workers as real processes, against the real aiohttp upstream."""

from __future__ import annotations

import signal

import psutil
import pytest

from clientlab.results.document import Run
from clients.labs import Labs, Scraper, experiment, get, requests_at, state
from running import eventually

CHANCE = {"__all__": {"clock": True, "over_time": {"__all__": {"p50", "p99"}}}}
"""Of trials: a worker's clock, and quantiles, which are null for a sixtieth of a trial in which no request ended."""


def document_of(run: Run) -> object:
    """A run's document without the values that chance makes null. Libraries and addresses have names of their own."""
    return run.model_dump(mode="json", exclude={"cautions": True, "trials": CHANCE})


def unlike(one: object, other: object, path: str = "run") -> list[str]:
    """The paths at which two documents have unlike keys or types. Of lists, the first items are compared."""
    if isinstance(one, dict) and isinstance(other, dict):
        found = [f"{path}.{key}" for key in one.keys() ^ other.keys()]
        return found + [at for key in one.keys() & other.keys() for at in unlike(one[key], other[key], f"{path}.{key}")]
    if isinstance(one, list) and isinstance(other, list) and one and other:
        return unlike(one[0], other[0], f"{path}[0]")
    same = one == other if [] in (one, other) else type(one) is type(other)
    return [] if same else [path]


def test_a_lab_and_two_workers_measure_an_experiment_to_its_end(labs):
    """The file is that of `clientlab run`; a scraper has seen every request, and the last value of each trial."""
    asked = experiment(["http.client", "urllib3@threads"], rounds=2, requests=300, path="/", delay="2ms", concurrency=4)
    lab = labs.serve(asked, "--generic-after", "0.2", "--rounds", "2")
    workers = [labs.work(lab, "http.client"), labs.work(lab, "*")]
    with Scraper([worker.url for worker in workers]) as scraper:
        run = labs.await_end(lab)
        eventually(lambda: scraper.of("clientlab_worker_waiting") == 2, "both wait again, and were scraped")
    assert (run.status, len(run.trials)) == ("done", 4)
    assert {trial.status for trial in run.trials} == {"done"}
    assert all(0 < trial.clock.error_seconds < 0.5 for trial in run.trials)
    for arm in ("http.client", "urllib3@threads"):
        last = [trial for trial in run.trials if trial.arm == arm][-1]
        of = {"arm": arm, "run": run.run}
        assert scraper.of("clientlab_requests_total", outcome="ok", **of) == last.requests == 300
        assert scraper.of("clientlab_request_seconds_count", **of) == 300
        assert scraper.of("clientlab_request_seconds_bucket", le="60.0", **of) == 300
        assert scraper.of("clientlab_request_seconds_sum", **of) == pytest.approx(300 * last.latency_seconds.mean)
        assert scraper.of("clientlab_delay_seconds_total", **of) == pytest.approx(0.6)
        assert scraper.of("clientlab_connections_opened_total", **of) == last.connections_opened
        # Seen from outside in steps of 10 ms, of user and of system time, at both ends; and a counter never falls.
        assert -1e-6 <= scraper.of("clientlab_cpu_seconds_total", **of) - last.cpu_seconds <= 0.05
        assert scraper.of("clientlab_trial_running", round="2", **of) == 0
        began, ended = (scraper.of(f"clientlab_trial_{word}_timestamp_seconds", **of) for word in ("started", "ended"))
        assert ended - began >= last.wall_seconds
    assert unlike(document_of(run), document_of(here(labs, asked))) == []

    page, metrics = get(f"{lab.url}/"), Scraper([])
    metrics.take(get(f"{lab.url}/metrics"))
    assert run.run in page
    assert run.run in get(f"{lab.url}/runs/{run.run}")
    assert Run.model_validate_json(get(f"{lab.url}/api/runs/{run.run}")) == run
    walls = sorted(trial.wall_seconds for trial in run.trials if trial.arm == "http.client")
    assert metrics.of("clientlab_run_wall_seconds", arm="http.client") == pytest.approx(sum(walls) / 2)
    assert metrics.of("clientlab_run_info", run=run.run, experiment="small") == 1
    assert metrics.of("process_cpu_seconds_total") > 0


def test_the_first_trial_of_a_new_worker_is_scraped_though_prometheus_learns_of_it_late(labs):
    """A trial of a moment, whose requests all fail: it is over before anybody has scraped the worker."""
    lab = labs.serve(experiment(["http.client"], requests=20, path="/status/503"))
    worker = labs.start(["work", "-t", "http.client", "--lab", lab.url, "--port", "0", "--scraped", "--linger", "0"])
    worker.await_port(r"metrics at port (\d+)")
    labs.await_end(lab)
    for _ in range(20):  # a worker that waited for no scrape would take its metrics away in this time
        get(f"{worker.url}/healthz")
    scraper = Scraper([])
    scraper.take(get(f"{worker.url}/metrics"))
    assert scraper.of("clientlab_requests_total", outcome="status-5xx") == 20
    eventually(lambda: "clientlab_worker_waiting 1" in get(f"{worker.url}/metrics"), "it waits for its next trial")


def here(labs: Labs, asked: str) -> Run:
    """The same experiment by `clientlab run`, with the same upstream."""
    (labs.folder / "small.toml").write_text(asked)
    words = ["run", str(labs.folder / "small.toml"), "--testbed", "compose", "--out", str(labs.folder / "here")]
    program = labs.start(words)
    assert program.process.wait(60) == 0, program.said
    return Labs(labs.folder, 0, labs.stack).store.read(str(next((labs.folder / "here").glob("*/run.json"))))


@pytest.mark.slow
def test_a_worker_that_is_killed_in_its_trial_fails_it_and_another_does_it_again(labs):
    """The trial is lost, the run goes on, and the lost one is given once more at its end."""
    lab = labs.serve(experiment(["http.client"], rounds=2, requests=40, delay="40ms"), "--lost-after", "3")
    first = labs.work(lab, "http.client")
    eventually(lambda: state(lab)["finished"] > 0, "the first trial runs")
    first.kill()
    labs.work(lab, "http.client")
    run = labs.await_end(lab)
    assert [(trial.status, trial.round, trial.order) for trial in run.trials] == [
        ("lost", 1, 0), ("done", 2, 1), ("done", 1, 2),
    ]  # fmt: skip
    assert "was not heard of for 3 s" in run.trials[0].reason
    assert run.status == "done"


@pytest.mark.slow
def test_a_job_that_is_killed_leaves_no_files_and_its_worker_goes_on(labs):
    """The trial is lost at once, with that cause, and given once more, to the same worker."""
    lab = labs.serve(experiment(["http.client"], requests=100, delay="40ms"), "--lost-after", "8")
    worker = labs.work(lab, "http.client")
    eventually(lambda: state(lab)["finished"] > 0, "the trial runs")
    assert len(list(labs.folder.glob("clientlab-job-*"))) == 1
    (job,) = psutil.Process(worker.process.pid).children()
    job.kill()
    run = labs.await_end(lab)
    assert [(trial.status, trial.reason) for trial in run.trials] == [
        ("lost", "the process of its job was ended by SIGKILL"), ("done", None),
    ]  # fmt: skip
    eventually(lambda: not list(labs.folder.glob("clientlab-job-*")), "no folder of a job is left")


@pytest.mark.slow
def test_a_lab_that_is_killed_goes_on_with_its_run_when_it_is_started_again(labs, upstream):
    """The worker's trial goes on meanwhile, and its result is taken: no request was sent twice."""
    before = requests_at(upstream)
    asked = experiment(["http.client"], rounds=3, requests=40, delay="40ms", warmup=1)
    lab = labs.serve(asked, "--lost-after", "3")  # so that the worker tells often enough how far it is
    labs.work(lab, "http.client")
    eventually(lambda: state(lab)["done"] == 1 and state(lab)["finished"] > 0, "the second trial runs")
    lab.kill()
    again = labs.serve(asked, "--lost-after", "3", port=lab.port)
    assert "going on with" in again.said
    run = labs.await_end(again)
    assert labs.store.names() == [run.run]
    assert [(trial.status, trial.order, trial.requests) for trial in run.trials] == [("done", k, 40) for k in range(3)]
    assert requests_at(upstream) - before == 3 * 41


@pytest.mark.slow
def test_a_lab_and_a_worker_that_are_told_to_end_do_so_with_all_that_they_started(labs):
    """In a trial as well, with code 0; the run's file says that the run is not over."""
    lab = labs.serve(experiment(["http.client"], requests=200, delay="40ms"))
    worker = labs.work(lab, "http.client")
    eventually(lambda: state(lab)["finished"] > 0, "the trial runs")
    started = psutil.Process(worker.process.pid).children(recursive=True)
    assert started
    lab.process.terminate()
    assert lab.process.wait(15) == 0
    assert (labs.run().status, labs.run().trials) == ("running", [])
    worker.process.terminate()
    assert worker.process.wait(15) == 0
    assert psutil.wait_procs(started, timeout=10)[1] == []


def test_a_worker_of_one_run_ends_when_the_run_has_ended(labs):
    """With code 0, within moments; and at once where that run is not in progress."""
    lab = labs.serve(experiment(["http.client"], requests=20))
    run = state(lab)["run"]
    words = ["work", "-t", "http.client", "--lab", lab.url, "--port", "0", "--run"]
    other, worker = labs.start([*words, "20240506-070809-another-abcd"]), labs.start([*words, run])
    assert other.process.wait(20) == 0
    assert "run 20240506-070809-another-abcd has ended" in other.said
    assert labs.await_end(lab).status == "done"
    assert worker.process.wait(10) == 0
    assert f"run {run} has ended" in worker.said


@pytest.mark.slow
def test_a_worker_of_one_run_that_is_told_to_end_before_has_the_code_of_the_signal(labs):
    """So that its Job, which knows that code, starts another pod."""
    lab = labs.serve(experiment(["http.client"], requests=200, delay="40ms"))
    words = ["work", "-t", "http.client", "--lab", lab.url, "--port", "0", "--run", state(lab)["run"]]
    worker = labs.start(words)
    eventually(lambda: state(lab)["finished"] > 0, "the trial runs")
    worker.process.terminate()
    assert worker.process.wait(15) == 128 + signal.SIGTERM


@pytest.mark.slow
def test_a_worker_with_the_wrong_token_ends_and_says_so(labs):
    """With code 2; the lab says it too, and nobody gets an assignment."""
    lab = labs.serve(experiment(["http.client"], requests=10))
    worker = labs.work(lab, "http.client", CLIENTLAB_TOKEN="another")  # noqa: S106 - a test's own
    assert worker.process.wait(20) == 2
    assert "the lab answered 401: wrong token" in worker.said
    assert "401, wrong token" in lab.said
    assert state(lab)["workers"] == []
