"""The results folder: whole files whatever happens, runs by name, and files that can't be read."""

from __future__ import annotations

import base64
import json
import re
import struct
import subprocess
import sys
import zipfile
import zlib

import pytest

from clientlab.errors import IncompleteRun, LabError
from clientlab.reports import as_junit, as_markdown, html, run_list
from clientlab.runs import parcel
from clientlab.runs.claims import judged
from clientlab.runs.document import AskedClaim, Run
from clientlab.runs.store import RUN_FILE, Store, read_run
from clients.documents import a_run, a_trial
from clients.report_runs import a_measured_trial

NAMES = ("20240101-000000-demo-aaaa", "20240101-000001-demo-bbbb", "20240102-000000-run-cccc")

FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from clientlab.errors import IncompleteRun
from clientlab.runs.store import Store, read_run

folder, name = sys.argv[1:]
store = Store(Path(folder))
run = store.read(name)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
size = (store.find(name)).stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, size + 50))
try:
    store.save(run.model_copy(update={"trials": run.trials * 2}))
except IncompleteRun as error:
    print(error)
"""


@pytest.fixture
def store(tmp_path):
    """A folder with three runs."""
    made = Store(tmp_path)
    for name in NAMES:
        made.claim(name)
        made.save(a_run(a_trial("urllib3"), name=name))
    return made


def test_a_run_that_was_saved_is_read_back_equal(store):
    """Every figure, to the last digit."""
    run = a_run(a_trial("urllib3", wall=0.1 + 0.2, errors={"reset": 3}), name=NAMES[0])
    store.save(run)
    assert store.read(NAMES[0]) == run


def test_each_save_takes_the_place_of_the_last_and_leaves_nothing_beside_it(store):
    """One file in the run's folder."""
    store.save(a_run(a_trial("urllib3"), a_trial("urllib3", 2), name=NAMES[0]))
    assert [trial.round for trial in store.read(NAMES[0]).trials] == [1, 2]
    assert [path.name for path in (store.folder / NAMES[0]).iterdir()] == [RUN_FILE]


def test_a_full_disk_leaves_the_last_save_whole(store):
    """A process that may write no larger file: the error names it, nothing is lost, nothing is left over."""
    before = store.find(NAMES[0]).read_bytes()
    command = [sys.executable, "-c", FULL_DISK, str(store.folder), NAMES[0]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith(f"{store.find(NAMES[0])}: File too large; it holds all but the last trial")
    assert store.find(NAMES[0]).read_bytes() == before
    assert [path.name for path in (store.folder / NAMES[0]).iterdir()] == [RUN_FILE]


def test_a_folder_that_has_gone_is_an_incomplete_run(store):
    """It can't be saved; the message says where."""
    with pytest.raises(IncompleteRun, match=r"gone/run.json: No such file or directory; .*make room"):
        store.save(a_run(name="gone"))


def test_claiming_makes_the_run_folder_and_those_above(tmp_path):
    """Once."""
    place = Store(tmp_path / "a" / "b").claim("run")
    assert place.is_dir()
    with pytest.raises(LabError, match=r"results folder .*run: File exists; name another with --out"):
        Store(tmp_path / "a" / "b").claim("run")


def test_a_results_folder_that_is_a_file_is_refused(tmp_path):
    """With what to do."""
    (tmp_path / "taken").touch()
    with pytest.raises(LabError, match="taken/run: Not a directory; name another with --out"):
        Store(tmp_path / "taken").claim("run")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (NAMES[0], NAMES[0]),
        ("20240102", NAMES[2]),
        ("20240101-000001", NAMES[1]),
        ("last", NAMES[2]),
    ],
)
def test_a_run_is_found_by_its_name_or_its_beginning_or_as_the_last(asked, found, store):
    """As long as the beginning fits one run only."""
    assert store.find(asked) == store.folder / found / RUN_FILE


def test_a_run_is_found_by_the_path_of_its_file_or_folder(store, tmp_path):
    """Wherever it lies."""
    elsewhere = Store(tmp_path / "empty")
    assert elsewhere.find(str(store.folder / NAMES[1])) == store.folder / NAMES[1] / RUN_FILE
    copy = tmp_path / "copy.json"
    copy.write_bytes(store.find(NAMES[1]).read_bytes())
    assert elsewhere.read(str(copy)).run == NAMES[1]


def test_a_whole_name_wins_over_those_that_begin_with_it(store):
    """A run whose name is the beginning of another's can still be named."""
    store.claim(NAMES[0] + "-again")
    store.save(a_run(name=NAMES[0] + "-again"))
    assert store.find(NAMES[0]).parent.name == NAMES[0]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("20240101", f"run '20240101' fits {NAMES[0]}, {NAMES[1]}; write more of its name"),
        ("nothing", f"run 'nothing' is not in .*; there are {', '.join(NAMES)}"),
    ],
)
def test_a_name_that_fits_none_or_several_is_refused_with_what_there_is(asked, says, store):
    """The choice is left to the user."""
    with pytest.raises(LabError, match=says):
        store.find(asked)


@pytest.mark.parametrize("asked", ["last", "x"])
def test_an_empty_results_folder_says_so(asked, tmp_path):
    """And so does one that is not there."""
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(LabError, match=f"run '{asked}' is not in {folder}; there is none yet"):
            Store(folder).find(asked)


CLAIM = AskedClaim(name="faster", text="a is faster", kind="less", a="a", b="b")


def killed() -> Run:
    """What is left of a run of three rounds with a claim, whose lab was killed before its end."""
    trials = [a_trial(name, n, wall + n / 100) for n in (1, 2, 3) for name, wall in (("a", 1.0), ("b", 2.0))]
    return a_run(*trials, name=NAMES[2], claims=[CLAIM]).model_copy(update={"status": "running"})


@pytest.mark.parametrize(
    "stale", [[], judged(killed().model_copy(update={"trials": []}))], ids=["no verdicts", "those of before"]
)
def test_the_claims_of_a_run_that_was_killed_are_judged_when_it_is_read(stale, store):
    """Its file holds no verdicts, or those of what it had when it went on; all else is as it was written."""
    store.save(killed().model_copy(update={"claims": stale}))
    read = store.read("last")
    assert [(claim.verdict, claim.rounds) for claim in read.claims] == [("supported", 3)]
    assert read.model_copy(update={"claims": []}) == killed()
    assert "| a is faster | supported | " in as_markdown.render(read)
    assert 'name="faster: a is faster"' in as_junit.render(read, [])
    assert "supported" in html.render(read)
    assert run_list.rows(store)[-1]["claims"]["supported"] == 1


def changed(**changes) -> str:
    """A run file with other values at its top."""
    return json.dumps(json.loads(a_run(a_trial("urllib3")).model_dump_json()) | changes)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "not a whole JSON document"),
        (a_run(a_trial("urllib3")).model_dump_json()[:-200], "not a whole JSON document .*cut short"),
        ("PNG\x00", "not a whole JSON document"),
        ("[1, 2]", "format None, and this clientlab reads format 2"),
        ("{}", "format None, and this clientlab reads format 2"),
        (changed(format=1), "format 1, and this clientlab reads format 2; read it with the version that wrote it"),
        (changed(format="2"), "format '2', and this clientlab reads format 2"),
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


def of_trial(**changes) -> str:
    """A run file with other values in its one trial."""
    trial = json.loads(a_measured_trial().model_dump_json()) | changes
    return json.dumps(json.loads(a_run(a_measured_trial()).model_dump_json()) | {"trials": [trial]})


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
    (of_trial(requests=0), "trials.0: a trial that is done has a request that succeeded: 0 errors of 0"),
    (of_trial(errors={"reset": -1}), "trials.0.errors.reset: Input should be greater than or equal to 0"),
    (of_trial(wall_seconds=None), "trials.0: a trial that is done took some time, and not wall_seconds None"),
    (of_trial(wall_seconds=0), "trials.0: a trial that is done took some time"),
    (of_trial(wall_seconds=float("nan")), "trials.0.wall_seconds: Input should be"),
    (of_trial(requests_per_second=1e308), "trials.0.requests_per_second: Input should be less than"),
    (of_trial(requests=10**400), "trials.0.requests: "),
    (of_trial(workload="none"), ": trial of 'urllib3': there is no workload 'none'"),
    (of_trial(histogram={"encoded": "nonsense"}), "trials.0.histogram.encoded: no histogram: "),
    (of_trial(histogram={"encoded": ""}), "trials.0.histogram.encoded: no histogram: "),
    (of_trial(histogram={"encoded": "A" * 2**21}), "no histogram: 2,097,152 characters, and no more than 1,048,576"),
    (of_trial(**histogram(bytes(10**8))), "no histogram: it unpacks to more than 304,168 bytes"),
    (of_trial(**histogram(b"short")), "trials.0.histogram.encoded: no histogram: "),
    (of_trial(**histogram(header(), cookie=1)), "trials.0.histogram.encoded: no histogram: "),
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


@pytest.mark.parametrize("content", [UNFIT[0][0], UNFIT[8][0], UNFIT[9][0], UNFIT[12][0]])
def test_such_a_file_is_not_imported_either(content, store, tmp_path):
    """One line, and nothing is kept."""
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as made:
        made.writestr(RUN_FILE, content.replace("20240506-070809-run-abcd", "another"))
    before = store.names()
    with pytest.raises(LabError, match=r"x.zip: run.json: [^\n]*; the file was changed or damaged"):
        parcel.unpack(store, tmp_path / "x.zip", force=False)
    assert store.names() == before


def test_a_file_in_another_encoding_is_refused(tmp_path):
    """It is no JSON document."""
    (tmp_path / "run.json").write_bytes(b"\xff\xfe{\x00}\x00")
    with pytest.raises(LabError, match="not a whole JSON document"):
        read_run(tmp_path / "run.json")


def test_one_process_measures_at_a_time(tmp_path):
    """The other waits, as often as it is told to, until the first has let go."""
    store, waited = Store(tmp_path / "results"), []
    first = store.alone(lambda: None)
    first.__enter__()

    def wait() -> None:
        waited.append(True)
        if len(waited) == 3:
            first.__exit__(None, None, None)

    with store.alone(wait):
        assert len(waited) == 3
