"""Arms that differ in their environment only are paired by round."""

from __future__ import annotations

import math

import pytest

from clientlab.judging.cautions import cautions_of
from clientlab.judging.contrasts import contrasts, environment_pairs
from clientlab.reports.headline import environment_answers
from clientlab.reports.surroundings import environment_lines as lines
from clientlab.results.document import Environment
from clientlab.results.plan import Arm, EnvironmentSpec
from clients.documents import a_run, a_trial

SPECS = {name: EnvironmentSpec(folder=f"/{name}") for name in ("old", "new")}


def arm(strategy: str, environment: str | None) -> Arm:
    """An arm with its environment in its name."""
    name = f"{strategy} in {environment}" if environment else strategy
    return Arm(name=name, label=name, strategy=strategy, upstream="aiohttp", route="direct", workload="workload",
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
    assert found.time.confidence == found.cpu.confidence == pytest.approx(0.95)
    assert environment_answers(run)[0].sentence.startswith(
        "urllib3 in new takes 1.05 (1.05 to 1.05) times the time per request and 1"
    )


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
    assert [one.arms for one in cautions_of(run) if one.kind == "gil-on"] == ([locked] if locked else [])
