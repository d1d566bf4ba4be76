"""Divided trials by a lab and its workers as real processes, against the real aiohttp upstream."""

from __future__ import annotations

import psutil
import pytest

from clientlab.worker.lab_client import LabClient, Refused
from clients.labs import TOKEN, Labs, Program, Scraper, experiment, get, requests_at, state
from running import eventually

WORK = {"requests": 60, "delay": "40ms", "concurrency": 4, "warmup": 1}
"""Of a trial that takes 0.6 s when it is divided over two workers."""


def shards_of(lab: Program) -> dict[int, dict]:
    """How far each shard of the present trial is."""
    found = (worker["shard"] for worker in state(lab)["workers"])
    return {shard["index"]: shard for shard in found if shard is not None}


def measuring(labs: Labs, lab: Program, shards: int) -> bool:
    """Whether all shards have finished some requests. Fails with the reason of a trial that was lost before."""
    assert state(lab)["failed"] == 0, [(trial.status, trial.reason) for trial in labs.run().trials]
    return sum(shard["finished"] > 0 for shard in shards_of(lab).values()) == shards


def jobs(worker: Program) -> list[psutil.Process]:
    """The processes that a worker has started."""
    return psutil.Process(worker.process.pid).children(recursive=True)


def test_two_workers_do_the_halves_of_a_trial(labs, upstream):
    """Requests are sent once each, at an agreed start; the workers' metrics add up to the trial's."""
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
    assert all(abs(shard.clock.seconds) <= shard.clock.error_seconds + 0.05 for shard in trial.by_shard)
    assert max(shard.began_seconds for shard in trial.by_shard) < 0.2
    assert run.experiment.changed == ["shards: 1 → 2"]
    assert run.experiment.command.endswith("--shards 2")
    assert scraper.of("clientlab_requests_total", outcome="ok") == 301
    assert scraper.of("clientlab_request_seconds_count") == 301
    assert scraper.of("clientlab_delay_seconds_total") == pytest.approx(0.602)
    # Each shard counts its half of the seconds, so that their sum is the trial's.
    assert scraper.of("clientlab_measured_seconds_total") == pytest.approx(trial.wall_seconds, rel=0.5)
    assert len(set(scraper.each("clientlab_trial_started_timestamp_seconds", "instance").values())) == 1


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_the_trial_and_all_shards_are_measured_again(labs, upstream):
    """The other worker stops at once; the repetition waits for as many workers again."""
    lab = labs.serve(
        experiment(["http.client@threads"], **WORK | {"requests": 400}), "--shards", "2", "--lost-after", "3"
    )
    killed, other = (labs.work(lab, "http.client@threads") for _ in range(2))
    eventually(lambda: measuring(labs, lab, 2), "both shards are measured")
    trial_processes = [one for one in jobs(other) if "clientlab.worker.job" not in one.cmdline()]
    killed.kill()
    eventually(lambda: state(lab)["failed"] == 1, "the trial is lost")
    assert trial_processes
    assert psutil.wait_procs(trial_processes, timeout=20)[1] == []
    # What they had sent is answered up to 40 ms later, and counted then.
    eventually(lambda: upstream.metrics()["mockupstream_requests_in_flight"] == 0, "the upstream is at rest")
    before = requests_at(upstream)
    labs.work(lab, "http.client@threads")
    run = labs.await_end(lab)
    assert [trial.status for trial in run.trials] == ["lost", "done"]
    assert run.trials[0].reason.endswith("was not heard of for 3 s")
    assert run.trials[0].reason.startswith("shard ")
    assert run.trials[1].requests == requests_at(upstream) - before - 2 == 400
    assert sum(shard.requests for shard in run.trials[1].by_shard) == 400


@pytest.mark.slow
def test_a_job_that_is_killed_loses_the_trial_with_that_cause(labs):
    """Its worker reports it; both workers do the repetition. Before, the page shows who has which shard."""
    asked = experiment(["http.client@threads"], **WORK | {"requests": 800})
    lab = labs.serve(asked, "--shards", "2", "--lost-after", "3")  # so that workers tell often how far they are
    workers = [labs.work(lab, "http.client@threads") for _ in range(2)]
    eventually(lambda: measuring(labs, lab, 2), "both shards are measured")
    found = state(lab)
    assert found["shards"] == "0 of 2 shards have reported"
    assert {(shard["of"], shard["phase"]) for shard in shards_of(lab).values()} == {(2, "measuring")}
    page = get(f"{lab.url}/")
    assert "<td>1 of 2, measuring, " in page
    assert "<td>2 of 2, measuring, " in page
    assert "0 of 2 shards have reported" in page
    psutil.Process(workers[0].process.pid).children()[0].kill()
    run = labs.await_end(lab)
    assert [(trial.status, trial.reason) for trial in run.trials] == [
        ("lost", "the process of its job was ended by SIGKILL"), ("done", None),
    ]  # fmt: skip


def test_a_trial_for_which_too_few_workers_come_fails_in_time(labs):
    """The line says how many came, and what to do; the upstream gets no request."""
    lab = labs.serve(experiment(["http.client@threads"], **WORK), "--shards", "3", "--patience", "1")
    labs.work(lab, "http.client@threads")
    run = labs.await_end(lab)
    assert run.status == "incomplete"
    assert run.trials[0].status == "failed"
    came = run.trials[0].reason.partition(" of ")[0]
    assert int(came) <= 1
    assert run.trials[0].reason == (
        f"{came} of 3 workers for strategy 'http.client@threads' came within 1 s; "
        f"start {3 - int(came)} more with 'clientlab work', or choose fewer shards"
    )


@pytest.mark.slow
def test_a_lab_that_is_killed_in_a_divided_trial_takes_its_shards_results_when_it_is_started_again(labs, upstream):
    """All shards go on meanwhile: no request is sent twice."""
    before = requests_at(upstream)
    asked = experiment(["http.client@threads"], **WORK | {"requests": 400})
    lab = labs.serve(asked, "--shards", "2", "--lost-after", "3")
    for _ in range(2):
        labs.work(lab, "http.client@threads")
    eventually(lambda: measuring(labs, lab, 2), "both shards are measured")
    lab.kill()
    again = labs.serve(asked, "--shards", "2", "--lost-after", "3", port=lab.port)
    run = labs.await_end(again)
    assert [(trial.status, trial.requests) for trial in run.trials] == [("done", 400)]
    assert requests_at(upstream) - before == 402


def test_an_experiment_that_can_not_be_divided_is_refused_with_one_line(labs):
    """A strategy with one request in flight, from the command line and from a program."""
    (labs.folder / "serial.toml").write_text(experiment(["http.client"], requests=10))
    words = ["serve", "--experiment", str(labs.folder / "serial.toml"), "--shards", "2", "--port", "0"]
    program = labs.start([*words, "--out", str(labs.store.folder)])
    assert program.process.wait(30) == 2
    assert "shards: 2: strategy 'http.client' has at most 1 requests in flight here; write no more" in program.said
    assert len(program.said.splitlines()) == 1
    lab = labs.serve(experiment(["http.client"], requests=10), "--idle")
    with pytest.raises(Refused, match="requests in flight here; write no more shards"):
        LabClient(lab.url, TOKEN).post("/api/runs", {"experiment": "demo", "shards": 2})
