"""What stays of the folder of a trial that was ended early."""

from __future__ import annotations

from clientlab.running.trial_folder import MOST_OUTPUT, keep_output


def test_only_the_end_of_what_the_process_wrote_stays(tmp_path):
    """A sample log and an endless output would take the room of the trials after it."""
    folder = tmp_path / "trial-0000"
    (folder / "warm-up").mkdir(parents=True)
    for name in ("context.pickle", "trial.samples", "warm-up/trial.samples"):
        (folder / name).write_bytes(b"x" * 1000)
    (folder / "trial.log").write_bytes(b"a" * MOST_OUTPUT + b"the error")
    keep_output(folder)
    assert [path.name for path in folder.iterdir()] == ["trial.log"]
    kept = (folder / "trial.log").read_bytes()
    assert len(kept) == MOST_OUTPUT
    assert kept.endswith(b"a" * 9 + b"the error")


def test_the_output_of_each_shard_stays(tmp_path):
    """The shards of a divided trial share its folder; those that wrote nothing leave no file."""
    folder = tmp_path / "trial-0000"
    folder.mkdir()
    for name, text in (("trial-1.log", "one"), ("trial-2.log", ""), ("trial-10.log", "ten"), ("trial.errors", "x")):
        (folder / name).write_text(text)
    keep_output(folder)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"trial-1.log": "one", "trial-10.log": "ten"}


def test_nothing_stays_where_the_process_wrote_nothing(tmp_path):
    """Nor where there is no folder."""
    folder = tmp_path / "trial-0000"
    folder.mkdir()
    (folder / "trial.log").touch()
    (folder / "trial.samples").touch()
    keep_output(folder)
    assert not folder.exists()
    keep_output(folder)
