"""Attribution of samples to packages and functions, from stacks with known frames."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from clientlab.analysis.attribution import attributed, weighted, with_native_leaves
from clientlab.analysis.frame_origin import origin_of, wait_of
from clientlab.analysis.stacks import Frame, read

LIB = "/usr/lib/python3.13"
MAIN = Frame("main", f"{LIB}/site-packages/clientlab/measuring/trial_process.py")
POOL = Frame("Pool.assign", f"{LIB}/site-packages/httpcore2/_async/connection_pool.py")
H11 = Frame("Connection.send", f"{LIB}/site-packages/h11/_connection.py")
LOOP = Frame("BaseEventLoop._run_once", f"{LIB}/asyncio/base_events.py")
SOCKET = Frame("sock_send", f"{LIB}/lib-dynload/_socket.cpython-313-x86_64-linux-gnu.so")
EVAL = Frame("PyDict_GetItem", "/usr/lib/libpython3.13.so.1.0")
SEND = Frame("send", "/usr/lib/x86_64-linux-gnu/libc.so.6")
UNNAMED = Frame("0x7fccebca3f16", "/usr/lib/x86_64-linux-gnu/libc.so.6")
TIMED_WAIT = Frame("pthread_cond_timedwait", "/usr/lib/x86_64-linux-gnu/libc.so.6")
ENCRYPT = Frame("EVP_EncryptUpdate", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3")


@pytest.mark.parametrize(
    ("leaf", "origin"),
    [
        ([POOL], "httpcore2"),
        ([POOL, EVAL], "httpcore2"),
        ([LOOP], "asyncio"),
        ([LOOP, SOCKET, SEND], "kernel"),
        ([LOOP, ENCRYPT, Frame("0x7f1", ENCRYPT.file)], "openssl"),
        ([POOL, Frame("memcpy", SEND.file)], "libc"),
        ([POOL, Frame("0x7f1", f"{LIB}/site-packages/pycurl.libs/libcurl-0a1b2c3d.so.4.8.0")], "libcurl"),
        ([POOL, Frame("perform", f"{LIB}/site-packages/pycurl.cpython-313-x86_64-linux-gnu.so")], "pycurl"),
        (
            [POOL, Frame("parse", f"{LIB}/site-packages/aiohttp/_http_parser.cpython-313-x86_64-linux-gnu.so")],
            "aiohttp",
        ),
        ([POOL, Frame("match", "/home/me/Python-3.13.1/Modules/_sre/sre.c")], "httpcore2"),
        ([Frame("_find_spec", "<frozen importlib._bootstrap>")], "importlib"),
        ([POOL, Frame("__init__", "<string>")], "httpcore2"),
        ([Frame("fetch", "/home/me/mine.py")], "mine.py"),
        ([MAIN], "clientlab"),
        ([Frame("0x7f1", "")], "unknown"),
    ],
)
def test_a_sample_counts_for_what_its_leaf_belongs_to(leaf, origin):
    """The interpreter works for the Python function that it runs; a system call is the kernel's."""
    assert origin_of(tuple(leaf)) == origin


def test_a_thread_that_waits_is_not_at_work():
    """CPython waits for the GIL on a condition variable, and for other locks in functions of its own."""
    assert wait_of((POOL, SOCKET, TIMED_WAIT, UNNAMED)) == "gil"
    assert wait_of((POOL, Frame("PyThread_acquire_lock_timed", EVAL.file), UNNAMED)) == "blocked"
    assert wait_of((POOL, SOCKET, SEND)) is None
    assert wait_of((POOL,)) is None
    weights, waits = weighted(Counter({(POOL,): 6, (POOL, TIMED_WAIT, UNNAMED): 3, (POOL, UNNAMED): 2}), None)
    assert weights == {(POOL,): 6.0}
    assert waits == {"gil": 3, "blocked": 2}


def test_samples_in_system_calls_have_the_share_of_the_system_clock():
    """A pause that takes effect at the next system call shows too many of them."""
    weights, _ = weighted(Counter({(POOL,): 30, (H11,): 10, (LOOP, SOCKET, SEND): 60}), 0.2)
    found = attributed(weights)
    assert found.packages == {"httpcore2": pytest.approx(0.6), "h11": pytest.approx(0.2), "kernel": pytest.approx(0.2)}
    assert found.samples == 100


def test_native_leaves_divide_a_function_and_leave_its_share():
    """The function's share is that of the timer's samples, and the kernel's share is that of the system's clock."""
    python = Counter({(MAIN, POOL): 70, (MAIN, LOOP): 30})
    native = Counter({(POOL, EVAL): 10, (POOL,): 5, (LOOP, SOCKET, SEND): 40, (LOOP,): 5, (LOOP, TIMED_WAIT): 9})
    found = attributed(with_native_leaves(python, native, 0.15))
    assert found.packages == {
        "httpcore2": pytest.approx(0.7), "asyncio": pytest.approx(0.15), "kernel": pytest.approx(0.15),
    }  # fmt: skip
    totals = {function.name: function.total for function in found.functions}
    assert (totals["Pool.assign"], totals["BaseEventLoop._run_once"]) == (pytest.approx(0.7), pytest.approx(0.3))
    alone = attributed(with_native_leaves(python, {}, None))
    assert alone.packages == {"httpcore2": pytest.approx(0.7), "asyncio": pytest.approx(0.3)}


def test_the_flame_graph_has_callers_before_what_they_call():
    """Each node has its parent, and a share of at least the sum of those below it."""
    found = attributed({(MAIN, POOL): 6.0, (MAIN, POOL, H11): 3.0, (MAIN, LOOP): 1.0})
    assert found.attributed == 1
    nodes = [(node.parent, found.functions[node.function].name, node.share) for node in found.nodes]
    assert nodes[0] == (-1, "main", pytest.approx(1.0))
    assert nodes[1:3] == [(0, LOOP.name, pytest.approx(0.1)), (0, POOL.name, pytest.approx(0.9))]
    assert nodes[3] == (2, H11.name, pytest.approx(0.3))
    own = {function.name: function.own for function in found.functions}
    assert own[POOL.name] == pytest.approx(0.6)


def test_a_share_without_a_known_file_is_not_attributed():
    """What is not attributed is no package."""
    found = attributed({(Frame("0x1", ""),): 1.0, (POOL,): 3.0})
    assert (found.attributed, found.packages) == (0.75, {"httpcore2": 0.75})
    with pytest.raises(ValueError, match="no sample"):
        attributed({})


def test_a_record_in_the_format_of_speedscope_is_read(tmp_path):
    """All threads count, and the samples of the busiest are known; a damaged record is named."""
    frames = [{"name": one.name, "file": one.file} for one in (MAIN, POOL)]
    threads = [{"samples": [[0, 1], [0]]}, {"samples": [[0, 1]]}]
    good, bad = tmp_path / "a.json", tmp_path / "b.json"
    good.write_text(json.dumps({"shared": {"frames": frames}, "profiles": threads}))
    bad.write_text(json.dumps({"shared": {"frames": frames}, "profiles": [{"samples": [[7]]}]}))
    found = read([good])
    assert (found.stacks, found.busiest) == ({(MAIN, POOL): 2, (MAIN,): 1}, 2)
    with pytest.raises(ValueError, match=r"b\.json: not in the format of speedscope"):
        read([bad])
