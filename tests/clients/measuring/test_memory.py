"""Memory of processes in proportion: sums, the sample log, peaks, and what cannot be read."""

from __future__ import annotations

import os

from clientlab.measuring.usage import Footprint, footprint

KIB = 1024


def a_process(proc, pid: int, pss: int, rss: int, peak: int, log: int = 0) -> None:
    """The files of a process, all in KiB. `log`: proportional size of its two mappings of a sample log together."""
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    (folder / "smaps_rollup").write_text(
        f"5555-7fff ---p 00000000 00:00 0    [rollup]\nRss:   {rss} kB\nPss:    {pss} kB\nPss_Dirty:   1 kB\n"
    )
    (folder / "status").write_text(f"Name:\tx\nVmHWM:\t  {peak} kB\nVmRSS:\t {rss} kB\n")
    halves = (log // 2, log - log // 2)
    mapped = "".join(
        f"7f00-7f01 rw-s 00000000 08:01 7   /tmp/trial-0000/trial.samples\nSize:  99 kB\nRss:  9 kB\nPss:   {size} kB\n"
        for size in halves
    )
    (folder / "smaps").write_text(f"55-56 r-xp 0 08:01 3   /lib/libc.so\nRss:  7 kB\nPss:   5 kB\n{mapped}")


def test_shared_pages_count_once_and_the_log_does_not(tmp_path):
    """A peak is the kernel's peak of the resident set, less what of the resident set is others' share."""
    proc = tmp_path
    a_process(proc, os.getpid(), 1, 1, 1)
    (proc / "self").symlink_to(str(os.getpid()))
    a_process(proc, 7, pss=2000, rss=9000, peak=9500, log=301)
    a_process(proc, 8, pss=1000, rss=9000, peak=8999)
    assert footprint([7, 8], {7, 8}, proc) == Footprint((2000 - 301 + 1000) * KIB, (2000 - 301 + 500 + 1000) * KIB)
