"""Run files of older formats: one real file of each, as the version of its time wrote it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clientlab.results.document import Run
from clientlab.results.store import Store, read_run

OLDER = Path(__file__).parent / "older"


def test_a_file_of_format_1_is_read_with_names_for_its_arms():
    """Its arms had none: a name is the strategy, and the part of the way in which the arms differ."""
    run = read_run(OLDER / "format-1.json")
    assert run.format == 3
    names = ["urllib3 (direct)", "requests-session (direct)", "urllib3 (proxy)", "requests-session (proxy)"]
    assert [arm.name for arm in run.experiment.arms] == names
    assert [(arm.label, arm.group) for arm in run.experiment.arms][:2] == [
        ("urllib3", "workload"), ("requests-session", "workload"),
    ]  # fmt: skip
    by_name = {arm.name: arm for arm in run.experiment.arms}
    for trial in run.trials:
        arm = by_name[trial.arm]
        assert (trial.strategy, trial.upstream, trial.route) == (arm.strategy, arm.upstream, arm.route)
    assert {(trial.arm, trial.round) for trial in run.trials} == {(name, number) for name in names for number in (1, 2)}
    assert run.experiment.claims == run.claims == []


def test_a_lost_trial_of_format_2_has_a_status_of_its_own():
    """It was a failed one, known by how its reason began."""
    run = read_run(OLDER / "format-2.json")
    assert run.format == 3
    assert [(trial.status, trial.reason) for trial in run.trials] == [
        ("lost", "vm was not heard of for 3 s"), ("done", None), ("done", None),
    ]  # fmt: skip


def _with_unknown(value: object) -> object:
    """A part of an older file with the fields that were added since."""
    if not isinstance(value, dict):
        return value
    unknown = {"at_least": None} if "p999" in value else {}
    if "cpu_seconds" in value:  # a server's use, whose clock had steps of 10 ms
        unknown = {**dict.fromkeys(("held_seconds", "processes", "slots", "cores")), "cpu_step_seconds": 0.01}
    return {**value, **unknown}


@pytest.mark.parametrize("name", ["format-1.json", "format-2.json"])
def test_all_else_is_as_the_file_has_it(name):
    """Every figure of every trial. What is not in the file is unknown."""
    document = json.loads((OLDER / name).read_text(encoding="utf-8"))
    present = json.loads(read_run(OLDER / name).model_dump_json())
    for before, after in zip(document["trials"], present["trials"], strict=True):
        for key in before.keys() - {"status", "reason"}:
            assert after[key] == _with_unknown(before[key])
    for key in document["experiment"].keys() - {"arms", "workloads"}:
        assert present["experiment"][key] == document["experiment"][key]
    known = {key: value for key, value in present["surroundings"].items() if value is not None}
    assert known == {key: value for key, value in document["surroundings"].items() if value is not None}


@pytest.mark.parametrize("name", ["format-1.json", "format-2.json"])
def test_a_converted_run_is_saved_in_the_present_format(name, tmp_path):
    """A converted run is saved in the present format and reads back equal."""
    run = read_run(OLDER / name)
    store = Store(tmp_path)
    store.claim(run.run)
    store.save(run)
    assert json.loads(store.find(run.run).read_text(encoding="utf-8"))["format"] == 3
    assert store.read(run.run) == run == Run.model_validate(run.model_dump())
