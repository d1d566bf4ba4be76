"""A run as one file, to be given to somebody else: a zip of its run file and the samples that were kept.

What comes in is not trusted: nothing is unpacked before all of it was looked at, and by names of our own only.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from clientlab.errors import FieldError, LabError
from clientlab.results import kept_samples
from clientlab.results.document import Run
from clientlab.results.journal import JOURNAL_FILE
from clientlab.results.regular_file import MOST_BYTES as MOST_RUN_BYTES
from clientlab.results.store import RUN_FILE, Store, read_run, run_of

MOST_BYTES = 1 << 32
"""Of all that a parcel holds, as its members are; samples stay compressed in it."""
MOST_SAMPLE_BYTES = 1 << 34
"""Of one trial's samples when they are read: a hundred million requests."""
_COPY_BYTES = 1 << 20
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def pack(store: Store, name: str, target: Path) -> int:
    """Write the run of that name to `target`, whole or not at all; how many files of samples are in it."""
    if target.suffix != ".zip":
        raise LabError(f"{target}: a run is given away as a zip; end the name with .zip")
    file = store.find(name)
    run = read_run(file)
    goes_on = file.with_name(JOURNAL_FILE).exists()
    samples = sorted(path for path in (file.parent / kept_samples.FOLDER).glob("*.npz") if path.is_file())
    beside = target.with_suffix(".part")
    try:
        with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as parcel:
            if goes_on:  # the file alone has not all its trials
                parcel.writestr(RUN_FILE, run.model_dump_json(indent=1))
            else:
                parcel.write(file, RUN_FILE)
            for path in samples:
                parcel.write(path, f"{kept_samples.FOLDER}/{path.name}", zipfile.ZIP_STORED)
        beside.replace(target)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise LabError(f"{target}: {error.strerror}; name another file") from error
    return len(samples)


def unpack(store: Store, source: Path, *, force: bool) -> Run:
    """Put the run of a parcel into the store. Raises LabError for whatever is wrong with it; then nothing is there.

    A run of that name that is there already is replaced only where `force`d.
    """
    try:
        with zipfile.ZipFile(source) as parcel:
            _check_members(parcel, source)
            run = run_of(parcel.read(RUN_FILE), f"{source}: {RUN_FILE}")
            run_folder = _run_folder(store, run, source, force=force)
            store.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".import-", dir=store.folder) as folder:
                coming = Path(folder) / run.run
                coming.mkdir()
                for member in parcel.infolist():
                    _take(parcel, member, coming, run, source)
                if run_folder.exists():
                    with store.hold(run.run):  # refused while it is measured
                        run_folder.rename(Path(folder) / "replaced")
                        coming.replace(run_folder)
                else:
                    coming.replace(run_folder)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise LabError(f"{source}: not a whole zip of a run ({error})") from error
    except OSError as error:
        raise LabError(f"{error.filename or source}: {error.strerror or error}") from error
    return run


def _check_members(parcel: zipfile.ZipFile, source: Path) -> None:
    """Names, sizes and kinds of all members, before one of them is read."""
    seen: set[str] = set()
    for member in parcel.infolist():
        name = member.filename
        path = PurePosixPath(name)
        sample = path.parent == PurePosixPath(kept_samples.FOLDER) and kept_samples.FILE_NAME.fullmatch(path.name)
        if not (name == RUN_FILE or (sample and name == str(path))) or name in seen:
            raise LabError(f"{source}: {name!r} has no place in a run; it is no parcel of clientlab's")
        if member.flag_bits & 1:
            raise LabError(f"{source}: {name!r} is encrypted; export the run without a password")
        seen.add(name)
    if RUN_FILE not in seen:
        raise LabError(f"{source}: there is no {RUN_FILE} in it; it is no parcel of clientlab's")
    sizes = (("", sum(one.file_size for one in parcel.infolist()), MOST_BYTES),
             (f" of {RUN_FILE}", parcel.getinfo(RUN_FILE).file_size, MOST_RUN_BYTES))  # fmt: skip
    for what, size, most in sizes:
        if size > most:
            raise LabError(f"{source}: {size:,} bytes{what}; no more than {most:,} are taken")


def _run_folder(store: Store, run: Run, source: Path, *, force: bool) -> Path:
    if not _SAFE_NAME.fullmatch(run.run):
        raise LabError(f"{source}: {RUN_FILE}: run: {run.run[:80]!r} can't be a folder's name; the file was changed")
    run_folder = store.folder / run.run
    if run_folder.is_symlink() or (run_folder.exists() and not force):
        raise FieldError([], f"{source}: run {run.run} is in {store.folder} already; replace it with `force`")
    return run_folder


def _take(parcel: zipfile.ZipFile, member: zipfile.ZipInfo, coming: Path, run: Run, source: Path) -> None:
    """One member into the folder of the run; zipfile reads no more of it than its checked size."""
    target = coming / RUN_FILE
    if member.filename != RUN_FILE:
        target = coming / kept_samples.FOLDER / PurePosixPath(member.filename).name
        target.parent.mkdir(exist_ok=True)
        number = int(re.sub(r"\D", "", target.name))
        if number not in {trial.order for trial in run.every_trial}:
            raise LabError(f"{source}: {member.filename}: the run has no trial {number}; the file was changed")
    with parcel.open(member) as coming_in, target.open("xb") as file:
        shutil.copyfileobj(coming_in, file, _COPY_BYTES)
    if member.filename != RUN_FILE:
        with target.open("rb") as file:
            kept_samples.check(file, f"{source}: {member.filename}", MOST_SAMPLE_BYTES)
