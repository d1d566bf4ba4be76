"""Mistakes in experiment files: one line that names the file, the key and the value."""

from __future__ import annotations

import json

import pytest

from clientlab import strategies
from clientlab.errors import LabError
from clientlab.experiments.file import read_experiment
from clients.plans import checked_plan

TOP = 'question = "Which?"\nstrategies = ["urllib3"]\n'
ARM = 'question = "Which?"\n[workloads.w]\n[arms.a]\nstrategy = "urllib3"\n'
IT = """
question = "Which?"
[workloads.w]
requests = 50
[arms.it]
strategy = "aiohttp@semaphore"
workload = "w"
"""
CLAIM = '[claims.so]\ntext = "It is so"\nkind = "less"\n'


def claimed(workload: str, claim: str) -> str:
    arms = (
        'strategies = ["urllib3", "pycurl", "requests"]\n[arms.more]\nstrategy ='
        ' "requests-session"\n'
    )
    workloads = (
        'workload = "other"\n[workloads.other]\nrequests ='
        f" 7\n[workloads.w]\n{workload}\n"
    )
    return (
        f'question = "Which?"\n{arms}{workloads}[claims.x]\ntext = "It is'
        f' so"\n{claim}\n'
    )


UNITS = [  # `delay = "20"` looks like milliseconds, and would mean 20 s
    (TOP + '[workloads.w]\ndelay = "20"\n', "workloads.w.delay: ", "20ms or 20s"),
    (
        TOP + '[workloads.w]\nstages = "0s:10/s,20:30/s"\n',
        "workloads.w.stages: ",
        "20s",
    ),
    (TOP + "[workloads.w]\nrtt = 50\n", "workloads.w.rtt: ", "50ms"),
    ("budget = 60\n" + ARM, "budget: ", "60s"),
]
KEYS = [
    (
        "ronuds = 3\n" + TOP + "[workloads.w]\n",
        "ronuds: ",
        "unknown key; nearest: rounds",
    ),
    (
        TOP + '[common]\ndealy = ["1s"]\n[workloads.w]\n',
        "common.dealy: ",
        "unknown key; nearest: delay",
    ),
    (
        TOP + "[workloads.w]\nrounds = 3\n",
        "workloads.w.rounds: ",
        "unknown key; it belongs to another table",
    ),
    ("[workloads.w]\n", "question: ", "required"),
    (TOP, "workloads: ", "there is none"),
    (IT.replace('"w"', '"v"'), "arms.it.workload: ", "'v'"),
    (IT + CLAIM + 'a = "it"\n', "claims.so: ", "b"),
    (
        IT + CLAIM.replace("less", "optimum") + 'sweep = "it"\n',
        "claims.so.sweep: ",
        "'it'",
    ),
    ('baseline = "no"\n' + IT, "baseline: ", "'no'"),
    (
        IT + '[environments.old]\nfolder = "x"\npyhton = "3.13"\n',
        "environments.old.pyhton: ",
        "nearest: python",
    ),
    (
        IT
        + "[quick]\n"
        + CLAIM.replace("claims", "quick.claims")
        + 'a = "it"\nb = "it"\n',
        "quick.claims.so: ",
        "",
    ),
    (IT + 'environment = "old"\n[environments.old]\n', "environments.old: ", "folder"),
    (
        IT + 'environment = "odl"\n[environments.old]\nfolder = "x"\n',
        "arms.it.environment: ",
        "'odl'",
    ),
]
VALUES = [
    ('routes = ["proxi"]\n' + ARM, "routes.0: ", "'proxi'"),
    (
        TOP + 'upstreams = ["flask", "flask"]\n[workloads.w]\n',
        "upstreams: ",
        "'flask' is given twice",
    ),
    (
        TOP.replace('"urllib3"', '"urllib3", "urllib3"') + "[workloads.w]\n",
        "strategies: ",
        "'urllib3' appears twice",
    ),
    ('upstreams = ["foo"]\n' + ARM, "upstreams: ", "'foo'"),
    (ARM + "[workers]\nflask = 0\n", "workers.flask: ", "0"),
    (
        'upstreams = ["flask"]\n' + ARM + '[servers]\na = "http://h"\n',
        "servers: ",
        "upstreams",
    ),
    ('name = "My run"\n' + ARM, "name: ", "'My run'"),
    ('precision = "3"\n' + ARM, "precision: ", "'3'"),
    ('find_max = "p98<1s"\n' + ARM, "find_max: ", "'p98'"),
    ("question =", "", "Invalid value"),
    ("question = '?'\n[[arms.b]]\n", "arms.b: ", "dictionary"),
    (ARM + 'bandwidth = "0mbit"\n', "arms.a.bandwidth: ", "0 bit/s"),
    (TOP + '[workloads.w]\nrequests = "many"\n', "workloads.w.requests: ", "'many'"),
    (ARM + 'concurrency = [1, "x"]\n', "arms.a.concurrency: ", "'x'"),
    (IT + "[common]\nwarmup = -1\n", "workloads.w.warmup: ", "-1"),
    (IT.replace("requests = 50", "seed = [1, 2]"), "workloads.w.seed: ", "axis"),
    (IT + "concurrency = [3, 3]\n", "arms.it: ", "twice"),
    (
        IT.replace("requests = 50", "expect = ['2xx', 404]"),
        "workloads.w.expect: ",
        "axis",
    ),
    (
        IT.replace("requests = 50", "elapsed = true\nfirst_byte = true"),
        "workloads.w.elapsed and first_byte: ",
        "",
    ),
]
STRATEGIES = [
    (
        TOP.replace("urllib3", "mine.py:X") + "[workloads.w]\n",
        "strategies: ",
        "mine.py",
    ),
    (
        TOP.replace("urllib3", "ab") + "[workloads.w]\nrate = 9\n",
        "workloads.w.rate: ",
        "'ab'",
    ),
    (
        'routes = ["proxy"]\n'
        + TOP.replace("urllib3", "pycurl-h2@threads")
        + "[workloads.w]\n",
        "strategies: ",
        "TLS",
    ),
    (IT + "settings = { nonsense = 1 }\n", "arms.it: ", "'nonsense'"),
    (
        IT.replace("aiohttp@semaphore", "urllib3") + "concurrency = [1, 2]\n",
        "arms.it.concurrency: ",
        "axis",
    ),
    (
        IT.replace("requests = 50", "requests = 5\nduration = '1s'"),
        "workloads.w.requests and duration: ",
        "",
    ),
    (
        IT.replace("semaphore", "gather").replace(
            "requests = 50", "duration = '2500ms'"
        ),
        "workloads.w.duration: 2.5: ",
        "'aiohttp@gather'",
    ),
]
CLAIMS = [  # that no run can settle
    (
        claimed(
            "duration = '1s'", 'kind = "less"\na = "urllib3 (w)"\nb = "pycurl (w)"'
        ),
        "claims.x.figure: ",
        "'x'",
    ),
    (
        claimed(
            "", 'kind = "less"\nfigure = "elapsed"\na = "urllib3 (w)"\nb = "pycurl (w)"'
        ),
        "claims.x.figure: ",
        "",
    ),
    (
        claimed("", 'kind = "less"\na = "requests (w)"\nb = "more"'),
        "claims.x.figure: ",
        "",
    ),
    (
        claimed("requests = [5, 6, 8]", 'kind = "optimum"\nsweep = "urllib3 (w)"'),
        "claims.x.figure: ",
        "",
    ),
    (
        claimed(
            "",
            'kind = "narrower"\na = "more"\nb = "urllib3 (other)"\nc = "more"\nd ='
            ' "urllib3 (other)"',
        ),
        "claims.x.d: ",
        "",
    ),
]


@pytest.mark.parametrize(
    ("text", "place", "more"), [*UNITS, *KEYS, *VALUES, *STRATEGIES, *CLAIMS]
)
def test_a_mistake_is_named_with_its_file_key_and_value(
    text, place, more, mine, monkeypatch
):
    monkeypatch.setattr(strategies, "which", lambda name: f"/usr/bin/{name}")
    with pytest.raises(LabError) as caught:
        checked_plan(mine(text), quick="[quick" in text)
    said = str(caught.value).partition("mine.toml: ")[2]
    assert said.startswith(place), said
    assert more in said
    assert "\n" not in said


def test_a_recording_of_the_upstreams_own_pages_is_refused(mine, tmp_path):
    """The upstream counts no requests for them, so that the client would seem to retry,
    or to send none.
    """
    recording = tmp_path / "r.jsonl"
    text = TOP + f'[workloads.w]\nrequests = 5\nreplay = "{recording}"\n'
    recording.write_text('{"path": "/a"}\n{"path": "/healthz"}\n')
    with pytest.raises(LabError, match=r"workloads\.w\.replay: with /healthz: "):
        checked_plan(mine(text))
    recording.write_text('{"path": "/a"}\n{"path": "/a/healthz"}\n')
    assert checked_plan(mine(text)).workloads


def test_a_lognormal_delay_needs_no_unit_for_its_sigma(mine):
    text = (
        TOP + '[workloads.w]\ndelay = "lognormal:20ms,0.3"\nstages = "0s:10,20s:30"\n'
    )
    assert read_experiment(mine(text)).workloads["w"].first.delay.values == (0.02, 0.3)


def test_a_bad_file_name_is_not_reported_as_a_key_of_the_file(tmp_path):
    path = tmp_path / "My test.toml"
    path.write_text(ARM)
    with pytest.raises(LabError, match="file") as caught:
        read_experiment(path)
    assert ": name: " not in str(caught.value)
    path.write_text('name = "mine"\n' + ARM)
    assert read_experiment(path).name == "mine"


def test_a_file_that_is_not_text_or_has_no_quick_form_is_refused(mine, tmp_path):
    with pytest.raises(LabError, match="quick"):
        checked_plan(mine(ARM), quick=True)
    path = tmp_path / "mine.toml"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(LabError, match=r"mine\.toml: [^\n]+$"):
        read_experiment(path)


@pytest.mark.parametrize(
    ("gap", "rounds", "is_refused"),
    [(25, 1, True), (13, 1, True), (9, 1, False), (9, 3, True)],
)
def test_a_recording_whose_gaps_take_more_than_a_day_needs_a_limit(
    gap, rounds, is_refused, mine, tmp_path
):
    """With two requests, the gap counts twice: another mean gap follows the last
    request.
    """
    times = ("2026-03-01T00:00:00Z", f"2026-03-{1 + gap // 24:02}T{gap % 24:02}:00:00Z")
    requests = [
        {"method": "GET", "url": f"http://a.test/{time}", "headers": []}
        for time in times
    ]
    entries = [
        {"request": request, "startedDateTime": time}
        for request, time in zip(requests, times, strict=True)
    ]
    (tmp_path / "a.har").write_text(json.dumps({"log": {"entries": entries}}))
    load = '[workloads.w]\nreplay = "a.har"\nreplay_times = true\n'
    path = mine(f"rounds = {rounds}\n{TOP}{load}")
    if is_refused:
        with pytest.raises(
            LabError, match=f"replay_times: .*with {gap} h between.*max_gap"
        ):
            checked_plan(path)
    else:
        checked_plan(path)
    checked_plan(mine(f'{TOP}{load}max_gap = "10s"\n'))
    with pytest.raises(LabError, match="10ms or 10s"):
        checked_plan(mine(f"{TOP}{load}max_gap = 10\n"))
