"""One lab, its workers and the divided trial, as real processes, against the real aiohttp upstream."""

from __future__ import annotations

import pytest

from clientlab.results.document import Run
from clients.labs import Scraper, experiment, get, requests_at, state
from running import eventually

pytestmark = pytest.mark.real


def test_a_lab_and_two_workers_measure_an_experiment_to_its_end(labs):
    """A scraper has seen every request, and the last values of each trial; the service shows the run."""
    asked = experiment(["http.client", "urllib3@threads"], requests=100, path="/", delay="2ms", concurrency=4)
    lab = labs.serve(asked, "--generic-after", "0.2")
    workers = [labs.work(lab, "http.client"), labs.work(lab, "*")]
    with Scraper([worker.url for worker in workers]) as scraper:
        run = labs.await_end(lab)
        eventually(lambda: scraper.of("clientlab_worker_waiting") == 2, "both wait again, and were scraped")
    assert run.status == "done"
    assert {trial.arm: trial.status for trial in run.trials} == {"http.client": "done", "urllib3@threads": "done"}
    for trial in run.trials:
        of = {"arm": trial.arm, "run": run.run}
        assert scraper.of("clientlab_requests_total", outcome="ok", **of) == trial.requests == 100
        assert scraper.of("clientlab_request_seconds_sum", **of) == pytest.approx(100 * trial.latency_seconds.mean)
        assert scraper.of("clientlab_connections_opened_total", **of) == trial.connections_opened
    assert Run.model_validate_json(get(f"{lab.url}/api/runs/{run.run}")) == run
    assert f'run="{run.run}"' in get(f"{lab.url}/metrics")


@pytest.mark.release
def test_a_worker_that_is_killed_in_its_trial_fails_it_and_another_does_it_again(labs):
    """The trial is lost, and given once more."""
    lab = labs.serve(experiment(["http.client"], requests=40, delay="40ms"), "--lost-after", "3")
    first = labs.work(lab, "http.client")
    eventually(lambda: state(lab)["finished"] > 0, "the first trial runs")
    first.kill()
    labs.work(lab, "http.client")
    run = labs.await_end(lab)
    assert [(trial.status, trial.order) for trial in run.trials] == [("lost", 0), ("done", 1)]
    assert run.status == "done"


@pytest.mark.release
def test_a_lab_that_is_killed_goes_on_with_its_run_when_it_is_started_again(labs):
    """The trial of that moment is measured again."""
    asked = experiment(["http.client"], rounds=2, requests=40, delay="40ms", warmup=1)
    lab = labs.serve(asked, "--lost-after", "3")  # so that the worker tells often enough how far it is
    labs.work(lab, "http.client")
    eventually(lambda: state(lab)["done"] == 1 and state(lab)["finished"] > 0, "the second trial runs")
    lab.kill()
    again = labs.serve(asked, "--lost-after", "3", port=lab.port)
    run = labs.await_end(again)
    assert labs.store.names() == [run.run]
    assert [(trial.status, trial.order, trial.requests) for trial in run.trials] == [("done", k, 40) for k in range(2)]


@pytest.mark.release
def test_two_workers_do_the_halves_of_a_trial(labs, upstream):
    """Each request is sent once, and the workers' metrics add up to the trial's."""
    before = requests_at(upstream)
    asked = experiment(["http.client@threads"], requests=301, path="/", delay="2ms", concurrency=5)
    lab = labs.serve(asked, "--shards", "2")
    workers = [labs.work(lab, "http.client@threads") for _ in range(2)]
    with Scraper([worker.url for worker in workers]) as scraper:
        run = labs.await_end(lab)
        eventually(lambda: scraper.of("clientlab_worker_waiting") == 2, "both wait again, and were scraped")
    (trial,) = run.trials
    assert (trial.status, trial.requests, trial.errors, trial.concurrency) == ("done", 301, {}, 5)
    assert requests_at(upstream) - before == 301 + 2 * 2  # each shard has a warm-up
    assert [(shard.requests, shard.concurrency) for shard in trial.by_shard] == [(151, 3), (150, 2)]
    assert scraper.of("clientlab_requests_total", outcome="ok") == 301
