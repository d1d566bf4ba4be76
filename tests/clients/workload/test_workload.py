"""The checks of a workload."""

from __future__ import annotations

import pytest

from clientlab.errors import FieldError
from clientlab.workload.refusals import check_workload
from clientlab.workload.workload import make_workload


@pytest.mark.parametrize(
    "workload",
    [
        make_workload(requests=1, concurrency=1, warmup=0),
        make_workload(
            path="/a-b_c.d~e/%20;x=1?y=(z)&q='!*,$@:+[1]&n={k}",
            headers={"X-A": "a b\tc: d", "x!#$": ""},
        ),
        make_workload(upload_size=1, upload="stream", method="PROPFIND"),
    ],
    ids=["least", "characters", "stream"],
)
def test_a_workload_that_can_be_measured_passes(workload):
    check_workload(workload)


@pytest.mark.parametrize(
    "changes",
    [
        {"requests": 0},
        {"requests": 10**20},
        {"duration": 0.0},
        {"duration": float("nan")},
        {"duration": 1e-322},
        {"timeout": 1e300},
        {"max_late": 0.0, "rate": 5},
        {"seed": 10**400},
        {"concurrency": 0},
        {"warmup": -1},
        {"upload_size": 0},
        {"upload": "stream"},
        {"chunk_size": 0},
        {"payload_size": -1},
        {"path": "todos"},
        {"path": "/a b"},
        {"path": "/%zz"},
        {"path": "/a/../b"},
        {"path": "/a/%2E?x=1"},
        {"body_base64": "x"},
        {"path": "/{n}"},
        {"method": ""},
        {"method": "GET\r\nX: y"},
        {"headers": {"X y": "1"}},
        {"headers": {"X": "a\r\nY: b"}},
        {"replay_sha256": "0"},
        {"rate": 0.0},
        {"rate": float("nan")},
    ],
    ids=str,
)
def test_a_workload_that_cannot_be_measured_is_refused_with_its_field(changes):
    with pytest.raises(FieldError, match=f"^{next(iter(changes))}: ") as caught:
        check_workload(make_workload(**changes))
    assert "\n" not in str(caught.value)


def test_a_cold_stream_has_one_event_unless_more_are_asked_for():
    workload = make_workload(stream="openai-chat", cold=True)
    check_workload(workload)
    assert workload.load.requests == 1
    assert workload.load.warmup == 0
    assert workload.stream.events == 1
    assert make_workload(stream="sse", cold=True, events=5).stream.events == 5


@pytest.mark.parametrize(
    "changes",
    [
        {"requests": 7, "duration": 2.0},
        {"body": "x", "upload_size": 1},
        {"read": "chunks", "parse": True},
        {"first_byte": True, "elapsed": True},
        {"stream": "sse", "replay": "x.har"},
    ],
)
def test_an_error_names_all_fields_that_contradict_each_other(changes):
    with pytest.raises(FieldError) as caught:
        check_workload(make_workload(**changes))
    for name in changes:
        assert name in str(caught.value)
