"""Files in the results folder that are no run, or that hold what no run can have: refused, and named."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import struct
import zipfile
import zlib

import pytest

from clientlab.errors import LabError
from clientlab.results import archive, regular_file
from clientlab.results.journal import JOURNAL_FILE
from clientlab.results.plan import Claim
from clientlab.results.store import RUN_FILE, Store, read_run
from clients.documents import a_run, a_trial
from clients.report_runs import a_measured_trial


@pytest.fixture
def store(tmp_path):
    """A folder with one run."""
    made = Store(tmp_path / "results")
    made.claim(a_run().run)
    made.save(a_run(a_trial()))
    return made


CLAIM = Claim(name="faster", text="a is faster", kind="less", a="a", b="b")


def changed(**changes) -> str:
    """A run file with other values at its top."""
    return json.dumps(json.loads(a_run(a_trial("urllib3")).model_dump_json()) | changes)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "not a whole JSON document"),
        (a_run(a_trial("urllib3")).model_dump_json()[:-200], "not a whole JSON document .*cut short"),
        ("PNG\x00", "not a whole JSON document"),
        ("[1, 2]", "format None, and this clientlab reads format 1"),
        ("{}", "format None, and this clientlab reads format 1"),
        (
            changed(format=2),
            "format 2, and .* reads format 1; read it with the version that wrote it",
        ),
        (changed(format="1"), "format '1', and this clientlab reads format 1"),
        (changed(format=True), "format True, and this clientlab reads format 1"),
        (changed(experiment=[]), "experiment: .*; the file was changed or damaged"),
        (changed(experiment={}), "experiment.name: .*; the file was changed or damaged"),
        (changed(trials=[3]), "trials.0: .*; the file was changed or damaged"),
        (changed(trials=[{"strategy": "x"}]), r"trials.0.arm: .*required; the file was changed or damaged"),
        (changed(status="dome"), "status: .*; the file was changed or damaged"),
        (changed(extra=1), "extra: .*; the file was changed or damaged"),
    ],
)
def test_a_file_that_is_no_run_of_this_version_is_refused(content, says, tmp_path):
    """One line that names the file and what is wrong with it."""
    file = tmp_path / "run.json"
    file.write_text(content)
    with pytest.raises(LabError, match=says) as caught:
        read_run(file)
    assert str(caught.value).startswith(f"{file}: ")


def test_a_run_file_may_be_packed_by_gzip(tmp_path):
    """It is the same run, whatever the file is called."""
    run = a_run(a_trial("urllib3"))
    for name in ("run.json.gz", "run.json"):
        (tmp_path / name).write_bytes(gzip.compress(run.model_dump_json().encode()))
        assert read_run(tmp_path / name) == run


PACKED = gzip.compress(a_run(a_trial("urllib3")).model_dump_json().encode(), mtime=0)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (PACKED[:-100], "not a whole gzip file .*cut short or damaged"),
        (PACKED[:10] + b"\xff" * 50, "not a whole gzip file .*cut short or damaged"),
        (PACKED[:-8] + bytes(8), "not a whole gzip file .*cut short or damaged"),
        (gzip.compress(b"{}", mtime=0), "format None, and this clientlab reads format 1"),
        (
            gzip.compress(bytes(200_000), mtime=0),
            "more when unpacked, and no run has more than 100,000;",
        ),
    ],
    ids=["cut short", "no gzip data", "another checksum", "no run", "too large"],
)
def test_a_packed_file_that_is_no_run_is_refused(content, says, tmp_path, monkeypatch):
    """One line, also of a file that would unpack to more than a run file may have."""
    monkeypatch.setattr(regular_file, "MOST_BYTES", 100_000)
    file = tmp_path / "run.json.gz"
    file.write_bytes(content)
    with pytest.raises(LabError, match=says) as caught:
        read_run(file)
    assert str(caught.value).startswith(f"{file}: ")


def of_trial(**changes) -> str:
    """A run file with other values in its one trial."""
    trial = json.loads(a_measured_trial().model_dump_json()) | changes
    return json.dumps(json.loads(a_run(a_measured_trial()).model_dump_json()) | {"trials": [trial]})


def twice(changes: dict) -> str:
    """A run file with its one trial and a changed copy of it."""
    document = json.loads(a_run(a_measured_trial()).model_dump_json())
    document["trials"].append(document["trials"][0] | changes)
    return json.dumps(document)


def nested(levels: int) -> dict:
    """A mapping in mappings."""
    return {"inner": nested(levels - 1)} if levels else {}


def of_claim(**changes) -> str:
    """A run file with a claim of other parts."""
    document = json.loads(a_run(a_trial("a"), a_trial("b"), claims=[CLAIM]).model_dump_json())
    document["experiment"]["claims"][0] |= changes
    return json.dumps(document)


def histogram(content: bytes, cookie: int = 0x1C849314) -> dict:
    """A stored histogram of that content, compressed as it is to be."""
    packed = zlib.compress(content)
    encoded = base64.b64encode(struct.pack(">II", cookie, len(packed)) + packed).decode()
    return {"histogram": {"unit_seconds": 1e-9, "encoded": encoded}}


def header(lowest: int = 1, highest: int = 3600 * 10**9, digits: int = 3) -> bytes:
    """What a histogram's content begins with."""
    return struct.pack(">IIIIQQd", 0x1C849313, 0, 0, digits, lowest, highest, 1.0)


UNFIT = [
    (of_trial(errors={"reset": 400}), "trials.0: a trial that is done has a request that succeeded: 400 errors of 400"),
    (changed(created="yesterday"), "created: .*Invalid isoformat string: 'yesterday'"),
    (of_trial(started="\N{RIGHT-TO-LEFT OVERRIDE}"), "trials.0.started: .*Invalid isoformat string"),
    (of_trial(round=0), "trials.0.round: Input should be greater than or equal to 1"),
    (of_trial(round=10**9), "trials.0.round: Input should be less than or equal to 100000"),
    (of_trial(errors={str(number): 1 for number in range(1001)}), "trials.0.errors: .*at most 1000 items"),
    (of_trial(over_time=[{"at": 1, "requests": 1, "errors": 0}] * 10_001), "trials.0.over_time: .*at most 10000 items"),
    (changed(created="0001-01-01"), "created: '0001-01-01' is no time with a time zone"),
    (changed(run="../other"), "run: '../other' can't be a folder's name"),
    (of_trial(arm="other"), ": trial 0: the experiment has no arm 'other'"),
    (of_trial(strategy="other"), ": trial 0: the experiment has no arm 'urllib3' of .'other', 'aiohttp'"),
    (of_trial(errors={"\n" * 1000: -1}), "trials.0.errors.: Input should be greater"),
    (twice({}), ": two trials have the order 0"),
    (twice({"order": 1}), ": two trials that are done have the arm and round "),
    (of_trial(error_examples=nested(40)), "trials.0.error_examples.inner: Input should be a valid string"),
    (of_trial(error_examples=nested(40), reason="\r"), ": nested deeper than 32 levels"),
    (of_trial(busy={"client": -1e308}), "trials.0.busy.client: Input should be greater than or equal to 0"),
    (of_trial(requests=0), "trials.0: a trial that is done has a request that succeeded: 0 errors of 0"),
    (of_trial(errors={"reset": -1}), "trials.0.errors.reset: Input should be greater than or equal to 0"),
    (of_trial(wall_seconds=None), "trials.0: a trial that is done took some time, and not wall_seconds None"),
    (of_trial(wall_seconds=0), "trials.0: a trial that is done took some time"),
    (of_trial(wall_seconds=float("nan")), "trials.0.wall_seconds: Input should be"),
    (of_trial(requests_per_second=1e308), "trials.0.requests_per_second: Input should be less than"),
    (of_trial(requests=10**400), "trials.0.requests: "),
    (of_trial(workload="none"), ": trial of 'urllib3': there is no workload 'none'"),
    (of_trial(histogram={"encoded": "nonsense"}), "trials.0.histogram.encoded: no histogram:"),
    (of_trial(histogram={"encoded": ""}), "trials.0.histogram.encoded: no histogram:"),
    (of_trial(histogram={"encoded": "A" * 2**21}), "no histogram: 2,097,152 characters, and no more than 1,048,576"),
    (of_trial(**histogram(bytes(10**8))), "no histogram: it unpacks to more than 304,168 bytes"),
    (of_trial(**histogram(b"short")), "trials.0.histogram.encoded: no histogram:"),
    (of_trial(**histogram(header(), cookie=1)), "trials.0.histogram.encoded: no histogram:"),
    (of_trial(**histogram(header(highest=2**62))), r"no histogram: its lowest and highest value and digits are \(1, 4"),
    (of_trial(**histogram(header(digits=5))), "no histogram: its lowest and highest value and digits are"),
    (of_trial(**histogram(header() + b"\xff" * 9)), "no histogram: "),
    (of_trial(**histogram(header() + b"\xfe\xff\xff\xff\xff\xff\x01")), "no histogram: .* requests in a bucket"),
    (of_claim(b=None), "experiment: claim 'faster': it does not name what a claim of kind 'less' is made of"),
    (of_claim(d="a"), "experiment: claim 'faster': it does not name what"),
    (of_claim(kind="optimum", a=None, b=None, arms=["a"]), "a sweep has 3 arms or more, and not .'a'."),
    (of_claim(kind="optimum", a=None, b=None, arms=["a", "b", "c"]), "there is no arm 'a' with a place on an axis"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "says"), UNFIT, ids=range(len(UNFIT)))
def test_a_file_whose_parts_do_not_fit_each_other_is_refused(content, says, tmp_path):
    """It is valid by the schema, and no report could be made of it."""
    file = tmp_path / "run.json"
    file.write_text(content)
    with pytest.raises(LabError, match=says) as caught:
        read_run(file)
    assert re.fullmatch(f"{file}: [^\n]*; the file was changed or damaged", str(caught.value))


@pytest.mark.parametrize("content", [UNFIT[0][0], UNFIT[1][0], UNFIT[2][0], UNFIT[8][0]])
def test_such_a_file_is_not_imported_either(content, store, tmp_path):
    """One line, and nothing is kept."""
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as made:
        made.writestr(RUN_FILE, content.replace("20240506-070809-run-abcd", "another"))
    before = store.names()
    with pytest.raises(LabError, match=r"x.zip: run.json: [^\n]*; the file was changed or damaged"):
        archive.unpack(store, tmp_path / "x.zip", force=False)
    assert store.names() == before


def test_a_pipe_in_the_place_of_a_run_file_is_not_read(store):
    """Nobody writes into it, so a reader would wait for ever: it is no run of a listing, and a path to it an error."""
    before = store.names()
    pipe = store.folder / "piped" / RUN_FILE
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    assert store.names() == before
    with pytest.raises(LabError, match="it is no regular file; name a run file"):
        read_run(pipe)


@pytest.mark.parametrize("name", [JOURNAL_FILE, ".held"])
def test_a_pipe_beside_a_run_file_is_not_read_either(name, store):
    """Whoever lists the runs would wait for ever."""
    run = store.names()[0]
    os.mkfifo(store.folder / run / name)
    store.version(run)
    if name == JOURNAL_FILE:
        with pytest.raises(LabError, match=f"{JOURNAL_FILE}: it is no regular file"):
            store.read(run)


def test_a_folder_whose_name_no_terminal_can_show_is_no_run(store):
    """Bytes that are no text would break the page, and a line feed would forge a line of the log."""
    before = store.names()
    for name in (b"\xff", b"20240506-000000\nforged", b"\x1b[2J"):
        os.mkdir(os.fsencode(store.folder) + b"/" + name)  # noqa: PTH102 - the name is no text
        with open(os.fsencode(store.folder) + b"/" + name + b"/" + RUN_FILE.encode(), "w") as file:  # noqa: PTH123
            file.write("{}")
    assert store.names() == before


def test_a_very_large_file_is_not_read(tmp_path):
    """It would take gigabytes of memory to find out that it is no run."""
    file = tmp_path / "run.json"
    with file.open("wb") as sparse:
        sparse.truncate((100 << 20) + 1)
    with pytest.raises(LabError, match="104,857,601 bytes, and no run has more than 104,857,600"):
        read_run(file)


def test_a_file_in_another_encoding_is_refused(tmp_path):
    """A run file that is not UTF-8 is refused as no JSON document."""
    (tmp_path / "run.json").write_bytes(b"\xff\xfe{\x00}\x00")
    with pytest.raises(LabError, match="not a whole JSON document"):
        read_run(tmp_path / "run.json")
