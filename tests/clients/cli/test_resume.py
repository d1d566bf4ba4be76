"""`clientlab run --resume`: which runs do not go on, and that they can still be read."""

from __future__ import annotations

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


def test_a_run_does_not_go_on_in_another_testbed(clientlab, results, monkeypatch):
    """Neither by the option nor by the variable: its rounds would have unlike servers."""
    run = a_run(a_trial(), rounds=2)
    results.claim(run.run)
    results.save(run.model_copy(update={"status": "incomplete"}))
    option = clientlab("run", "--resume", run.run, "--testbed", "compose")
    monkeypatch.setenv("CLIENTLAB_TESTBED", "compose")
    for said in (option, clientlab("run", "--resume", run.run)):
        assert (said.code, "--testbed compose" in said.err) == (2, True)
