"""`clientlab run --resume`: which runs do not go on, and that they can still be read."""

from __future__ import annotations

from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload
from clients.documents import a_run, a_trial


def test_a_run_whose_file_lacks_its_target_is_refused_and_can_be_read(clientlab, results):
    """It is shown as any other run. To go on, it is measured anew."""
    run = a_run(a_trial(), rounds=2, command="clientlab run -t urllib3")
    results.claim(run.run)
    results.save(run.model_copy(update={"status": "incomplete", "target": None}))
    said = clientlab("run", "--resume", run.run)
    assert said.code == 2
    assert "'clientlab run -t urllib3'" in said.err
    assert clientlab("report", run.run).code == 0


def test_a_run_whose_rounds_all_have_one_random_draw_is_refused_and_can_be_read(clientlab, results):
    """An older version planned it. Its report says what its intervals leave out; more rounds would be more copies."""
    trials = [a_trial("urllib3", number) for number in (1, 2, 3)]
    plan = {"rounds": 4, "draws": "run", "command": "clientlab run -t urllib3", "seed": 7}
    run = a_run(*trials, **plan, workloads={"workload": Workload(delay=Delay.parse("exponential:1ms"))})
    results.claim(run.run)
    results.save(run.model_copy(update={"status": "incomplete"}))
    said = clientlab("run", "--resume", run.run)
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert "'clientlab run -t urllib3'" in said.err
    assert clientlab("report", run.run).code == 0


def test_a_run_does_not_go_on_in_another_testbed(clientlab, results, monkeypatch):
    """Neither by the option nor by the variable: its rounds would have unlike servers."""
    run = a_run(a_trial(), rounds=2)
    results.claim(run.run)
    results.save(run.model_copy(update={"status": "incomplete"}))
    option = clientlab("run", "--resume", run.run, "--testbed", "compose")
    monkeypatch.setenv("CLIENTLAB_TESTBED", "compose")
    for said in (option, clientlab("run", "--resume", run.run)):
        assert (said.code, "--testbed compose" in said.err) == (2, True)
