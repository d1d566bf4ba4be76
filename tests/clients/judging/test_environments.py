"""Arms that differ in their environment only are paired by round."""

from __future__ import annotations

import math

import pytest

from clientlab.errors import LabError
from clientlab.experiments.checks import check_stored
from clientlab.judging.cautions.trials import gil_on
from clientlab.judging.contrasts import contrasts, environment_pairs
from clientlab.reports.headline import environment_sentences as sentences
from clientlab.reports.sections import Facts, Report
from clientlab.reports.surroundings import environment_lines as lines
from clientlab.reports.surroundings import surroundings
from clientlab.results.document import Environment
from clientlab.results.plan import Arm, EnvironmentSpec
from clientlab.service.run_metrics import surroundings_hash
from clients.documents import a_run, a_trial

SPECS = {name: EnvironmentSpec(folder=f"/{name}") for name in ("old", "new")}


def arm(strategy: str, environment: str | None) -> Arm:
    """An arm with its environment in its name."""
    name = f"{strategy} in {environment}" if environment else strategy
    return Arm(name=name, strategy=strategy, upstream="aiohttp", route="direct", workload="workload",
               environment=environment)  # fmt: skip


def test_rounds_differ_by_a_factor_of_ten_and_the_ratio_within_them_is_exact():
    """1.05 in each of six; the round with an error does not count, nor does an arm that is in one environment."""
    trials = []
    for number, level in enumerate((1, 10, 2, 5, 3, 7), start=1):
        for where, factor in (("old", 1.0), ("new", 1.05)):
            trials.append(a_trial("urllib3", number, level * factor, arm=f"urllib3 in {where}", environment=where,
                                  cpu_seconds=level * 0.5))  # fmt: skip
    trials.append(a_trial("urllib3", 7, 1.0, arm="urllib3 in old", environment="old", errors={"reset": 1}))
    trials.append(a_trial("urllib3", 7, 9.0, arm="urllib3 in new", environment="new"))
    arms = [arm("urllib3", "old"), arm("urllib3", "new"), arm("pycurl", "old"), arm("urllib3", None)]
    run = a_run(*trials, arms=arms, environments=SPECS)
    (found,) = contrasts(run, environment_pairs(run.experiment.arms))
    assert (found.arm.environment, found.base.environment) == ("new", "old")
    assert math.isclose(found.time.value, 1.05)
    assert found.time.rounds == 6
    assert found.time.high - found.time.low < 1e-9
    assert math.isclose(found.cpu.value, 1.0)
    assert found.cpu.confidence == pytest.approx(0.975)  # both intervals together: 95 %
    assert sentences(run)[0].startswith("urllib3 in new takes 1.05 (1.05 to 1.05) times the time per request and 1")


def test_without_a_round_of_both_no_ratio_is_made_up():
    """If no round has both environments, the sentence says so and no ratio is computed."""
    arms = [arm("urllib3", "old"), arm("urllib3", "new")]
    run = a_run(a_trial("urllib3", 1, arm="urllib3 in old", environment="old"), arms=arms, environments=SPECS)
    assert sentences(run) == ["urllib3 in new and urllib3 in old: no round has trials of both without errors."]


def test_a_run_without_environments_keeps_its_hash_of_surroundings():
    """A new field parts no older runs in the dashboards."""
    assert surroundings_hash(a_run(a_trial())) == "e6821700"


def free_threaded(*gil: bool | None):
    """A run with a trial for each of `gil`, in a Python that was built for free threading."""
    trials = [
        a_trial("urllib3", arm=f"arm {number} in new", environment="new", gil=one) for number, one in enumerate(gil)
    ]
    arms = [arm("urllib3", "new").model_copy(update={"name": trial.arm}) for trial in trials]
    run = a_run(*trials, arms=arms, environments=SPECS)
    held = Environment(folder="/new", python="CPython 3.14.2", python_build="free-threading, GIL off, GCC 14, -O3",
                       openssl=None, packages={}, compiled={})  # fmt: skip
    return run.model_copy(update={"surroundings": run.surroundings.model_copy(update={"environments": {"new": held}})})


@pytest.mark.parametrize(
    ("gil", "shown", "locked"),
    [
        ((False, False), "free-threading, GIL off", []),
        ((True, True), "free-threading, GIL on", ["arm 0 in new", "arm 1 in new"]),
        ((False, True), "free-threading, GIL on in arm 1 in new", ["arm 1 in new"]),
        ((None,), "free-threading", []),
    ],
)
def test_a_gil_in_a_python_for_free_threading_is_shown_and_doubted(gil, shown, locked):
    """A library may have switched it on, in some arms only. Of a trial that did not end it is unknown."""
    run = free_threaded(*gil)
    assert lines(run) == [f"new: CPython 3.14.2, {shown}"]
    assert [one.arms for one in gil_on(run)] == ([locked] if locked else [])


def test_the_modules_that_switched_the_gil_on_are_named():
    """In the line of the environment, and each in a caution of its own, with the arms of its trials."""
    run = free_threaded(False, True, True)
    modules = [None, "pycurl", "aiohttp._websocket.mask"]
    trials = [
        trial.model_copy(update={"gil_switched_by": module}) for trial, module in zip(run.trials, modules, strict=True)
    ]
    run = run.model_copy(update={"trials": trials})
    where = "arm 1 in new, arm 2 in new, switched on by pycurl, aiohttp._websocket.mask"
    assert lines(run) == [f"new: CPython 3.14.2, free-threading, GIL on in {where}"]
    found = {one.arms[0]: one for one in gil_on(run)}
    assert found["arm 1 in new"].text.endswith("in trials of arm 1 in new: the import of pycurl switched it on")
    assert "look for a release of aiohttp that does" in found["arm 2 in new"].advice


def test_the_gil_of_trials_in_the_labs_own_python_is_shown_if_that_was_built_for_free_threading():
    """A Python with a GIL needs no such line."""
    run = a_run(a_trial(gil=True, gil_switched_by="pycurl"))
    builds = {"free-threading, GIL off, GCC 14": ["GIL in trials: on, switched on by pycurl"], "GIL, GCC 14": []}
    for build, shown in builds.items():
        here = run.model_copy(update={"surroundings": run.surroundings.model_copy(update={"python_build": build})})
        facts = [part for part in surroundings(Report(here)).parts if isinstance(part, Facts)]
        assert [line for part in facts for line in part.brief if line.startswith("GIL")] == shown
        rows = [value for part in facts for _, pairs in part.items for name, value in pairs if name == "GIL in trials"]
        assert [f"GIL in trials: {value}" for value in rows] == shown


def test_the_service_does_not_go_on_with_a_run_of_environments():
    """A run file, which anybody may have written, must not name a program that is started."""
    run = a_run(a_trial(arm="urllib3 in old", environment="old"), arms=[arm("urllib3", "old")], environments=SPECS)
    with pytest.raises(
        LabError, match="arm 'urllib3 in old' runs in the environment 'old'; measure it with 'clientlab"
    ):
        check_stored(run.experiment)


def test_an_arm_in_an_environment_that_the_plan_lacks_is_no_plan():
    """A run file is refused if an arm names an environment that its plan lacks."""
    with pytest.raises(ValueError, match="arm 'urllib3 in old': there is no environment 'old'"):
        a_run(a_trial(arm="urllib3 in old"), arms=[arm("urllib3", "old")])
