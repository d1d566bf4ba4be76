"""What stays of the folder of a trial that was ended early."""

from __future__ import annotations

from clientlab.running.trial_folder import keep_output


def test_only_what_the_process_wrote_stays(tmp_path):
    """A sample log would take the room of the trials after it."""
    folder = tmp_path / "trial-0000"
    (folder / "warm-up").mkdir(parents=True)
    for name in ("context.pickle", "trial.samples", "warm-up/trial.samples"):
        (folder / name).write_bytes(b"x" * 1000)
    (folder / "trial.log").write_text("the error")
    keep_output(folder)
    assert [path.name for path in folder.iterdir()] == ["trial.log"]
    assert (folder / "trial.log").read_text() == "the error"


def test_nothing_stays_where_the_process_wrote_nothing(tmp_path):
    """Nor where there is no folder."""
    folder = tmp_path / "trial-0000"
    folder.mkdir()
    (folder / "trial.log").touch()
    (folder / "trial.samples").touch()
    keep_output(folder)
    assert not folder.exists()
    keep_output(folder)
